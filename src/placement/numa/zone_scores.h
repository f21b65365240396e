// How well a pod goes with a node's NUMA nodes (scheduler-plugins' NodeResourceTopologyMatch: its scoring strategies), 0 to 100.
#pragma once
#include <map>
#include <string>

#include "model/views/pod_view.h"
#include "placement/numa/node_alignment.h"

namespace berth::placement::numa {

enum class ScoringStrategy : std::uint8_t { kLeastAllocated, kMostAllocated, kBalancedAllocation, kLeastNumaNodes };

struct ScoringOptions {
  ScoringStrategy strategy = ScoringStrategy::kLeastAllocated;
  std::map<std::string, std::int64_t> weights = {{"cpu", 1}, {"memory", 1}};  ///< Others count once.
};

/// What a container asks for, in whole units: cpu rounded up.
[[nodiscard]] Amounts requests_of(const model::ContainerView& container);
/// Of Guaranteed pods; all others go anywhere as well.
[[nodiscard]] std::int64_t zone_score(const NodeAlignment& alignment, const model::PodView& pod, const ScoringOptions& options);

}  // namespace berth::placement::numa
