// Which pod goes first when a resource runs out (SPEC F7, I13; kubelet eviction/helpers.go rank functions).
#pragma once
#include <span>
#include <vector>

#include "node/eviction/pod_facts.h"
#include "node/eviction/summary.h"
#include "node/eviction/thresholds.h"

namespace berth::node::eviction {

/// What of a pod's disk use counts for a filesystem's signal.
struct DiskParts {
  bool rootfs = false, logs = false, local_volumes = false;
};
[[nodiscard]] DiskParts disk_parts(Signal signal, DiskLayout layout);

/// A pod to be ranked with what it uses; null: nothing was measured.
struct RankedPod {
  const PodFacts* facts = nullptr;
  const PodUsage* usage = nullptr;
};

/// Whose order. The document (000 §21.2.7): quality of service first, within a class pods over their request by how much, then the largest
/// consumers; of equals the lower priority. Kubernetes since 1.9: memory and disk: pods over their request first, then lower priority, then
/// larger use over request; processes: lower priority, then more processes. With both, pods without figures come before those that have
/// some (in the document's order: of their class).
enum class EvictionRules { kKubernetes, kDocument };

/// Negative: `a` is evicted before `b`; 0: equal.
[[nodiscard]] int compare_for_eviction(EvictionRules rules, Signal signal, DiskLayout layout, const RankedPod& a, const RankedPod& b);

/// Orders `pods` for eviction, exactly as the kubelet's sort leaves them (base/go/sort.h).
void rank_pods(std::vector<RankedPod>& pods, EvictionRules rules, Signal signal, DiskLayout layout);

}  // namespace berth::node::eviction
