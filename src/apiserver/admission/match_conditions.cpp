#include "apiserver/admission/match_conditions.h"

#include "apiserver/admission/webhook_review.h"
#include "base/go/strings.h"
#include "cel/authorizer.h"

namespace berth::apiserver {
namespace {

using cel::struct_type;
using Fields = std::map<std::string, cel::Type, std::less<>>;

std::vector<cel::StructType> admission_structs() {
  const auto text = cel::string_type();
  const auto texts = cel::list_type(text);
  const auto labels = cel::map_type(text, text);
  const auto kind = struct_type("kubernetes.GroupVersionKind"), resource = struct_type("kubernetes.GroupVersionResource");
  const auto instant = cel::timestamp_type();
  return {
      {"kubernetes.GroupVersionKind", Fields{{"group", text}, {"version", text}, {"kind", text}}},
      {"kubernetes.GroupVersionResource", Fields{{"group", text}, {"version", text}, {"resource", text}}},
      {"kubernetes.UserInfo", Fields{{"username", text}, {"uid", text}, {"groups", texts}, {"extra", cel::map_type(text, texts)}}},
      {"kubernetes.AdmissionRequest", Fields{{"kind", kind},
                                             {"resource", resource},
                                             {"subResource", text},
                                             {"requestKind", kind},
                                             {"requestResource", resource},
                                             {"requestSubResource", text},
                                             {"name", text},
                                             {"namespace", text},
                                             {"operation", text},
                                             {"userInfo", struct_type("kubernetes.UserInfo")},
                                             {"dryRun", cel::bool_type()},
                                             {"options", cel::dyn_type()}}},
      {"kubernetes.NamespaceSpec", Fields{{"finalizers", texts}}},
      {"kubernetes.NamespaceCondition",
       Fields{{"status", text}, {"type", text}, {"lastTransitionTime", instant}, {"message", text}, {"reason", text}}},
      {"kubernetes.NamespaceStatus", Fields{{"conditions", cel::list_type(struct_type("kubernetes.NamespaceCondition"))}, {"phase", text}}},
      {"kubernetes.NamespaceMetadata", Fields{{"name", text},
                                              {"generateName", text},
                                              {"namespace", text},
                                              {"labels", labels},
                                              {"annotations", labels},
                                              {"UID", text},
                                              {"creationTimestamp", instant},
                                              {"deletionGracePeriodSeconds", cel::int_type()},
                                              {"deletionTimestamp", instant},
                                              {"generation", cel::int_type()},
                                              {"resourceVersion", text},
                                              {"finalizers", texts}}},
      {"kubernetes.Namespace", Fields{{"metadata", struct_type("kubernetes.NamespaceMetadata")},
                                      {"spec", struct_type("kubernetes.NamespaceSpec")},
                                      {"status", struct_type("kubernetes.NamespaceStatus")}}},
  };
}

cel::Authorize authorize_as(const UserInfo& user, Authorizer& authorizer) {
  return [&user, &authorizer](const cel::AuthorizationCheck& check) {
    Attributes wanted;
    wanted.verb = check.verb;
    wanted.is_resource = check.path.empty();
    wanted.path = check.path;
    wanted.group = check.group;
    wanted.version = "*";
    wanted.resource = check.resource;
    wanted.subresource = check.subresource;
    wanted.ns = check.ns;
    wanted.name = check.name;
    wanted.field_selector = check.field_selector;
    wanted.label_selector = check.label_selector;
    if (check.service_account_name.empty()) {
      const auto decision = authorizer.authorize(user, wanted);
      return cel::AuthorizationAnswer{decision.allowed, decision.reason, ""};
    }
    const UserInfo account{fmt::format("system:serviceaccount:{}:{}", check.service_account_ns, check.service_account_name),
                           "",
                           {"system:serviceaccounts", "system:serviceaccounts:" + check.service_account_ns},
                           {}};
    const auto decision = authorizer.authorize(account, wanted);
    return cel::AuthorizationAnswer{decision.allowed, decision.reason, ""};
  };
}

}  // namespace

cel::Environment admission_environment(const ExpressionScope& scope) {
  cel::Environment out;
  out.structs = admission_structs();
  out.variables = {{"object", cel::dyn_type()},
                   {"oldObject", cel::dyn_type()},
                   {"namespaceObject", struct_type("kubernetes.Namespace")},
                   {"request", struct_type("kubernetes.AdmissionRequest")}};
  if (scope.has_params) out.variables.push_back({"params", cel::dyn_type()});
  if (scope.has_authorizer) {
    out.variables.push_back({"authorizer", cel::authorizer_type()});
    out.variables.push_back({"authorizer.requestResource", cel::opaque_type("kubernetes.authorization.ResourceCheck")});
  }
  return out;
}

Expression compile_expression(std::string_view text, const cel::Environment& environment, std::initializer_list<std::string_view> results) {
  Expression out;
  out.text = text;
  auto program = cel::compile(text, environment);
  if (!program) {
    out.is_internal = program.error().is_instantiation;
    out.error = (out.is_internal ? "program instantiation failed: " : "compilation failed: ") + program.error().text;
    return out;
  }
  const auto type = program->output_type();
  const auto shown = cel::declared_name(type);
  if (results.size() > 0 && std::find(results.begin(), results.end(), shown) == results.end()) {
    if (results.size() == 1) {
      out.error = fmt::format("must evaluate to {} but got {}", *results.begin(), shown);
    } else {
      out.error = fmt::format("must evaluate to one of [{}] but got {}", fmt::join(results, " "), shown);
    }
    return out;
  }
  out.program = std::move(*program);
  return out;
}

void report_expression(const Expression& expression, const std::string& path, std::string_view value, model::FieldErrors& errors) {
  if (expression.error.empty()) return;
  if (expression.is_internal) {
    errors.push_back({model::FieldError::Type::kInternal, path, "", expression.error});
  } else {
    errors.push_back({model::FieldError::Type::kInvalid, path,
                      json::serialize(json::Value(boost::json::string_view(value.data(), value.size()))), expression.error});
  }
}

void check_match_conditions(const json::Array& conditions, const std::string& path, bool has_params, model::FieldErrors& errors) {
  if (conditions.empty()) return;
  const auto environment = admission_environment({has_params, true});
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const auto text = go::trim_space(json::get_string(conditions[i], {"expression"}));
    if (text.empty()) continue;
    report_expression(compile_expression(text, environment, {"bool"}), fmt::format("{}[{}].expression", path, i), text, errors);
  }
}

AdmissionVariables::AdmissionVariables(const AdmissionRequest& request, const model::KindInfo& form, Authorizer& authorizer)
    : request_(request), form_(form), authorizer_(authorizer), request_document_(admission_request_fields(request, form)) {
  if (&form == request.kind || request.body) return;
  object_ = in_form(request, form, request.object);
  old_object_ = in_form(request, form, request.old_object);
}

std::optional<cel::Value> AdmissionVariables::find(std::string_view name) const {
  if (name == "object") return cel::Value::borrowed_json(object_ ? *object_ : request_.object);
  if (name == "oldObject") return cel::Value::borrowed_json(old_object_ ? *old_object_ : request_.old_object);
  if (name == "request") return cel::Value::borrowed_json(request_document_);
  if (name == "params") return params_ == nullptr ? cel::Value() : cel::Value::borrowed_json(*params_);
  if (name == "namespaceObject") return namespace_ == nullptr ? cel::Value() : cel::Value::borrowed_json(*namespace_);
  if (name == "variables") return variables_;
  if (name == "authorizer") return cel::make_authorizer(authorize_as(*request_.user, authorizer_));
  if (name == "authorizer.requestResource") {
    cel::AuthorizationCheck check;
    check.group = form_.group;
    check.resource = form_.plural;
    check.subresource = request_.subresource;
    check.ns = request_.ns;
    check.name = request_.name;
    return cel::make_resource_check(authorize_as(*request_.user, authorizer_), std::move(check));
  }
  return std::nullopt;
}

ExpressionResult evaluate_expression(const Expression& expression, const cel::Activation& variables, std::int64_t& budget) {
  ExpressionResult out;
  if (!expression.program) {
    out.error = "compilation error: " + expression.error;
    return out;
  }
  auto evaluation = expression.program->evaluate(variables);
  const auto cost = static_cast<std::int64_t>(std::min<std::uint64_t>(evaluation.cost, INT64_MAX));
  if (cost > budget) {
    budget = 0;
    out.error = kOutOfBudget;
    out.out_of_budget = true;
    return out;
  }
  budget -= cost;
  if (evaluation.value)
    out.value = std::move(*evaluation.value);
  else
    out.error = fmt::format("expression '{}' resulted in error: {}", expression.text, evaluation.value.error().message);
  return out;
}

MatchConditions MatchConditions::compile(const json::Array& conditions, bool has_params) {
  MatchConditions out;
  if (conditions.empty()) return out;
  const auto environment = admission_environment({has_params, true});
  for (const auto& condition : conditions)
    out.conditions_.push_back(compile_expression(json::get_string(condition, {"expression"}), environment, {"bool"}));
  return out;
}

Expected<bool, std::string> MatchConditions::evaluate(const cel::Activation& variables, bool ignores_failure) const {
  std::vector<std::string> failures;
  std::vector<ExpressionResult> results;
  auto budget = kMatchConditionsCostBudget;
  for (const auto& condition : conditions_) {
    results.push_back(evaluate_expression(condition, variables, budget));
    if (!results.back().out_of_budget) continue;
    if (ignores_failure) return false;
    return std::unexpected(results.back().error);
  }
  for (auto& result : results) {
    if (!result.error.empty())
      failures.push_back(std::move(result.error));
    else if (!result.value->is_true())
      return false;
  }
  if (failures.empty()) return true;
  if (ignores_failure) return false;
  if (failures.size() == 1) return std::unexpected(failures[0]);
  return std::unexpected(fmt::format("[{}]", fmt::join(failures, ", ")));
}

}  // namespace berth::apiserver
