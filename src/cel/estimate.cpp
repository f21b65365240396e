// The cheapest and the dearest run of an expression before it runs (cel-go checker/cost.go, apiserver/pkg/cel/library/cost.go), from the
// bounds that the declared types carry. A rule of a schema counts as cel-go does: by the place that a value has there, which is lost by
// most calls; what has no place any more is taken for unbounded, an element of it for one of the root.
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

/// How large the entries of a list or map are.
struct Entries {
  bool is_list = true;
  Range key, value;
  Entries operator|(const Entries& o) const { return {is_list, key | o.key, value | o.value}; }
};

struct Estimate {
  Range cost;
  std::optional<Range> size;  ///< Characters or elements.
  std::optional<Entries> entries;
  std::vector<std::string> path;  ///< From a variable down: "self", "spec", "@items"; empty: of no place.
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
  explicit Estimator(const Environment& environment) : environment_(environment) {
    for (const auto& variable : environment.variables)
      if (variable.name == "self") root_ = variable.type;
  }

  Estimate run(const Node& n) {
    auto out = one(n);
    if (!out.size) out.size = size_at(out.path);
    if (!out.size) out.size = typed_size(n.type);
    if (!out.size && n.kind == NodeKind::kIdent)
      if (const auto* local = find_local(n.name)) out.size = local->size;
    return out;
  }

 private:
  /// Where rules stand in a schema, a bound belongs to a place of it; elsewhere to the type alone.
  [[nodiscard]] std::optional<Range> typed_size(const Type& type) const {
    if (type == nullptr) return std::nullopt;
    if (root_ == nullptr && type->max_size) return Range{0, *type->max_size};
    if (is_scalar(type)) return fixed(1);
    return std::nullopt;
  }
  /// The first step is a variable, whichever it is: all are counted from the root.
  [[nodiscard]] std::optional<Range> size_at(const std::vector<std::string>& path) const {
    if (root_ == nullptr || path.empty()) return std::nullopt;
    Type at = root_;
    for (std::size_t i = 1; i < path.size() && at != nullptr; ++i) at = below(at, path[i]);
    if (at == nullptr) return std::nullopt;
    return Range{0, at->max_size.value_or(0)};
  }
  [[nodiscard]] Type below(const Type& type, const std::string& step) const {
    if (step == "@items" || step == "@values")
      return type->kind == TypeKind::kList ? type->params[0] : type->kind == TypeKind::kMap ? type->params[1] : nullptr;
    if (step == "@keys") return type->kind == TypeKind::kMap ? type->params[0] : nullptr;
    if (type->kind != TypeKind::kStruct || environment_.struct_table == nullptr) return nullptr;
    const auto found = environment_.struct_table->find(type->name);
    if (found == environment_.struct_table->end()) return nullptr;
    const auto field = found->second.fields.find(step);
    return field == found->second.fields.end() ? nullptr : field->second;
  }
  [[nodiscard]] const Estimate* find_local(std::string_view name) const {
    const auto found = std::find_if(locals_.rbegin(), locals_.rend(), [&](const auto& one) { return one.first == name; });
    return found == locals_.rend() ? nullptr : &found->second;
  }
  static std::vector<std::string> step_of(const std::vector<std::string>& path, std::string step) {
    auto out = path;
    out.push_back(std::move(step));
    return out;
  }
  static Range size(const Estimate& e) { return e.size.value_or(kUnknown); }

  Estimate one(const Node& n) {
    switch (n.kind) {
      case NodeKind::kLiteral:
        return {fixed(0), fixed(literal_size(n.literal)), std::nullopt, {}};
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
    Estimate out{fixed(kStructCost), std::nullopt, std::nullopt, {}};
    for (const auto& child : n.children) out.cost = out.cost + run(*child).cost;
    return out;
  }

  Estimate ident(const Node& n) {
    if (const auto* local = find_local(n.name)) return {fixed(1), std::nullopt, local->entries, local->path};
    return {fixed(1), std::nullopt, std::nullopt, {n.name}};
  }
  Estimate select(const Node& n) {
    const auto operand = run(*n.children[0]);
    if (n.is_test_only) return {operand.cost, fixed(1), std::nullopt, {}};
    const auto kind = n.children[0]->type->kind;
    const bool costs = kind == TypeKind::kMap || kind == TypeKind::kStruct || kind == TypeKind::kTypeParam;
    return {operand.cost + fixed(costs ? 1 : 0), std::nullopt, std::nullopt, step_of(operand.path, n.name)};
  }
  Estimate aggregate(const Node& n) {
    const bool is_list = n.kind == NodeKind::kList;
    Estimate out{fixed(is_list ? kListCost : kMapCost), fixed(is_list ? n.children.size() : n.children.size() / 2), std::nullopt, {}};
    std::optional<Range> keys, values;
    for (std::size_t i = 0; i < n.children.size(); ++i) {
      const auto child = run(*n.children[i]);
      out.cost = out.cost + child.cost;
      auto& into = is_list || i % 2 == 1 ? values : keys;
      into = into ? *into | size(child) : size(child);
    }
    out.entries = Entries{is_list, is_list ? fixed(1) : keys.value_or(fixed(0)), values.value_or(fixed(0))};
    return out;
  }

  Estimate bind(const Node& n) {
    const auto value = run(n.accu_init());
    locals_.emplace_back(n.accu_var, value);
    auto out = run(n.result());
    locals_.pop_back();
    out.cost = out.cost + value.cost + fixed(kListCost);
    out.path.clear();
    return out;
  }

  /// What a variable of a comprehension is: an element or value, or a key (of a list: an index).
  Estimate variable(const Node& n, const Estimate& range, bool is_value) {
    const auto& entries = range.entries;
    const bool is_list = entries ? entries->is_list : n.range().type->kind == TypeKind::kList;
    Estimate out;
    if (entries) out.size = is_value ? entries->value : entries->key;
    out.path = step_of(range.path, is_value ? (is_list ? "@items" : "@values") : is_list ? "@indices" : "@keys");
    // Without a schema there is the type alone.
    if (root_ == nullptr) out.path.clear();
    return out;
  }

  Estimate comprehension(const Node& n) {
    const auto range = run(n.range());
    const auto accu = run(n.accu_init());
    const auto before = locals_.size();
    locals_.emplace_back(n.accu_var, accu);
    const bool has_list = range.entries ? range.entries->is_list : n.range().type->kind == TypeKind::kList;
    locals_.emplace_back(n.iter_var, variable(n, range, n.iter_var2.empty() && has_list));
    if (!n.iter_var2.empty()) locals_.emplace_back(n.iter_var2, variable(n, range, true));
    const auto condition = run(n.condition());
    const auto step = run(n.step());
    locals_.resize(before + 1);
    const auto result = run(n.result());
    locals_.resize(before);
    Estimate out{range.cost + accu.cost + result.cost + size(range) * (step.cost + condition.cost), std::nullopt, std::nullopt, {}};
    if (n.accu_init().kind == NodeKind::kLiteral) out.size = accu.size;
    if (n.accu_init().kind == NodeKind::kList || n.accu_init().kind == NodeKind::kMap) {
      out.size = size(range);
      out.entries = step.entries;
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
      return {Range{args[0].cost.min, (args[0].cost + args[1].cost).max}, fixed(1), std::nullopt, {}};
    if (n.name == op::kConditional && !n.has_target) {
      Estimate out{args[0].cost + (args[1].cost | args[2].cost), size(args[1]) | size(args[2]), std::nullopt, {}};
      if (args[1].entries && args[2].entries) out.entries = *args[1].entries | *args[2].entries;
      return out;
    }
    if (n.name == "dyn") return {fixed(1) + sum, args[0].size, args[0].entries, {}};
    Estimate out;
    std::optional<Range> cost;
    // What a call may mean decides between the cheapest and the dearest.
    for (const auto* overload : n.overloads) {
      auto one = overload_cost(n, *overload, args);
      cost = cost ? *cost | one.cost : one.cost;
      if (one.size) out.size = out.size ? *out.size | *one.size : *one.size;
      if (one.entries) out.entries = one.entries;
      if (!one.path.empty()) out.path = std::move(one.path);
    }
    out.cost = cost.value_or(fixed(1)) + sum;
    return out;
  }

  /// Of the elements of what is called upon: by their place in the schema.
  [[nodiscard]] Range element_size(const Node& n, const Estimate& list) const {
    if (root_ == nullptr) return list.entries ? list.entries->value : typed_size(n.children[0]->type->params[0]).value_or(kUnknown);
    return list.path.empty() ? kUnknown : size_at(step_of(list.path, "@items")).value_or(kUnknown);
  }
  /// A whole number that stands there, or `otherwise`.
  static std::uint64_t literal_of(const Node& n, std::size_t child, std::uint64_t otherwise) {
    if (child >= n.children.size()) return otherwise;
    const auto& one = *n.children[child];
    if (one.kind != NodeKind::kLiteral || one.literal.kind() != Value::Kind::kInt) return otherwise;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(one.literal.as_int(), 0));
  }

  [[nodiscard]] Estimate overload_cost(const Node& n, const Overload& overload, const std::vector<Estimate>& args) const {
    const std::string_view f = n.name, id = overload.id;
    const auto sized = [&](std::size_t i) { return size(args[i]); };
    if (id == "index_list" || id == "index_map") {
      Estimate out{fixed(1), std::nullopt, std::nullopt, step_of(args[0].path, id == "index_list" ? "@items" : "@values")};
      if (args[0].entries) out.size = args[0].entries->value;
      return out;
    }
    if (f == "check") return {fixed(350'000), std::nullopt, std::nullopt, {}};
    if (is_one_of(f, {"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})) {
      const auto& target = n.children[0]->type;
      if (target->kind != TypeKind::kList) return {sized(0) * kTraversal, std::nullopt, std::nullopt, {}};
      Range each = fixed(1);
      const auto kind = target->params[0]->kind;
      if (kind == TypeKind::kString || kind == TypeKind::kBytes) each = each + element_size(n, args[0]) * kTraversal;
      return {sized(0) * each, std::nullopt, std::nullopt, {}};
    }
    if (f == "join") return joined(n, args);
    if (id.starts_with("list_") || id == "lists_range")
      if (auto out = list_cost(n, id, args)) return *out;
    if (auto out = text_cost(n, id, args)) return *out;
    return standard_cost(n, id, args);
  }

  [[nodiscard]] Estimate joined(const Node& n, const std::vector<Estimate>& args) const {
    const auto list = size(args[0]);
    auto whole = list * element_size(n, args[0]);
    if (args.size() > 1) whole = whole + size(args[1]) * Range{list.min > 0 ? list.min - 1 : 0, list.max > 0 ? list.max - 1 : 0};
    return {whole * kTraversal, whole, std::nullopt, {}};
  }

  /// Functions of cel-go's lists and sets.
  static std::optional<Estimate> list_cost(const Node& n, std::string_view id, const std::vector<Estimate>& args) {
    const auto made = [](double factor, Range elements) {
      return Estimate{elements * factor + fixed(1 + kListCost), elements, std::nullopt, {}};
    };
    const auto sized = [&](std::size_t i) { return size(args[i]); };
    if (id == "list_slice") {
      const auto from = literal_of(n, 1, 0), to = literal_of(n, 2, sized(0).max);
      return made(1, fixed(to - from));
    }
    if (id == "list_reverse" || id == "list_flatten") return made(1, sized(0));
    if (id == "list_flatten_int") return made(static_cast<double>(literal_of(n, 1, kMost)), sized(0));
    if (id == "lists_range") return made(1, fixed(literal_of(n, 0, kMost)));
    if (id == "list_distinct") return made(2, sized(0) * sized(0));
    const bool is_text = id.starts_with("list_string_") || id.starts_with("list_bytes_");
    if (id.ends_with("_sort")) return made(is_text ? 2.1 : 2.0, sized(0) * sized(0));
    if (id.ends_with("_sortByAssociatedKeys")) return made(is_text ? 2.1 : 2.0, sized(1) * sized(1));
    if (id.starts_with("list_sets_"))
      return Estimate{sized(0) * sized(1) * (id == "list_sets_equivalent_list" ? 2.0 : 1.0) + fixed(1), std::nullopt, std::nullopt, {}};
    return std::nullopt;
  }

  /// Kubernetes' own and cel-go's functions on strings.
  static std::optional<Estimate> text_cost(const Node& n, std::string_view id, const std::vector<Estimate>& args) {
    const std::string_view f = n.name;
    const auto sized = [&](std::size_t i) { return size(args[i]); };
    const auto regex = [&] { return (sized(0) + fixed(1)) * kTraversal * (sized(1) * kRegexPerCharacter); };
    if (is_one_of(f, {"url", "jsonpatch.escapeKey", "lowerAscii", "upperAscii", "substring", "trim"}))
      return Estimate{sized(0) * kTraversal, sized(0), std::nullopt, {}};
    if (f == "replace" && args.size() >= 3)
      return Estimate{sized(0) * (2 * kTraversal), replaced(sized(0), sized(1), sized(2)), std::nullopt, {}};
    if (f == "split") return Estimate{sized(0) * (2 * kTraversal), Range{0, literal_of(n, 2, sized(0).max)}, std::nullopt, {}};
    if (f == "find" || f == "findAll") return Estimate{regex(), Range{0, sized(0).max}, std::nullopt, {}};
    if (id == "matches_string") return Estimate{regex(), std::nullopt, std::nullopt, {}};
    if (is_one_of(f, {"cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"}) || id == "string_to_ip")
      return Estimate{sized(0) * kTraversal, std::nullopt, std::nullopt, {}};
    if (f == "ip.isCanonical") return Estimate{sized(0) * (2 * kTraversal), std::nullopt, std::nullopt, {}};
    if (f == "validate" && args.size() > 1)
      return Estimate{sized(1) * kTraversal * (kMostFormatRegex * kRegexPerCharacter), std::nullopt, std::nullopt, {}};
    return std::nullopt;
  }
  static constexpr double kMostFormatRegex = 128;

  /// The size of a text in which each of what is `sought` became `put`.
  static Range replaced(Range text, Range sought, Range put) {
    const auto times = [](std::uint64_t size, std::uint64_t each) {
      return static_cast<std::uint64_t>(std::ceil(static_cast<double>(size) / static_cast<double>(each)));
    };
    Range count, kept;
    if (sought.min == 0) {
      count.max = add(text.max, 1);
      kept.max = text.max;
    } else if (put.max <= sought.min) {
      kept.max = text.max;
    } else {
      count.max = text.max == kMost ? kMost : times(text.max, sought.min);
    }
    if (sought.max == 0) {
      count.min = add(text.min, 1);
      kept.min = text.min;
    } else if (sought.max <= put.min) {
      kept.min = text.min;
    } else {
      count.min = times(text.min, sought.max);
    }
    return count * put + kept;
  }

  static Estimate standard_cost(const Node& n, std::string_view id, const std::vector<Estimate>& args) {
    const auto sized = [&](std::size_t i) { return size(args[i]); };
    if (id == "string_format") return {sized(0) * kTraversal, std::nullopt, std::nullopt, {}};
    if (id == "string_to_bytes") return {sized(0) * kTraversal, Range{sized(0).min, multiply(sized(0).max, 4)}, std::nullopt, {}};
    if (id == "bytes_to_string") return {sized(0) * kTraversal, Range{sized(0).min / 4, sized(0).max}, std::nullopt, {}};
    if (id == "strings_quote") return {sized(0) * kTraversal, Range{sized(0).min + 2, add(multiply(sized(0).max, 2), 2)}, std::nullopt, {}};
    if (id == "starts_with_string" || id == "ends_with_string") return {sized(1) * kTraversal, std::nullopt, std::nullopt, {}};
    if (id == "in_list") return {sized(1), std::nullopt, std::nullopt, {}};
    if (id == "contains_string") return {(sized(0) * kTraversal) * (sized(1) * kTraversal), std::nullopt, std::nullopt, {}};
    if (id == "add_string" || id == "add_bytes") return {(sized(0) + sized(1)) * kTraversal, sized(0) + sized(1), std::nullopt, {}};
    if (id == "add_list") {
      Estimate out{fixed(1), sized(0) + sized(1), std::nullopt, {}};
      if (args[0].entries && args[1].entries) out.entries = *args[0].entries | *args[1].entries;
      return out;
    }
    const bool compares_text = (id.ends_with("_string") || id.ends_with("_bytes")) && (id.starts_with("less") || id.starts_with("greater"));
    if (n.name == op::kEquals && n.children[0]->type->kind == TypeKind::kOpaque && n.children[0]->type->name != "optional_type")
      return {fixed(1), std::nullopt, std::nullopt, {}};
    if (compares_text || id == "equals" || id == "not_equals") {
      const auto smallest = std::min(sized(0).max, sized(1).max);
      return {Range{smallest > 0 ? 1U : 0U, smallest} * kTraversal, std::nullopt, std::nullopt, {}};
    }
    return {fixed(1), std::nullopt, std::nullopt, {}};
  }

  const Environment& environment_;
  Type root_;  ///< Of "self", where there is one.
  std::vector<std::pair<std::string, Estimate>> locals_;
};

}  // namespace

CostEstimate estimate_cost(const Node& root, const Environment& environment) {
  const auto out = Estimator(environment).run(root);
  return {out.cost.min, out.cost.max};
}

}  // namespace berth::cel
