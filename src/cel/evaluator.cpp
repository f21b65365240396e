// Walks the checked tree, counting costs where cel-go's observers count them (interpreter/runtimecost.go, planner.go, attributes.go).
#include "cel/cost.h"
#include "cel/functions.h"
#include "cel/objects.h"
#include "cel/opaque.h"
#include "cel/program.h"

namespace berth::cel {
namespace {

using Kind = Value::Kind;

/// Thrown inside one evaluation only.
struct CostExceeded {};

/// The variables of one comprehension while it runs.
struct Frame {
  const Node* fold = nullptr;
  const Frame* outer = nullptr;
  Value first, second, accumulator;
  bool is_initialised = false, is_result = false;
};

bool is_attribute(const Node& n) {
  if (n.is_constant) return false;
  if (n.kind == NodeKind::kIdent || n.kind == NodeKind::kSelect) return true;
  return n.kind == NodeKind::kCall && !n.has_target &&
         (n.name == op::kIndex || n.name == op::kOptIndex || n.name == op::kOptSelect || n.name == op::kConditional);
}
/// An attribute whose root is ?: costs nothing as a whole.
bool has_conditional_root(const Node& n) {
  const Node* at = &n;
  while (is_attribute(*at) && at->kind != NodeKind::kIdent) {
    if (at->kind == NodeKind::kCall && at->name == op::kConditional) return true;
    at = at->children[0].get();
  }
  return false;
}

/// The name of cel-go's own type, which a few messages show.
std::string_view go_type(const Value& v) {
  switch (v.kind()) {
    case Kind::kNull:
      return "types.Null";
    case Kind::kBool:
      return "types.Bool";
    case Kind::kInt:
      return "types.Int";
    case Kind::kUint:
      return "types.Uint";
    case Kind::kDouble:
      return "types.Double";
    case Kind::kString:
      return "types.String";
    case Kind::kBytes:
      return "types.Bytes";
    case Kind::kDuration:
      return "types.Duration";
    case Kind::kTimestamp:
      return "types.Timestamp";
    case Kind::kList:
      return "[]interface {}";
    case Kind::kMap:
      return "map[string]interface {}";
    case Kind::kType:
      return "*types.Type";
    case Kind::kOptional:
      return "*types.Optional";
    default:
      return v.as_opaque().type_name();
  }
}
bool is_key(const Value& v) {
  return v.kind() == Kind::kString || v.kind() == Kind::kInt || v.kind() == Kind::kUint || v.kind() == Kind::kDouble ||
         v.kind() == Kind::kBool;
}

class Evaluator {
 public:
  Evaluator(const Activation& variables, std::uint64_t limit) : variables_(variables), limit_(limit) {}

  Value eval(const Node& n) {
    if (n.is_constant) return n.literal;
    switch (n.kind) {
      case NodeKind::kLiteral:
        return n.literal;
      case NodeKind::kIdent:
      case NodeKind::kSelect:
        return attribute(n);
      case NodeKind::kCall:
        return call(n);
      case NodeKind::kList:
        return list(n);
      case NodeKind::kMap:
        return map(n);
      case NodeKind::kComprehension:
        return fold(n);
      case NodeKind::kStruct:
        return made(n);
    }
    return Value::error("unsupported expression");
  }
  [[nodiscard]] std::uint64_t cost() const { return cost_; }

 private:
  void spend(std::uint64_t cost) {
    cost_ = cost > UINT64_MAX - cost_ ? UINT64_MAX : cost_ + cost;
    if (cost_ > limit_) throw CostExceeded{};
  }

  Value attribute(const Node& n) {
    auto value = resolve(n);
    const bool is_test = n.kind == NodeKind::kSelect && n.is_test_only;
    if (has_conditional_root(n)) {
      if (is_test && cost_ > 0) --cost_;
    } else if (!is_test) {
      spend(1);
    }
    return value;
  }

  /// The value without the cost of the attribute as a whole.
  Value resolve(const Node& n) {
    if (n.kind == NodeKind::kIdent) return variable(n.name);
    if (n.kind == NodeKind::kCall && n.name == op::kConditional) {
      const auto condition = eval(*n.children[0]);
      if (condition.kind() != Kind::kBool) return condition.is_error() ? condition : no_such_overload();
      return inner(*n.children[condition.as_bool() ? 1 : 2]);
    }
    auto operand = inner(*n.children[0]);
    if (operand.is_error()) return operand;
    if (n.kind == NodeKind::kSelect) {
      if (n.is_test_only) return test(operand, Value::borrowed_string(n.name));
      return qualify(operand, Value::borrowed_string(n.name), false);
    }
    const bool is_optional = n.name != op::kIndex;
    if (operand.kind() == Kind::kOptional && operand.optional_value() == nullptr) return operand;
    const auto key = inner(*n.children[1]);
    if (key.is_error() || !is_key(key)) {
      spend(1);
      return key.is_error() ? key : Value::error(fmt::format("invalid qualifier type: {}", go_type(key)));
    }
    return qualify(operand, key, is_optional);
  }
  Value inner(const Node& n) { return is_attribute(n) ? resolve(n) : eval(n); }

  Value variable(std::string_view name) {
    for (auto* frame = frame_; frame != nullptr; frame = frame->outer) {
      auto& f = const_cast<Frame&>(*frame);
      if (name == f.fold->accu_var) return accumulator(f);
      if (f.is_result) continue;
      if (name == f.fold->iter_var) return f.first;
      if (!f.fold->iter_var2.empty() && name == f.fold->iter_var2) return f.second;
    }
    auto value = variables_.find(name);
    if (!value) return Value::error(fmt::format("no such attribute(s): {}", name));
    return std::move(*value);
  }
  Value accumulator(Frame& f) {
    if (f.is_initialised) return f.accumulator;
    f.is_initialised = true;
    // The first value is computed outside the loop.
    const auto* before = std::exchange(frame_, f.outer);
    auto value = eval(f.fold->accu_init());
    frame_ = before;
    if (value.kind() == Kind::kList && value.as_list().size() == 0) value = Value::list(std::make_shared<const GrowingList>());
    if (value.kind() == Kind::kMap && value.as_map().size() == 0) value = Value::map(std::make_shared<const ValueMap>());
    f.accumulator = value;
    return value;
  }

  static Expected<std::int64_t, Value> list_index(const Value& key) {
    if (key.kind() == Kind::kInt) return key.as_int();
    if (key.kind() == Kind::kUint && key.as_uint() <= static_cast<std::uint64_t>(INT64_MAX))
      return static_cast<std::int64_t>(key.as_uint());
    if (key.kind() == Kind::kDouble && key.as_double() >= -9e15 && key.as_double() <= 9e15 &&
        key.as_double() == static_cast<double>(static_cast<std::int64_t>(key.as_double())))
      return static_cast<std::int64_t>(key.as_double());
    if (key.kind() == Kind::kDouble) return std::unexpected(Value::error(fmt::format("unsupported index value {} in list", to_text(key))));
    return std::unexpected(Value::error(fmt::format("unsupported index type '{}' in list", type_name(key))));
  }

  /// nullopt: not there.
  static std::optional<Value> look_up(const Value& object, const Value& key) {
    if (object.kind() == Kind::kMap) {
      if (auto found = object.as_map().find(key)) return found;
      // Numbers that are equal are the same key.
      if (key.kind() == Kind::kDouble) {
        const double d = key.as_double();
        if (d >= -9e15 && d <= 9e15 && d == static_cast<double>(static_cast<std::int64_t>(d))) {
          if (auto found = object.as_map().find(Value::integer(static_cast<std::int64_t>(d)))) return found;
        }
      }
      return std::nullopt;
    }
    if (object.kind() == Kind::kList) {
      const auto index = list_index(key);
      if (!index) return index.error();
      if (*index < 0 || static_cast<std::uint64_t>(*index) >= object.as_list().size()) return std::nullopt;
      return object.as_list().at(static_cast<std::size_t>(*index));
    }
    return std::nullopt;
  }

  Value qualify(const Value& operand, const Value& key, bool is_optional) {
    const Value* object = &operand;
    if (operand.kind() == Kind::kOptional) {
      if (operand.optional_value() == nullptr) return operand;
      object = operand.optional_value();
      is_optional = true;
    }
    auto found = look_up(*object, key);
    if (found || !is_optional) spend(1);
    if (found) {
      if (found->is_error()) return std::move(*found);
      return is_optional ? Value::optional(std::move(*found)) : std::move(*found);
    }
    if (is_optional) return Value::none();
    if (object->kind() == Kind::kList) return Value::error(fmt::format("index out of bounds: {}", to_text(key)));
    return Value::error(fmt::format("no such key: {}", to_text(key)));
  }

  Value test(const Value& operand, const Value& key) {
    const Value* object = &operand;
    if (operand.kind() == Kind::kOptional) {
      if (operand.optional_value() == nullptr) return Value::boolean(false);
      object = operand.optional_value();
    }
    const auto found = look_up(*object, key);
    spend(1);
    if (found && found->is_error()) return *found;
    return Value::boolean(found.has_value());
  }

  Value call(const Node& n) {
    if (is_attribute(n)) return attribute(n);
    if (n.name == op::kAnd || n.name == op::kOr) return logic(n, n.name == op::kOr);
    if (n.name == op::kEquals || n.name == op::kNotEquals) return equality(n);
    if (n.is_set_membership) return membership(n);
    if (n.has_target && (n.name == "or" || n.name == "orValue") && n.overloads.size() == 1 && n.overloads[0]->code == nullptr)
      return optional_or(n);
    std::vector<Value> args;
    args.reserve(n.children.size());
    std::optional<Value> failure;
    for (const auto& child : n.children) {
      args.push_back(eval(*child));
      if (!args.back().is_error() || n.name == op::kNotStrictlyFalse) continue;
      // Calls with three arguments and more stop at the first failure, shorter ones evaluate all.
      if (n.children.size() > 2 || n.name == "format") return args.back();
      if (!failure) failure = args.back();
    }
    if (n.name == op::kNotStrictlyFalse) {
      spend(1);
      return args[0].kind() == Kind::kBool ? args[0] : Value::boolean(true);
    }
    auto result = failure ? std::move(*failure) : invoke(n, args);
    spend(call_cost(n, args, result));
    return result;
  }

  Value invoke(const Node& n, const std::vector<Value>& args) {
    if (const auto expected = quadratic_cost(n, args); expected > limit_ - std::min(limit_, cost_)) {
      cost_ = limit_;
      spend(expected);
    }
    const auto* function = registry().find(n.name);
    const Args call{args, n.compiled.get()};
    if (function->any != nullptr) return function->any(call);
    if (n.overloads.size() == 1) {
      const auto& overload = *n.overloads[0];
      return matches(overload, args) ? overload.code(call) : no_such_overload(n.name, args);
    }
    for (const auto& overload : function->overloads)
      if (overload->code != nullptr && overload->params.size() == args.size() && matches(*overload, args)) return overload->code(call);
    return no_such_overload(n.name, args);
  }
  static bool matches(const Overload& overload, const std::vector<Value>& args) {
    for (std::size_t i = 0; i < args.size(); ++i)
      if (!fits(overload.params[i], args[i])) return false;
    return true;
  }

  /// && and ||: an answer on one side absorbs the other side's failure.
  Value logic(const Node& n, bool decisive) {
    std::optional<Value> failure;
    for (const auto& child : n.children) {
      auto value = eval(*child);
      if (value.kind() == Kind::kBool) {
        if (value.as_bool() == decisive) return value;
      } else if (!failure) {
        failure = value.is_error() ? std::move(value) : no_such_overload();
      }
    }
    return failure ? std::move(*failure) : Value::boolean(!decisive);
  }

  Value equality(const Node& n) {
    const std::vector<Value> args{eval(*n.children[0]), eval(*n.children[1])};
    Value result;
    if (args[0].is_error())
      result = args[0];
    else if (args[1].is_error())
      result = args[1];
    else
      result = Value::boolean(equal(args[0], args[1]) == (n.name == op::kEquals));
    spend(equality_cost(args[0], args[1], n.name == op::kEquals));
    return result;
  }

  Value membership(const Node& n) {
    const auto value = eval(*n.children[0]);
    if (value.is_error()) return value;
    const auto& list = n.children[1]->literal.as_list();
    for (std::size_t i = 0; i < list.size(); ++i)
      if (equal(list.at(i), value)) return Value::boolean(true);
    return Value::boolean(false);
  }

  Value optional_or(const Node& n) {
    auto left = eval(*n.children[0]);
    if (left.is_error()) return left;
    if (left.kind() != Kind::kOptional) return left;
    if (left.optional_value() != nullptr) return n.name == "or" ? left : *left.optional_value();
    return eval(*n.children[1]);
  }

  Value list(const Node& n) {
    std::vector<Value> values;
    values.reserve(n.children.size());
    Value failure;
    for (std::size_t i = 0; i < n.children.size() && !failure.is_error(); ++i) {
      auto value = eval(*n.children[i]);
      if (value.is_error()) {
        failure = std::move(value);
      } else if (!n.optionals[i]) {
        values.push_back(std::move(value));
      } else if (value.kind() != Kind::kOptional) {
        failure = Value::error(fmt::format("cannot initialize optional list element from non-optional value {}", to_text(value)));
      } else if (value.optional_value() != nullptr) {
        values.push_back(*value.optional_value());
      }
    }
    spend(kListCost);
    return failure.is_error() ? failure : Value::list(std::move(values));
  }

  Value map(const Node& n) {
    auto made = std::make_shared<ValueMap>();
    Value failure;
    for (std::size_t i = 0; i + 1 < n.children.size() && !failure.is_error(); i += 2) {
      const auto key = eval(*n.children[i]);
      if (key.is_error()) {
        failure = key;
        break;
      }
      const auto value = eval(*n.children[i + 1]);
      if (value.is_error()) {
        failure = value;
      } else if (!n.optionals[i / 2]) {
        made->set(key, value);
      } else if (value.kind() != Kind::kOptional) {
        failure =
            Value::error(fmt::format("cannot initialize optional entry '{}' from non-optional value {}", to_text(key), to_text(value)));
      } else if (value.optional_value() != nullptr) {
        made->set(key, *value.optional_value());
      } else {
        made->erase(key);
      }
    }
    spend(kMapCost);
    return failure.is_error() ? failure : Value::map(std::move(made));
  }

  /// An object literal.
  Value made(const Node& n) {
    auto object = std::make_shared<MadeObject>(n.type->name);
    Value failure;
    for (std::size_t i = 0; i < n.children.size() && !failure.is_error(); ++i) {
      auto value = eval(*n.children[i]);
      if (value.is_error()) {
        failure = std::move(value);
      } else if (!n.optionals[i]) {
        object->set(n.fields[i], std::move(value));
      } else if (value.kind() != Kind::kOptional) {
        failure =
            Value::error(fmt::format("cannot initialize optional entry '{}' from non-optional value {}", n.fields[i], to_text(value)));
      } else if (value.optional_value() != nullptr) {
        object->set(n.fields[i], *value.optional_value());
      }
    }
    spend(kStructCost);
    return failure.is_error() ? failure : Value::map(std::move(object));
  }

  Value fold(const Node& n) {
    const auto range = eval(n.range());
    if (range.is_error()) return range;
    Frame frame;
    frame.fold = &n;
    frame.outer = frame_;
    frame_ = &frame;
    auto result = loop(n, range, frame);
    frame_ = frame.outer;
    return result;
  }
  Value loop(const Node& n, const Value& range, Frame& frame) {
    const bool has_two = !n.iter_var2.empty();
    if (range.kind() == Kind::kList) {
      const auto& list = range.as_list();
      for (std::size_t i = 0; i < list.size(); ++i) {
        frame.first = has_two ? Value::integer(static_cast<std::int64_t>(i)) : list.at(i);
        if (has_two) frame.second = list.at(i);
        if (!step(n, frame)) break;
      }
    } else if (range.kind() == Kind::kMap) {
      range.as_map().each([&](const Value& key, const Value& value) {
        frame.first = key;
        frame.second = value;
        return step(n, frame);
      });
    } else {
      return Value::error(fmt::format("got '{}', expected iterable type", go_type(range)));
    }
    frame.is_result = true;
    return eval(n.result());
  }
  bool step(const Node& n, Frame& frame) {
    const auto condition = eval(n.condition());
    if (condition.kind() == Kind::kBool && !condition.as_bool()) return false;
    frame.accumulator = eval(n.step());
    frame.is_initialised = true;
    return true;
  }

  const Activation& variables_;
  std::uint64_t limit_, cost_ = 0;
  const Frame* frame_ = nullptr;
};

class Nothing final : public Activation {
 public:
  [[nodiscard]] std::optional<Value> find(std::string_view) const override { return std::nullopt; }
};

bool is_conversion(std::string_view name) {
  static constexpr std::string_view kNames[] = {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

/// What the planner replaces: literals of constants, conversions of constants, membership in constants, known patterns. The error is a
/// constant's failure.
Expected<void, std::string> fold_constants(Node& n) {
  for (auto& child : n.children)
    if (auto done = fold_constants(*child); !done) return done;
  const auto all_constant = [&] {
    return std::all_of(n.children.begin(), n.children.end(), [](const NodePtr& c) { return c->is_constant; });
  };
  const auto become = [&](Value value) {
    n.literal = std::move(value);
    n.is_constant = true;
  };
  const bool has_optionals = std::find(n.optionals.begin(), n.optionals.end(), true) != n.optionals.end();
  if ((n.kind == NodeKind::kList || n.kind == NodeKind::kMap) && !has_optionals && all_constant()) {
    become(Evaluator(Nothing(), UINT64_MAX).eval(n));
    return {};
  }
  if (n.kind != NodeKind::kCall) return {};
  if (!n.has_target && is_conversion(n.name) && n.children.size() == 1 && n.children[0]->is_constant) {
    auto value = Evaluator(Nothing(), UINT64_MAX).eval(n);
    if (value.is_error()) return std::unexpected(std::string(value.text()));
    become(std::move(value));
    return {};
  }
  if (!n.has_target && (n.name == op::kIndex || n.name == op::kOptIndex) && n.children[1]->is_constant && !is_key(n.children[1]->literal))
    return std::unexpected(fmt::format("invalid qualifier type: {}", go_type(n.children[1]->literal)));
  if (n.name == op::kIn && n.overloads.size() == 1 && n.overloads[0]->id == "in_list" && n.children[1]->is_constant &&
      n.children[1]->literal.kind() == Kind::kList) {
    const auto& list = n.children[1]->literal.as_list();
    if (list.size() == 0) {
      become(Value::boolean(false));
      return {};
    }
    n.is_set_membership = true;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto kind = list.at(i).kind();
      const bool is_hashable = kind == Kind::kBool || kind == Kind::kDouble || kind == Kind::kInt || kind == Kind::kString ||
                               kind == Kind::kUint || kind == Kind::kNull;
      n.is_set_membership = n.is_set_membership && is_hashable;
    }
    return {};
  }
  if ((n.name == "matches" || n.name == "find" || n.name == "findAll") && n.children.size() >= 2 && n.children[1]->is_constant &&
      n.children[1]->literal.kind() == Kind::kString) {
    auto pattern = compile_pattern(n.children[1]->literal.text());
    if (!pattern) return std::unexpected(pattern.error());
    n.compiled = std::move(*pattern);
  }
  return {};
}

}  // namespace

std::optional<Value> Bindings::find(std::string_view name) const {
  for (const auto& [known, value] : values_)
    if (known == name) return value;
  return std::nullopt;
}

Expected<Program, CompileError> compile(std::string_view expression, const Environment& environment) {
  Issues issues(expression);
  auto root = parse_expression(expression, environment.has_bind, issues);
  if (root != nullptr) check_expression(root, environment, issues);
  if (root == nullptr || !issues.empty()) return std::unexpected(issues.finish());
  auto impl = std::make_shared<Program::Impl>();
  impl->output_type = root->type;
  impl->estimate = estimate_cost(*root, environment);
  if (auto folded = fold_constants(*root); !folded) return std::unexpected(CompileError{{}, folded.error(), true});
  impl->root = std::move(root);
  return Program(std::move(impl));
}

const Type& Program::output_type() const { return impl_->output_type; }
CostEstimate Program::estimated_cost() const { return impl_->estimate; }
bool Program::uses(std::string_view variable) const {
  const auto names = [&](const auto& self, const Node& n) -> bool {
    if (n.kind == NodeKind::kIdent && n.name == variable) return true;
    return std::ranges::any_of(n.children, [&](const NodePtr& child) { return child != nullptr && self(self, *child); });
  };
  return names(names, *impl_->root);
}

Evaluation Program::evaluate(const Activation& variables, std::uint64_t cost_limit) const {
  Evaluator evaluator(variables, cost_limit);
  try {
    auto value = evaluator.eval(*impl_->root);
    if (value.is_error())
      return {std::unexpected(
                  EvalError{value.is_no_overload() ? EvalError::Code::kNoOverload : EvalError::Code::kFailed, std::string(value.text())}),
              evaluator.cost()};
    return {std::move(value), evaluator.cost()};
  } catch (const CostExceeded&) {
    return {std::unexpected(EvalError{EvalError::Code::kCostExceeded, "operation cancelled: actual cost limit exceeded"}),
            evaluator.cost()};
  }
}

}  // namespace berth::cel
