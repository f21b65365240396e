// ValidatingAdmissionPolicies and their bindings, compiled (admissionregistration.k8s.io/v1).
#pragma once
#include "apiserver/admission/match_conditions.h"
#include "apiserver/admission/webhook_config.h"
#include "base/mutex.h"

namespace berth::apiserver {

struct NamedExpression {
  std::string name;
  Expression expression;
};

struct Validation {
  Expression expression;
  std::optional<Expression> message_expression;
  std::string message, reason;
};

/// One of a mutating policy's: an expression that gives an apply configuration, or a list of JSON patch operations.
struct Mutation {
  Expression expression;
  bool is_json_patch = false;
};

struct PolicyBinding {
  std::string name;
  ResourceMatcher matcher;
  bool denies = false, warns = false, audits = false;
  bool has_param_ref = false, denies_missing_param = false;
  std::string param_name, param_ns;
  model::Selector param_selector;
};

struct Policy {
  std::string name;
  ResourceMatcher matcher;
  bool ignores_failure = false;
  std::string configuration_error;
  const model::KindInfo* param_kind = nullptr;
  MatchConditions conditions;
  std::vector<NamedExpression> variables;
  std::vector<Validation> validations;
  std::vector<NamedExpression> audit_annotations;
  std::vector<Mutation> mutations;
  bool reinvokes = false;  ///< reinvocationPolicy IfNeeded.
  KindTablePtr kinds;      ///< Keeps param_kind alive.
  std::vector<PolicyBinding> bindings;
};

/// Policies that have bindings, in order of name, each with its bindings in order of name.
std::vector<std::shared_ptr<const Policy>> compile_policies(const std::vector<Mirror::Document>& policies,
                                                            const std::vector<Mirror::Document>& bindings, const KindTablePtr& kinds);

/// The compiled policies of two mirrors, made anew after each change of them or of what is served. Thread-safe.
class PolicySource {
 public:
  PolicySource(const AdmissionContext& context, std::string_view policies, std::string_view bindings)
      : context_(context),
        policies_(context.mirror("admissionregistration.k8s.io", policies)),
        bindings_(context.mirror("admissionregistration.k8s.io", bindings)),
        namespaces_(context.mirror("", "namespaces")) {}
  using List = std::vector<std::shared_ptr<const Policy>>;
  [[nodiscard]] bool empty() const { return policies_.empty() || bindings_.empty(); }
  [[nodiscard]] const Mirror& policies() const { return policies_; }
  [[nodiscard]] std::shared_ptr<const List> current();
  /// Whether any policy has to do with the request. Metadata is all that it looks at.
  bool may_match(const AdmissionRequest& request);
  /// As AdmissionPlugin's: where none has.
  bool add_circumstances(const AdmissionRequest& request, Circumstances& circumstances);

 private:
  const AdmissionContext& context_;
  Mirror& policies_;
  Mirror& bindings_;
  Mirror& namespaces_;
  Mutex mutex_;
  std::shared_ptr<const List> compiled_ BERTH_GUARDED_BY(mutex_);
  KindTablePtr kinds_ BERTH_GUARDED_BY(mutex_);
  std::pair<std::uint64_t, std::uint64_t> generation_ BERTH_GUARDED_BY(mutex_);
};

/// The parameters that a binding names; one null where there are none to be had. The error: why the binding cannot be used.
Expected<std::vector<Mirror::Document>, std::string> collect_params(const AdmissionContext& context, const Policy& policy,
                                                                    const PolicyBinding& binding, const AdmissionRequest& request);

/// `variables`: each is computed when first asked for, once per validation; its cost counts against the same budget.
class PolicyVariables final : public cel::Map {
 public:
  PolicyVariables(const std::vector<NamedExpression>& variables, const cel::Activation& activation)
      : variables_(variables), activation_(activation), values_(variables.size()) {}
  [[nodiscard]] std::size_t size() const override { return variables_.size(); }
  [[nodiscard]] std::optional<cel::Value> find(const cel::Value& key) const override;
  void each(const std::function<bool(const cel::Value&, const cel::Value&)>& visit) const override;
  /// What was spent since the last call.
  std::int64_t take_cost() const { return std::exchange(cost_, 0); }

 private:
  cel::Value value(std::size_t i) const;
  const std::vector<NamedExpression>& variables_;
  const cel::Activation& activation_;
  mutable std::vector<std::optional<cel::Value>> values_;
  mutable std::int64_t cost_ = 0;
};

/// One expression of a policy against its budget, the variables that it asks for included.
ExpressionResult run_expression(const Expression& expression, const cel::Activation& variables, const PolicyVariables& composed,
                                std::int64_t& budget);

/// What is wrong with the expressions of a policy that is being written.
model::FieldErrors check_policy_expressions(const json::Value& policy);
/// Whether the author of a policy or a binding may read the parameters that it names.
Admitted check_policy(const AdmissionRequest& request, Authorizer& authorizer, const Mirror& policies, const KindTablePtr& kinds);

}  // namespace berth::apiserver
