#include "apiserver/admission/policy_config.h"

namespace berth::apiserver {
namespace {

using json::get_array;
using json::get_string;

std::pair<std::string_view, std::string_view> split_version(std::string_view api_version) {
  const auto slash = api_version.find('/');
  if (slash == std::string_view::npos) return {{}, api_version};
  return {api_version.substr(0, slash), api_version.substr(slash + 1)};
}

const model::KindInfo* param_kind_of(const json::Value& policy) {
  const auto [group, version] = split_version(get_string(policy, {"spec", "paramKind", "apiVersion"}));
  const auto* kind = model::find_kind(group, version, get_string(policy, {"spec", "paramKind", "kind"}));
  return kind == nullptr || kind->is_virtual ? nullptr : kind;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\n\r\v\f") == std::string_view::npos; }

/// The environments of a policy's expressions: with the variables declared so far.
class PolicyScope {
 public:
  PolicyScope(bool has_params, bool has_variables)
      : with_authorizer_(admission_environment({has_params, true})), without_(admission_environment({has_params, false})) {
    if (!has_variables) return;
    for (auto* environment : {&with_authorizer_, &without_}) {
      environment->variables.push_back({"variables", cel::struct_type(std::string(kVariables))});
      environment->structs.push_back({std::string(kVariables), {}});
    }
  }
  [[nodiscard]] const cel::Environment& with_authorizer() const { return with_authorizer_; }
  [[nodiscard]] const cel::Environment& without_authorizer() const { return without_; }
  Expression declare(const std::string& name, std::string_view text) {
    auto out = compile_expression(text, with_authorizer_, {});
    const auto type = out.program ? out.program->output_type() : cel::dyn_type();
    for (auto* environment : {&with_authorizer_, &without_}) environment->structs.back().fields[name] = type;
    return out;
  }

 private:
  static constexpr std::string_view kVariables = "kubernetes.variables";
  cel::Environment with_authorizer_, without_;
};

std::shared_ptr<Policy> compile_policy(const json::Value& document) {
  auto out = std::make_shared<Policy>();
  out->name = get_string(document, {"metadata", "name"});
  const auto* spec = json::find(document, "spec");
  if (spec == nullptr) return out;
  if (const auto* match = json::find(*spec, "matchConstraints")) read_matcher(out->matcher, *match, "resourceRules");
  out->ignores_failure = get_string(*spec, {"failurePolicy"}) == "Ignore";
  const bool has_params = json::find(*spec, "paramKind") != nullptr;
  if (has_params) {
    out->param_kind = param_kind_of(document);
    if (out->param_kind == nullptr) {
      const auto [group, version] = split_version(get_string(*spec, {"paramKind", "apiVersion"}));
      out->configuration_error = fmt::format("failed to find resource referenced by paramKind: '{}/{}, Kind={}'", group, version,
                                             get_string(*spec, {"paramKind", "kind"}));
    }
  }
  out->conditions = MatchConditions::compile(get_array(*spec, {"matchConditions"}), has_params);
  PolicyScope scope(has_params, true);
  for (const auto& variable : get_array(*spec, {"variables"})) {
    const std::string name(get_string(variable, {"name"}));
    out->variables.push_back({name, scope.declare(name, get_string(variable, {"expression"}))});
  }
  for (const auto& one : get_array(*spec, {"validations"})) {
    Validation validation;
    validation.expression = compile_expression(get_string(one, {"expression"}), scope.with_authorizer(), {"bool"});
    if (const auto text = get_string(one, {"messageExpression"}); !text.empty())
      validation.message_expression = compile_expression(text, scope.without_authorizer(), {"string"});
    validation.message = get_string(one, {"message"});
    validation.reason = get_string(one, {"reason"});
    out->validations.push_back(std::move(validation));
  }
  for (const auto& one : get_array(*spec, {"auditAnnotations"}))
    out->audit_annotations.push_back(
        {std::string(get_string(one, {"key"})),
         compile_expression(get_string(one, {"valueExpression"}), scope.with_authorizer(), {"string", "null_type"})});
  return out;
}

PolicyBinding compile_binding(const json::Value& document) {
  PolicyBinding out;
  out.name = get_string(document, {"metadata", "name"});
  out.matcher.without_rules_matches_all = true;
  if (const auto* match = json::find(document, {"spec", "matchResources"})) read_matcher(out.matcher, *match, "resourceRules");
  for (const auto& action : get_array(document, {"spec", "validationActions"})) {
    if (!action.is_string()) continue;
    out.denies |= json::as_view(action) == "Deny";
    out.warns |= json::as_view(action) == "Warn";
    out.audits |= json::as_view(action) == "Audit";
  }
  const auto* ref = json::find(document, {"spec", "paramRef"});
  out.param_selector = model::Selector::nothing();
  if (ref == nullptr) return out;
  out.has_param_ref = true;
  out.param_name = get_string(*ref, {"name"});
  out.param_ns = get_string(*ref, {"namespace"});
  out.denies_missing_param = get_string(*ref, {"parameterNotFoundAction"}) == "Deny";
  if (const auto* selector = json::find(*ref, "selector"))
    if (auto parsed = model::Selector::from_label_selector(selector)) out.param_selector = std::move(*parsed);
  return out;
}

void check_expressions(const json::Value& policy, model::FieldErrors& errors) {
  const auto* spec = json::find(policy, "spec");
  if (spec == nullptr) return;
  const bool has_params = json::find(*spec, "paramKind") != nullptr;
  check_match_conditions(get_array(*spec, {"matchConditions"}), "spec.matchConditions", has_params, errors);
  const auto& variables = get_array(*spec, {"variables"});
  PolicyScope scope(has_params, !variables.empty());
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const auto text = get_string(variables[i], {"expression"});
    const auto expression = scope.declare(std::string(get_string(variables[i], {"name"})), text);
    if (!is_blank(text)) report_expression(expression, fmt::format("spec.variables[{}].expression", i), text, errors);
  }
  const auto& validations = get_array(*spec, {"validations"});
  for (std::size_t i = 0; i < validations.size(); ++i) {
    const auto text = get_string(validations[i], {"expression"}), message = get_string(validations[i], {"messageExpression"});
    if (!is_blank(text))
      report_expression(compile_expression(text, scope.with_authorizer(), {"bool"}), fmt::format("spec.validations[{}].expression", i),
                        text, errors);
    if (!is_blank(message))
      report_expression(compile_expression(message, scope.without_authorizer(), {"string"}),
                        fmt::format("spec.validations[{}].messageExpression", i), message, errors);
  }
  const auto& annotations = get_array(*spec, {"auditAnnotations"});
  for (std::size_t i = 0; i < annotations.size(); ++i) {
    const auto text = get_string(annotations[i], {"valueExpression"});
    if (!is_blank(text))
      report_expression(compile_expression(text, scope.with_authorizer(), {"string", "null_type"}),
                        fmt::format("spec.auditAnnotations[{}].valueExpression", i), text, errors);
  }
}

/// As Go prints a *user.DefaultInfo.
std::string shown(const UserInfo& user) { return fmt::format("&{{{} {} [{}] map[]}}", user.name, user.uid, fmt::join(user.groups, " ")); }

void require_params_access(Attributes& wanted, const json::Value* policy) {
  wanted.group = wanted.version = wanted.resource = "*";
  if (policy == nullptr || json::find(*policy, {"spec", "paramKind"}) == nullptr) return;
  const auto [group, version] = split_version(get_string(*policy, {"spec", "paramKind", "apiVersion"}));
  wanted.group = group;
  wanted.version = version;
  if (const auto* kind = param_kind_of(*policy)) wanted.resource = kind->plural;
}

/// Why the author may not refer to these parameters; empty: he may.
std::string check_access(const AdmissionRequest& request, Authorizer& authorizer, const Mirror& policies) {
  if (request.user->in_group("system:masters")) return {};
  Attributes wanted;
  wanted.verb = "get";
  if (request.kind->kind == "ValidatingAdmissionPolicy") {
    const auto* kind = json::find(request.object, {"spec", "paramKind"});
    const auto* old = json::find(request.old_object, {"spec", "paramKind"});
    if (kind == nullptr || (old != nullptr && json::equal(*old, *kind))) return {};
    require_params_access(wanted, &request.object);
    wanted.name = wanted.ns = "*";
    if (authorizer.authorize(*request.user, wanted).allowed) return {};
    return fmt::format("user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
                       shown(*request.user), get_string(*kind, {"kind"}), get_string(*kind, {"apiVersion"}));
  }
  const auto* ref = json::find(request.object, {"spec", "paramRef"});
  const auto* old = json::find(request.old_object, {"spec", "paramRef"});
  const auto policy_name = get_string(request.object, {"spec", "policyName"});
  if (ref == nullptr ||
      (old != nullptr && json::equal(*old, *ref) && policy_name == get_string(request.old_object, {"spec", "policyName"})))
    return {};
  const auto policy = policies.get("", policy_name);
  require_params_access(wanted, policy.get());
  wanted.name = get_string(*ref, {"name"});
  wanted.ns = get_string(*ref, {"namespace"});
  if (wanted.name.empty()) wanted.verb = "list";
  if (authorizer.authorize(*request.user, wanted).allowed) return {};
  if (policy == nullptr)
    return fmt::format(
        "unable to get policy {} to determine minimum required permissions and user {} does not have \"{}\" permission for all "
        "groups, versions and resources",
        policy_name, shown(*request.user), wanted.verb);
  return fmt::format("user {} does not have \"{}\" permission on the object referenced by paramRef", shown(*request.user), wanted.verb);
}

}  // namespace

std::vector<std::shared_ptr<const Policy>> compile_policies(const std::vector<Mirror::Document>& policies,
                                                            const std::vector<Mirror::Document>& bindings) {
  std::vector<std::shared_ptr<const Policy>> out;
  for (const auto& document : policies) {
    const auto name = get_string(*document, {"metadata", "name"});
    std::vector<PolicyBinding> own;
    for (const auto& binding : bindings)
      if (get_string(*binding, {"spec", "policyName"}) == name) own.push_back(compile_binding(*binding));
    if (own.empty()) continue;
    auto policy = compile_policy(*document);
    policy->bindings = std::move(own);
    out.push_back(std::move(policy));
  }
  return out;
}

Admitted check_policy(const AdmissionRequest& request, Authorizer& authorizer, const Mirror& policies) {
  if (request.object.is_null() || !request.subresource.empty()) return {};
  model::FieldErrors errors;
  const bool is_policy = request.kind->kind == "ValidatingAdmissionPolicy";
  if (is_policy) check_expressions(request.object, errors);
  if (errors.empty())
    if (auto why = check_access(request, authorizer, policies); !why.empty())
      errors.push_back({model::FieldError::Type::kForbidden, is_policy ? "spec.paramKind" : "spec.paramRef", "", std::move(why)});
  if (errors.empty()) return {};
  return std::unexpected(model::invalid_object(request.kind->group, request.kind->kind, request.name, errors));
}

}  // namespace berth::apiserver
