// Everything that is neither a pod, a node nor a workload.
#include <fmt/format.h>

#include <map>

#include "base/clock.h"
#include "model/internal_form.h"
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

constexpr std::int64_t kHighestUserPriority = 1'000'000'000;

void priority_class(const Value& doc, Errors& errors) {
  const std::string_view name = get_string(doc, {"metadata", "name"});
  const std::int64_t value = get_int(doc, {"value"});
  static const std::map<std::string_view, std::int64_t> kSystem = {{"system-node-critical", 2000001000},
                                                                   {"system-cluster-critical", 2000000000}};
  if (name.starts_with("system-")) {
    const auto found = kSystem.find(name);
    const Path meta("metadata");
    if (found == kSystem.end())
      errors.forbidden(meta / "name", "priority class names with 'system-' prefix are reserved for system use only. error: " +
                                          std::string(name) + " is not a known system priority class");
    else if (value != found->second || get_bool(doc, {"globalDefault"}))
      errors.forbidden(meta / "name", "priority class names with 'system-' prefix are reserved for system use only. error: value of " +
                                          std::string(name) + " PriorityClass must be " + fmt::format("{}", found->second));
  } else if (value > kHighestUserPriority) {
    errors.forbidden(Path("value"), fmt::format("maximum allowed value of a user defined priority is {}", kHighestUserPriority));
  }
  const std::string_view policy = get_string(doc, {"preemptionPolicy"}, "PreemptLowerPriority");
  if (policy.empty())
    errors.required(Path("preemptionPolicy"));
  else if (policy != "Never" && policy != "PreemptLowerPriority")
    errors.not_supported(Path("preemptionPolicy"), policy, {"PreemptLowerPriority", "Never"});
}

void disruption_budget(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Value* minimum = json::find(doc, {"spec", "minAvailable"});
  const Value* maximum = json::find(doc, {"spec", "maxUnavailable"});
  if (minimum != nullptr && maximum != nullptr)
    errors.invalid(at, internal_form("policy.v1.PodDisruptionBudgetSpec", json::find(doc, "spec")),
                   "minAvailable and maxUnavailable cannot be both set");
  for (const auto& [key, value] : {std::pair("minAvailable", minimum), std::pair("maxUnavailable", maximum)}) {
    if (value == nullptr) continue;
    int_or_percent(*value, at / key, errors);
    if (value->is_string() && std::atoi(value->get_string().c_str()) > 100)
      errors.invalid(at / key, *value, "must not be greater than 100%");
  }
  if (const Value* selector = json::find(doc, {"spec", "selector"})) label_selector(*selector, at / "selector", errors);
  if (const Value* spec = json::find(doc, "spec"))
    supported_value(*spec, "unhealthyPodEvictionPolicy", at, {"AlwaysAllow", "IfHealthyBudget"}, errors, true);
}

void lease(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Value* duration = json::find(doc, {"spec", "leaseDurationSeconds"});
  if (duration != nullptr && get_int(doc, {"spec", "leaseDurationSeconds"}) <= 0)
    errors.invalid(at / "leaseDurationSeconds", *duration, "must be greater than 0");
  const Value* transitions = json::find(doc, {"spec", "leaseTransitions"});
  if (transitions != nullptr && get_int(doc, {"spec", "leaseTransitions"}) < 0)
    errors.invalid(at / "leaseTransitions", *transitions, "must be greater than or equal to 0");
}

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

void scale_down(const Value& doc, const Path& at, Errors& errors) {
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

void cluster_autoscaler(const Value& doc, Errors& errors) {
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
  scale_down(doc, at / "scaleDown", errors);
  duration_text(doc, {"spec", "scaleUp", "newPodScaleUpDelay"}, at / "scaleUp" / "newPodScaleUpDelay", errors);
  duration_text(doc, {"spec", "maxNodeProvisionTime"}, at / "maxNodeProvisionTime", errors);
  at_least(doc, {"spec", "logVerbosity"}, at / "logVerbosity", 0, errors);
  std::size_t i = 0;
  for (const Value& expander : get_array(doc, {"spec", "expanders"})) {
    const std::string_view word = expander.is_string() ? json::as_view(expander) : "";
    // Beyond OpenShift's three, the cluster autoscaler's others that need no cloud's prices.
    if (word != "LeastWaste" && word != "Priority" && word != "Random" && word != "MostPods" && word != "LeastNodes")
      errors.not_supported((at / "expanders")[i], word, {"LeastNodes", "LeastWaste", "MostPods", "Priority", "Random"});
    ++i;
  }
}

void machine_autoscaler(const Value& doc, Errors& errors) {
  const Path at("spec");
  for (const char* key : {"minReplicas", "maxReplicas"})
    if (json::find(doc, {"spec", key}) == nullptr) errors.required(at / key);
  at_least(doc, {"spec", "minReplicas"}, at / "minReplicas", 0, errors);
  at_least(doc, {"spec", "maxReplicas"}, at / "maxReplicas", 1, errors);
  const std::int64_t low = get_int(doc, {"spec", "minReplicas"}), high = get_int(doc, {"spec", "maxReplicas"}, INT64_MAX);
  if (high < low) errors.invalid(at / "maxReplicas", Value(high), "must be greater than or equal to minReplicas");
  for (const char* key : {"kind", "name"}) filled_text(doc, {"spec", "scaleTargetRef", key}, at / "scaleTargetRef" / key, errors);
}

void namespace_object(const Value& doc, Errors& errors) {
  const Path spec("spec");
  for (const Value& finalizer : get_array(doc, {"spec", "finalizers"}))
    finalizer_name(finalizer.is_string() ? json::as_view(finalizer) : "", spec / "finalizers", spec / "finalizers", errors);
}

void storage_class_update(const Value& old, const Value& doc, Errors& errors) {
  for (const char* key : {"parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"}) immutable(old, doc, {key}, Path(key), errors);
}

void attributes_class_update(const Value& old, const Value& doc, Errors& errors) {
  for (const char* key : {"driverName", "parameters"}) {
    const Value *before = json::find(old, key), *after = json::find(doc, key);
    if ((before == nullptr) != (after == nullptr) || (before != nullptr && !json::equal(*before, *after)))
      errors.forbidden(Path(key), fmt::format("updates to {} are forbidden.", key));
  }
}

void role_binding_update(const Value& old, const Value& doc, Errors& errors) {
  const Value *before = json::find(old, "roleRef"), *after = json::find(doc, "roleRef");
  if (before != nullptr && after != nullptr && !json::equal(*before, *after))
    errors.invalid(Path("roleRef"), internal_form("rbac.v1.RoleRef", after), "cannot change roleRef");
}

void priority_class_update(const Value& old, const Value& doc, Errors& errors) {
  if (get_int(old, {"value"}) != get_int(doc, {"value"})) errors.forbidden(Path("value"), "may not be changed in an update.");
  immutable(old, doc, {"preemptionPolicy"}, Path("preemptionPolicy"), errors);
}

void capacity_update(const Value& old, const Value& doc, Errors& errors) {
  for (const char* key : {"nodeTopology", "storageClassName"}) immutable(old, doc, {key}, Path(key), errors);
}

/// How the objects of a kind are checked.
struct Rules {
  void (*always)(const Value& doc, Errors& errors) = nullptr;                    ///< Created and, unless only then, updated.
  void (*update)(const Value& old, const Value& doc, Errors& errors) = nullptr;  ///< At an update as well.
  enum class Update { kAfterwards, kBefore, kOnly } order = Update::kAfterwards;
};

const Rules* rules_of(const KindInfo& kind) {
  static const std::map<std::string_view, Rules> kRules = {
      {"PriorityClass", {priority_class, priority_class_update, Rules::Update::kOnly}},
      {"PodDisruptionBudget", {disruption_budget}},
      {"Service", {service, service_update, Rules::Update::kOnly}},
      {"ConfigMap",
       {config_map, [](const Value& old, const Value& doc, Errors& e) { config_data_update(old, doc, false, e); }, Rules::Update::kBefore}},
      {"Secret",
       {secret, [](const Value& old, const Value& doc, Errors& e) { config_data_update(old, doc, true, e); }, Rules::Update::kBefore}},
      {"Namespace", {namespace_object, nullptr, Rules::Update::kOnly}},
      {"PersistentVolumeClaim", {[](const Value& doc, Errors& e) { claim_spec(doc, Path("spec"), e); }, claim_update}},
      {"PersistentVolume", {volume, volume_update}},
      {"StorageClass", {storage_class, storage_class_update}},
      {"VolumeAttributesClass", {volume_attributes_class, attributes_class_update, Rules::Update::kBefore}},
      {"VolumeAttachment",
       {volume_attachment, [](const Value& old, const Value& doc,
                              Errors& e) { immutable(old, doc, {"spec"}, Path("spec"), e, "storage.v1.VolumeAttachmentSpec"); }}},
      {"CSIStorageCapacity", {storage_capacity, capacity_update}},
      {"CSINode", {csi_node, csi_node_update}},
      {"CSIDriver", {csi_driver, csi_driver_update}},
      {"ResourceQuota", {quota, quota_update}},
      {"LimitRange", {limit_range}},
      {"Role", {[](const Value& doc, Errors& e) { roles(doc, false, e); }}},
      {"ClusterRole", {[](const Value& doc, Errors& e) { roles(doc, true, e); }}},
      {"RoleBinding", {[](const Value& doc, Errors& e) { role_binding(doc, false, e); }, role_binding_update}},
      {"ClusterRoleBinding", {[](const Value& doc, Errors& e) { role_binding(doc, true, e); }, role_binding_update}},
      {"Endpoints", {endpoints}},
      {"MutatingWebhookConfiguration", {webhooks}},
      {"ValidatingWebhookConfiguration", {webhooks}},
      {"ValidatingAdmissionPolicy", {validating_admission_policy}},
      {"ValidatingAdmissionPolicyBinding", {policy_binding}},
      {"Lease", {lease}},
      {"Ingress", {ingress}},
      {"IngressClass", {ingress_class, ingress_class_update, Rules::Update::kBefore}},
      {"NetworkPolicy", {network_policy}},
      {"RuntimeClass",
       {runtime_class, [](const Value& old, const Value& doc, Errors& e) { immutable(old, doc, {"handler"}, Path("handler"), e); }}},
      {"APIService", {api_service}},
      {"FlowSchema", {flow_schema}},
      {"PriorityLevelConfiguration", {priority_level}},
      {"ClusterAutoscaler", {cluster_autoscaler}},
      {"MachineAutoscaler", {machine_autoscaler}},
      {"PodTemplate", {[](const Value& doc, Errors& e) { pod_template(doc, Path(""), e); }}},
  };
  const auto found = kRules.find(kind.kind);
  return found == kRules.end() ? nullptr : &found->second;
}

}  // namespace

void other(const KindInfo& kind, const Value* old, const Value& doc, Errors& errors) {
  if (kind.kind == "Event") {
    event(kind, doc, errors);
    if (kind.group.empty()) return;
    return old == nullptr ? event_create(doc, errors) : event_update(*old, doc, errors);
  }
  if (kind.kind == "EndpointSlice") return endpoint_slice(old, doc, errors);
  if (kind.kind == "CertificateSigningRequest") return certificate_request(old, doc, "", errors);
  if (kind.kind == "ControllerRevision") return controller_revision(old, doc, errors);
  if (kind.kind == "HorizontalPodAutoscaler") return horizontal_pod_autoscaler(old, doc, errors);
  const Rules* rules = rules_of(kind);
  if (rules == nullptr) return;
  using Update = Rules::Update;
  if (old != nullptr && rules->order == Update::kBefore) rules->update(*old, doc, errors);
  if (old == nullptr || rules->order != Update::kOnly) rules->always(doc, errors);
  if (old == nullptr && kind.kind == "Ingress") ingress_create(doc, errors);
  if (old != nullptr && rules->update != nullptr && rules->order != Update::kBefore) rules->update(*old, doc, errors);
}

}  // namespace berth::model::validation
