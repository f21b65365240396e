// Which pod goes first when a resource runs out (SPEC F7; kubelet eviction/helpers.go rank functions).
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

/// Negative: `a` is evicted before `b`; 0: equal. Memory and disk: pods over their request first, then lower priority, then larger use over
/// request. Processes: lower priority, then more processes. Pods without figures come before those that have some.
[[nodiscard]] int compare_for_eviction(Signal signal, DiskLayout layout, const RankedPod& a, const RankedPod& b);

/// Orders `pods` for eviction, exactly as the kubelet's sort leaves them (base/go_sort.h).
void rank_pods(std::vector<RankedPod>& pods, Signal signal, DiskLayout layout);

}  // namespace berth::node::eviction
