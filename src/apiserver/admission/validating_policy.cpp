// ValidatingAdmissionPolicy (apiserver/pkg/admission/plugin/policy): the cluster's own rules in CEL, with parameters, without a webhook.
#include "apiserver/admission/equivalent_forms.h"
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/policy_config.h"
#include "base/go/strings.h"
#include "model/kind_hooks.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kMostMessageBytes = 5 * 1024;

/// One reason against the request.
struct Denial {
  std::string message;
  std::string reason;
};

int code_of(std::string_view reason) {
  if (reason == "Forbidden") return 403;
  if (reason == "Unauthorized") return 401;
  if (reason == "RequestEntityTooLarge") return 413;
  return 422;
}

constexpr const char* kFailureAnnotation = "validation.policy.admission.k8s.io/validation_failure";

class ValidatingPolicy final : public AdmissionPlugin {
 public:
  explicit ValidatingPolicy(const AdmissionContext& context)
      : context_(context),
        source_(context, "validatingadmissionpolicies", "validatingadmissionpolicybindings"),
        forms_(context),
        namespaces_(context.mirror("", "namespaces")) {}
  [[nodiscard]] std::string_view name() const override { return "ValidatingAdmissionPolicy"; }
  [[nodiscard]] bool handles(Operation) const override { return true; }

  [[nodiscard]] bool wants_whole(const AdmissionRequest& request) override { return source_.may_match(request); }
  bool add_circumstances(const AdmissionRequest& request, Circumstances& circumstances) override {
    return source_.add_circumstances(request, circumstances);
  }
  [[nodiscard]] bool may_wait() const override { return true; }
  void validate_async(const AdmissionRequest& request, AdmitDone done) override {
    request.notes.forms.clear();
    std::vector<const model::KindInfo*> forms;
    if (!source_.empty())
      for (const auto& policy : *source_.current())
        if (const auto* form = match_resources(policy->matcher, request, namespaces_)) forms.push_back(form);
    forms_.prepare(request, std::move(forms),
                   [this, &request, done = std::move(done)](Admitted ready) { done(ready ? validate(request) : std::move(ready)); });
  }
  Admitted validate(const AdmissionRequest& request) override {
    if (request.kind->group == "admissionregistration.k8s.io" && request.kind->kind.find("AdmissionPolicy") != std::string::npos) {
      // Nobody may lock himself out of the policies' own configuration.
      if (!request.kind->kind.starts_with("Validating")) return {};
      return check_policy(request, context_.authorizer, source_.policies(), context_.kinds ? context_.kinds() : nullptr);
    }
    if (source_.empty()) return {};
    const auto policies = source_.current();
    std::optional<Denial> first;
    for (const auto& policy : *policies) {
      const auto* form = match_resources(policy->matcher, request, namespaces_);
      if (form == nullptr) continue;
      if (!policy->configuration_error.empty()) {
        if (!policy->ignores_failure && !first)
          first = Denial{fmt::format("ValidatingAdmissionPolicy '{}' denied request: failed to configure policy: {}", policy->name,
                                     policy->configuration_error),
                         ""};
        continue;
      }
      for (const auto& binding : policy->bindings) judge(*policy, binding, *form, request, first);
    }
    if (!first) return {};
    return std::unexpected(refusal(request, *first));
  }

 private:
  static model::ApiStatus refusal(const AdmissionRequest& request, const Denial& denial) {
    auto status = request.forbidden(denial.message);
    status.reason = denial.reason.empty() ? "Invalid" : denial.reason;
    status.code = code_of(status.reason);
    status.causes.push_back({"", denial.message, ""});
    return status;
  }

  void judge(const Policy& policy, const PolicyBinding& binding, const model::KindInfo& form, const AdmissionRequest& request,
             std::optional<Denial>& first) {
    if (match_resources(binding.matcher, request, namespaces_) == nullptr) return;
    const auto deny = [&](const std::string& message, const std::string& reason) {
      if (first) return;
      first = Denial{fmt::format("ValidatingAdmissionPolicy '{}' with binding '{}' denied request: {}", policy.name, binding.name, message),
                     reason};
    };
    auto params = collect_params(context_, policy, binding, request);
    if (!params) {
      if (!policy.ignores_failure) deny("failed to configure binding: " + params.error(), "");
      return;
    }
    const bool is_namespace = model::hooks_of(*request.kind).life->is_namespace;
    const auto ns = request.ns.empty() || is_namespace ? nullptr : namespaces_.get("", request.ns);
    for (const auto& param : *params) {
      AdmissionVariables variables(request, form, context_.authorizer);
      variables.set_params(param.get());
      variables.set_namespace(ns);
      std::vector<Denial> decisions, annotations;
      evaluate(policy, variables, decisions, annotations, request);
      if (binding.audits && request.caller.annotate && !decisions.empty())
        request.caller.annotate(kFailureAnnotation, failures(policy, binding, decisions));
      for (const auto& decision : decisions) {
        if (binding.denies) deny(decision.message, decision.reason);
        if (binding.warns && request.caller.warnings != nullptr)
          request.caller.warnings->push_back(fmt::format("Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                                                         policy.name, binding.name, decision.message));
      }
      for (const auto& failed : annotations) deny(failed.message, failed.reason);
    }
  }

  /// What the audit log is told where a binding's action is Audit.
  static std::string failures(const Policy& policy, const PolicyBinding& binding, const std::vector<Denial>& decisions) {
    json::Array actions, out;
    if (binding.denies) actions.emplace_back("Deny");
    if (binding.warns) actions.emplace_back("Warn");
    actions.emplace_back("Audit");
    for (const Denial& decision : decisions)
      out.push_back(
          json::Object{{"message", decision.message}, {"policy", policy.name}, {"binding", binding.name}, {"validationActions", actions}});
    return json::serialize(out);
  }

  /// Every validation that does not hold, and every audit annotation that fails.
  static void evaluate(const Policy& policy, AdmissionVariables& variables, std::vector<Denial>& decisions,
                       std::vector<Denial>& annotations, const AdmissionRequest& request) {
    const auto failed = [&](std::string message) {
      if (!policy.ignores_failure) decisions.push_back({std::move(message), ""});
    };
    const auto composed = std::make_shared<PolicyVariables>(policy.variables, variables);
    const auto matches = policy.conditions.evaluate(variables, policy.ignores_failure);
    if (!matches) return failed(matches.error());
    if (!*matches) return;
    variables.set_variables(cel::Value::map(composed));
    auto budget = kPolicyCostBudget;
    const auto run = [&](const Expression& expression) { return run_expression(expression, variables, *composed, budget); };
    std::vector<ExpressionResult> results;
    for (const auto& validation : policy.validations) {
      results.push_back(run(validation.expression));
      if (results.back().out_of_budget) return failed(results.back().error);
    }
    // Messages are computed for all validations before any is judged, from what is left of the budget.
    std::vector<std::optional<ExpressionResult>> messages;
    std::string messages_failed;
    for (const auto& validation : policy.validations) {
      messages.emplace_back();
      if (!validation.message_expression || !messages_failed.empty()) continue;
      messages.back() = run(*validation.message_expression);
      if (messages.back()->out_of_budget) messages_failed = messages.back()->error;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].value)
        failed(results[i].error);
      else if (!messages_failed.empty())
        failed("failed messageExpression: " + messages_failed);
      else if (!results[i].value->is_true())
        decisions.push_back({message_of(policy.validations[i], messages[i]), policy.validations[i].reason});
    }
    budget = kPolicyCostBudget;
    for (const auto& annotation : policy.audit_annotations) {
      const auto result = run(annotation.expression);
      if (result.out_of_budget) return failed(result.error);
      if (!result.value && !policy.ignores_failure) annotations.push_back({result.error, ""});
      if (result.value && request.caller.annotate && result.value->kind() == cel::Value::Kind::kString)
        if (const auto text = go::trim_space(result.value->text()); !text.empty())
          request.caller.annotate(policy.name + "/" + annotation.name, std::string(text));
    }
  }

  static std::string message_of(const Validation& validation, const std::optional<ExpressionResult>& computed) {
    if (computed && computed->value && computed->value->kind() == cel::Value::Kind::kString) {
      const auto text = go::trim_space(computed->value->text());
      if (!text.empty() && text.size() <= kMostMessageBytes && text.find('\n') == std::string_view::npos) return std::string(text);
    }
    if (!validation.message.empty()) return std::string(go::trim_space(validation.message));
    return fmt::format("failed expression: {}", go::trim_space(validation.expression.text));
  }

  const AdmissionContext& context_;
  PolicySource source_;
  EquivalentForms forms_;
  Mirror& namespaces_;
};

}  // namespace

PluginResult make_validating_policy(const AdmissionContext& context) { return std::make_unique<ValidatingPolicy>(context); }

}  // namespace berth::apiserver
