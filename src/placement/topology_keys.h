// Topology keys that a pod requires and no node has: kube-scheduler's words ("didn't match pod affinity rules") do not tell that, so it is
// said beside them (SPEC I3).
#pragma once
#include <string>
#include <vector>

#include "placement/cluster.h"

namespace berth::placement {

/// One sentence for each such key, with the label keys that nodes have; empty when every required key is on some node, or there is no node.
/// Looks at all nodes only when a key is missing.
[[nodiscard]] std::vector<std::string> missing_topology_keys(const Cluster& cluster, const model::PodView& pod);

}  // namespace berth::placement
