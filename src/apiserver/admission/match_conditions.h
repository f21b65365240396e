// Expressions of admission: what they may name, and the match conditions of webhooks and policies (apiserver/pkg/admission/plugin/cel,
// .../webhook/matchconditions).
#pragma once
#include "apiserver/admission/plugin.h"
#include "cel/cel.h"

namespace berth::apiserver {

/// kubernetes' RuntimeCELCostBudget and RuntimeCELCostBudgetMatchConditions.
inline constexpr std::int64_t kPolicyCostBudget = 10'000'000, kMatchConditionsCostBudget = 2'500'000;
inline constexpr std::string_view kOutOfBudget =
    "validation failed due to running out of cost budget, no further validation rules will be run";

struct ExpressionScope {
  bool has_params = false, has_authorizer = true;
};
/// object, oldObject, request, namespaceObject, and what the scope says.
cel::Environment admission_environment(const ExpressionScope& scope);

/// A compiled expression, or why it is none.
struct Expression {
  std::string text;
  std::optional<cel::Program> program;
  std::string error;         ///< "compilation failed: ERROR: <input>:1:1: …", "must evaluate to bool but got int"
  bool is_internal = false;  ///< The error is of the kind that validation reports as internal.
};
/// `results`: names of types one of which the expression must have; empty: any.
Expression compile_expression(std::string_view text, const cel::Environment& environment, std::initializer_list<std::string_view> results);
/// What validation says of the error, at the field `path` whose value is `value`.
void report_expression(const Expression& expression, const std::string& path, std::string_view value, model::FieldErrors& errors);
/// Compiles the match conditions of an object that is being written.
void check_match_conditions(const json::Array& conditions, const std::string& path, bool has_params, model::FieldErrors& errors);

/// The values of the variables for one request. Made lazily, kept for all expressions. Borrows the request.
class AdmissionVariables final : public cel::Activation {
 public:
  AdmissionVariables(const AdmissionRequest& request, const model::KindInfo& form, Authorizer& authorizer);
  [[nodiscard]] std::optional<cel::Value> find(std::string_view name) const override;
  void set_params(const json::Value* params) { params_ = params; }
  void set_namespace(std::shared_ptr<const json::Value> ns) { namespace_ = std::move(ns); }
  void set_variables(std::optional<cel::Value> variables) { variables_ = std::move(variables); }

 private:
  const AdmissionRequest& request_;
  const model::KindInfo& form_;
  Authorizer& authorizer_;
  json::Value request_document_;
  std::optional<json::Value> object_, old_object_;  ///< Converted to the wanted form, when that is not the request's own.
  const json::Value* params_ = nullptr;
  std::shared_ptr<const json::Value> namespace_;
  std::optional<cel::Value> variables_;
};

/// The outcome of one expression; `budget` is reduced, and what it could not pay is told as kOutOfBudget.
struct ExpressionResult {
  std::optional<cel::Value> value;
  std::string error;
  bool out_of_budget = false;
};
ExpressionResult evaluate_expression(const Expression& expression, const cel::Activation& variables, std::int64_t& budget);

class MatchConditions {
 public:
  static MatchConditions compile(const json::Array& conditions, bool has_params);
  [[nodiscard]] bool empty() const { return conditions_.empty(); }
  /// Whether all hold. A condition that is false decides; a failure counts only without one: with `ignores_failure` the answer is then
  /// no, otherwise the error.
  [[nodiscard]] Expected<bool, std::string> evaluate(const cel::Activation& variables, bool ignores_failure) const;

 private:
  std::vector<Expression> conditions_;
};

}  // namespace berth::apiserver
