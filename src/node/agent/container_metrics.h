// The metrics of a node's pods, as Prometheus and the metrics server read them from a kubelet: /metrics/resource, /metrics/cadvisor, and
// what /metrics says of volumes.
#pragma once
#include <string>
#include <vector>

#include "node/agent/node_stats.h"

namespace berth::node::agent {

/// /metrics/resource (kubelet metrics/collectors/resource_metrics.go).
[[nodiscard]] std::string resource_metrics(const eviction::NodeUsage& node, const std::vector<PodFigures>& pods, const Cgroups& cgroups,
                                           const MachinePaths& paths, TimePoint now);

/// /metrics/cadvisor: the machine, the groups above its pods, pods, their sandboxes (whose the network is) and containers. What the kernel
/// does not count is left out.
[[nodiscard]] std::string cadvisor_metrics(const eviction::Machine& machine, const std::vector<PodFigures>& pods, const Cgroups& cgroups,
                                           const MachinePaths& paths, TimePoint now);

/// kubelet_volume_stats_*, of each claim once (metrics/collectors/volume_stats.go).
[[nodiscard]] std::string volume_metrics(const std::vector<eviction::VolumeUsage>& volumes);

}  // namespace berth::node::agent
