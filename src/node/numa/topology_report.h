// The NodeResourceTopology (topology.node.k8s.io/v1alpha2) by which a node tells schedulers of its NUMA nodes. Pure.
#pragma once
#include <string>

#include "base/json.h"
#include "model/kinds.h"
#include "node/numa/shared.h"
#include "placement/numa/holdings.h"

namespace berth::node::numa {

inline const model::Gvr kNodeTopologies{"topology.node.k8s.io", "v1alpha2", "noderesourcetopologies"};

struct TopologyReport {
  std::string node_name, node_uid;
  AlignmentPolicy policy;
  Machine machine;
  bool gives_cpus = false, gives_memory = false;  ///< By the static policies.
  int threads_of_whole_cores = 1;
  std::vector<NodeSet> sockets;  ///< Where processors are as good anywhere in one.
  Offer offer;
};

/// To be applied as it is: the same bytes for the same report. It is owned by the node.
[[nodiscard]] json::Value topology_document(const TopologyReport& report);

}  // namespace berth::node::numa
