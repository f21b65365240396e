// ValidatingAdmissionPolicies and their bindings, compiled (admissionregistration.k8s.io/v1).
#pragma once
#include "apiserver/admission/match_conditions.h"
#include "apiserver/admission/webhook_config.h"

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
  std::vector<PolicyBinding> bindings;
};

/// Policies that have bindings, in order of name, each with its bindings in order of name.
std::vector<std::shared_ptr<const Policy>> compile_policies(const std::vector<Mirror::Document>& policies,
                                                            const std::vector<Mirror::Document>& bindings);

/// Validation that needs the compiler: the expressions of a policy that is being written, and whether its author may read the parameters
/// that a policy or a binding names.
Admitted check_policy(const AdmissionRequest& request, Authorizer& authorizer, const Mirror& policies);

}  // namespace berth::apiserver
