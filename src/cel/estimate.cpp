// The cheapest and the dearest run of an expression before it runs (cel-go checker/cost.go, apiserver/pkg/cel/library/cost.go), from the
// bounds that the declared types carry.
#include <cmath>

#include "cel/cost.h"
#include "cel/cost_factors.h"
#include "cel/functions.h"

namespace berth::cel {
namespace {

constexpr std::uint64_t kMost = UINT64_MAX;

std::uint64_t add(std::uint64_t a, std::uint64_t b) { return a > kMost - b ? kMost : a + b; }
std::uint64_t multiply(std::uint64_t a, std::uint64_t b) { return b != 0 && a > kMost / b ? kMost : a * b; }
std::uint64_t scale(std::uint64_t a, double factor) {
  const double out = std::ceil(static_cast<double>(a) * factor);
  return out >= 18446744073709551616.0 ? kMost : static_cast<std::uint64_t>(out);
}

/// Costs and sizes alike.
struct Range {
  std::uint64_t min = 0, max = 0;
  Range operator+(const Range& o) const { return {add(min, o.min), add(max, o.max)}; }
  Range operator*(const Range& o) const { return {multiply(min, o.min), multiply(max, o.max)}; }
  Range operator*(double factor) const { return {scale(min, factor), scale(max, factor)}; }
  Range operator|(const Range& o) const { return {std::min(min, o.min), std::max(max, o.max)}; }
};
constexpr Range kUnknown{0, kMost};
constexpr Range fixed(std::uint64_t n) { return {n, n}; }

struct Estimate {
  Range cost;
  std::optional<Range> size;      ///< Characters or elements.
  std::optional<Range> elements;  ///< The size of each element, where that is known.
};

bool is_scalar(const Type& t) {
  switch (t->kind) {
    case TypeKind::kBool:
    case TypeKind::kDouble:
    case TypeKind::kDuration:
    case TypeKind::kInt:
    case TypeKind::kTimestamp:
    case TypeKind::kUint:
      return true;
    default:
      return t->kind == TypeKind::kOpaque && t->name == "optional_type" && is_scalar(t->params[0]);
  }
}

std::uint64_t literal_size(const Value& v) {
  if (v.kind() == Value::Kind::kBytes) return v.text().size();
  if (v.kind() != Value::Kind::kString) return 1;
  return static_cast<std::uint64_t>(
      std::count_if(v.text().begin(), v.text().end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

class Estimator {
 public:
  Estimate run(const Node& n) {
    auto out = one(n);
    if (!out.size) out.size = typed_size(n.type);
    return out;
  }

 private:
  static std::optional<Range> typed_size(const Type& type) {
    if (type == nullptr) return std::nullopt;
    if (type->max_size) return Range{0, *type->max_size};
    if (is_scalar(type)) return fixed(1);
    return std::nullopt;
  }
  static Range size(const Estimate& e) { return e.size.value_or(kUnknown); }

  Estimate one(const Node& n) {
    switch (n.kind) {
      case NodeKind::kLiteral:
        return {fixed(0), fixed(literal_size(n.literal)), std::nullopt};
      case NodeKind::kIdent:
        return ident(n);
      case NodeKind::kSelect:
        return select(n);
      case NodeKind::kCall:
        return call(n);
      case NodeKind::kList:
      case NodeKind::kMap:
        return aggregate(n);
      case NodeKind::kComprehension:
        return n.iter_var == "#unused" ? bind(n) : comprehension(n);
      case NodeKind::kStruct:
        return made(n);
    }
    return {};
  }

  Estimate made(const Node& n) {
    Estimate out{fixed(kStructCost), std::nullopt, std::nullopt};
    for (const auto& child : n.children) out.cost = out.cost + run(*child).cost;
    return out;
  }

  Estimate ident(const Node& n) {
    Estimate out{fixed(1), typed_size(n.type), std::nullopt};
    for (auto it = locals_.rbegin(); it != locals_.rend(); ++it) {
      if (it->first != n.name) continue;
      if (!out.size) out.size = it->second.size;
      out.elements = it->second.elements;
      break;
    }
    return out;
  }
  Estimate select(const Node& n) {
    const auto operand = run(*n.children[0]);
    if (n.is_test_only) return {operand.cost, fixed(1), std::nullopt};
    const auto kind = n.children[0]->type->kind;
    const bool costs = kind == TypeKind::kMap || kind == TypeKind::kStruct || kind == TypeKind::kTypeParam;
    return {operand.cost + fixed(costs ? 1 : 0), std::nullopt, std::nullopt};
  }
  Estimate aggregate(const Node& n) {
    const bool is_list = n.kind == NodeKind::kList;
    Estimate out{fixed(is_list ? kListCost : kMapCost), fixed(is_list ? n.children.size() : n.children.size() / 2), std::nullopt};
    std::optional<Range> elements;
    for (std::size_t i = 0; i < n.children.size(); ++i) {
      const auto child = run(*n.children[i]);
      out.cost = out.cost + child.cost;
      if (is_list || i % 2 == 1) elements = elements ? *elements | size(child) : size(child);
    }
    out.elements = elements.value_or(fixed(0));
    return out;
  }

  Estimate bind(const Node& n) {
    const auto value = run(n.accu_init());
    locals_.emplace_back(n.accu_var, value);
    auto out = run(n.result());
    locals_.pop_back();
    out.cost = out.cost + value.cost + fixed(kListCost);
    return out;
  }
  Estimate comprehension(const Node& n) {
    const auto range = run(n.range());
    const auto accu = run(n.accu_init());
    locals_.emplace_back(n.accu_var, accu);
    locals_.emplace_back(n.iter_var, Estimate{{}, n.iter_var2.empty() ? range.elements : std::nullopt, std::nullopt});
    if (!n.iter_var2.empty()) locals_.emplace_back(n.iter_var2, Estimate{{}, range.elements, std::nullopt});
    const auto condition = run(n.condition());
    const auto step = run(n.step());
    locals_.resize(locals_.size() - (n.iter_var2.empty() ? 1 : 2));
    const auto result = run(n.result());
    locals_.pop_back();
    Estimate out{range.cost + accu.cost + result.cost + size(range) * (step.cost + condition.cost), std::nullopt, std::nullopt};
    if (n.accu_init().kind == NodeKind::kLiteral) out.size = accu.size;
    if (n.accu_init().kind == NodeKind::kList || n.accu_init().kind == NodeKind::kMap) {
      out.size = size(range);
      out.elements = step.elements;
    }
    return out;
  }

  Estimate call(const Node& n) {
    std::vector<Estimate> args;
    Range sum;
    for (const auto& child : n.children) {
      args.push_back(run(*child));
      sum = sum + args.back().cost;
    }
    if (n.name == op::kAnd || n.name == op::kOr)
      return {Range{args[0].cost.min, (args[0].cost + args[1].cost).max}, fixed(1), std::nullopt};
    if (n.name == op::kConditional && !n.has_target) {
      Estimate out{args[0].cost + (args[1].cost | args[2].cost), size(args[1]) | size(args[2]), std::nullopt};
      if (args[1].elements && args[2].elements) out.elements = *args[1].elements | *args[2].elements;
      return out;
    }
    if (n.name == "dyn") return {fixed(1) + sum, args[0].size, args[0].elements};
    Estimate out;
    std::optional<Range> cost;
    // What a call may mean decides between the cheapest and the dearest.
    for (const auto* overload : n.overloads) {
      auto one = overload_cost(n, *overload, args);
      cost = cost ? *cost | one.cost : one.cost;
      if (one.size) out.size = out.size ? *out.size | *one.size : *one.size;
      if (one.elements) out.elements = one.elements;
    }
    out.cost = cost.value_or(fixed(1)) + sum;
    return out;
  }

  static Estimate overload_cost(const Node& n, const Overload& overload, const std::vector<Estimate>& args) {
    const std::string_view f = n.name, id = overload.id;
    const auto sized = [&](std::size_t i) { return size(args[i]); };
    const auto regex = [&] { return (sized(0) + fixed(1)) * kTraversal * (sized(1) * kRegexPerCharacter); };
    if (id == "index_list" || id == "index_map") return {fixed(1), args[0].elements, std::nullopt};
    if (f == "check") return {fixed(350'000), std::nullopt, std::nullopt};
    if (is_one_of(f, {"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})) {
      const auto& target = n.children[0]->type;
      if (target->kind != TypeKind::kList) return {sized(0) * kTraversal, std::nullopt, std::nullopt};
      Range each = fixed(1);
      const auto kind = target->params[0]->kind;
      if (kind == TypeKind::kString || kind == TypeKind::kBytes)
        each = each + args[0].elements.value_or(typed_size(target->params[0]).value_or(kUnknown)) * kTraversal;
      return {sized(0) * each, std::nullopt, std::nullopt};
    }
    if (is_one_of(f, {"url", "lowerAscii", "upperAscii", "substring", "trim"})) return {sized(0) * kTraversal, sized(0), std::nullopt};
    if (f == "replace")
      return {sized(0) * (2 * kTraversal), Range{0, multiply(add(sized(0).max, 1), std::max<std::uint64_t>(1, sized(2).max))},
              std::nullopt};
    if (f == "split") return {sized(0) * (2 * kTraversal), Range{0, add(sized(0).max, 1)}, sized(0)};
    if (f == "join") {
      const auto separator = args.size() > 1 ? sized(1) : fixed(0);
      const auto whole = sized(0) * (args[0].elements.value_or(kUnknown) + separator);
      return {whole * (2 * kTraversal), whole, std::nullopt};
    }
    if (f == "find" || f == "findAll")
      return {regex(), f == "find" ? Range{0, sized(0).max} : Range{0, add(sized(0).max, 1)}, Range{0, sized(0).max}};
    if (id == "matches_string") return {regex(), std::nullopt, std::nullopt};
    if (is_one_of(f, {"cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"}) || id == "string_to_ip")
      return {sized(0) * kTraversal, std::nullopt, std::nullopt};
    if (f == "ip.isCanonical") return {sized(0) * (2 * kTraversal), std::nullopt, std::nullopt};
    if (id == "list_slice" || id == "list_reverse" || id == "list_flatten" || id == "list_flatten_int")
      return {sized(0) + fixed(1 + kListCost), sized(0), args[0].elements};
    if (id == "lists_range") return {kUnknown, kUnknown, std::nullopt};
    if (id == "list_distinct" || id.ends_with("_sort"))
      return {sized(0) * sized(0) * 2.1 + fixed(1 + kListCost), sized(0), args[0].elements};
    if (id.starts_with("list_sets_"))
      return {sized(0) * sized(1) * (id == "list_sets_equivalent_list" ? 2.0 : 1.0) + fixed(1), std::nullopt, std::nullopt};
    return standard_cost(n, id, args);
  }

  static Estimate standard_cost(const Node& n, std::string_view id, const std::vector<Estimate>& args) {
    const auto sized = [&](std::size_t i) { return size(args[i]); };
    if (id == "string_format") return {sized(0) * kTraversal, std::nullopt, std::nullopt};
    if (id == "string_to_bytes") return {sized(0) * kTraversal, Range{sized(0).min, multiply(sized(0).max, 4)}, std::nullopt};
    if (id == "bytes_to_string") return {sized(0) * kTraversal, Range{sized(0).min / 4, sized(0).max}, std::nullopt};
    if (id == "strings_quote") return {sized(0) * kTraversal, Range{sized(0).min + 2, add(multiply(sized(0).max, 2), 2)}, std::nullopt};
    if (id == "starts_with_string" || id == "ends_with_string") return {sized(1) * kTraversal, std::nullopt, std::nullopt};
    if (id == "in_list") return {sized(1), std::nullopt, std::nullopt};
    if (id == "contains_string") return {(sized(0) * kTraversal) * (sized(1) * kTraversal), std::nullopt, std::nullopt};
    if (id == "add_string" || id == "add_bytes") return {(sized(0) + sized(1)) * kTraversal, sized(0) + sized(1), std::nullopt};
    if (id == "add_list") {
      Estimate out{fixed(1), sized(0) + sized(1), std::nullopt};
      if (args[0].elements && args[1].elements) out.elements = *args[0].elements | *args[1].elements;
      return out;
    }
    const bool compares_text = (id.ends_with("_string") || id.ends_with("_bytes")) && (id.starts_with("less") || id.starts_with("greater"));
    if (n.name == op::kEquals && n.children[0]->type->kind == TypeKind::kOpaque && n.children[0]->type->name != "optional_type")
      return {fixed(1), std::nullopt, std::nullopt};
    if (compares_text || id == "equals" || id == "not_equals") {
      const auto smallest = std::min(sized(0).max, sized(1).max);
      return {Range{smallest > 0 ? 1U : 0U, smallest} * kTraversal, std::nullopt, std::nullopt};
    }
    return {fixed(1), std::nullopt, std::nullopt};
  }

  std::vector<std::pair<std::string, Estimate>> locals_;
};

}  // namespace

CostEstimate estimate_cost(const Node& root, const Environment&) {
  const auto out = Estimator().run(root);
  return {out.cost.min, out.cost.max};
}

}  // namespace berth::cel
