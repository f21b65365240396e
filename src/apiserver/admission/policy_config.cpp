#include "apiserver/admission/policy_config.h"

#include "apiserver/kinds/kind_table.h"
#include "base/mutex.h"
#include "cel/objects.h"

namespace berth::apiserver {
namespace {

using json::get_array;
using json::get_string;

const model::KindInfo* param_kind_of(const json::Value& policy, const KindTablePtr& kinds) {
  const auto [group, version] = split_version(get_string(policy, {"spec", "paramKind", "apiVersion"}));
  const auto name = get_string(policy, {"spec", "paramKind", "kind"});
  const auto* kind = kinds == nullptr ? model::find_kind(group, version, name) : kinds->find_kind(group, version, name);
  return kind == nullptr || kind->is_virtual ? nullptr : kind;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\n\r\v\f") == std::string_view::npos; }

/// The environments of a policy's expressions: with the variables declared so far.
class PolicyScope {
 public:
  PolicyScope(bool has_params, bool has_variables, bool has_patches = false)
      : with_authorizer_(admission_environment({has_params, true})), without_(admission_environment({has_params, false})) {
    if (has_patches) cel::declare_patch_types(with_authorizer_);
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

Mutation compile_mutation(const json::Value& document, const PolicyScope& scope) {
  Mutation out;
  out.is_json_patch = get_string(document, {"patchType"}) == "JSONPatch";
  const auto text = get_string(document, {out.is_json_patch ? "jsonPatch" : "applyConfiguration", "expression"});
  out.expression = out.is_json_patch ? compile_expression(text, scope.with_authorizer(), {"list(JSONPatch)"})
                                     : compile_expression(text, scope.with_authorizer(), {"Object"});
  return out;
}

std::shared_ptr<Policy> compile_policy(const json::Value& document, const KindTablePtr& kinds) {
  auto out = std::make_shared<Policy>();
  out->kinds = kinds;
  out->name = get_string(document, {"metadata", "name"});
  const auto* spec = json::find(document, "spec");
  if (spec == nullptr) return out;
  if (const auto* match = json::find(*spec, "matchConstraints")) read_matcher(out->matcher, *match, "resourceRules");
  out->ignores_failure = get_string(*spec, {"failurePolicy"}) == "Ignore";
  const bool has_params = json::find(*spec, "paramKind") != nullptr;
  if (has_params) {
    out->param_kind = param_kind_of(document, kinds);
    if (out->param_kind == nullptr) {
      const auto [group, version] = split_version(get_string(*spec, {"paramKind", "apiVersion"}));
      out->configuration_error = fmt::format("failed to find resource referenced by paramKind: '{}/{}, Kind={}'", group, version,
                                             get_string(*spec, {"paramKind", "kind"}));
    }
  }
  out->conditions = MatchConditions::compile(get_array(*spec, {"matchConditions"}), has_params);
  const auto& mutations = get_array(*spec, {"mutations"});
  out->reinvokes = get_string(*spec, {"reinvocationPolicy"}) == "IfNeeded";
  PolicyScope scope(has_params, true, !mutations.empty());
  for (const auto& variable : get_array(*spec, {"variables"})) {
    const std::string name(get_string(variable, {"name"}));
    out->variables.push_back({name, scope.declare(name, get_string(variable, {"expression"}))});
  }
  for (const auto& one : mutations) out->mutations.push_back(compile_mutation(one, scope));
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

/// As Go prints a *user.DefaultInfo.
std::string shown(const UserInfo& user) { return fmt::format("&{{{} {} [{}] map[]}}", user.name, user.uid, fmt::join(user.groups, " ")); }

void require_params_access(Attributes& wanted, const json::Value* policy, const KindTablePtr& kinds) {
  wanted.group = wanted.version = wanted.resource = "*";
  if (policy == nullptr || json::find(*policy, {"spec", "paramKind"}) == nullptr) return;
  const auto [group, version] = split_version(get_string(*policy, {"spec", "paramKind", "apiVersion"}));
  wanted.group = group;
  wanted.version = version;
  if (const auto* kind = param_kind_of(*policy, kinds)) wanted.resource = kind->plural;
}

/// Why the author may not refer to these parameters; empty: he may.
std::string check_access(const AdmissionRequest& request, Authorizer& authorizer, const Mirror& policies, const KindTablePtr& kinds) {
  if (request.user->in_group("system:masters")) return {};
  Attributes wanted;
  wanted.verb = "get";
  if (request.kind->kind.ends_with("AdmissionPolicy")) {
    const auto* kind = json::find(request.object, {"spec", "paramKind"});
    const auto* old = json::find(request.old_object, {"spec", "paramKind"});
    if (kind == nullptr || (old != nullptr && json::equal(*old, *kind))) return {};
    require_params_access(wanted, &request.object, kinds);
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
  require_params_access(wanted, policy.get(), kinds);
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
                                                            const std::vector<Mirror::Document>& bindings, const KindTablePtr& kinds) {
  std::vector<std::shared_ptr<const Policy>> out;
  for (const auto& document : policies) {
    const auto name = get_string(*document, {"metadata", "name"});
    std::vector<PolicyBinding> own;
    for (const auto& binding : bindings)
      if (get_string(*binding, {"spec", "policyName"}) == name) own.push_back(compile_binding(*binding));
    if (own.empty()) continue;
    auto policy = compile_policy(*document, kinds);
    policy->bindings = std::move(own);
    out.push_back(std::move(policy));
  }
  return out;
}

model::FieldErrors check_policy_expressions(const json::Value& policy) {
  model::FieldErrors errors;
  const auto* spec = json::find(policy, "spec");
  if (spec == nullptr) return errors;
  const bool has_params = json::find(*spec, "paramKind") != nullptr;
  check_match_conditions(get_array(*spec, {"matchConditions"}), "spec.matchConditions", has_params, errors);
  const auto& variables = get_array(*spec, {"variables"});
  const auto& mutations = get_array(*spec, {"mutations"});
  // A mutating policy has always variables, if none.
  PolicyScope scope(has_params, !variables.empty() || !mutations.empty(), !mutations.empty());
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const auto text = get_string(variables[i], {"expression"});
    const auto expression = scope.declare(std::string(get_string(variables[i], {"name"})), text);
    if (!is_blank(text)) report_expression(expression, fmt::format("spec.variables[{}].expression", i), text, errors);
  }
  for (std::size_t i = 0; i < mutations.size(); ++i) {
    const bool is_patch = get_string(mutations[i], {"patchType"}) == "JSONPatch";
    const auto* field = is_patch ? "jsonPatch" : "applyConfiguration";
    const auto text = get_string(mutations[i], {field, "expression"});
    if (!is_blank(text))
      report_expression(compile_mutation(mutations[i], scope).expression, fmt::format("spec.mutations[{}].{}.expression", i, field), text,
                        errors);
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
  return errors;
}

std::shared_ptr<const PolicySource::List> PolicySource::current() {
  const MutexLock lock(mutex_);
  const auto generation = std::make_pair(policies_.generation(), bindings_.generation());
  auto kinds = context_.kinds ? context_.kinds() : nullptr;
  if (compiled_ == nullptr || generation != generation_ || kinds != kinds_) {
    compiled_ = std::make_shared<const List>(compile_policies(policies_.list(), bindings_.list(), kinds));
    generation_ = generation;
    kinds_ = std::move(kinds);
  }
  return compiled_;
}

bool PolicySource::may_match(const AdmissionRequest& request) {
  if (empty()) return false;
  return std::ranges::any_of(*current(),
                             [&](const auto& policy) { return match_resources(policy->matcher, request, namespaces_) != nullptr; });
}

bool PolicySource::add_circumstances(const AdmissionRequest& request, Circumstances& circumstances) {
  circumstances.add([this] { return policies_.generation() + bindings_.generation(); });
  circumstances.add([this] { return namespaces_.generation(); });
  if (empty()) return true;
  return std::ranges::none_of(*current(), [&](const auto& policy) { return may_want_alike(policy->matcher, request, namespaces_); });
}

Expected<std::vector<Mirror::Document>, std::string> collect_params(const AdmissionContext& context, const Policy& policy,
                                                                    const PolicyBinding& binding, const AdmissionRequest& request) {
  if (policy.param_kind == nullptr || !binding.has_param_ref) return std::vector<Mirror::Document>{nullptr};
  const auto& kind = *policy.param_kind;
  std::string ns;
  if (kind.namespaced) {
    ns = binding.param_ns.empty() ? request.ns : binding.param_ns;
    if (ns.empty()) return std::unexpected("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources");
  } else if (!binding.param_ns.empty()) {
    return std::unexpected("paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
  }
  auto& mirror = context.mirror(kind.storage_group, kind.plural);
  std::vector<Mirror::Document> out;
  if (!binding.param_name.empty()) {
    if (auto found = mirror.get(ns, binding.param_name)) out.push_back(std::move(found));
  } else {
    for (auto& document : mirror.list(ns))
      if (binding.param_selector.matches(model::Labels::from_json(json::find(*document, {"metadata", "labels"}))))
        out.push_back(std::move(document));
  }
  if (out.empty() && binding.denies_missing_param)
    return std::unexpected("no params found for policy binding with `Deny` parameterNotFoundAction");
  return out;
}

std::optional<cel::Value> PolicyVariables::find(const cel::Value& key) const {
  for (std::size_t i = 0; i < variables_.size(); ++i)
    if (key.kind() == cel::Value::Kind::kString && variables_[i].name == key.text()) return value(i);
  return std::nullopt;
}

void PolicyVariables::each(const std::function<bool(const cel::Value&, const cel::Value&)>& visit) const {
  for (std::size_t i = 0; i < variables_.size(); ++i)
    if (!visit(cel::Value::borrowed_string(variables_[i].name), value(i))) return;
}

cel::Value PolicyVariables::value(std::size_t i) const {
  if (values_[i]) return *values_[i];
  const auto& [name, expression] = variables_[i];
  if (!expression.program) {
    values_[i] = cel::Value::error(fmt::format("composited variable \"{}\" fails to compile: {}", name, expression.error));
    return *values_[i];
  }
  auto evaluation = expression.program->evaluate(activation_);
  cost_ += static_cast<std::int64_t>(std::min<std::uint64_t>(evaluation.cost, kPolicyCostBudget));
  values_[i] =
      evaluation.value
          ? std::move(*evaluation.value)
          : cel::Value::error(fmt::format("composited variable \"{}\" fails to evaluate: {}", name, evaluation.value.error().message));
  return *values_[i];
}

ExpressionResult run_expression(const Expression& expression, const cel::Activation& variables, const PolicyVariables& composed,
                                std::int64_t& budget) {
  auto result = evaluate_expression(expression, variables, budget);
  const auto spent = composed.take_cost();
  if (spent > budget && !result.out_of_budget) result = {std::nullopt, std::string(kOutOfBudget), true};
  budget -= std::min(budget, spent);
  return result;
}

Admitted check_policy(const AdmissionRequest& request, Authorizer& authorizer, const Mirror& policies, const KindTablePtr& kinds) {
  if (request.object.is_null() || !request.subresource.empty()) return {};
  auto why = check_access(request, authorizer, policies, kinds);
  if (why.empty()) return {};
  const char* field = request.kind->kind.ends_with("AdmissionPolicy") ? "spec.paramKind" : "spec.paramRef";
  return std::unexpected(model::invalid_object(request.kind->group, request.kind->kind, request.name,
                                               {{model::FieldError::Type::kForbidden, field, "", std::move(why)}}));
}

}  // namespace berth::apiserver
