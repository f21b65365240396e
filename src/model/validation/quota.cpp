// Quotas and limit ranges (ValidateResourceQuota, ValidateLimitRange).
#include <fmt/format.h>

#include "model/quantity.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using Strings = std::vector<std::string_view>;

bool is_quota_resource(std::string_view name) {
  static const Strings kNames = {"cpu",
                                 "memory",
                                 "ephemeral-storage",
                                 "requests.cpu",
                                 "requests.memory",
                                 "requests.storage",
                                 "requests.ephemeral-storage",
                                 "limits.cpu",
                                 "limits.memory",
                                 "limits.ephemeral-storage",
                                 "pods",
                                 "resourcequotas",
                                 "services",
                                 "replicationcontrollers",
                                 "secrets",
                                 "configmaps",
                                 "persistentvolumeclaims",
                                 "services.nodeports",
                                 "services.loadbalancers"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() || name.starts_with("hugepages-") ||
         name.starts_with("requests.hugepages-");
}

}  // namespace

void quota(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Path hard_at = at / "hard";
  for (const auto& [key, value] : get_object(doc, {"spec", "hard"})) {
    const std::string_view name(key.data(), key.size());
    const Path one = Path::map_key(hard_at, name);
    if (const std::string why = check_qualified_name(name); !why.empty())
      errors.invalid(one, name, why);
    else if (name.find('/') == std::string_view::npos && !is_quota_resource(name))
      errors.invalid(one, name, "must be a standard resource for quota");
    const auto quantity = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt;
    if (quantity && quantity->sign() < 0) errors.invalid(one, value, kNegative);
  }
  static const Strings kScopes = {"BestEffort",  "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass",
                                  "Terminating", "VolumeAttributesClass"};
  for (const Value& scope : get_array(doc, {"spec", "scopes"})) {
    const std::string_view text = scope.is_string() ? json::as_view(scope) : "";
    if (std::find(kScopes.begin(), kScopes.end(), text) == kScopes.end()) errors.invalid(at / "scopes", text, "unsupported scope");
  }
  const Path selector = at / "scopeSelector";
  const Path expressions = selector / "matchExpressions";
  for (const Value& expression : get_array(doc, {"spec", "scopeSelector", "matchExpressions"})) {
    const std::string_view scope = get_string(expression, {"scopeName"}), op = get_string(expression, {"operator"});
    const json::Array& values = get_array(expression, {"values"});
    if (std::find(kScopes.begin(), kScopes.end(), scope) == kScopes.end())
      errors.invalid(expressions / "scopeName", scope, "unsupported scope");
    if (op == "In" || op == "NotIn") {
      if (values.empty())
        errors.required(expressions / "values", "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector");
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!values.empty())
        errors.invalid(expressions / "values", Value(values),
                       "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector");
    } else {
      errors.invalid(expressions / "operator", op, "not a valid selector operator");
    }
  }
}

void limit_range(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Path limits_at = at / "limits";
  std::vector<std::string_view> types;
  std::size_t i = 0;
  for (const Value& item : get_array(doc, {"spec", "limits"})) {
    const Path one = limits_at[i++];
    const std::string_view type = get_string(item, {"type"});
    static const Strings kStandard = {"Container", "Pod", "PersistentVolumeClaim"};
    if (const std::string why = check_qualified_name(type); !why.empty()) errors.invalid(one / "type", type, why);
    if (type.find('/') == std::string_view::npos && std::find(kStandard.begin(), kStandard.end(), type) == kStandard.end())
      errors.invalid(one / "type", type, "must be a standard limit type or fully qualified");
    if (std::find(types.begin(), types.end(), type) != types.end()) errors.duplicate(one / "type", Value(type));
    types.push_back(type);
    if (type == "PersistentVolumeClaim" && get_string(item, {"min", "storage"}).empty() && get_string(item, {"max", "storage"}).empty())
      errors.required(one / "limits", "either minimum or maximum storage value is required, but neither was provided");
    if (type == "Pod")
      for (const char* key : {"default", "defaultRequest"})
        if (!get_object(item, {key}).empty()) errors.forbidden(one / key, "may not be specified when `type` is 'Pod'");
    const auto compare = [&](const char* low, const char* high, const char* words) {
      for (const auto& [key, value] : get_object(item, {low})) {
        const std::string_view name(key.data(), key.size()), other = get_string(item, {high, name});
        const auto a = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt,
                   b = other.empty() ? std::nullopt : Quantity::parse(other);
        const Path list_at = one / low;
        if (a && b && *a > *b)
          errors.invalid(Path::map_key(list_at, name), value,
                         fmt::format("{} value {} is greater than {} value {}", low, json::as_view(value), words, other));
      }
    };
    compare("min", "max", "max");
    compare("min", "defaultRequest", "default request");
    compare("defaultRequest", "max", "max");
    compare("defaultRequest", "default", "default limit");
    compare("default", "max", "max");
  }
}

}  // namespace berth::model::validation
