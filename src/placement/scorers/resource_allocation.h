// What the resource scorers share: how much of each configured resource a node would have requested with the pod on it.
// Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go (1.20 and today's).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "placement/framework.h"

namespace berth::placement {
namespace devices {
class ClassTotals;
}

/// One configured resource with the pod's part in it.
struct ScoredResource {
  enum class Kind : std::uint8_t { kCpu, kMemory, kEphemeralStorage, kScalar, kUnknown };
  Kind kind = Kind::kUnknown;
  std::string name;
  std::int64_t weight = 1;
  std::int64_t pod_request = 0;
  std::shared_ptr<devices::ClassTotals> devices = nullptr;  ///< A class stands for it, where a node has none of its own.
};

/// Allocatable 0 means "not counted" in 1.36.
struct ResourceAmounts {
  std::int64_t allocatable = 0;
  std::int64_t allocated = 0;  ///< Without the pod.
  std::int64_t requested = 0;  ///< With it.
};

/// `use_requested`: real requests (1.36's BalancedAllocation); otherwise with defaults for containers that ask for nothing.
/// Duplicate names: the last weight counts.
std::vector<ScoredResource> scored_resources(const PodInfo& pod, const std::vector<ResourceWeight>& resources, Era era, bool use_requested);
/// Whether a class stands for one of the resources that the pod asks for: its score goes by devices then.
[[nodiscard]] bool scores_devices(const PodInfo& pod, const std::vector<ResourceWeight>& resources, const Cluster& cluster);
/// The same for one pod's scores on this cluster as it is now.
void add_devices(std::vector<ScoredResource>& resources, const Cluster& cluster);
ResourceAmounts resource_amounts(const NodeInfo& node, const ScoredResource& resource, Era era, bool use_requested);

/// (capacity - requested) * 100 / capacity; 0 when there is none or too little.
inline std::int64_t least_requested_score(std::int64_t requested, std::int64_t capacity) {
  if (capacity <= 0 || requested > capacity) return 0;
  return static_cast<std::int64_t>(static_cast<__int128>(capacity - requested) * kMaxNodeScore / capacity);
}
/// requested * 100 / capacity. Over capacity: 0 in 1.20, 100 in 1.36.
inline std::int64_t most_requested_score(std::int64_t requested, std::int64_t capacity, Era era) {
  if (capacity <= 0) return 0;
  if (requested > capacity) return era == Era::k120 ? 0 : kMaxNodeScore;
  return static_cast<std::int64_t>(static_cast<__int128>(requested) * kMaxNodeScore / capacity);
}

/// Piecewise linear; `shape` with scores already scaled to 0–100.
std::int64_t broken_linear(const std::vector<UtilizationShapePoint>& shape, std::int64_t utilization);
/// Scores times ten: the configuration speaks of 0–10.
std::vector<UtilizationShapePoint> scaled_shape(std::vector<UtilizationShapePoint> shape);

// Weighted averages over the resources, in the release's arithmetic.
std::int64_t least_allocated_score(const std::vector<ScoredResource>& resources, const NodeInfo& node, Era era);
std::int64_t most_allocated_score(const std::vector<ScoredResource>& resources, const NodeInfo& node, Era era);
std::int64_t capacity_ratio_score(const std::vector<ScoredResource>& resources, const std::vector<UtilizationShapePoint>& shape,
                                  const NodeInfo& node, Era era);
/// 1.36: how much the pod improves the balance: 50 + (50 + with - without) / 2 over (1 - deviation) * 100.
std::int64_t balanced_score_136(const std::vector<ScoredResource>& resources, const NodeInfo& node);
/// 1.20: (1 - |cpu fraction - memory fraction|) * 100; 0 when either is full.
std::int64_t balanced_score_120(const std::vector<ScoredResource>& resources, const NodeInfo& node);

}  // namespace berth::placement
