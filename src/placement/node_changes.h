// Changes of nodes that would let a pod in: a taint removed, a label set, a node uncordoned, a node added. Pure; tried on forks.
#pragma once
#include <string>
#include <vector>

#include "placement/framework.h"

namespace berth::placement {

class Trial;

struct NodeChange {
  std::string node;                   ///< That would take the pod; of an added node: the one it is like.
  std::vector<std::string> commands;  ///< kubectl's, all of them needed; empty for an added node.
  bool is_new_node = false;
};

/// For each of the nodes (nearest first, a few): the fewest changes by which it takes the pod, when taints, labels and cordons are all that
/// keeps it away. Conditions (not-ready, pressure) are no change that somebody makes. Then, when a node like one of these but without pods
/// would take it, one of that kind.
std::vector<NodeChange> node_changes(Trial& trial, const PodInfoPtr& pod, const std::vector<NodeIndex>& nearest);

}  // namespace berth::placement
