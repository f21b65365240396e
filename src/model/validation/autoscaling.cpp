// HorizontalPodAutoscalers (pkg/apis/autoscaling/validation).
#include <fmt/format.h>

#include "model/quantity.h"
#include "model/validation/pod_parts.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;
using Strings = std::vector<std::string_view>;

constexpr std::int64_t kMaxStabilizationSeconds = 3600, kMaxPeriodSeconds = 1800;

/// What is scaled or measured: `needs_group` of the API group.
void target_reference(const Value& reference, bool needs_group, const Path& at, Errors& errors) {
  for (const char* key : {"kind", "name"}) {
    const std::string_view text = get_string(reference, {key});
    if (text.empty())
      errors.required(at / key);
    else if (const std::string why = check_path_segment(text); !why.empty())
      errors.invalid(at / key, text, why);
  }
  const std::string_view version = get_string(reference, {"apiVersion"});
  const auto slashes = std::ranges::count(version, '/');
  if (slashes > 1)
    errors.invalid(at / "apiVersion", version, fmt::format("unexpected GroupVersion string: {}", version));
  else if (needs_group && (slashes == 0 || version.starts_with('/')))
    errors.invalid(at / "apiVersion", version, "apiVersion must specify API group");
}

void metric_target(const Value& source, const Path& source_at, Errors& errors) {
  const Path at = source_at / "target";
  const std::string_view type = get_string(source, {"target", "type"});
  if (type.empty()) errors.required(at / "type", "must specify a metric target type");
  if (type != "Utilization" && type != "Value" && type != "AverageValue")
    errors.invalid(at / "type", type, "must be either Utilization, Value, or AverageValue");
  for (const char* key : {"value", "averageValue"})
    if (const std::string_view text = get_string(source, {"target", key}); !text.empty())
      if (const auto quantity = Quantity::parse(text); quantity && quantity->sign() != 1)
        errors.invalid(at / key, text, "must be positive");
  if (const Value* utilization = json::find(source, {"target", "averageUtilization"});
      utilization != nullptr && get_int(source, {"target", "averageUtilization"}) < 1)
    errors.invalid(at / "averageUtilization", *utilization, "must be greater than 0");
}

/// What every source asks of its target beyond its own form.
void target_choice(std::string_view type, const Value& source, const Path& source_at, Errors& errors) {
  const Path at = source_at / "target";
  const auto has = [&](const char* key) { return json::find(source, {"target", key}) != nullptr; };
  if (type == "Resource" || type == "ContainerResource") {
    if (!has("averageUtilization") && !has("averageValue"))
      errors.required(at / "averageUtilization", "must set either a target raw value or a target utilization");
    if (has("averageUtilization") && has("averageValue"))
      errors.forbidden(at / "averageValue", "may not set both a target raw value and a target utilization");
  } else if (type == "Pods") {
    if (!has("averageValue")) errors.required(at / "averageValue", "must specify a positive target averageValue");
  } else {
    const bool is_object = type == "Object";
    if (!has("value") && !has("averageValue"))
      errors.required(at / "averageValue", is_object ? "must set either a target value or averageValue"
                                                     : "must set either a target value for metric or a per-pod target");
    if (!is_object && has("value") && has("averageValue"))
      errors.forbidden(at / "value", "may not set both a target value for metric and a per-pod target");
  }
}

void metric_source(std::string_view type, const Value& source, const Path& at, Errors& errors) {
  if (type == "Resource" || type == "ContainerResource") {
    const std::string_view name = get_string(source, {"name"}), container = get_string(source, {"container"});
    if (name.empty())
      errors.required(at / "name", "must specify a resource name");
    else if (type == "ContainerResource")
      resource_name(name, true, at / "name", errors);
    if (type == "ContainerResource") {
      if (container.empty())
        errors.required(at / "container", "must specify a container");
      else if (const std::string why = check_dns1123_label(container); !why.empty())
        errors.invalid(at / "container", container, why);
    }
  } else {
    static const Value kNone = json::Object();
    if (type == "Object") {
      const Value* described = json::find(source, "describedObject");
      target_reference(described == nullptr ? kNone : *described, false, at / "describedObject", errors);
    }
    const Path metric_at = at / "metric";
    const std::string_view name = get_string(source, {"metric", "name"});
    if (name.empty())
      errors.required(metric_at / "name", "must specify a metric name");
    else if (const std::string why = check_path_segment(name); !why.empty())
      errors.invalid(metric_at / "name", name, why);
  }
  metric_target(source, at, errors);
  target_choice(type, source, at, errors);
}

void metric(const Value& object, const Path& at, Errors& errors) {
  // In the order in which they are looked at: the first that is there is checked, whatever the type says.
  static constexpr std::pair<std::string_view, std::string_view> kSources[] = {{"Object", "object"},
                                                                               {"External", "external"},
                                                                               {"Pods", "pods"},
                                                                               {"Resource", "resource"},
                                                                               {"ContainerResource", "containerResource"}};
  static const Strings kTypes = {"ContainerResource", "External", "Object", "Pods", "Resource"};
  const std::string_view type = get_string(object, {"type"});
  if (type.empty()) errors.required(at / "type", "must specify a metric source type");
  const auto known = std::ranges::find(kSources, type, &std::pair<std::string_view, std::string_view>::first);
  if (known == std::end(kSources))
    for (int n = 0; n < 2; ++n) errors.not_supported(at / "type", type, kTypes);  // Told twice, as Kubernetes does.
  Strings present;
  for (const auto& [its_type, field] : kSources)
    if (const Value* source = json::find(object, field)) {
      if (present.empty()) metric_source(its_type, *source, at / field, errors);
      present.push_back(field);
    }
  if (known != std::end(kSources) && json::find(object, known->second) == nullptr)
    errors.required(at / known->second, "must populate information for the given metric source");
  if (present.size() == 1) return;
  for (const auto field : present)
    if (known == std::end(kSources) || field != known->second) errors.forbidden(at / field, "must populate the given metric source only");
}

void scaling_rules(const Value& rules, const Path& at, Errors& errors) {
  if (const Value* window = json::find(rules, "stabilizationWindowSeconds")) {
    const std::int64_t seconds = get_int(rules, {"stabilizationWindowSeconds"});
    if (seconds < 0) errors.invalid(at / "stabilizationWindowSeconds", *window, "must be greater than or equal to zero");
    if (seconds > kMaxStabilizationSeconds)
      errors.invalid(at / "stabilizationWindowSeconds", *window, fmt::format("must be less than or equal to {}", kMaxStabilizationSeconds));
  }
  supported_value(rules, "selectPolicy", at, {"Disabled", "Max", "Min"}, errors, true);
  const Path policies = at / "policies";
  if (get_array(rules, {"policies"}).empty()) errors.required(policies, "must specify at least one Policy");
  std::size_t i = 0;
  for (const Value& policy : get_array(rules, {"policies"})) {
    const Path one = policies[i++];
    const std::string_view type = get_string(policy, {"type"});
    if (type != "Percent" && type != "Pods") errors.not_supported(one / "type", type, {"Percent", "Pods"});
    const std::int64_t value = get_int(policy, {"value"}), period = get_int(policy, {"periodSeconds"});
    if (value <= 0) errors.invalid(one / "value", Value(value), "must be greater than zero");
    if (period <= 0) errors.invalid(one / "periodSeconds", Value(period), "must be greater than zero");
    if (period > kMaxPeriodSeconds)
      errors.invalid(one / "periodSeconds", Value(period), fmt::format("must be less than or equal to {}", kMaxPeriodSeconds));
  }
  const std::string_view tolerance = get_string(rules, {"tolerance"});
  if (const auto quantity = Quantity::parse(tolerance); quantity && quantity->sign() < 0)
    errors.invalid(at / "tolerance", tolerance, kNegative);
}

}  // namespace

void horizontal_pod_autoscaler(const Value* old, const Value& doc, Errors& errors) {
  const Path at("spec");
  const std::int64_t minimum = get_int(doc, {"spec", "minReplicas"}, 1), maximum = get_int(doc, {"spec", "maxReplicas"});
  if (minimum < 1) errors.invalid(at / "minReplicas", Value(minimum), "must be greater than or equal to 1");
  if (maximum == 0)
    errors.required(at / "maxReplicas", "must be set and greater than 0");
  else if (maximum < 0)
    errors.invalid(at / "maxReplicas", Value(maximum), "must be greater than or equal to 1");
  if (maximum < minimum) errors.invalid(at / "maxReplicas", Value(maximum), "must be greater than or equal to `minReplicas`");
  static const Value kNone = json::Object();
  const Value* scaled = json::find(doc, {"spec", "scaleTargetRef"});
  const auto of_target = [](const Value& object, const char* key) { return get_string(object, {"spec", "scaleTargetRef", key}); };
  // A ReplicationController has no group; and what was stored without one may stay.
  const bool is_kept =
      old != nullptr && of_target(*old, "kind") == of_target(doc, "kind") && of_target(*old, "apiVersion") == of_target(doc, "apiVersion");
  const bool needs_group = !is_kept && of_target(doc, "kind") != "ReplicationController";
  target_reference(scaled == nullptr ? kNone : *scaled, needs_group, at / "scaleTargetRef", errors);
  if (const Value* percent = json::find(doc, {"spec", "targetCPUUtilizationPercentage"});
      percent != nullptr && get_int(doc, {"spec", "targetCPUUtilizationPercentage"}) < 1)
    errors.invalid(at / "metrics[0]" / "resource" / "target" / "averageUtilization", *percent, "must be greater than 0");
  const Path metrics = at / "metrics";
  const auto wakes_from_zero = [](const Value& one) {
    return get_string(one, {"type"}) == "Object" || get_string(one, {"type"}) == "External";
  };
  if (minimum == 0 && std::ranges::none_of(get_array(doc, {"spec", "metrics"}), wakes_from_zero))
    errors.forbidden(metrics, "must specify at least one Object or External metric to support scaling to zero replicas");
  std::size_t i = 0;
  for (const Value& one : get_array(doc, {"spec", "metrics"})) metric(one, metrics[i++], errors);
  const Path behavior = at / "behavior";
  for (const char* direction : {"scaleUp", "scaleDown"})
    if (const Value* rules = json::find(doc, {"spec", "behavior", direction})) scaling_rules(*rules, behavior / direction, errors);
}

}  // namespace berth::model::validation
