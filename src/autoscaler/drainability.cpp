#include "autoscaler/drainability.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/disruption_ledger.h"

namespace berth::autoscaler {

namespace {

using Verdict = Drainability::Verdict;

Drainability block(std::string_view reason, std::string message) { return {Verdict::kBlock, reason, std::move(message)}; }

/// The controller is one that will make the pod again, and it is still there (rules replicacount and replicated).
std::optional<Drainability> controller_problem(const Pod& pod, const Snapshot& snapshot) {
  const model::OwnerReference* owner = pod.view().meta.controller();
  if (owner == nullptr) return std::nullopt;
  const std::string key = pod.view().ns() + "/" + owner->name;
  const placement::Cluster& cluster = *snapshot.cluster;
  const auto missing = [&](std::string_view what) {
    return block("ControllerNotFound", fmt::format("{} for {} is not available", what, pod.key()));
  };
  if (owner->kind == "ReplicationController" && !cluster.replication_controllers().contains(key)) return missing("replication controller");
  if (owner->kind == "ReplicaSet" && !cluster.replica_sets().contains(key)) return missing("replication controller");
  if (owner->kind == "StatefulSet" && owner->api_version.starts_with("apps/") && !cluster.stateful_sets().contains(key))
    return missing("statefulset");
  if (owner->kind == "Job" && !snapshot.jobs.contains(key)) return missing("job");
  if (owner->kind == "DaemonSet" && !snapshot.daemon_sets.contains(key)) return missing("daemonset");
  return std::nullopt;
}

bool is_replicated(const Pod& pod) {
  const model::OwnerReference* owner = pod.view().meta.controller();
  if (owner == nullptr) return false;
  return owner->kind == "ReplicationController" || owner->kind == "Job" || owner->kind == "ReplicaSet" || owner->kind == "StatefulSet";
}

}  // namespace

Drainability drainability_of(const Pod& pod, const placement::DisruptionLedger& budgets, const Snapshot& snapshot, const Options& options,
                             TimePoint now) {
  const std::string& name = pod.view().name();
  if (model::is_mirror(pod.view().meta)) return {Verdict::kIgnore, {}, {}};
  if (pod.facts.ends_too_long(now)) return {Verdict::kIgnore, {}, {}};
  if (auto problem = controller_problem(pod, snapshot)) return std::move(*problem);
  if (model::counts_as_daemon(pod.view().meta)) return {Verdict::kLeave, {}, {}};
  const std::string* evict = pod.view().meta.annotation(kSafeToEvict);
  if (evict != nullptr && *evict == "true") return {Verdict::kMove, {}, {}};
  if (pod.facts.is_finished) return {Verdict::kLeave, {}, {}};
  if (evict != nullptr && *evict == "on-completion") return {Verdict::kWait, {}, {}};
  if (!is_replicated(pod)) return block("NotReplicated", fmt::format("{} is not replicated", pod.key()));
  if (pod.view().ns() == "kube-system" && !budgets.covers(pod.view()))
    return block("UnmovableKubeSystemPod", "non-daemonset, non-mirrored, non-pdb-assigned kube-system pod present: " + name);
  if (evict != nullptr && *evict == "false")
    return block("NotSafeToEvictAnnotation", "pod annotated as not safe to evict present: " + name);
  if (options.skip_nodes_with_local_storage && model::has_local_storage(pod.facts, pod.view().meta, model::LocalStorageRule::kAutoscaler))
    return block("LocalStorageRequested", "pod with local storage present: " + name);
  if (budgets.ask(pod.view()).answer != placement::DisruptionLedger::Answer::kAllowed)
    return block("NotEnoughPdb", fmt::format("not enough pod disruption budget to move {}", pod.key()));
  return {Verdict::kMove, {}, {}};
}

}  // namespace berth::autoscaler
