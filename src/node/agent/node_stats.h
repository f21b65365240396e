// Figures of a node's pods: for the eviction manager, the Summary API and metrics.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "node/agent/machine.h"
#include "node/agent/pod_worker.h"

namespace berth::node::agent {

/// A pod's figures beyond what the eviction manager wants.
struct PodFigures {
  std::string ns, name, uid, cgroup;
  eviction::PodUsage usage;
  std::uint64_t cpu_ns = 0;
};

/// Measures the pods: memory and processes from their cgroups, writable layers from the runtime's sampler, logs and volumes from the disk.
[[nodiscard]] std::vector<PodFigures> measure_pods(cri::Channel& runtime, const Cgroups& cgroups, const std::vector<std::shared_ptr<PodWorker>>& pods, bool with_disk, TimePoint now);
/// stats/v1alpha1's Summary.
[[nodiscard]] json::Value summary_json(const std::string& node_name, const eviction::NodeUsage& node, const std::vector<PodFigures>& pods, const Cgroups& cgroups, const MachinePaths& paths,
                                       TimePoint now);
/// /metrics/resource in the text format.
[[nodiscard]] std::string resource_metrics(const eviction::NodeUsage& node, const std::vector<PodFigures>& pods, const Cgroups& cgroups, const MachinePaths& paths);

}  // namespace berth::node::agent
