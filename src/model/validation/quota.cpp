// Quotas and limit ranges (ValidateResourceQuota, ValidateLimitRange).
#include <fmt/format.h>

#include <optional>
#include <set>

#include "model/quantity.h"
#include "model/validation/pod_parts.h"

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
    if (std::find(kScopes.begin(), kScopes.end(), text) == kScopes.end())
      errors.invalid(at / "scopes", Value(get_array(doc, {"spec", "scopes"})), "unsupported scope");
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

namespace {

/// One amount of a limit; null when it is not there.
std::optional<Quantity> amount(const Value& item, std::string_view list, std::string_view name) {
  const std::string_view text = get_string(item, {list, name});
  return text.empty() ? std::nullopt : Quantity::parse(text);
}

/// The amounts of one resource beside each other.
void amounts(const Value& item, std::string_view name, bool has_defaults, const Path& at, Errors& errors) {
  const auto low = amount(item, "min", name), high = amount(item, "max", name);
  const auto given = has_defaults ? amount(item, "default", name) : std::nullopt,
             requested = has_defaults ? amount(item, "defaultRequest", name) : std::nullopt;
  const auto greater = [&](const auto& a, const auto& b, std::string_view list, const auto& shown, std::string_view a_word,
                           std::string_view b_word) {
    if (!a || !b || *a <= *b) return;
    const Path list_at = at / list;
    errors.invalid(Path::map_key(list_at, name), shown->to_string(),
                   fmt::format("{} value {} is greater than {} value {}", a_word, a->to_string(), b_word, b->to_string()));
  };
  greater(low, high, "min", low, "min", "max");
  greater(low, requested, "defaultRequest", requested, "min", "default request");
  greater(requested, high, "defaultRequest", requested, "default request", "max");
  greater(requested, given, "defaultRequest", requested, "default request", "default limit");
  greater(low, given, "default", low, "min", "default");
  greater(given, high, "default", high, "default", "max");
  const auto ratio = amount(item, "maxLimitRequestRatio", name);
  const Path ratio_at = at / "maxLimitRequestRatio";
  if (ratio && *ratio < Quantity::from_value(1))
    errors.invalid(Path::map_key(ratio_at, name), ratio->to_string(), fmt::format("ratio {} is less than 1", ratio->to_string()));
  if (ratio && low && high) {
    const double limit = high->as_double() / low->as_double();
    if (ratio->as_double() > limit)
      errors.invalid(Path::map_key(ratio_at, name), ratio->to_string(),
                     fmt::format("ratio {} is greater than max/min = {:f}", ratio->to_string(), limit));
  }
  const bool is_exact =
      (name.find('/') != std::string_view::npos && name.find("kubernetes.io/") == std::string_view::npos) || name.starts_with("hugepages-");
  const Path requests_at = at / "defaultRequest";
  if (is_exact && given && requested && *given != *requested)
    errors.invalid(
        Path::map_key(requests_at, name), requested->to_string(),
        fmt::format("default value {} must equal to defaultRequest value {} in {}", given->to_string(), requested->to_string(), name));
}

void limits(const Value& item, std::string_view type, const Path& at, Errors& errors) {
  std::set<std::string_view> names;
  for (const char* list : {"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"}) {
    const Path here = at / list;
    const json::Object& entries = get_object(item, {list});
    if (type == "Pod" && std::string_view(list).starts_with("default")) {
      if (!entries.empty()) errors.forbidden(here, "may not be specified when `type` is 'Pod'");
      continue;
    }
    for (const auto& [key, value] : entries) {
      const std::string_view name(key.data(), key.size());
      resource_name(name, type == "Pod" || type == "Container", Path::map_key(here, name), errors);
      names.insert(name);
    }
  }
  if (type == "PersistentVolumeClaim" && get_string(item, {"min", "storage"}).empty() && get_string(item, {"max", "storage"}).empty())
    errors.required(at / "limits", "either minimum or maximum storage value is required, but neither was provided");
  for (const std::string_view name : names) amounts(item, name, type != "Pod", at, errors);
}

}  // namespace

void limit_range(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Path limits_at = at / "limits";
  std::vector<std::string_view> types;
  std::size_t i = 0;
  for (const Value& item : get_array(doc, {"spec", "limits"})) {
    const Path one = limits_at[i++];
    const std::string_view type = get_string(item, {"type"});
    static const Strings kStandard = {"Container", "Pod", "PersistentVolumeClaim"};
    if (const std::string why = check_qualified_name(type); !why.empty())
      errors.invalid(one / "type", type, why);
    else if (type.find('/') == std::string_view::npos && std::find(kStandard.begin(), kStandard.end(), type) == kStandard.end())
      errors.invalid(one / "type", type, "must be a standard limit type or fully qualified");
    if (std::find(types.begin(), types.end(), type) != types.end()) errors.duplicate(one / "type", Value(type));
    types.push_back(type);
    limits(item, type, one, errors);
  }
}

}  // namespace berth::model::validation
