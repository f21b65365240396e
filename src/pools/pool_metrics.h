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
  void see(const PassResult& pass, PoolsCache& cache, const Catalogue& catalogue, TimePoint now);

 private:
  void count(const PassResult& pass, const PoolsCache& cache);
  void show_pools(const PoolsCache& cache);
  /// Since the last look, by what is there now.
  void charge(PoolsCache& cache, const Catalogue& catalogue, double hours);

  metrics::Registry& registry_;
  TimePoint looked_{};
};

}  // namespace berth::pools
