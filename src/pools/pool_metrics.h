// The metrics karpenter_* that dashboards of Karpenter read, and what pools and workloads cost.
#pragma once
#include "base/metrics.h"
#include "pools/keeper.h"

namespace berth::pools {

/// Single-threaded; the registry must outlive it.
class PoolMetrics {
 public:
  explicit PoolMetrics(metrics::Registry& registry) : registry_(registry) {}
  /// After each pass.
  void see(const PassResult& pass, PoolsWorld& world, const Catalogue& catalogue, TimePoint now);

 private:
  void count(const PassResult& pass, const PoolsWorld& world);
  void show_pools(const PoolsWorld& world);
  /// Since the last look, by what is there now.
  void charge(PoolsWorld& world, const Catalogue& catalogue, double hours);

  metrics::Registry& registry_;
  TimePoint looked_{};
};

}  // namespace berth::pools
