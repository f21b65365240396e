// ValidatingAdmissionPolicies and their bindings (pkg/apis/admissionregistration/validation), all but the expressions.
#include <fmt/format.h>

#include "base/go/strings.h"
#include "model/validation/mutating_policy.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_object;
using json::get_string;

constexpr std::size_t kMostAuditAnnotations = 20;

void string_list(const Value& rule, std::string_view key, const Path& rule_at, std::string_view what, bool may_be_empty, Errors& errors) {
  const Path at = rule_at / key;
  const json::Array& entries = get_array(rule, {key});
  if (entries.empty()) errors.required(at);
  const bool has_wildcard = std::any_of(entries.begin(), entries.end(), [](const Value& v) { return text_of(v) == "*"; });
  if (entries.size() > 1 && has_wildcard)
    errors.invalid(at, Value(entries), fmt::format("if '*' is present, must not specify other {}", what));
  for (std::size_t i = 0; i < entries.size() && !may_be_empty; ++i)
    if (text_of(entries[i]).empty()) errors.required(at[i]);
}

void resources(const Value& rule, const Path& rule_at, Errors& errors) {
  const Path at = rule_at / "resources";
  const json::Array& entries = get_array(rule, {"resources"});
  if (entries.empty()) errors.required(at);
  std::vector<std::string> all_subresources, all_resources;
  bool has_double = false, has_single = false, has_plain = false;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string_view text = text_of(entries[i]);
    if (text.empty()) {
      errors.required(at[i]);
      continue;
    }
    has_double |= text == "*/*";
    has_single |= text == "*";
    const auto slash = text.find('/');
    if (slash == std::string_view::npos) {
      has_plain = text != "*";
      continue;
    }
    const std::string resource(text.substr(0, slash)), sub(text.substr(slash + 1));
    if (std::find(all_subresources.begin(), all_subresources.end(), resource) != all_subresources.end())
      errors.invalid(at[i], text, fmt::format("if '{}/*' is present, must not specify {}", resource, text));
    if (std::find(all_resources.begin(), all_resources.end(), sub) != all_resources.end())
      errors.invalid(at[i], text, fmt::format("if '*/{}' is present, must not specify {}", sub, text));
    if (sub == "*") all_subresources.push_back(resource);
    if (resource == "*") all_resources.push_back(sub);
  }
  if (entries.size() > 1 && has_double) errors.invalid(at, Value(entries), "if '*/*' is present, must not specify other resources");
  if (has_single && has_plain)
    errors.invalid(at, Value(entries), "if '*' is present, must not specify other resources without subresources");
}

void rule(const Value& one, const Path& at, Errors& errors) {
  const Path names_at = at / "resourceNames";
  const json::Array& names = get_array(one, {"resourceNames"});
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (const auto why = check_path_segment(text_of(names[i])); !why.empty()) errors.invalid(names_at[i], text_of(names[i]), why);
    if (!seen.insert(text_of(names[i])).second) errors.duplicate(names_at[i], names[i]);
  }
  const Path operations_at = at / "operations";
  const json::Array& operations = get_array(one, {"operations"});
  if (operations.empty()) errors.required(operations_at);
  const bool has_wildcard = std::any_of(operations.begin(), operations.end(), [](const Value& v) { return text_of(v) == "*"; });
  if (operations.size() > 1 && has_wildcard)
    errors.invalid(operations_at, Value(operations), "if '*' is present, must not specify other operations");
  static const std::vector<std::string_view> kOperations = {"*", "CONNECT", "CREATE", "DELETE", "UPDATE"};
  for (std::size_t i = 0; i < operations.size(); ++i)
    if (std::find(kOperations.begin(), kOperations.end(), text_of(operations[i])) == kOperations.end())
      errors.not_supported(operations_at[i], text_of(operations[i]), kOperations);
  string_list(one, "apiGroups", at, "API groups", true, errors);
  string_list(one, "apiVersions", at, "API versions", false, errors);
  resources(one, at, errors);
  supported_value(one, "scope", at, {"*", "Cluster", "Namespaced"}, errors, true);
}

void match_resources(const Value& match, const Path& at, Errors& errors) {
  supported_value(match, "matchPolicy", at, {"Equivalent", "Exact"}, errors, true);
  for (const char* key : {"namespaceSelector", "objectSelector"})
    if (const Value* selector = json::find(match, key)) label_selector(*selector, at / key, errors);
  for (const char* key : {"resourceRules", "excludeResourceRules"}) {
    const Path list = at / key;
    std::size_t i = 0;
    for (const Value& one : get_array(match, {key})) rule(one, list[i++], errors);
  }
}

void param_kind(const Value& kind, const Path& at, Errors& errors) {
  const std::string_view version = get_string(kind, {"apiVersion"}), name = get_string(kind, {"kind"});
  if (version.empty()) {
    errors.required(at / "apiVersion");
  } else if (std::count(version.begin(), version.end(), '/') > 1) {
    errors.invalid(at / "apiVersion", version, fmt::format("unexpected GroupVersion string: {}", version));
  } else {
    const auto slash = version.find('/');
    const std::string_view group = slash == std::string_view::npos ? std::string_view() : version.substr(0, slash);
    const std::string_view own = slash == std::string_view::npos ? version : version.substr(slash + 1);
    if (const auto why = group.empty() ? std::string() : check_dns1123_subdomain(group); !why.empty())
      errors.invalid(at / "apiVersion", group, why);
    if (own.empty())
      errors.invalid(at / "apiVersion", version, "version must be specified");
    else if (const auto why = check_dns1035_label(own); !why.empty())
      errors.invalid(at / "apiVersion", own, why);
  }
  if (name.empty()) return errors.required(at / "kind");
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (const auto why = check_dns1035_label(lower); !why.empty())
    errors.invalid(at / "kind", name, "may have mixed case, but should otherwise match: " + why);
}

bool has_line_breaks(std::string_view text) { return text.find_first_of("\n\r") != std::string_view::npos; }
void validation_rules(const Value& spec, const Path& spec_at, Errors& errors) {
  const Path at = spec_at / "validations";
  std::size_t i = 0;
  for (const Value& one : get_array(spec, {"validations"})) {
    const Path here = at[i++];
    const std::string_view message = get_string(one, {"message"}), expression = get_string(one, {"messageExpression"});
    if (go::trim_space(get_string(one, {"expression"})).empty()) errors.required(here / "expression", "expression is not specified");
    if (!expression.empty() && go::trim_space(expression).empty())
      errors.invalid(here / "messageExpression", expression, "must be non-empty if specified");
    if (!message.empty() && go::trim_space(message).empty())
      errors.invalid(here / "message", message, "must be non-empty if specified");
    else if (has_line_breaks(go::trim_space(message)))
      errors.invalid(here / "message", message, "must not contain line breaks");
    supported_value(one, "reason", here, {"Forbidden", "Invalid", "RequestEntityTooLarge"}, errors, true);
  }
}

bool is_identifier(std::string_view name) {
  static constexpr std::string_view kReserved[] = {"true",     "false",   "null",      "in",       "as",  "break",  "const",
                                                   "continue", "else",    "for",       "function", "if",  "import", "let",
                                                   "loop",     "package", "namespace", "return",   "var", "void",   "while"};
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  if (std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved)) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

void variables(const Value& spec, const Path& spec_at, Errors& errors) {
  const Path at = spec_at / "variables";
  std::size_t i = 0;
  for (const Value& one : get_array(spec, {"variables"})) {
    const Path here = at[i++];
    const std::string_view name = get_string(one, {"name"});
    if (go::trim_space(name).empty())
      errors.required(here / "name", "name is not specified");
    else if (!is_identifier(name))
      errors.invalid(here / "name", name, "must be a valid CEL identifier");
    if (go::trim_space(get_string(one, {"expression"})).empty()) errors.required(here / "expression", "expression is not specified");
  }
}

void audit_annotations(const Value& doc, const Path& spec_at, Errors& errors) {
  const Path at = spec_at / "auditAnnotations";
  const json::Array& list = get_array(doc, {"spec", "auditAnnotations"});
  if (list.size() > kMostAuditAnnotations)
    errors.invalid(at, Value(list), fmt::format("must not have more than {} auditAnnotations", kMostAuditAnnotations));
  std::set<std::string_view> keys;
  std::size_t i = 0;
  for (const Value& one : list) {
    const Path here = at[i++];
    const std::string_view key = get_string(one, {"key"});
    const auto qualified = fmt::format("{}/{}", get_string(doc, {"metadata", "name"}), key);
    if (get_string(doc, {"metadata", "name"}).empty())
      errors.invalid(here / "key", key, "requires metadata.name be non-empty");
    else if (const auto why = check_qualified_name(qualified); !why.empty())
      errors.invalid(here / "key", qualified, why);
    const auto expression = go::trim_space(get_string(one, {"valueExpression"}));
    if (expression.empty())
      errors.required(here / "valueExpression", "valueExpression is not specified");
    else if (expression.size() > 5 * 1024)
      errors.required(here / "valueExpression", "must not exceed 5120 bytes in length");
    if (!keys.insert(key).second) errors.duplicate(here / "key", Value(key));
  }
}

void match_conditions(const json::Array& conditions, const Path& at, Errors& errors) {
  if (conditions.size() > 64) errors.too_many(at, conditions.size(), 64);
  std::set<std::string_view> names;
  std::size_t i = 0;
  for (const Value& one : conditions) {
    const Path here = at[i++];
    const std::string_view name = get_string(one, {"name"});
    if (go::trim_space(get_string(one, {"expression"})).empty()) errors.required(here / "expression");
    if (name.empty()) {
      errors.required(here / "name");
      continue;
    }
    if (const auto why = check_qualified_name(name); !why.empty()) errors.invalid(here / "name", name, why);
    if (!names.insert(name).second) errors.duplicate(here / "name", Value(name));
  }
}

const Value* spec_of(const Value& doc) {
  static const Value kEmpty = json::Object();
  const Value* spec = json::find(doc, "spec");
  return spec == nullptr ? &kEmpty : spec;
}

/// What policies of both sorts have. `more_of_match`: what else is wrong with the constraints; may be null.
void policy_parts(const Value& spec, const Path& at, void (*more_of_match)(const Value*, const Path&, Errors&), Errors& errors) {
  if (json::find(spec, "failurePolicy") == nullptr)
    errors.required(at / "failurePolicy");
  else
    supported_value(spec, "failurePolicy", at, {"Fail", "Ignore"}, errors, true);
  if (const Value* kind = json::find(spec, "paramKind")) param_kind(*kind, at / "paramKind", errors);
  const Path constraints_at = at / "matchConstraints";
  if (const Value* match = json::find(spec, "matchConstraints")) {
    match_resources(*match, constraints_at, errors);
    if (get_array(*match, {"resourceRules"}).empty()) errors.required(constraints_at / "resourceRules");
    if (more_of_match != nullptr) more_of_match(match, constraints_at, errors);
  } else {
    errors.required(constraints_at);
  }
  match_conditions(get_array(spec, {"matchConditions"}), at / "matchConditions", errors);
  variables(spec, at, errors);
}

}  // namespace

void webhook_match_conditions(const Value& hook, const Path& hook_at, Errors& errors) {
  match_conditions(get_array(hook, {"matchConditions"}), hook_at / "matchConditions", errors);
}

void validating_admission_policy(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Value* spec = spec_of(doc);
  policy_parts(*spec, at, nullptr, errors);
  if (get_array(*spec, {"validations"}).empty() && get_array(*spec, {"auditAnnotations"}).empty()) {
    errors.required(at / "validations", "validations or auditAnnotations must contain at least one item");
    errors.required(at / "auditAnnotations", "validations or auditAnnotations must contain at least one item");
    return;
  }
  validation_rules(*spec, at, errors);
  audit_annotations(doc, at, errors);
}

namespace {

/// What both kinds of bindings say alike.
void binding_parts(const Value& doc, const Path& at, Errors& errors) {
  const std::string_view policy = get_string(doc, {"spec", "policyName"});
  if (policy.empty())
    errors.required(at / "policyName");
  else if (const auto why = check_dns1123_subdomain(policy); !why.empty())
    errors.invalid(at / "policyName", policy, why);
  if (const Value* ref = json::find(doc, {"spec", "paramRef"})) {
    const Path ref_at = at / "paramRef";
    const std::string_view name = get_string(*ref, {"name"});
    const Value* selector = json::find(*ref, "selector");
    if (!name.empty()) {
      if (const auto why = check_path_segment(name); !why.empty()) errors.invalid(ref_at / "name", name, why);
      if (selector != nullptr) errors.forbidden(ref_at / "name", "name and selector are mutually exclusive");
    }
    if (selector != nullptr) {
      label_selector(*selector, ref_at / "selector", errors);
      if (!name.empty()) errors.forbidden(ref_at / "selector", "name and selector are mutually exclusive");
    }
    if (name.empty() && selector == nullptr) errors.required(ref_at, "one of name or selector must be specified");
    if (get_string(*ref, {"parameterNotFoundAction"}).empty())
      errors.required(ref_at / "parameterNotFoundAction");
    else
      supported_value(*ref, "parameterNotFoundAction", ref_at, {"Deny", "Allow"}, errors, true);
  }
  if (const Value* match = json::find(doc, {"spec", "matchResources"})) match_resources(*match, at / "matchResources", errors);
}

bool is_operation(std::string_view text) { return text == "*" || text == "CONNECT" || text == "CREATE" || text == "UPDATE"; }

/// What is deleted cannot be changed.
void mutating_operations(const Value* match, const Path& at, Errors& errors) {
  if (match == nullptr) return;
  const Path rules_at = at / "resourceRules";
  for (const Value& one : get_array(*match, {"resourceRules"}))
    for (const Value& operation : get_array(one, {"operations"}))
      if (!is_operation(text_of(operation)))
        errors.not_supported(rules_at / "operations", text_of(operation), {"*", "CONNECT", "CREATE", "UPDATE"});
}

void mutation(const Value& one, const Path& at, Errors& errors) {
  const std::string_view type = get_string(one, {"patchType"});
  if (type.empty()) return errors.required(at / "patchType");
  if (type != "ApplyConfiguration" && type != "JSONPatch")
    return errors.not_supported(at / "patchType", type, {"ApplyConfiguration", "JSONPatch"});
  const bool is_patch = type == "JSONPatch";
  const std::string_view own = is_patch ? "jsonPatch" : "applyConfiguration", other = is_patch ? "applyConfiguration" : "jsonPatch";
  const Path own_at = at / own;
  if (const Value* patch = json::find(one, own); patch == nullptr)
    errors.required(own_at, fmt::format("must be specified when patchType is {}", type));
  else if (go::trim_space(get_string(*patch, {"expression"})).empty())
    errors.required(own_at / "expression");
  if (json::find(one, other) != nullptr)
    errors.invalid(at / other, fmt::format("{{{}}}", other), fmt::format("must not be specified when patchType is {}", type));
}

}  // namespace

void mutating_admission_policy(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Value* spec = spec_of(doc);
  policy_parts(*spec, at, mutating_operations, errors);
  const Path mutations_at = at / "mutations";
  const json::Array& mutations = get_array(*spec, {"mutations"});
  if (mutations.empty()) errors.required(mutations_at, "mutations must contain at least one item");
  for (std::size_t i = 0; i < mutations.size(); ++i) mutation(mutations[i], mutations_at[i], errors);
  if (get_string(*spec, {"reinvocationPolicy"}).empty())
    errors.required(at / "reinvocationPolicy");
  else
    supported_value(*spec, "reinvocationPolicy", at, {"IfNeeded", "Never"}, errors, true);
}

void mutating_policy_binding(const Value& doc, Errors& errors) {
  const Path at("spec");
  binding_parts(doc, at, errors);
  mutating_operations(json::find(doc, {"spec", "matchResources"}), at / "matchResources", errors);
}

void policy_binding(const Value& doc, Errors& errors) {
  const Path at("spec");
  binding_parts(doc, at, errors);
  const Path actions_at = at / "validationActions";
  const json::Array& actions = get_array(doc, {"spec", "validationActions"});
  const auto has = [&](std::string_view wanted) {
    return std::any_of(actions.begin(), actions.end(), [&](const Value& v) { return text_of(v) == wanted; });
  };
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const std::string_view action = text_of(actions[i]);
    if (action != "Deny" && action != "Warn" && action != "Audit") errors.not_supported(actions_at[i], action, {"Audit", "Deny", "Warn"});
    if (!seen.insert(action).second) errors.duplicate(actions_at[i], actions[i]);
  }
  if (has("Deny") && has("Warn"))
    errors.invalid(
        actions_at, Value(actions),
        "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no "
        "purpose)");
  if (actions.empty()) errors.required(actions_at, "at least one validation action is required");
}

}  // namespace berth::model::validation
