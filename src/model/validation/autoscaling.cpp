// HorizontalPodAutoscalers (pkg/apis/autoscaling/validation).
#include <fmt/format.h>

#include "model/quantity.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;
using Strings = std::vector<std::string_view>;

constexpr std::int64_t kMaxStabilizationSeconds = 3600, kMaxPeriodSeconds = 1800;

void metric_target(const Value& source, const Path& source_at, bool resource, Errors& errors) {
  const Path at = source_at / "target";
  const Value* target = json::find(source, "target");
  if (target == nullptr) return errors.required(at, "must specify a metric target");
  static const Strings kTypes = {"AverageValue", "Utilization", "Value"};
  const std::string_view type = get_string(*target, {"type"});
  if (type.empty())
    errors.required(at / "type", "must specify a metric target type");
  else if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end())
    errors.not_supported(at / "type", type, kTypes);
  const Value* utilization = json::find(*target, "averageUtilization");
  if (utilization != nullptr && get_int(*target, {"averageUtilization"}) < 1)
    errors.invalid(at / "averageUtilization", *utilization, "must be greater than 0");
  for (const char* key : {"value", "averageValue"})
    if (const std::string_view text = get_string(*target, {key}); !text.empty())
      if (const auto quantity = Quantity::parse(text); quantity && quantity->sign() != 1)
        errors.invalid(at / key, text, "must be positive");
  if (!resource) return;
  const Value* average = json::find(*target, "averageValue");
  if (utilization != nullptr && average != nullptr)
    errors.forbidden(at / "averageValue", "may not set both a target raw value and a target utilization");
  if (utilization == nullptr && average == nullptr)
    errors.required(at / "averageUtilization", "must set either a target raw value or a target utilization");
}

void metric(const Value& object, const Path& at, Errors& errors) {
  static constexpr std::pair<std::string_view, std::string_view> kSources[] = {{"ContainerResource", "containerResource"},
                                                                               {"External", "external"},
                                                                               {"Object", "object"},
                                                                               {"Pods", "pods"},
                                                                               {"Resource", "resource"}};
  const std::string_view type = get_string(object, {"type"});
  if (type.empty()) return errors.required(at / "type", "must specify a metric source type");
  const auto known = std::find_if(std::begin(kSources), std::end(kSources), [&](const auto& one) { return one.first == type; });
  if (known == std::end(kSources))
    return errors.not_supported(at / "type", type, {"ContainerResource", "External", "Object", "Pods", "Resource"});
  const Path source_at = at / known->second;
  const Value* source = json::find(object, known->second);
  if (source == nullptr) return errors.required(source_at, "must populate information for the given metric source");
  const bool resource = type == "Resource" || type == "ContainerResource";
  if (resource && get_string(*source, {"name"}).empty()) errors.required(source_at / "name", "must specify a resource name");
  if (type == "ContainerResource" && get_string(*source, {"container"}).empty())
    errors.required(source_at / "container", "must specify a container");
  if (!resource && get_string(*source, {"metric", "name"}).empty())
    errors.required(source_at / "metric" / "name", "must specify a metric name");
  metric_target(*source, source_at, resource, errors);
}

void scaling_rules(const Value& rules, const Path& at, Errors& errors) {
  if (const Value* window = json::find(rules, "stabilizationWindowSeconds")) {
    const std::int64_t seconds = get_int(rules, {"stabilizationWindowSeconds"});
    if (seconds < 0) errors.invalid(at / "stabilizationWindowSeconds", *window, "must be greater than or equal to zero");
    if (seconds > kMaxStabilizationSeconds)
      errors.invalid(at / "stabilizationWindowSeconds", *window, fmt::format("must be less than or equal to {}", kMaxStabilizationSeconds));
  }
  if (const std::string_view select = get_string(rules, {"selectPolicy"});
      !select.empty() && select != "Disabled" && select != "Max" && select != "Min")
    errors.not_supported(at / "selectPolicy", select, {"Disabled", "Max", "Min"});
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
}

}  // namespace

void horizontal_pod_autoscaler(const Value& doc, Errors& errors) {
  const Path at("spec");
  const std::int64_t minimum = get_int(doc, {"spec", "minReplicas"}, 1), maximum = get_int(doc, {"spec", "maxReplicas"});
  if (minimum < 1) errors.invalid(at / "minReplicas", Value(minimum), "must be greater than or equal to 1");
  if (maximum < 1) errors.invalid(at / "maxReplicas", Value(maximum), "must be greater than 0");
  if (maximum < minimum) errors.invalid(at / "maxReplicas", Value(maximum), "must be greater than or equal to `minReplicas`");
  const Path target = at / "scaleTargetRef";
  for (const char* key : {"kind", "name"}) {
    const std::string_view text = get_string(doc, {"spec", "scaleTargetRef", key});
    if (text.empty())
      errors.required(target / key);
    else if (const std::string why = check_path_segment(text); !why.empty())
      errors.invalid(target / key, text, why);
  }
  if (const Value* percent = json::find(doc, {"spec", "targetCPUUtilizationPercentage"});
      percent != nullptr && get_int(doc, {"spec", "targetCPUUtilizationPercentage"}) < 1)
    errors.invalid(at / "targetCPUUtilizationPercentage", *percent, "must be greater than 0");
  const Path metrics = at / "metrics";
  std::size_t i = 0;
  for (const Value& one : get_array(doc, {"spec", "metrics"})) metric(one, metrics[i++], errors);
  const Path behavior = at / "behavior";
  for (const char* direction : {"scaleUp", "scaleDown"})
    if (const Value* rules = json::find(doc, {"spec", "behavior", direction})) scaling_rules(*rules, behavior / direction, errors);
}

}  // namespace berth::model::validation
