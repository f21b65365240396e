#include "model/views/pod_facts.h"

#include <algorithm>

#include "base/split.h"
#include "model/schema.h"

namespace berth::model {
namespace {

/// As the API server wrote it, or would (pkg/utils/qos.go).
Qos qos_of(const json::Value& pod) {
  auto qos = json::get_string(pod, {"status", "qosClass"});
  if (qos != "BestEffort" && qos != "Burstable" && qos != "Guaranteed") qos = pod_qos_class(pod);
  return qos == "BestEffort" ? Qos::kBestEffort : qos == "Burstable" ? Qos::kBurstable : Qos::kGuaranteed;
}

void read_container_states(const json::Value& pod, std::string_view list, ContainerState::Kind kind, std::vector<ContainerState>& out) {
  for (const json::Value& status : json::get_array(pod, {"status", list})) {
    ContainerState one{.kind = kind, .restarts = json::get_int(status, {"restartCount"})};
    one.waiting_reason = json::get_string(status, {"state", "waiting", "reason"});
    one.terminated_reason = json::get_string(status, {"state", "terminated", "reason"});
    if (json::find(status, {"state", "terminated"}) != nullptr) one.exit_code = json::get_int(status, {"state", "terminated", "exitCode"});
    out.push_back(std::move(one));
  }
}

bool is_named(std::string_view list, std::string_view name) {
  for (const auto one : words(list, ','))
    if (one == name) return true;
  return false;
}

}  // namespace

std::shared_ptr<const PodStatus> PodStatus::parse(const json::Value& pod) {
  auto out = std::make_shared<PodStatus>();
  out->reason = json::get_string(pod, {"status", "reason"});
  read_container_states(pod, "containerStatuses", ContainerState::Kind::kContainer, out->containers);
  read_container_states(pod, "initContainerStatuses", ContainerState::Kind::kInit, out->containers);
  read_container_states(pod, "ephemeralContainerStatuses", ContainerState::Kind::kEphemeral, out->containers);
  for (const json::Value& condition : json::get_array(pod, {"status", "conditions"})) {
    PodCondition one{std::string(json::get_string(condition, {"type"})), std::string(json::get_string(condition, {"status"})),
                     std::string(json::get_string(condition, {"reason"})),
                     parse_rfc3339(json::get_string(condition, {"lastTransitionTime"}))};
    out->conditions.push_back(std::move(one));
  }
  return out;
}

std::int64_t PodStatus::restarts(bool including_init) const {
  std::int64_t out = 0;
  for (const ContainerState& one : containers)
    if (one.kind == ContainerState::Kind::kContainer || (including_init && one.kind == ContainerState::Kind::kInit)) out += one.restarts;
  return out;
}

PodFacts PodFacts::parse(const json::Value& pod) {
  PodFacts out;
  out.created = parse_rfc3339(json::get_string(pod, {"metadata", "creationTimestamp"}));
  out.started = parse_rfc3339(json::get_string(pod, {"status", "startTime"}));
  if (const auto deleted = parse_rfc3339(json::get_string(pod, {"metadata", "deletionTimestamp"})))
    out.deletion_time = *deleted + std::chrono::seconds(json::get_int(pod, {"spec", "terminationGracePeriodSeconds"}, 30));
  if (const auto* priority = json::find(pod, {"spec", "priority"}); priority != nullptr && priority->is_int64())
    out.priority = priority->get_int64();
  out.qos = qos_of(pod);
  out.has_node_selector =
      json::find(pod, {"spec", "nodeSelector"}) != nullptr || json::find(pod, {"spec", "affinity", "nodeAffinity"}) != nullptr;
  for (const json::Value& condition : json::get_array(pod, {"status", "conditions"})) {
    const auto type = json::get_string(condition, {"type"}), status = json::get_string(condition, {"status"}),
               reason = json::get_string(condition, {"reason"});
    out.is_unschedulable |= type == "PodScheduled" && status == "False" && reason == "Unschedulable";
    const bool leaves = type == "DisruptionTarget" && status == "True";
    out.is_disrupted |= leaves;
    out.is_evicted |= leaves && reason == "EvictionByEvictionAPI";
  }
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  out.is_finished = phase == "Failed" || (phase == "Succeeded" && json::get_string(pod, {"spec", "restartPolicy"}) != "Always");
  out.group = pod_group_key(pod);
  for (const json::Value& volume : json::get_array(pod, {"spec", "volumes"})) {
    const bool is_host_path = json::find(volume, "hostPath") != nullptr;
    if (is_host_path || json::find(volume, "emptyDir") != nullptr)
      out.local_volumes.push_back({std::string(json::get_string(volume, {"name"})), is_host_path,
                                   !is_host_path && json::get_string(volume, {"emptyDir", "medium"}) == "Memory"});
  }
  return out;
}

std::string pod_group_key(const json::Value& pod) {
  const std::string_view name = json::get_string(pod, {"spec", "schedulingGroup", "podGroupName"});
  return name.empty() ? std::string() : std::string(json::get_string(pod, {"metadata", "namespace"})).append("/").append(name);
}

bool is_static(const ObjectMeta& pod) {
  const std::string* source = pod.annotation(kPodSource);
  return source != nullptr && *source != "api";
}

bool is_of_daemon_set(const ObjectMeta& pod) {
  const OwnerReference* owner = pod.controller();
  return owner != nullptr && owner->kind == "DaemonSet";
}

bool counts_as_daemon(const ObjectMeta& pod) {
  const std::string* says = pod.annotation(kDaemonPod);
  return is_of_daemon_set(pod) || (says != nullptr && *says == "true");
}

bool goes_with_its_node(const ObjectMeta& pod) {
  const OwnerReference* owner = pod.controller();
  return is_mirror(pod) || (owner != nullptr && (owner->kind == "DaemonSet" || owner->kind == "Node"));
}

bool has_local_storage(const PodFacts& facts, const ObjectMeta& pod, LocalStorageRule rule) {
  if (facts.local_volumes.empty()) return false;
  const std::string* harmless = rule == LocalStorageRule::kAutoscaler ? pod.annotation(kSafeToEvictLocalVolumes) : nullptr;
  return std::ranges::any_of(facts.local_volumes, [&](const LocalVolume& volume) {
    switch (rule) {
      case LocalStorageRule::kDescheduler:
        return true;
      case LocalStorageRule::kAutoscaler:
        return !volume.is_in_memory && (harmless == nullptr || !is_named(*harmless, volume.name));
      case LocalStorageRule::kDrain:
        return !volume.is_host_path;
    }
    return true;
  });
}

}  // namespace berth::model
