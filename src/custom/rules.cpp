#include "custom/rules.h"

#include "base/go/strings.h"
#include "custom/metadata.h"
#include "custom/objects.h"
#include "model/go_words.h"

namespace berth::custom {
namespace {

using json::Value;
using Type = model::FieldError::Type;

constexpr std::int64_t kRequestBytes = 3 * 1024 * 1024;
constexpr std::size_t kMostMessageBytes = 5 * 1024;
using Code = cel::EvalError::Code;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\v\f";
  const auto first = text.find_first_not_of(kSpace);
  return first == std::string_view::npos ? std::string_view() : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// What a rule is called in a message.
std::string rule_name(const Rule& rule) { return std::string(trimmed(rule.message.empty() ? rule.rule : rule.message)); }

bool has_rules(const Schema& schema) {
  if (!schema.rules.empty()) return true;
  if (schema.items != nullptr && has_rules(*schema.items)) return true;
  if (schema.additional != nullptr && has_rules(*schema.additional)) return true;
  return std::ranges::any_of(schema.properties, [](const auto& one) { return has_rules(one.second); });
}

/// How the types at a place begin: "selfType.spec.o"; empty: there are none of its own.
std::string type_prefix(const Declared& declared) {
  if (declared.element != nullptr) {
    auto inner = type_prefix(*declared.element);
    return inner.substr(0, inner.rfind('.'));
  }
  return declared.type != nullptr && declared.type->kind == cel::TypeKind::kStruct ? declared.type->name : std::string();
}

/// The compiler's words, in which a rule's types begin where the rule stands.
std::string as_seen_from(const Declared& declared, std::string text) {
  constexpr std::string_view kSelf = "selfType";
  const auto prefix = type_prefix(declared);
  if (prefix.size() <= kSelf.size()) return text;
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + kSelf.size()))
    text.replace(at, prefix.size(), kSelf);
  return text;
}

void compile_message(const Rule& rule, const Declared& declared, const cel::Environment& environment, CompiledRule& out) {
  auto message = cel::compile(rule.message_expression, environment);
  if (!message) {
    out.message_error = fmt::format("messageExpression {} failed: {}", message.error().is_instantiation ? "instantiation" : "compilation",
                                    as_seen_from(declared, message.error().text));
  } else if (!cel::same_type(message->output_type(), cel::string_type())) {
    out.message_error = "messageExpression must evaluate to a string";
  } else {
    out.message_max_cost = message->estimated_cost().max;
    out.message = std::move(*message);
  }
}

CompiledRule compile_rule(const Schema& schema, const Rule& rule, const Declared& declared, const Declarations& declarations) {
  CompiledRule out;
  out.rule = &rule;
  if (trimmed(rule.rule).empty()) return out;
  cel::Environment environment;
  environment.struct_table = &declarations.structs;
  environment.variables.push_back({"self", declared.type});
  environment.variables.push_back({"oldSelf", rule.optional_old_self.value_or(false) ? cel::optional_type(declared.type) : declared.type});
  auto program = cel::compile(rule.rule, environment);
  if (!program) {
    out.error = fmt::format("{} failed: {}", program.error().is_instantiation ? "program instantiation" : "compilation",
                            as_seen_from(declared, program.error().text));
    return out;
  }
  if (!cel::same_type(program->output_type(), cel::bool_type())) {
    out.error = "cel expression must evaluate to a bool";
    return out;
  }
  out.uses_old_self = program->uses("oldSelf");
  out.max_cost = program->estimated_cost().max;
  out.max_cardinality = static_cast<std::uint64_t>(kRequestBytes / (declared.min_size + 1));
  out.program = std::move(*program);
  if (!rule.message_expression.empty()) compile_message(rule, declared, environment, out);
  if (!rule.field_path.empty())
    if (auto path = resolve_field_path(rule.field_path, schema)) out.field_path = path->text;
  return out;
}

}  // namespace

std::vector<CompiledRule> compile_rules(const Schema& schema, const Declared& declared, const Declarations& declarations) {
  std::vector<CompiledRule> out;
  for (const auto& rule : schema.rules) out.push_back(compile_rule(schema, rule, declared, declarations));
  return out;
}

struct RuleTree::Node {
  const Schema* schema = nullptr;
  bool is_resource = false, uses_old_self = false;
  std::vector<CompiledRule> rules;
  std::unique_ptr<Node> items, additional;
  std::map<std::string, std::unique_ptr<Node>, std::less<>> properties;
  Declarations declarations;  ///< At the root alone.
};

RuleTree::~RuleTree() = default;

namespace {

template <typename Node>
std::unique_ptr<Node> make_node(const Schema& schema, const Declared* declared, const Declarations& declarations, bool is_resource) {
  if (declared == nullptr || !has_rules(schema)) return nullptr;
  auto node = std::make_unique<Node>();
  node->schema = &schema;
  node->is_resource = is_resource;
  node->rules = compile_rules(schema, *declared, declarations);
  node->uses_old_self = std::ranges::any_of(node->rules, &CompiledRule::uses_old_self);
  if (schema.items != nullptr)
    node->items = make_node<Node>(*schema.items, declared->element.get(), declarations, schema.items->is_embedded);
  if (schema.additional != nullptr)
    node->additional = make_node<Node>(*schema.additional, declared->element.get(), declarations, schema.additional->is_embedded);
  for (const auto& [name, below] : schema.properties) {
    const auto found = declared->properties.find(name);
    if (found == declared->properties.end()) continue;
    if (auto child = make_node<Node>(below, &found->second, declarations, below.is_embedded))
      node->properties.emplace(name, std::move(child));
  }
  return node;
}

/// Which old value forgives: that of the place, or of the nearest place above that has one.
struct Forgiving {
  Correlated* here = nullptr;
  Correlated* above = nullptr;
  [[nodiscard]] bool forgives() const { return here != nullptr ? here->is_same() : above != nullptr && above->is_same(); }
  [[nodiscard]] Forgiving key(std::string_view name) const {
    if (here == nullptr) return *this;
    if (above == nullptr && (name == "apiVersion" || name == "kind")) return {};
    return {here->key(name), here};
  }
  [[nodiscard]] Forgiving index(std::size_t i) const { return here == nullptr ? *this : Forgiving{here->index(i), here}; }
};

model::FieldError finding(const std::string& path, std::string value, std::string detail, const std::optional<std::string>& reason) {
  const std::string at = path.empty() ? "<nil>" : path;
  if (reason == "FieldValueForbidden") return {Type::kForbidden, at, "", std::move(detail)};
  if (reason == "FieldValueRequired") return {Type::kRequired, at, "", std::move(detail)};
  if (reason == "FieldValueDuplicate") return {Type::kDuplicate, at, std::move(value), ""};
  return {Type::kInvalid, at, std::move(value), std::move(detail)};
}

/// What stands between a rule that does not hold and its sentence.
struct Message {
  std::optional<std::string> text;
  std::string fatal;  ///< Nothing more is asked.
};

Message evaluate_message(const CompiledRule& rule, const cel::Activation& variables, std::int64_t& budget) {
  const auto result = rule.message->evaluate(variables);
  if (result.cost > static_cast<std::uint64_t>(std::max<std::int64_t>(budget, 0)))
    return {std::nullopt, "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"};
  if (!result.value && result.value.error().code == Code::kCostExceeded)
    return {std::nullopt, fmt::format("no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                                      model::go_quote(rule.rule->message_expression))};
  budget -= static_cast<std::int64_t>(result.cost);
  if (!result.value || result.value->kind() != cel::Value::Kind::kString) return {};
  const auto text = trimmed(result.value->text());
  if (text.empty() || text.size() > kMostMessageBytes || text.find('\n') != std::string_view::npos) return {};
  return {std::string(text), ""};
}

}  // namespace

/// One run over one object.
struct RuleTree::Run {
  RuleTree::Outcome& out;

  [[nodiscard]] bool is_over() const { return out.budget < 0; }
  void fail(const std::string& path, const Schema& schema, std::string detail, bool ends) {
    out.errors.push_back({Type::kInvalid, path.empty() ? "<nil>" : path, model::go_quote(schema.type), std::move(detail)});
    if (ends) out.budget = -1;
  }

  void check(const Node& node, const Value& value, const Value* before, Forgiving forgiving, const std::string& path) {
    if (value.is_null()) return;
    if (!node.rules.empty()) check_rules(node, value, before, forgiving, path);
    if (is_over()) return;
    if (const auto* list = value.if_array()) {
      check_list(node, *list, before, forgiving, path);
    } else if (const auto* object = value.if_object()) {
      check_members(node, *object, before, forgiving, path);
    }
  }

  void check_list(const Node& node, const json::Array& list, const Value* before, Forgiving forgiving, const std::string& path) {
    if (node.items == nullptr) return;
    std::optional<KeyedList> old;
    if (before != nullptr && before->is_array() && node.schema->list_type == "map" && !node.schema->list_map_keys.empty())
      old.emplace(before->get_array(), *node.schema);
    for (std::size_t i = 0; i < list.size() && !is_over(); ++i)
      check(*node.items, list[i], old ? old->find(list[i]) : nullptr, forgiving.index(i), index_path(path, i));
  }

  void check_members(const Node& node, const json::Object& object, const Value* before, Forgiving forgiving, const std::string& path) {
    const auto* old = before == nullptr ? nullptr : before->if_object();
    for (const auto& [key, member] : object) {
      const std::string_view name(key.data(), key.size());
      const auto* there = old == nullptr ? nullptr : old->if_contains(name);
      if (node.additional != nullptr) check(*node.additional, member, there, forgiving.key(name), key_path(path, name));
      if (is_over()) return;
      if (const auto found = node.properties.find(name); found != node.properties.end())
        check(*found->second, member, there, forgiving.key(name), child_path(path, name));
      if (is_over()) return;
    }
  }

  void check_rules(const Node& node, const Value& value, const Value* before, Forgiving forgiving, const std::string& path) {
    if (out.budget <= 0) {
      fail(path, *node.schema, "validation failed due to running out of cost budget, no further validation rules will be run", true);
      return;
    }
    const auto as_value = [&](const Value& one) { return node.is_resource ? root_to_cel(one, *node.schema) : to_cel(one, *node.schema); };
    cel::Bindings plain, optional;
    const auto self = as_value(value);
    plain.set("self", self);
    if (node.uses_old_self) {
      optional.set("self", self);
      const bool has_old = before != nullptr && !before->is_null();
      if (has_old) plain.set("oldSelf", as_value(*before));
      optional.set("oldSelf", has_old ? cel::Value::optional(as_value(*before)) : cel::Value::none());
    }
    for (const auto& rule : node.rules) {
      check_rule(node, rule, value, before, plain, optional, forgiving, path);
      if (is_over()) return;
    }
  }

  void check_rule(const Node& node, const CompiledRule& rule, const Value& value, const Value* before, const cel::Bindings& plain,
                  const cel::Bindings& optional, Forgiving forgiving, const std::string& path) {
    if (!rule.error.empty()) return fail(path, *node.schema, fmt::format("rule compile error: {}", rule.error), false);
    if (!rule.program) return;
    const bool takes_none = rule.rule->optional_old_self.value_or(false);
    if (rule.uses_old_self && (before == nullptr || before->is_null()) && !takes_none) return;
    const auto& variables = takes_none && node.uses_old_self ? optional : plain;
    const auto result = rule.program->evaluate(variables);
    if (result.cost > static_cast<std::uint64_t>(out.budget))
      return fail(path, *node.schema, "validation failed due to running out of cost budget, no further validation rules will be run", true);
    out.budget -= static_cast<std::int64_t>(result.cost);
    if (!result.value) return fail_evaluation(node, rule, result.value.error(), path);
    if (result.value->is_true()) return;
    report(node, rule, value, plain, forgiving, path);
  }

  void fail_evaluation(const Node& node, const CompiledRule& rule, const cel::EvalError& error, const std::string& path) {
    const auto& why = error.message;
    const auto name = rule_name(*rule.rule);
    if (error.code == Code::kNoOverload)
      return fail(
          path, *node.schema,
          fmt::format("'{}': call arguments did not match a supported operator, function or macro signature for rule: {}", why, name),
          false);
    if (error.code == Code::kCostExceeded)
      return fail(path, *node.schema,
                  fmt::format("'{}': no further validation rules will be run due to call cost exceeds limit for rule: {}", why, name),
                  true);
    fail(path, *node.schema, fmt::format("{} evaluating rule: {}", why, name), false);
  }

  void report(const Node& node, const CompiledRule& rule, const Value& value, const cel::Bindings& variables, Forgiving forgiving,
              const std::string& path) {
    const auto at =
        rule.field_path.empty() ? path : child_path(path, std::string_view(rule.field_path).substr(rule.field_path.starts_with('.')));
    const auto add = [&](model::FieldError error) {
      if (!rule.uses_old_self && forgiving.forgives()) {
        out.warnings.push_back(error.render());
      } else {
        out.errors.push_back(std::move(error));
      }
    };
    std::optional<std::string> detail;
    if (rule.message) {
      auto message = evaluate_message(rule, variables, out.budget);
      if (!message.fatal.empty()) {
        add({Type::kInvalid, at.empty() ? "<nil>" : at, model::go_quote(node.schema->type), std::move(message.fatal)});
        out.budget = -1;
        return;
      }
      detail = std::move(message.text);
    }
    if (!detail) detail = rule.rule->message.empty() ? fmt::format("failed rule: {}", rule_name(*rule.rule)) : rule_name(*rule.rule);
    const bool is_whole = node.schema->type == "object" || node.schema->type == "array";
    add(finding(at, is_whole ? "" : shown(value), std::move(*detail), rule.rule->reason));
  }
};

std::unique_ptr<const RuleTree> RuleTree::compile(const Schema& schema, bool is_resource) {
  if (!has_rules(schema)) return nullptr;
  auto declarations = declare(schema, is_resource);
  if (!declarations.root) return nullptr;
  auto tree = std::unique_ptr<RuleTree>(new RuleTree());
  tree->root_ = make_node<Node>(schema, &*declarations.root, declarations, is_resource);
  if (tree->root_ == nullptr) return nullptr;
  tree->root_->declarations = std::move(declarations);
  return tree;
}

void RuleTree::check(const Value& value, const Value* before, Correlated* correlated, const std::string& path, Outcome& outcome) const {
  Run{outcome}.check(*root_, value, before, {correlated, nullptr}, path);
}

namespace {

/// ".", "[", "]", 'a quoted text', or what stands between them.
std::vector<std::string_view> path_tokens(std::string_view path) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < path.size();) {
    std::size_t end = at + 1;
    if (path[at] == '\'') {
      while (end < path.size() && !(path[end] == '\'' && path[end - 1] != '\\')) ++end;
      end = std::min(end + 1, path.size());
    } else if (path[at] != '.' && path[at] != '[' && path[at] != ']') {
      end = std::min(path.find_first_of(".[]", at), path.size());
    }
    out.push_back(path.substr(at, end - at));
    at = end;
  }
  return out;
}

Expected<std::string, std::string> unquoted(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    static constexpr std::string_view kNames = "abfnrtv'\\", kBytes = "\a\b\f\n\r\t\v'\\";
    const auto found = kNames.find(text[++i]);
    if (found == std::string_view::npos) return std::unexpected(fmt::format("invalid string literal: invalid escape char \\{}", text[i]));
    out += kBytes[found];
  }
  return out;
}

}  // namespace

Expected<FieldPath, std::string> resolve_field_path(std::string_view path, const Schema& schema, bool allows_brackets) {
  FieldPath out;
  out.schema = &schema;
  const auto step = [&](const std::string& name) -> Expected<void, std::string> {
    if (out.schema == nullptr) return std::unexpected("does not refer to a valid field");
    if (out.first.empty()) out.first = name;
    if (!out.schema->properties.empty()) {
      out.text = child_path(out.text, name);
      out.schema = out.schema->property(name);
      if (out.schema == nullptr) return std::unexpected("does not refer to a valid field");
      return {};
    }
    if (!out.schema->additional_allowed) return std::unexpected("does not refer to a valid field");
    out.text = key_path(out.text, name);
    out.schema = out.schema->additional.get();
    return {};
  };
  const auto tokens = path_tokens(path);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == ".") {
      if (++i == tokens.size()) return std::unexpected("unexpected end of JSON path");
      if (auto done = step(std::string(tokens[i])); !done) return std::unexpected(done.error());
    } else if (tokens[i] == "[") {
      if (!allows_brackets) return std::unexpected("array notation is not allowed");
      if (++i == tokens.size()) return std::unexpected("unexpected end of JSON path");
      const auto token = tokens[i];
      if (token.size() < 2 || token.front() != '\'' || token.back() != '\'')
        return std::unexpected(fmt::format("expected single quoted string but got {}", token));
      auto name = unquoted(token.substr(1, token.size() - 2));
      if (!name) return std::unexpected(name.error());
      if (auto done = step(*name); !done) return std::unexpected(done.error());
      if (++i == tokens.size()) return std::unexpected("unexpected end of JSON path");
      if (tokens[i] != "]") return std::unexpected(fmt::format("expected ] but got {}", tokens[i]));
    } else {
      return std::unexpected(fmt::format("expected [ or . but got: {}", tokens[i]));
    }
  }
  return out;
}

}  // namespace berth::custom
