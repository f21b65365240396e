// What a new node of a group would be, with the daemons that would come to it.
#pragma once
#include <string>
#include <vector>

#include "autoscaler/snapshot.h"
#include "placement/trial.h"

namespace berth::autoscaler {

struct NodeTemplate {
  model::NodeViewPtr node;
  std::vector<placement::PodInfoPtr> daemons;
};

/// Like a ready node of the group, without what is that node's own; else as the provider describes it. Null node: nobody knows.
/// `base` is a trial on the snapshot's cluster.
NodeTemplate make_template(const NodeGroup& group, const Snapshot& snapshot, placement::Trial& base, TimePoint now);
/// Puts a node like that, with its daemons, into the trial.
placement::NodeIndex add_node(placement::Trial& trial, const NodeTemplate& node_template, const std::string& name);
/// Equal but for size within tolerance and labels that always differ (processors/nodegroupset).
bool are_similar(const NodeTemplate& a, const NodeTemplate& b, const std::vector<std::string>& ignored_labels);

}  // namespace berth::autoscaler
