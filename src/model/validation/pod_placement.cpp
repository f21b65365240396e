// Where a pod may go: tolerations, node selectors, affinity, spreading (ValidateTolerations, validateAffinity,
// validateTopologySpreadConstraints).
#include <fmt/format.h>

#include "model/validation/pod_parts.h"

namespace berth::model::validation {

using json::get_array;
using json::get_int;
using json::get_object;
using json::get_string;

void tolerations(const Value& spec, const Path& spec_at, Errors& errors) {
  const Path at = spec_at / "tolerations";
  std::size_t i = 0;
  for (const Value& toleration : get_array(spec, {"tolerations"})) {
    const Path one = at[i++];
    const std::string_view key = get_string(toleration, {"key"}), op = get_string(toleration, {"operator"}),
                           value = get_string(toleration, {"value"}), effect = get_string(toleration, {"effect"});
    if (!key.empty())
      if (const std::string why = check_qualified_name(key); !why.empty()) errors.invalid(one / "key", key, why);
    if (key.empty() && op != "Exists")
      errors.invalid(one / "operator", op, "operator must be Exists when `key` is empty, which means \"match all values and all keys\"");
    if (json::find(toleration, "tolerationSeconds") != nullptr && effect != "NoExecute")
      errors.invalid(one / "effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set");
    if (op.empty() || op == "Equal") {
      if (std::string why = check_label_value(value); !why.empty()) {
        std::ranges::replace(why, '\n', ';');  // One finding, whatever is wrong.
        errors.invalid(one / "operator", value, why);
      }
    } else if (op == "Exists") {
      if (!value.empty()) errors.invalid(one / "operator", value, "value must be empty when `operator` is 'Exists'");
    } else {
      errors.not_supported(one / "operator", op, {"Equal", "Exists"});
    }
    supported_value(toleration, "effect", one, {"NoSchedule", "PreferNoSchedule", "NoExecute"}, errors);
  }
}

namespace {

/// `any_value`: of a preference, whose values need not be labels'.
void node_requirements(const json::Array& list, const Path& at, bool fields, bool any_value, Errors& errors) {
  std::size_t i = 0;
  for (const Value& expression : list) {
    const Path one = at[i++];
    const std::string_view op = get_string(expression, {"operator"}), key = get_string(expression, {"key"});
    const json::Array& values = get_array(expression, {"values"});
    if (fields) {
      if (op != "In" && op != "NotIn")
        errors.invalid(one / "operator", op, "not a valid selector operator");
      else if (values.size() != 1)
        errors.required(one / "values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
      if (key != "metadata.name") errors.invalid(one / "key", key, "not a valid field selector key");
      const Path values_at = one / "values";
      for (std::size_t k = 0; key == "metadata.name" && k < values.size(); ++k)
        if (const std::string why = check_dns1123_subdomain(values[k].is_string() ? json::as_view(values[k]) : ""); !why.empty())
          errors.invalid(values_at[k], values[k], why);
      continue;
    }
    if (op == "In" || op == "NotIn") {
      if (values.empty()) errors.required(one / "values", "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!values.empty()) errors.forbidden(one / "values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else if (op == "Gt" || op == "Lt") {
      if (values.size() != 1) errors.required(one / "values", "must be specified single value when `operator` is 'Lt' or 'Gt'");
    } else {
      errors.invalid(one / "operator", op, "not a valid selector operator");
    }
    if (const std::string why = check_qualified_name(key); !why.empty()) errors.invalid(one / "key", key, why);
    std::size_t k = 0;
    const Path values_at = one / "values";
    if (any_value) continue;
    for (const Value& value : values) {
      const Path value_at = values_at[k++];
      if (value.is_string())
        if (const std::string why = check_label_value(json::as_view(value)); !why.empty()) errors.invalid(value_at, value, why);
    }
  }
}

void node_selector_term(const Value& term, const Path& at, Errors& errors, bool any_value = false) {
  node_requirements(get_array(term, {"matchExpressions"}), at / "matchExpressions", false, any_value, errors);
  node_requirements(get_array(term, {"matchFields"}), at / "matchFields", true, any_value, errors);
}

/// matchLabelKeys and mismatchLabelKeys of a term or a constraint, which have been merged into its selector.
void label_key_lists(const Value& term, bool has_mismatch, const Path& at, Errors& errors) {
  const Value* selector = json::find(term, "labelSelector");
  for (const char* list : {"matchLabelKeys", "mismatchLabelKeys"}) {
    const json::Array& keys = get_array(term, {list});
    if (keys.empty() || (!has_mismatch && std::string_view(list) == "mismatchLabelKeys")) continue;
    const Path here = at / list;
    if (selector == nullptr) errors.forbidden(here, "must not be specified when labelSelector is not set");
    for (std::size_t i = 0; selector != nullptr && i < keys.size(); ++i)
      if (const std::string why = check_qualified_name(keys[i].is_string() ? json::as_view(keys[i]) : ""); !why.empty())
        errors.invalid(here[i], keys[i], why);
  }
  const json::Array& keys = get_array(term, {"matchLabelKeys"});
  std::map<std::string_view, std::size_t> index_of;  // Of equal ones the last.
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i].is_string()) index_of[json::as_view(keys[i])] = i;
  if (selector != nullptr) {
    std::set<std::string_view> seen;
    for (const auto& [key, value] : get_object(*selector, {"matchLabels"})) seen.emplace(key.data(), key.size());
    for (const Value& expression : get_array(*selector, {"matchExpressions"})) {
      const std::string_view key = get_string(expression, {"key"});
      const auto index = index_of.find(key);
      if (index != index_of.end() && seen.contains(key))
        errors.invalid(at[index->second], key, "exists in both matchLabelKeys and labelSelector");
      seen.insert(key);
    }
  }
  if (!has_mismatch) return;
  std::set<std::string_view> mismatch;
  for (const Value& key : get_array(term, {"mismatchLabelKeys"}))
    if (key.is_string()) mismatch.insert(json::as_view(key));
  const Path here = at / "matchLabelKeys";
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i].is_string() && mismatch.contains(json::as_view(keys[i])))
      errors.invalid(here[i], keys[i], "exists in both matchLabelKeys and mismatchLabelKeys");
}

void pod_affinity_term(const Value& term, const Path& at, Errors& errors) {
  if (const Value* selector = json::find(term, "labelSelector")) label_selector(*selector, at / "labelSelector", errors);
  if (const Value* selector = json::find(term, "namespaceSelector")) label_selector(*selector, at / "namespaceSelector", errors);
  for (const Value& ns : get_array(term, {"namespaces"})) {
    const std::string_view text = ns.is_string() ? json::as_view(ns) : "";
    if (const std::string why = check_dns1123_label(text); !why.empty()) errors.invalid(at / "namespace", text, why);
  }
  label_key_lists(term, true, at, errors);
  const std::string_view key = get_string(term, {"topologyKey"});
  if (key.empty()) errors.required(at / "topologyKey", "can not be empty");
  if (const std::string why = check_qualified_name(key); !why.empty()) errors.invalid(at / "topologyKey", key, why);
}

void pod_affinity(const Value& object, const Path& at, Errors& errors) {
  std::size_t i = 0;
  const Path required = at / "requiredDuringSchedulingIgnoredDuringExecution",
             preferred = at / "preferredDuringSchedulingIgnoredDuringExecution";
  for (const Value& term : get_array(object, {"requiredDuringSchedulingIgnoredDuringExecution"}))
    pod_affinity_term(term, required[i++], errors);
  i = 0;
  for (const Value& weighted : get_array(object, {"preferredDuringSchedulingIgnoredDuringExecution"})) {
    const Path one = preferred[i++];
    const std::int64_t weight = get_int(weighted, {"weight"});
    if (weight <= 0 || weight > 100) errors.invalid(one / "weight", Value(weight), "must be in the range 1-100");
    static const Value kEmpty = json::Object();
    const Value* term = json::find(weighted, "podAffinityTerm");
    pod_affinity_term(term == nullptr ? kEmpty : *term, one / "podAffinityTerm", errors);
  }
}

}  // namespace

void node_selector(const Value& selector, const Path& at, Errors& errors) {
  const Path terms = at / "nodeSelectorTerms";
  const json::Array& list = get_array(selector, {"nodeSelectorTerms"});
  if (list.empty()) errors.required(terms, "must have at least one node selector term");
  std::size_t i = 0;
  for (const Value& term : list) node_selector_term(term, terms[i++], errors);
}

void affinity(const Value& object, const Path& at, Errors& errors) {
  if (const Value* node_affinity = json::find(object, "nodeAffinity")) {
    const Path here = at / "nodeAffinity";
    if (const Value* required = json::find(*node_affinity, "requiredDuringSchedulingIgnoredDuringExecution"))
      node_selector(*required, here / "requiredDuringSchedulingIgnoredDuringExecution", errors);
    const Path preferred = here / "preferredDuringSchedulingIgnoredDuringExecution";
    std::size_t i = 0;
    for (const Value& term : get_array(*node_affinity, {"preferredDuringSchedulingIgnoredDuringExecution"})) {
      const Path one = preferred[i++];
      const std::int64_t weight = get_int(term, {"weight"});
      if (weight <= 0 || weight > 100) errors.invalid(one / "weight", Value(weight), "must be in the range 1-100");
      if (const Value* preference = json::find(term, "preference")) node_selector_term(*preference, one / "preference", errors, true);
    }
  }
  if (const Value* one = json::find(object, "podAffinity")) pod_affinity(*one, at / "podAffinity", errors);
  if (const Value* one = json::find(object, "podAntiAffinity")) pod_affinity(*one, at / "podAntiAffinity", errors);
}

void spread_constraints(const Value& spec, const Path& spec_at, Errors& errors) {
  const Path at = spec_at / "topologySpreadConstraints";
  const json::Array& list = get_array(spec, {"topologySpreadConstraints"});
  const auto kind_of = [](const Value& constraint) {
    return std::pair(get_string(constraint, {"topologyKey"}), get_string(constraint, {"whenUnsatisfiable"}));
  };
  // Of equal ones all but the last are named.
  std::vector<bool> comes_again(list.size());
  std::set<std::pair<std::string_view, std::string_view>> later;
  for (std::size_t i = list.size(); i-- > 0;) comes_again[i] = !later.insert(kind_of(list[i])).second;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Value& constraint = list[i];
    const Path one = at[i];
    const std::int64_t skew = get_int(constraint, {"maxSkew"});
    if (skew <= 0) errors.invalid(one / "maxSkew", Value(skew), "must be greater than zero");
    const auto [key, action] = kind_of(constraint);
    if (key.empty()) errors.required(one / "topologyKey", "can not be empty");
    supported_value(constraint, "whenUnsatisfiable", one, {"DoNotSchedule", "ScheduleAnyway"}, errors, true);
    if (json::find(constraint, "whenUnsatisfiable") == nullptr)
      errors.not_supported(one / "whenUnsatisfiable", "", {"DoNotSchedule", "ScheduleAnyway"});
    if (comes_again[i]) errors.duplicate(one / "{topologyKey, whenUnsatisfiable}", Value(fmt::format("{{{}, {}}}", key, action)));
    if (const Value* domains = json::find(constraint, "minDomains")) {
      if (get_int(constraint, {"minDomains"}) <= 0) errors.invalid(one / "minDomains", *domains, "must be greater than zero");
      if (action != "DoNotSchedule")
        errors.invalid(one / "minDomains", *domains,
                       fmt::format("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", action));
    }
    supported_value(constraint, "nodeAffinityPolicy", one, {"Honor", "Ignore"}, errors, true);
    supported_value(constraint, "nodeTaintsPolicy", one, {"Honor", "Ignore"}, errors, true);
    label_key_lists(constraint, false, one, errors);
    if (const Value* selector = json::find(constraint, "labelSelector")) label_selector(*selector, one / "labelSelector", errors);
  }
}

}  // namespace berth::model::validation
