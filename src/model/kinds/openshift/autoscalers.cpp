// ClusterAutoscalers and MachineAutoscalers: custom resources where they come from.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

/// The words of a CustomResourceDefinition's schema: these kinds are such resources where they come from.
void at_least(const Value& doc, json::Path path, const Path& at, std::int64_t minimum, Errors& errors) {
  const Value* found = json::find(doc, path);
  if (found != nullptr && get_int(doc, path, minimum) < minimum)
    errors.invalid(at, *found, fmt::format("{} in body should be greater than or equal to {}", at.text(), minimum));
}

void duration_text(const Value& doc, json::Path path, const Path& at, Errors& errors) {
  const Value* found = json::find(doc, path);
  if (found == nullptr) return;
  const auto parsed = parse_go_duration(get_string(doc, path));
  if (!parsed || *parsed < Duration::zero())
    errors.invalid(at, *found, fmt::format("{} in body should match '([0-9]*(\\.[0-9]*)?[a-z]+)+'", at.text()));
}

void filled_text(const Value& doc, json::Path path, const Path& at, Errors& errors) {
  const Value* found = json::find(doc, path);
  if (found == nullptr)
    errors.required(at);
  else if (get_string(doc, path).empty())
    errors.invalid(at, *found, fmt::format("{} in body should be at least 1 chars long", at.text()));
}

void gpu_limits(const Value& doc, const Path& limits, Errors& errors) {
  std::size_t i = 0;
  const Path list = limits / "gpus";
  for (const Value& gpu : get_array(doc, {"spec", "resourceLimits", "gpus"})) {
    const Path at = list[i++];
    filled_text(gpu, {"type"}, at / "type", errors);
    // Document 003 allows these two; a text without a slash is a value of the nodes' label.
    const std::string type(get_string(gpu, {"type"}));
    if (type.find('/') != std::string::npos && type != "nvidia.com/gpu" && type != "amd.com/gpu")
      errors.invalid(at / "type", Value(type), "must be nvidia.com/gpu or amd.com/gpu");
    for (const char* key : {"min", "max"})
      if (json::find(gpu, key) == nullptr) errors.required(at / key);
    at_least(gpu, {"min"}, at / "min", 0, errors);
    at_least(gpu, {"max"}, at / "max", 1, errors);
    if (get_int(gpu, {"max"}) < get_int(gpu, {"min"}))
      errors.invalid(at / "max", Value(get_int(gpu, {"max"})), "must be greater than or equal to min");
  }
}

void check_scale_down(const Value& doc, const Path& at, Errors& errors) {
  if (json::find(doc, {"spec", "scaleDown"}) == nullptr) return;
  if (json::find(doc, {"spec", "scaleDown", "enabled"}) == nullptr) errors.required(at / "enabled");
  for (const char* key : {"delayAfterAdd", "delayAfterDelete", "delayAfterFailure", "unneededTime"})
    duration_text(doc, {"spec", "scaleDown", key}, at / key, errors);
  if (const Value* threshold = json::find(doc, {"spec", "scaleDown", "utilizationThreshold"})) {
    const std::string text(get_string(doc, {"spec", "scaleDown", "utilizationThreshold"}));
    const bool is_fraction = text.size() > 2 && text.starts_with("0.") && text.find_first_not_of("0123456789", 2) == std::string::npos;
    if (!is_fraction)
      errors.invalid(at / "utilizationThreshold", *threshold,
                     fmt::format("{} in body should match '(0.[0-9]+)'", (at / "utilizationThreshold").text()));
  }
}

void check_cluster_autoscaler(const Value& doc, Errors& errors) {
  const Path meta("metadata");
  if (get_string(doc, {"metadata", "name"}) != "default")
    errors.invalid(meta / "name", get_string(doc, {"metadata", "name"}), "the ClusterAutoscaler must be named \"default\"");
  const Path at("spec");
  const Path limits = at / "resourceLimits";
  at_least(doc, {"spec", "resourceLimits", "maxNodesTotal"}, limits / "maxNodesTotal", 0, errors);
  for (const char* key : {"cores", "memory"}) {
    const std::int64_t low = get_int(doc, {"spec", "resourceLimits", key, "min"}),
                       high = get_int(doc, {"spec", "resourceLimits", key, "max"}, INT64_MAX);
    if (low < 0) errors.invalid(limits / key / "min", Value(low), kNegative);
    if (high < low) errors.invalid(limits / key / "max", Value(high), "must be greater than or equal to min");
  }
  gpu_limits(doc, limits, errors);
  check_scale_down(doc, at / "scaleDown", errors);
  duration_text(doc, {"spec", "scaleUp", "newPodScaleUpDelay"}, at / "scaleUp" / "newPodScaleUpDelay", errors);
  duration_text(doc, {"spec", "maxNodeProvisionTime"}, at / "maxNodeProvisionTime", errors);
  at_least(doc, {"spec", "logVerbosity"}, at / "logVerbosity", 0, errors);
  std::size_t i = 0;
  for (const Value& expander : get_array(doc, {"spec", "expanders"})) {
    const std::string_view word = expander.is_string() ? json::as_view(expander) : "";
    // Beyond OpenShift's three, the cluster autoscaler's others.
    constexpr std::string_view kExpanders[] = {"Grpc", "LeastNodes", "LeastWaste", "MostPods", "Price", "Priority", "Random"};
    if (std::ranges::find(kExpanders, word) == std::end(kExpanders))
      errors.not_supported((at / "expanders")[i], word, {std::begin(kExpanders), std::end(kExpanders)});
    ++i;
  }
}

void check_machine_autoscaler(const Value& doc, Errors& errors) {
  const Path at("spec");
  for (const char* key : {"minReplicas", "maxReplicas"})
    if (json::find(doc, {"spec", key}) == nullptr) errors.required(at / key);
  at_least(doc, {"spec", "minReplicas"}, at / "minReplicas", 0, errors);
  at_least(doc, {"spec", "maxReplicas"}, at / "maxReplicas", 1, errors);
  const std::int64_t low = get_int(doc, {"spec", "minReplicas"}), high = get_int(doc, {"spec", "maxReplicas"}, INT64_MAX);
  if (high < low) errors.invalid(at / "maxReplicas", Value(high), "must be greater than or equal to minReplicas");
  for (const char* key : {"kind", "name"}) filled_text(doc, {"spec", "scaleTargetRef", key}, at / "scaleTargetRef" / key, errors);
}

Array machine_autoscaler_cells(const Value& o, TimePoint now) {
  return {name_of(o),
          Value(get_string(o, {"spec", "scaleTargetRef", "kind"})),
          Value(get_string(o, {"spec", "scaleTargetRef", "name"})),
          get_int(o, {"spec", "minReplicas"}),
          get_int(o, {"spec", "maxReplicas"}),
          age_of(o, now)};
}

}  // namespace

std::vector<KindInfo> openshift_autoscaling_group() {
  return {
      Record("autoscaling.openshift.io", "v1", "ClusterAutoscaler", "clusterautoscalers")
          .shorts({"ca"})
          .cluster()
          .subs({"status"})
          .generation()
          .does({.form = kDefault,
                 .strategy = Strategy{.kept_in_status_update = {"labels", "annotations", "finalizers", "ownerReferences"}},
                 .rules =
                     Rules{.has_foreign_finalizers = true, .create = check_cluster_autoscaler, .update = in_turn(check_cluster_autoscaler)},
                 .printer = kDefault,
                 .selected = kDefault,
                 .scale = kDefault,
                 .life = kDefault,
                 .counted = kDefault}),
      Record("autoscaling.openshift.io", "v1beta1", "MachineAutoscaler", "machineautoscalers")
          .shorts({"ma"})
          .subs({"scale", "status"})
          .generation()
          .does({.form = kDefault,
                 .strategy = Strategy{.kept_in_status_update = {"labels", "annotations", "finalizers", "ownerReferences"}},
                 .rules =
                     Rules{.has_foreign_finalizers = true, .create = check_machine_autoscaler, .update = in_turn(check_machine_autoscaler)},
                 .printer = Printer{{{"Name"}, {"Ref Kind"}, {"Ref Name"}, {"Min", 0, "integer"}, {"Max", 0, "integer"}, {"Age"}},
                                    machine_autoscaler_cells},
                 .selected = kDefault,
                 .scale = kDefault,
                 .life = kDefault,
                 .counted = kDefault})};
}

}  // namespace berth::model::kinds
