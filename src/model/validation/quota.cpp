// Quotas and limit ranges (ValidateResourceQuota, ValidateLimitRange).
#include <fmt/format.h>

#include <optional>
#include <set>

#include "model/internal_form.h"
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

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_scope(std::string_view scope) {
  return is_one_of(scope, {"BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass", "Terminating",
                           "VolumeAttributesClass"});
}

/// Of the standard resources, a scope of pods counts pods and what they ask for; the BestEffort scope only their number.
bool scope_counts(std::string_view scope, std::string_view resource) {
  if (is_one_of(scope, {"Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"}))
    return is_one_of(resource, {"pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory",
                                "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage"});
  if (scope == "BestEffort") return resource == "pods";
  if (scope == "VolumeAttributesClass") return is_one_of(resource, {"persistentvolumeclaims", "requests.storage"});
  return true;
}

/// What spec.scopes and spec.scopeSelector share: the scopes must count each resource of spec.hard, and must not exclude one another.
void scope_pairs(const Value& doc, const Path& at, const Path& conflicts_at, const Value& shown, const Strings& names, Errors& errors) {
  Strings resources;
  for (const auto& member : get_object(doc, {"spec", "hard"}))
    if (const std::string_view resource(member.key().data(), member.key().size()); is_quota_resource(resource))
      resources.push_back(resource);
  for (const std::string_view scope : names)
    for (const std::string_view resource : resources)
      if (!scope_counts(scope, resource)) errors.invalid(at, shown, "unsupported scope applied to resource");
  const auto has = [&](std::string_view scope) { return std::find(names.begin(), names.end(), scope) != names.end(); };
  const Value* listed = json::find(doc, {"spec", "scopes"});
  for (const auto& [one, other] : {std::pair("BestEffort", "NotBestEffort"), std::pair("Terminating", "NotTerminating")})
    if (has(one) && has(other)) errors.invalid(conflicts_at, listed == nullptr ? Value(nullptr) : *listed, "conflicting scopes");
}

void scopes(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Path scopes_at = at / "scopes";
  Strings names;
  for (const Value& scope : get_array(doc, {"spec", "scopes"})) names.push_back(scope.is_string() ? json::as_view(scope) : "");
  const Value* listed = json::find(doc, {"spec", "scopes"});
  for (const std::string_view name : names)
    if (!is_scope(name)) errors.invalid(scopes_at, *listed, "unsupported scope");
  if (!names.empty()) scope_pairs(doc, scopes_at, scopes_at, *listed, names, errors);

  const Value* selector = json::find(doc, {"spec", "scopeSelector"});
  if (selector == nullptr) return;
  const Path selector_at = at / "scopeSelector";
  const Path expressions = selector_at / "matchExpressions";
  names.clear();
  for (const Value& expression : get_array(*selector, {"matchExpressions"})) {
    const std::string_view scope = get_string(expression, {"scopeName"}), op = get_string(expression, {"operator"});
    const json::Array& values = get_array(expression, {"values"});
    names.push_back(scope);
    if (!is_scope(scope)) errors.invalid(expressions / "scopeName", scope, "unsupported scope");
    if (op != "Exists" && is_one_of(scope, {"BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"}))
      errors.invalid(expressions / "operator", op,
                     "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
                     "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity");
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
  scope_pairs(doc, expressions, expressions, internal_form("core.v1.ScopeSelector", selector), names, errors);
}

/// Counted in whole things (IsIntegerResourceName).
bool counts_whole(std::string_view name) {
  const bool is_extended =
      name.find('/') != std::string_view::npos && name.find("kubernetes.io/") == std::string_view::npos && !name.starts_with("requests.");
  return is_extended || is_one_of(name, {"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
                                         "persistentvolumeclaims", "services.nodeports", "services.loadbalancers"});
}

}  // namespace

void quota_amounts(const Value& doc, json::Path list, const Path& at, Errors& errors) {
  for (const auto& [key, value] : get_object(doc, list)) {
    const std::string_view name(key.data(), key.size());
    const Path one = Path::map_key(at, name);
    if (const std::string why = check_qualified_name(name); !why.empty())
      errors.invalid(one, name, why);
    else if (name.find('/') == std::string_view::npos && !is_standard_resource(name))
      errors.invalid(one, name, "must be a standard resource type or fully qualified");
    if (name.find('/') == std::string_view::npos && !is_quota_resource(name))
      errors.invalid(one, name, "must be a standard resource for quota");
    const auto quantity = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt;
    if (quantity && quantity->sign() < 0) errors.invalid(one, value, kNegative);
    if (quantity && counts_whole(name) && quantity->milli_value() % 1000 != 0) errors.invalid(one, value, "must be an integer");
  }
}

void quota(const Value& doc, Errors& errors) {
  const Path at("spec");
  quota_amounts(doc, {"spec", "hard"}, at / "hard", errors);
  scopes(doc, errors);
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
  std::set<std::string_view> types;
  std::size_t i = 0;
  for (const Value& item : get_array(doc, {"spec", "limits"})) {
    const Path one = limits_at[i++];
    const std::string_view type = get_string(item, {"type"});
    static const Strings kStandard = {"Container", "Pod", "PersistentVolumeClaim"};
    if (const std::string why = check_qualified_name(type); !why.empty())
      errors.invalid(one / "type", type, why);
    else if (type.find('/') == std::string_view::npos && std::find(kStandard.begin(), kStandard.end(), type) == kStandard.end())
      errors.invalid(one / "type", type, "must be a standard limit type or fully qualified");
    if (!types.insert(type).second) errors.duplicate(one / "type", Value(type));
    limits(item, type, one, errors);
  }
}

void quota_update(const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  const auto set_of = [](const Value& object) {
    std::set<std::string_view> out;
    for (const Value& scope : get_array(object, {"spec", "scopes"})) out.insert(scope.is_string() ? json::as_view(scope) : "");
    return out;
  };
  const Value* scopes_now = json::find(doc, {"spec", "scopes"});
  if (set_of(old) != set_of(doc)) errors.invalid(at / "scopes", scopes_now == nullptr ? Value(nullptr) : *scopes_now, kImmutable);
}

}  // namespace berth::model::validation
