// Figures of a node's pods: for the eviction manager, the Summary API and metrics.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "node/agent/machine.h"
#include "node/agent/pod_worker.h"

namespace berth::node::agent {

struct RunningContainer {
  std::string id, image;
  TimePoint started_at{};
};
/// A pod's figures beyond what the eviction manager wants.
struct PodFigures {
  std::string ns, name, uid, cgroup, sandbox_id;
  eviction::PodUsage usage;
  std::map<std::string, RunningContainer> containers;  ///< By name.
  std::optional<TimePoint> start_time;
  bool has_network = false;  ///< Of its own; false: the machine's.

  [[nodiscard]] std::string group_of(const std::string& container) const { return cgroup + "/" + containers.at(container).id; }
};

/// Cores in use, from a group's growing total: the rate between samples at least a second apart. Thread-safe.
class CpuRates {
 public:
  /// Takes a sample in and returns the latest rate in nano-cores; 0 until there are two samples.
  std::uint64_t rate(const std::string& group, std::uint64_t total_ns, TimePoint now);

 private:
  struct Sample {
    std::uint64_t total_ns = 0, nano_cores = 0;
    TimePoint at{};
  };
  Mutex mutex_;
  std::map<std::string, Sample> samples_ BERTH_GUARDED_BY(mutex_);
};

/// Measures the pods: memory and processes from their cgroups, writable layers from the runtime's sampler, logs and volumes from the disk.
[[nodiscard]] std::vector<PodFigures> measure_pods(cri::Channel& runtime, const Cgroups& cgroups,
                                                   const std::vector<std::shared_ptr<PodWorker>>& pods, bool with_disk, TimePoint now);
/// Takes samples of all that the Summary shows rates of, so that who asks next has them.
void sample_rates(const std::vector<PodFigures>& pods, const Cgroups& cgroups, const MachinePaths& paths, CpuRates& rates, TimePoint now);
/// stats/v1alpha1's Summary.
[[nodiscard]] json::Value summary_json(const std::string& node_name, const eviction::NodeUsage& node, const std::vector<PodFigures>& pods,
                                       const Cgroups& cgroups, const MachinePaths& paths, CpuRates& rates, TimePoint now);
/// /metrics: what the agent runs, and itself.
[[nodiscard]] std::string kubelet_metrics(const std::string& node_name, const std::vector<std::shared_ptr<PodWorker>>& pods);

}  // namespace berth::node::agent
