// What a new node of a group would be, with the daemons that would come to it.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autoscaler/snapshot.h"
#include "placement/trial.h"

namespace berth::autoscaler {

struct NodeTemplate {
  model::NodeViewPtr node;
  std::vector<placement::PodInfoPtr> daemons;  ///< And mirror pods: what comes with every node.
  Slices slices;                               ///< Its own ResourceSlices.
  bool is_of_real_node = false;
};
using NodeTemplates = std::map<std::string, NodeTemplate, std::less<>>;  ///< By group.

/// Like a node of the group that works for a minute at least, without what is that node's own; else as `known` from an earlier pass; else
/// as the provider describes it; else like a node that works only just. Null node: nobody knows (nodeinfosprovider). `base` gives a trial
/// on the snapshot's cluster, asked for only where daemons must be tried.
NodeTemplate make_template(const NodeGroup& group, const Snapshot& snapshot, const std::function<placement::Trial&()>& base,
                           const NodeTemplate* known, TimePoint now);
/// A new node of that name like this one: without what happened to it (cordons, taints of conditions, annotations).
model::NodeViewPtr node_like(const model::NodeView& node, const std::string& name);
/// Puts a node like that, with its daemons, into the trial.
placement::NodeIndex add_node(placement::Trial& trial, const NodeTemplate& node_template, const std::string& name);
/// Takes a node away, with its pods; one that is not there stays away.
void drop_node(placement::Trial& trial, const std::string& name);
/// Equal but for sizes within tolerance (of memory, of what is allocatable, of what daemons leave) and labels that always differ; with as
/// many devices of each driver (processors/nodegroupset).
bool are_similar(const NodeTemplate& a, const NodeTemplate& b, const std::vector<std::string>& ignored_labels);

}  // namespace berth::autoscaler
