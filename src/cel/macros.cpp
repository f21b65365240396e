// has(), all(), exists(), exists_one(), map(), filter(), their two-variable forms, optMap/optFlatMap and cel.bind (parser/macro.go,
// ext/comprehensions.go).
#include "cel/ast.h"

namespace berth::cel {
namespace {

class Expander {
 public:
  Expander(const NodePtr& call, bool has_bind, Issues& issues) : call_(call), has_bind_(has_bind), issues_(issues), offset_(call->offset) {}

  std::optional<NodePtr> run() {
    const auto& name = call_->name;
    const auto count = call_->children.size();
    if (!call_->has_target) {
      if (name == "has" && count == 1) return has();
      return std::nullopt;
    }
    const auto arguments = count - 1;
    if (has_bind_ && name == "bind" && arguments == 3 && is_ident(*call_->children[0], "cel")) return bind();
    if (arguments == 2) {
      if (name == "all" || name == "exists" || name == "exists_one" || name == "existsOne") return quantifier(1);
      if (name == "map" || name == "filter") return name == "map" ? map() : filter();
      if (name == "sortBy") return sort_by();
      if (name == "optMap" || name == "optFlatMap") return optional_map(name == "optMap");
    }
    if (arguments == 3 && name == "map") return map();
    if (arguments == 3 && (name == "all" || name == "exists" || name == "exists_one" || name == "existsOne")) return quantifier(2);
    if ((arguments == 3 || arguments == 4) && (name == "transformList" || name == "transformMap" || name == "transformMapEntry"))
      return transform();
    return std::nullopt;
  }

 private:
  static bool is_ident(const Node& node, std::string_view name) { return node.kind == NodeKind::kIdent && node.name == name; }
  NodePtr argument(std::size_t i) const { return call_->children[i + 1]; }
  NodePtr wrong(const Node& where, std::string message) {
    issues_.report(where.offset, std::move(message));
    return nullptr;
  }
  NodePtr node(NodeKind kind, std::vector<NodePtr> children = {}, std::string_view name = {}) {
    auto out = std::make_shared<Node>();
    out->kind = kind;
    out->offset = offset_;
    out->name = name;
    for (const auto& child : children) out->depth = std::max(out->depth, child->depth + 1);
    out->children = std::move(children);
    return out;
  }
  NodePtr literal(Value value) {
    auto out = node(NodeKind::kLiteral);
    out->literal = std::move(value);
    return out;
  }
  NodePtr ident(std::string_view name) { return node(NodeKind::kIdent, {}, name); }
  NodePtr accumulator() { return ident(kAccumulator); }
  NodePtr call(std::string_view function, std::vector<NodePtr> arguments) { return node(NodeKind::kCall, std::move(arguments), function); }
  NodePtr list(std::vector<NodePtr> elements) {
    auto out = node(NodeKind::kList, std::move(elements));
    out->optionals.assign(out->children.size(), false);
    return out;
  }
  NodePtr comprehension(NodePtr range, NodePtr init, NodePtr condition, NodePtr step, NodePtr result) {
    auto out =
        node(NodeKind::kComprehension, {std::move(range), std::move(init), std::move(condition), std::move(step), std::move(result)});
    out->iter_var = iter_;
    out->iter_var2 = iter2_;
    out->accu_var = kAccumulator;
    return out;
  }
  /// Reads one or two iteration variables.
  bool variables(int count, std::string_view not_a_name) {
    for (int i = 0; i < count; ++i) {
      const auto name = argument(static_cast<std::size_t>(i));
      if (name->kind != NodeKind::kIdent) {
        wrong(*name, std::string(not_a_name));
        return false;
      }
      (i == 0 ? iter_ : iter2_) = name->name;
    }
    if (count == 2 && iter_ == iter2_) {
      wrong(*argument(1), fmt::format("duplicate variable name: {}", iter_));
      return false;
    }
    for (int i = 0; i < count; ++i) {
      if ((i == 0 ? iter_ : iter2_) != "__result__") continue;
      wrong(*argument(static_cast<std::size_t>(i)), "iteration variable overwrites accumulator variable");
      return false;
    }
    return true;
  }

  NodePtr has() {
    const auto& inner = call_->children[0];
    if (inner->kind != NodeKind::kSelect || inner->is_test_only) return wrong(*inner, "invalid argument to has() macro");
    auto out = node(NodeKind::kSelect, {inner->children[0]}, inner->name);
    out->is_test_only = true;
    return out;
  }
  NodePtr quantifier(int count) {
    if (!variables(count, "argument must be a simple name")) return nullptr;
    const auto predicate = argument(static_cast<std::size_t>(count));
    if (call_->name == "all")
      return comprehension(call_->children[0], literal(Value::boolean(true)), call(op::kNotStrictlyFalse, {accumulator()}),
                           call(op::kAnd, {accumulator(), predicate}), accumulator());
    if (call_->name == "exists")
      return comprehension(call_->children[0], literal(Value::boolean(false)),
                           call(op::kNotStrictlyFalse, {call(op::kNot, {accumulator()})}), call(op::kOr, {accumulator(), predicate}),
                           accumulator());
    return comprehension(call_->children[0], literal(Value::integer(0)), literal(Value::boolean(true)),
                         call(op::kConditional, {predicate, call(op::kAdd, {accumulator(), literal(Value::integer(1))}), accumulator()}),
                         call(op::kEquals, {accumulator(), literal(Value::integer(1))}));
  }
  NodePtr map() {
    if (!variables(1, "argument is not an identifier")) return nullptr;
    const bool filters = call_->children.size() == 4;
    auto step = call(op::kAdd, {accumulator(), list({argument(filters ? 2 : 1)})});
    if (filters) step = call(op::kConditional, {argument(1), step, accumulator()});
    return comprehension(call_->children[0], list({}), literal(Value::boolean(true)), step, accumulator());
  }
  NodePtr filter() {
    if (!variables(1, "argument is not an identifier")) return nullptr;
    auto step = call(op::kConditional, {argument(1), call(op::kAdd, {accumulator(), list({argument(0)})}), accumulator()});
    return comprehension(call_->children[0], list({}), literal(Value::boolean(true)), step, accumulator());
  }
  NodePtr transform() {
    if (!variables(2, "argument must be a simple name")) return nullptr;
    const bool filters = call_->children.size() == 5;
    const auto value = argument(filters ? 3 : 2);
    NodePtr step;
    if (call_->name == "transformList")
      step = call(op::kAdd, {accumulator(), list({value})});
    else if (call_->name == "transformMap")
      step = call("cel.@mapInsert", {accumulator(), ident(iter_), value});
    else
      step = call("cel.@mapInsert", {accumulator(), value});
    if (filters) step = call(op::kConditional, {argument(2), step, accumulator()});
    auto init = call_->name == "transformList" ? list({}) : node(NodeKind::kMap);
    return comprehension(call_->children[0], init, literal(Value::boolean(true)), step, accumulator());
  }
  /// target.hasValue() ? optional.of(fold) : optional.none(), where the fold binds the variable to target.value().
  NodePtr optional_map(bool wraps) {
    const auto name = argument(0);
    if (name->kind != NodeKind::kIdent) {
      return wrong(*name, fmt::format("{}() variable name must be a simple identifier", wraps ? "optMap" : "optFlatMap"));
    }
    const auto& target = call_->children[0];
    auto fold = bound(name->name, member("value", target), argument(1));
    if (wraps) fold = member("of", ident("optional"), {fold});
    return call(op::kConditional, {member("hasValue", copy(*target)), fold, member("none", ident("optional"))});
  }
  /// list.sortBy(e, key): the list, bound to a name, sorted by what its map gives.
  NodePtr sort_by() {
    static constexpr std::string_view kInput = "@__sortBy_input__";
    const auto& target = *call_->children[0];
    if (target.kind == NodeKind::kLiteral || target.kind == NodeKind::kMap || target.kind == NodeKind::kStruct)
      return wrong(target, "sortBy can only be applied to a list, identifier, comprehension, call or select expression");
    if (!variables(1, "argument is not an identifier")) return nullptr;
    auto step = call(op::kAdd, {accumulator(), list({argument(1)})});
    auto keys = comprehension(ident(kInput), list({}), literal(Value::boolean(true)), step, accumulator());
    return bound(std::string(kInput), call_->children[0], member("@sortByAssociatedKeys", ident(kInput), {keys}));
  }
  NodePtr bind() {
    const auto name = argument(0);
    if (name->kind != NodeKind::kIdent) return wrong(*name, "cel.bind() variable names must be simple identifiers");
    return bound(name->name, argument(1), argument(2));
  }
  NodePtr bound(const std::string& name, NodePtr value, NodePtr body) {
    auto out = node(NodeKind::kComprehension, {list({}), std::move(value), literal(Value::boolean(false)), ident(name), std::move(body)});
    out->iter_var = "#unused";
    out->accu_var = name;
    return out;
  }
  NodePtr member(std::string_view function, NodePtr target, std::vector<NodePtr> arguments = {}) {
    arguments.insert(arguments.begin(), std::move(target));
    auto out = call(function, std::move(arguments));
    out->has_target = true;
    return out;
  }
  /// The checker writes into nodes: one that stands at two places must be two.
  NodePtr copy(const Node& from) {
    auto out = std::make_shared<Node>(from);
    for (auto& child : out->children) child = copy(*child);
    return out;
  }

  const NodePtr& call_;
  bool has_bind_;
  Issues& issues_;
  std::uint32_t offset_;
  std::string iter_, iter2_;
};

}  // namespace

std::optional<NodePtr> expand_macro(const NodePtr& call, bool has_bind, Issues& issues) { return Expander(call, has_bind, issues).run(); }

}  // namespace berth::cel
