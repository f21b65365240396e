// The amounts of all nodes by quantity, two nodes side by side, for whoever goes over all of them at once.
#pragma once
#include <cstdint>
#include <vector>

#include "placement/columns/cluster_index.h"
#include "placement/columns/index_follower.h"
#include "placement/columns/node_amounts.h"

namespace berth::placement {

/// Scores every node for one class of pods in a few nanoseconds a node: the same numbers as ResourceColumns gives node by node, which is
/// its oracle. Owner: an Engine; follows one index, from which everything can be had again. Single-threaded.
class ScanTable {
 public:
  static constexpr std::int32_t kUnfit = INT32_MIN;
  /// The node has room, but its amounts are none that can be scored here.
  static constexpr std::int32_t kNotPlain = INT32_MIN + 1;

  /// Catches up with the index, which must be synced. A change costs one node.
  void sync(const ClusterIndex& index);
  /// By node slot: the weighted score; or one of the above. Requires that the class's amounts are small (PodClass::prepare_amounts).
  void score(const ResourceColumns& wanted, const ClusterIndex& index, std::vector<std::int32_t>& out) const;

 private:
  /// GCC's and Clang's vectors: plain operators, two at once on every machine we build for.
  using Lanes = double __attribute__((vector_size(16)));
  static constexpr std::size_t kLanes = 2;
  /// Whole numbers below 2^46, exact.
  struct Pair {
    Lanes capacity_cpu, capacity_memory, requested_cpu, requested_memory, nonzero_cpu, nonzero_memory, per_cpu, per_memory, free_pods,
        balance;
  };

  void set(const ClusterIndex& index, std::uint32_t node);
  static Lanes quotient(Lanes dividend, Lanes divisor, Lanes per_divisor);
  static Lanes nearest_to(Lanes value);
  static Lanes floor_of(Lanes value);

  std::uint64_t epoch_ = UINT64_MAX;
  IndexFollower follower_;
  std::vector<Pair> pairs_;
  std::vector<std::uint8_t> is_odd_;  ///< By node slot: holds pods, but is not plain.
  std::size_t odd_ = 0;
};

}  // namespace berth::placement
