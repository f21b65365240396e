// What a status may say. Kubernetes: pkg/apis/{core,apps,batch,policy}/validation, Validate*Status and Validate*StatusUpdate.
#include <fmt/format.h>

#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;

/// Counters of a kind's status: none is negative; those in `within_replicas` count some of the replicas.
struct StatusCounters {
  std::string_view kind;
  std::vector<std::string_view> counters, within_replicas;
  bool available_within_ready = false;
};

const StatusCounters* counters_of(const KindInfo& kind) {
  static const std::vector<StatusCounters> kAll = {
      {"Deployment",
       {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas", "collisionCount",
        "terminatingReplicas"},
       {"updatedReplicas", "readyReplicas", "availableReplicas"},
       true},
      {"ReplicaSet",
       {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration", "terminatingReplicas"},
       {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"},
       true},
      {"ReplicationController",
       {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"},
       {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"},
       true},
      {"StatefulSet",
       {"replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration", "collisionCount"},
       {"readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"},
       true},
      {"DaemonSet",
       {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
        "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"},
       {}},
      {"Job", {"active", "succeeded", "failed", "ready", "terminating"}, {}},
      {"PodDisruptionBudget", {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}, {}},
  };
  const auto found = std::ranges::find(kAll, kind.kind, &StatusCounters::kind);
  return found == kAll.end() || kind.group.ends_with(".openshift.io") ? nullptr : &*found;
}

void counters(const StatusCounters& known, const Value& old, const Value& doc, Errors& errors) {
  const Path at("status");
  const auto count = [&](std::string_view key) { return get_int(doc, {"status", key}); };
  for (const auto key : known.counters)
    if (count(key) < 0) errors.invalid(at / key, Value(count(key)), kNegative);
  for (const auto key : known.within_replicas)
    if (count(key) > count("replicas")) errors.invalid(at / key, Value(count(key)), "cannot be greater than status.replicas");
  if (known.available_within_ready && count("availableReplicas") > count("readyReplicas"))
    errors.invalid(at / "availableReplicas", Value(count("availableReplicas")),
                   known.kind == "StatefulSet" ? "cannot be greater than status.readyReplicas" : "cannot be greater than readyReplicas");
  if (count("collisionCount") < get_int(old, {"status", "collisionCount"}))
    errors.invalid(at / "collisionCount", Value(count("collisionCount")), "cannot be decremented");
}

/// A pod that is not to restart leaves no terminated container for another state.
void container_states(const Value& old, const Value& doc, std::string_view list, const Path& status, Errors& errors) {
  const std::string_view policy = get_string(old, {"spec", "restartPolicy"});
  if (policy == "Always") return;
  const Path at = status / list;
  const json::Array& before = get_array(old, {"status", list});
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::string_view name = get_string(before[i], {"name"});
    if (json::find(before[i], {"state", "terminated"}) == nullptr) continue;
    if (get_int(before[i], {"state", "terminated", "exitCode"}) != 0 && policy == "OnFailure") continue;
    // Sidecars restart whatever the pod's policy is.
    const auto restarts = [&](const Value& container) {
      return get_string(container, {"name"}) == name && get_string(container, {"restartPolicy"}) == "Always";
    };
    if (std::ranges::any_of(get_array(old, {"spec", "initContainers"}), restarts)) continue;
    for (const Value& now : get_array(doc, {"status", list}))
      if (get_string(now, {"name"}) == name && json::find(now, {"state", "terminated"}) == nullptr)
        errors.forbidden(at[i] / "state", "may not be transitioned to non-terminated state");
  }
}

void pod_status(const Value& old, const Value& doc, Errors& errors) {
  const Path at("status");
  const Path addresses = at / "podIPs";
  const std::string_view nominated = get_string(doc, {"status", "nominatedNodeName"});
  if (!nominated.empty() && nominated != get_string(old, {"status", "nominatedNodeName"}))
    if (const std::string why = check_dns1123_subdomain(nominated); !why.empty()) errors.invalid(at / "nominatedNodeName", nominated, why);
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) container_states(old, doc, list, at, errors);
  const json::Array& all = get_array(doc, {"status", "podIPs"});
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const std::string_view ip = get_string(all[i], {"ip"}); !is_ip(ip))
      errors.invalid(addresses[i], ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
}

}  // namespace

void status_update(const KindInfo& kind, const Value& old, const Value& doc, Errors& errors) {
  if (const auto* known = counters_of(kind)) counters(*known, old, doc, errors);
  if (kind.group == "resource.k8s.io") resource_claim_status(old, doc, errors);
  if (!kind.group.empty()) return;
  if (kind.kind == "Pod") pod_status(old, doc, errors);
  if (kind.kind == "Namespace") {
    const Path status("status");
    const bool is_going = json::find(doc, {"metadata", "deletionTimestamp"}) != nullptr;
    const std::string_view phase = get_string(doc, {"status", "phase"});
    if (!is_going && phase != "Active") errors.invalid(status / "Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty");
    if (is_going && phase != "Terminating")
      errors.invalid(status / "Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
  }
}

}  // namespace berth::model::validation
