// The metrics cluster_autoscaler_* that dashboards of the cluster autoscaler read (kubernetes/autoscaler, proposals/metrics.md).
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "autoscaler/actions.h"
#include "base/metrics.h"

namespace berth::autoscaler {

/// Single-threaded; the registry must outlive it.
class PassMetrics {
 public:
  explicit PassMetrics(metrics::Registry& registry);

  /// After each pass. `length`: of all of it; `nodes` are those that the pass saw.
  void pass(const Actions& actions, const Options& options, const NodeFactsMap& nodes, const NodeTotals& totals, TimePoint now,
            Duration length);
  /// A pass that ended before it began, or something in it.
  void failed(const std::string& type);
  void grown(const std::string& group, std::int64_t nodes);
  void grow_failed(const std::string& group);
  void removed(const std::string& node, TimePoint now);
  void evicted(std::int64_t pods, bool succeeded);

 private:
  struct Gpu {
    std::string resource, name;
  };
  struct Leaving {
    std::string reason;
    Gpu gpu;
    TimePoint eligible;  ///< Since when it might have gone.
  };

  void gauge(const std::string& name, const std::string& help, double value, metrics::Labels labels = {});
  void count(const std::string& name, const std::string& what, std::int64_t amount, metrics::Labels labels = {});
  void observe(const std::string& function, Duration length);
  void skip(const char* direction, const char* reason, std::int64_t times);
  metrics::Histogram& removal_latency(const char* deleted);
  static metrics::Labels with_gpu(metrics::Labels labels, const Gpu& gpu);
  void follow_unneeded(const Status& status, const Options& options, TimePoint now);
  void describe_cluster(const Status& status, const Options& options);
  void describe_groups(const std::vector<GroupStatus>& groups);
  void describe_scale_down(const Status& status);
  void count_taints(const NodeTotals& totals);
  void count_skipped(const Status& status);

  metrics::Registry& registry_;
  std::map<std::string, Gpu> gpus_;            ///< By group.
  std::map<std::string, Leaving> leaving_;     ///< By node.
  std::map<std::string, TimePoint> eligible_;  ///< Unneeded nodes: when their time is over.
  std::set<std::string> known_taints_;         ///< Kinds that were counted before.
};

}  // namespace berth::autoscaler
