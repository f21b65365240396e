// Types and references (cel-go checker/). Errors in its words, at its places.
#include <unordered_map>

#include "base/go/duration.h"
#include "cel/functions.h"
#include "cel/text.h"

namespace berth::cel {
namespace {

bool is_dyn(const Type& t) { return t->kind == TypeKind::kDyn || t->kind == TypeKind::kAny; }
bool is_dyn_or_error(const Type& t) { return is_dyn(t) || t->kind == TypeKind::kError; }
bool is_param(const Type& t) { return t->kind == TypeKind::kTypeParam; }
bool is_optional(const Type& t) { return t->kind == TypeKind::kOpaque && t->name == "optional_type"; }

/// What the type parameters stand for, with a trail to undo failed attempts.
class Mapping {
 public:
  [[nodiscard]] Type find(const Type& t) const {
    if (!is_param(t)) return nullptr;
    const auto it = known_.find(t->name);
    return it == known_.end() ? nullptr : it->second;
  }
  void set(const Type& t, Type value) {
    const auto it = known_.find(t->name);
    trail_.emplace_back(t->name, it == known_.end() ? nullptr : it->second);
    known_[t->name] = std::move(value);
  }
  template <typename Attempt>
  bool attempt(Attempt attempt) {
    const auto mark = trail_.size();
    if (attempt()) return true;
    while (trail_.size() > mark) {
      auto& [name, before] = trail_.back();
      if (before == nullptr)
        known_.erase(name);
      else
        known_[name] = before;
      trail_.pop_back();
    }
    return false;
  }

 private:
  std::unordered_map<std::string, Type> known_;
  std::vector<std::pair<std::string, Type>> trail_;
};

Type substitute(const Mapping& m, const Type& t, bool params_to_dyn) {
  if (auto found = m.find(t)) return substitute(m, found, params_to_dyn);
  if (params_to_dyn && is_param(t)) return dyn_type();
  if (t->params.empty()) return t;
  std::vector<Type> params;
  bool is_same = true;
  for (const auto& p : t->params) {
    params.push_back(substitute(m, p, params_to_dyn));
    is_same = is_same && params.back() == p;
  }
  if (is_same) return t;
  return std::make_shared<const TypeNode>(TypeNode{t->kind, t->name, std::move(params), t->max_size});
}

bool is_equal_or_less_specific(const Type& a, const Type& b) {
  if (is_dyn(a) || is_param(a)) return true;
  if (is_dyn(b) || is_param(b)) return false;
  if (a->kind != b->kind || a->params.size() != b->params.size()) return false;
  if (a->kind == TypeKind::kType) return true;
  if (a->name != b->name) return false;
  for (std::size_t i = 0; i < a->params.size(); ++i)
    if (!is_equal_or_less_specific(a->params[i], b->params[i])) return false;
  return true;
}
const Type& most_general(const Type& a, const Type& b) { return is_equal_or_less_specific(a, b) ? a : b; }

bool not_referenced_in(const Mapping& m, const Type& t, const Type& within) {
  if (same_type(t, within)) return false;
  if (is_param(within)) {
    const auto found = m.find(within);
    return found == nullptr || not_referenced_in(m, t, found);
  }
  return std::all_of(within->params.begin(), within->params.end(), [&](const Type& p) { return not_referenced_in(m, t, p); });
}

bool assignable(Mapping& m, const Type& a, const Type& b);

/// {valid, b has a substitution already}
std::pair<bool, bool> substitutes(Mapping& m, const Type& a, const Type& b) {
  if (same_type(a, b)) return {true, true};
  if (const auto known = m.find(b)) {
    if (same_type(a, known)) return {true, true};
    if (!assignable(m, a, known)) return {false, true};
    const Type general = most_general(a, known);
    if (not_referenced_in(m, b, general)) m.set(b, general);
    return {true, true};
  }
  if (!not_referenced_in(m, b, a)) return {false, false};
  m.set(b, a);
  return {true, false};
}

bool assignable(Mapping& m, const Type& a, const Type& b) {
  if (is_param(b)) {
    const auto [valid, has_substitution] = substitutes(m, a, b);
    if (valid) return true;
    if (has_substitution) return false;
  }
  if (is_param(a)) return substitutes(m, b, a).first;
  if (is_dyn_or_error(a) || is_dyn_or_error(b)) return true;
  const auto nullable = [](const Type& t) {
    return t->kind == TypeKind::kNull || t->kind == TypeKind::kOpaque || t->kind == TypeKind::kStruct || t->kind == TypeKind::kDuration ||
           t->kind == TypeKind::kTimestamp;
  };
  if (a->kind == TypeKind::kNull) return nullable(b);
  if (b->kind == TypeKind::kNull) return nullable(a);
  if (a->kind != b->kind) return false;
  if (a->kind == TypeKind::kType) return true;
  if (a->name != b->name || a->params.size() != b->params.size()) return false;
  for (std::size_t i = 0; i < a->params.size(); ++i)
    if (!assignable(m, a->params[i], b->params[i])) return false;
  return true;
}

class Checker {
 public:
  Checker(const Environment& environment, Issues& issues) : environment_(environment), issues_(issues) { scopes_.emplace_back(); }

  void run(Node& root) {
    for (const auto& variable : environment_.variables) scopes_[0][variable.name] = variable.type;
    check(root);
    finish(root);
    if (issues_.empty()) validate(root);
  }

 private:
  using Scope = std::map<std::string, Type, std::less<>>;

  void wrong(const Node& at, std::string message) { issues_.report(at.offset, std::move(message)); }
  void undeclared(const Node& at, std::string_view name) { wrong(at, fmt::format("undeclared reference to '{}' (in container '')", name)); }
  bool is_assignable(const Type& a, const Type& b) {
    return mapping_.attempt([&] { return assignable(mapping_, a, b); });
  }
  Type new_variable() { return type_param(fmt::format("_var{}", next_variable_++)); }
  Type resolved(const Type& t) { return substitute(mapping_, t, false); }

  Type find_variable(std::string_view name) {
    const bool is_global = name.starts_with('.');
    if (is_global) name.remove_prefix(1);
    for (auto it = scopes_.rbegin(); it != scopes_.rend(); ++it) {
      if (is_global && std::next(it) != scopes_.rend()) continue;
      if (const auto found = it->find(name); found != it->end()) return found->second;
    }
    return nullptr;
  }

  void check(Node& n) {
    switch (n.kind) {
      case NodeKind::kLiteral:
        n.type = named_type(cel::type_name(n.literal));
        n.is_constant = true;
        break;
      case NodeKind::kIdent:
        check_ident(n);
        break;
      case NodeKind::kSelect:
        check_select(n);
        break;
      case NodeKind::kCall:
        check_call(n);
        break;
      case NodeKind::kList:
        check_list(n);
        break;
      case NodeKind::kMap:
        check_map(n);
        break;
      case NodeKind::kStruct:
        check_made(n);
        break;
      case NodeKind::kComprehension:
        check_comprehension(n);
        break;
    }
  }

  /// A variable or a type's name; false when it is neither.
  bool bind_name(Node& n, std::string_view name) {
    if (auto type = find_variable(name)) {
      n.type = std::move(type);
      n.kind = NodeKind::kIdent;
      n.name = name.starts_with('.') ? name.substr(1) : name;
      n.children.clear();
      return true;
    }
    if (auto type = named_type(name.starts_with('.') ? name.substr(1) : name)) {
      n.type = type_type(type);
      n.literal = Value::type(type);
      n.kind = NodeKind::kLiteral;
      n.children.clear();
      n.is_constant = true;
      return true;
    }
    return false;
  }
  void check_ident(Node& n) {
    const std::string name = n.name;
    if (bind_name(n, name)) return;
    undeclared(n, name);
    n.type = error_type();
  }

  /// "a.b.c" for a chain of selections that starts with a name; empty otherwise.
  static std::string qualified_name(const Node& n) {
    if (n.kind == NodeKind::kIdent) return n.name;
    if (n.kind != NodeKind::kSelect || n.is_test_only) return {};
    auto inner = qualified_name(*n.children[0]);
    return inner.empty() ? inner : inner + "." + n.name;
  }

  void check_select(Node& n) {
    if (!n.is_test_only) {
      const auto name = qualified_name(n);
      if (!name.empty() && bind_name(n, name)) return;
    }
    auto result = select_field(n, *n.children[0], n.name, false);
    n.type = n.is_test_only ? bool_type() : resolved(result);
  }

  Type select_field(Node& n, Node& operand, std::string_view field, bool optional) {
    check(operand);
    auto target = resolved(operand.type);
    const bool was_optional = is_optional(target);
    if (was_optional) target = target->params[0];
    Type result = error_type();
    if (target->kind == TypeKind::kMap) {
      result = target->params[1];
    } else if (target->kind == TypeKind::kStruct) {
      if (auto found = field_type(n, target, field)) result = std::move(found);
    } else if (is_param(target)) {
      is_assignable(dyn_type(), target);
      result = dyn_type();
    } else {
      if (!is_dyn_or_error(target)) wrong(n, fmt::format("type '{}' does not support field selection", to_string(target)));
      result = dyn_type();
    }
    return was_optional || optional ? optional_type(result) : result;
  }
  [[nodiscard]] const StructType* find_struct(std::string_view name) const {
    const auto known = std::ranges::find(environment_.structs, name, &StructType::name);
    if (known != environment_.structs.end()) return &*known;
    if (environment_.struct_table == nullptr) return nullptr;
    const auto in_table = environment_.struct_table->find(name);
    return in_table == environment_.struct_table->end() ? nullptr : &in_table->second;
  }
  Type field_type(const Node& n, const Type& type, std::string_view field) {
    if (is_made(type->name) && has_patch_types()) return dyn_type();
    const auto* known = find_struct(type->name);
    if (known == nullptr) {
      wrong(n, fmt::format("unexpected failed resolution of '{}'", type->name));
      return nullptr;
    }
    const auto it = known->fields.find(field);
    if (it != known->fields.end()) return it->second;
    wrong(n, fmt::format("undefined field '{}'", field));
    return nullptr;
  }

  void check_call(Node& n) {
    if (n.name == op::kOptSelect && !n.has_target) return check_opt_select(n);
    for (std::size_t i = n.has_target ? 1 : 0; i < n.children.size(); ++i) check(*n.children[i]);
    const auto find = [this](std::string_view name) -> const Function* {
      if (name.starts_with('.')) name.remove_prefix(1);
      return name == "jsonpatch.escapeKey" && !has_patch_types() ? nullptr : registry().find(name);
    };
    if (!n.has_target) {
      const auto* function = find(n.name);
      if (function == nullptr) {
        undeclared(n, n.name);
        n.type = error_type();
        return;
      }
      return resolve(n, *function);
    }
    if (const auto prefix = qualified_name(*n.children[0]); !prefix.empty()) {
      if (const auto* function = find(prefix + "." + n.name)) {
        n.name = function->name;
        n.has_target = false;
        n.children.erase(n.children.begin());
        return resolve(n, *function);
      }
    }
    check(*n.children[0]);
    if (const auto* function = find(n.name)) return resolve(n, *function);
    n.type = error_type();
    undeclared(n, n.name);
  }

  void check_opt_select(Node& n) {
    auto result = select_field(n, *n.children[0], n.children[1]->literal.text(), true);
    check(*n.children[1]);
    n.type = resolved(result);
    n.overloads = {registry().find(op::kOptSelect)->overloads[0].get()};
  }

  void resolve(Node& n, const Function& function) {
    if (n.name.starts_with('.')) n.name.erase(0, 1);
    std::vector<Type> given;
    for (const auto& child : n.children) given.push_back(child->type);
    if (function.name == op::kAnd || function.name == op::kOr) {
      bool is_fine = true;
      for (std::size_t i = 0; i < given.size(); ++i) {
        if (is_assignable(given[i], bool_type())) continue;
        wrong(*n.children[i], fmt::format("expected type 'bool' but found '{}'", to_string(given[i])));
        is_fine = false;
      }
      n.type = is_fine ? bool_type() : error_type();
      return;
    }
    Type result;
    for (const auto& overload : function.overloads) {
      if (overload->is_member != n.has_target) continue;
      Mapping fresh;
      for (const auto& param : overload->type_params) fresh.set(type_param(param), new_variable());
      std::vector<Type> wanted;
      for (const auto& param : overload->params) wanted.push_back(substitute(fresh, param, false));
      const bool matches = given.size() == wanted.size() && mapping_.attempt([&] {
        for (std::size_t i = 0; i < given.size(); ++i)
          if (!assignable(mapping_, given[i], wanted[i])) return false;
        return true;
      });
      if (!matches) continue;
      n.overloads.push_back(overload.get());
      const auto type = resolved(substitute(fresh, overload->result, false));
      if (result == nullptr)
        result = type;
      else if (!is_dyn(result) && !same_type(type, result))
        result = dyn_type();
    }
    if (result != nullptr) {
      n.type = result;
      return;
    }
    no_match(n, function, given);
  }
  void no_match(Node& n, const Function& function, const std::vector<Type>& given) {
    std::string signature;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const auto text = to_string(substitute(mapping_, given[i], true));
      if (i == 0 && n.has_target)
        signature = text + ".(";
      else
        signature += (i > (n.has_target ? 1U : 0U) ? ", " : "") + text;
    }
    if (!n.has_target) signature.insert(0, "(");
    wrong(n, fmt::format("found no matching overload for '{}' applied to '{})'", function.name, signature));
    n.type = error_type();
  }

  Type join(const Type& before, const Type& now) {
    if (before == nullptr) return now;
    // Kubernetes wants elements of one type; its validator says so afterwards.
    return is_assignable(before, now) ? most_general(before, now) : dyn_type();
  }
  Type element(Node& value, bool marked) {
    check(value);
    if (!marked) return value.type;
    if (is_optional(value.type)) return value.type->params[0];
    if (!is_dyn(value.type))
      wrong(value, fmt::format("expected type '{}' but found '{}'", to_string(optional_type(value.type)), to_string(value.type)));
    return value.type;
  }
  void check_list(Node& n) {
    Type type;
    for (std::size_t i = 0; i < n.children.size(); ++i) {
      auto one = element(*n.children[i], n.optionals[i]);
      type = join(type, one);
    }
    n.type = list_type(type != nullptr ? type : new_variable());
  }
  void check_map(Node& n) {
    Type key, value;
    for (std::size_t i = 0; i + 1 < n.children.size(); i += 2) {
      check(*n.children[i]);
      key = join(key, n.children[i]->type);
      auto one = element(*n.children[i + 1], n.optionals[i / 2]);
      value = join(value, one);
    }
    if (key == nullptr) {
      key = new_variable();
      value = new_variable();
    }
    n.type = map_type(key, value);
  }

  /// The types of patches are declared together, and Object stands for all that is below it.
  [[nodiscard]] bool has_patch_types() const { return find_struct("Object") != nullptr; }
  [[nodiscard]] static bool is_made(std::string_view name) { return name == "Object" || name.starts_with("Object."); }

  void check_made(Node& n) {
    const std::string name = n.name.substr(n.name.starts_with('.') ? 1 : 0);
    if (!has_patch_types() || !(is_made(name) || name == "JSONPatch")) {
      undeclared(n, n.name);
      n.type = error_type();
      return;
    }
    n.type = struct_type(name);
    for (std::size_t i = 0; i < n.children.size(); ++i) {
      const auto given = element(*n.children[i], n.optionals[i]);
      const auto wanted = is_made(name) ? dyn_type() : field_type(n, n.type, n.fields[i]);
      if (wanted != nullptr && !is_assignable(given, wanted))
        wrong(*n.children[i], fmt::format("expected type of field '{}' is '{}' but provided type is '{}'", n.fields[i], to_string(wanted),
                                          to_string(given)));
    }
  }

  void check_comprehension(Node& n) {
    check(*n.children[0]);
    check(*n.children[1]);
    const auto range = resolved(n.range().type);
    const auto accu = n.accu_init().type;
    scopes_.emplace_back();
    scopes_.back()[n.accu_var] = accu;
    Type first, second;
    const bool has_two = !n.iter_var2.empty();
    if (range->kind == TypeKind::kList) {
      first = has_two ? int_type() : range->params[0];
      second = range->params[0];
    } else if (range->kind == TypeKind::kMap) {
      first = range->params[0];
      second = range->params[1];
    } else if (is_dyn_or_error(range) || is_param(range)) {
      is_assignable(dyn_type(), range);
      first = second = dyn_type();
    } else {
      wrong(n.range(),
            fmt::format("expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)", to_string(range)));
      first = second = error_type();
    }
    scopes_.emplace_back();
    scopes_.back()[n.iter_var] = first;
    if (has_two) scopes_.back()[n.iter_var2] = second;
    check(*n.children[2]);
    expect(n.condition(), bool_type());
    check(*n.children[3]);
    expect(n.step(), accu);
    scopes_.pop_back();
    check(*n.children[4]);
    scopes_.pop_back();
    n.type = resolved(n.result().type);
  }
  void expect(const Node& n, const Type& type) {
    if (!is_assignable(type, n.type)) wrong(n, fmt::format("expected type '{}' but found '{}'", to_string(type), to_string(n.type)));
  }

  void finish(Node& n) {
    if (n.type != nullptr) n.type = substitute(mapping_, n.type, true);
    for (auto& child : n.children) finish(*child);
  }

  /// What cel-go's validators look at after checking: literals that are no durations, timestamps or patterns, lists and maps of mixed
  /// types, format strings that their arguments do not fit.
  void validate(Node& n, bool is_in_format = false) {
    const bool is_call = n.kind == NodeKind::kCall;
    for (auto& child : n.children) validate(*child, is_in_format || (is_call && n.name == "format"));
    if (n.kind == NodeKind::kList && !is_in_format) homogeneous(n, 0, 1);
    if (n.kind == NodeKind::kMap && !is_in_format) {
      homogeneous(n, 0, 2);
      homogeneous(n, 1, 2);
    }
    if (!is_call || n.children.empty()) return;
    if (n.name == "format" && n.has_target && n.children.size() == 2) return validate_format(n);
    const auto& argument = *n.children.back();
    if (argument.kind != NodeKind::kLiteral || argument.literal.kind() != Value::Kind::kString) return;
    if (n.name == "matches" && n.children.size() == 2) {
      if (!compile_pattern(argument.literal.text())) wrong(argument, "invalid matches argument");
    } else if (!n.has_target && n.name == "duration") {
      if (!parse_duration_ns(argument.literal.text())) wrong(argument, "invalid duration argument");
    } else if (!n.has_target && n.name == "timestamp") {
      if (!parse_rfc3339(argument.literal.text())) wrong(argument, "invalid timestamp argument");
    }
  }
  void homogeneous(const Node& n, std::size_t first, std::size_t step) {
    Type wanted;
    for (std::size_t i = first; i < n.children.size(); i += step) {
      auto type = n.children[i]->type;
      if (n.optionals[i / step] && (step == 1 || first == 1) && is_optional(type)) type = type->params[0];
      if (wanted == nullptr) {
        wanted = type;
      } else if (!same_type(wanted, type)) {
        wrong(*n.children[i], fmt::format("expected type '{}' but found '{}'", to_string(wanted), to_string(type)));
        return;
      }
    }
  }
  void validate_format(const Node& n) {
    if (n.children[0]->kind != NodeKind::kLiteral || n.children[0]->literal.kind() != Value::Kind::kString ||
        n.children[1]->kind != NodeKind::kList)
      return;
    std::vector<FormatArgument> arguments;
    for (const auto& child : n.children[1]->children) {
      // The checked types decide; what is dynamic is left to the run.
      const auto kind = child->type->kind;
      arguments.push_back({kind == TypeKind::kList  ? "list"
                           : kind == TypeKind::kMap ? "map"
                                                    : declared_name(child->type),
                           is_dyn_or_error(child->type)});
    }
    const auto issue = check_format(n.children[0]->literal.text(), arguments);
    if (!issue) return;
    wrong(issue->argument < arguments.size() ? *n.children[1]->children[issue->argument] : n, issue->message);
  }

  const Environment& environment_;
  Issues& issues_;
  Mapping mapping_;
  std::vector<Scope> scopes_;
  int next_variable_ = 0;
};

}  // namespace

void check_expression(const NodePtr& root, const Environment& environment, Issues& issues) { Checker(environment, issues).run(*root); }

}  // namespace berth::cel
