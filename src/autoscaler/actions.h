// What one pass of the autoscaler wants done, and what it found.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "autoscaler/provisioning_request.h"
#include "autoscaler/scale_down.h"
#include "autoscaler/scale_up.h"

namespace berth::autoscaler {

/// An Event. `pod`, `node` or `request` says about whom; none of them: about the status ConfigMap.
struct Note {
  PodPtr pod;
  std::string node;
  bool is_warning = false;
  std::string reason, message;
  RequestPtr request{};
};

/// A node that is to be emptied and deleted.
struct NodeRemoval {
  std::string node, group, instance;
  double utilization = 0;
  std::vector<PodPtr> evict;  ///< In order of key.
  /// None of its pods needs a place elsewhere: those that are evicted are below the threshold of priority or end by themselves.
  bool is_empty = true;
  std::vector<PodPtr> daemons;  ///< Evicted too, but nobody waits for them.
};

NodeRemoval removal_of(const Removable& one, const placement::NodeInfo& node, const Instance& instance, const Snapshot& snapshot,
                       TimePoint now);

/// A machine that did not become a node in time, or never will: it goes, with one replica less.
struct Deletion {
  std::string group, instance;
  bool has_failed = false;  ///< As its maker says; otherwise it is late.
};

struct GroupStatus {
  std::string id;
  std::int64_t min = 0, max = 0, target = 0;
  int ready = 0, unready = 0, not_started = 0, unregistered = 0, long_unregistered = 0, being_deleted = 0;
  int resource_unready = 0;  ///< Of `unready`: those whose device never came.
  int failed = 0;            ///< Machines that will never be nodes, from the second pass on.
  int upcoming = 0, candidates = 0;
  bool is_healthy = true, is_in_backoff = false, is_growing = false;
  std::string backoff_message;
  std::string gpu_resource, gpu_name;  ///< Of its nodes; empty: they have none.
};

struct Status {
  bool is_healthy = true;
  GroupStatus whole;  ///< Counts over all nodes; id is empty.
  std::vector<GroupStatus> groups;
  std::size_t pending_pods = 0;       ///< That fit nowhere.
  std::size_t placed_in_thought = 0;  ///< Waiting pods that fit on nodes that are there or on their way.
  ScaleUpPlan plan;
  bool is_scale_down_paused = false;
  std::map<std::string, TimePoint> unneeded;  ///< Since when.
  std::vector<Unremovable> unremovable;
  Amounts totals;
  std::vector<std::string> left_groups, left_nodes;  ///< Not looked at: the pass' time was over.
  std::vector<std::string> problems;                 ///< Settings of groups that make no sense: without effect.
  /// How long the parts took that the cluster autoscaler measures ("updateClusterState", …), by its stopwatch.
  std::map<std::string, Duration> lengths;
};

/// What is to be done now.
struct Actions {
  std::vector<Resize> grow;
  std::vector<Resize> give_up;  ///< Targets taken back for machines that never came to be; `to` < `from`.
  std::vector<Deletion> delete_instances;
  std::vector<std::string> failed_growth;  ///< Groups that were growing and whose machines failed.
  std::vector<NodeRemoval> remove;
  std::vector<std::pair<std::string, bool>> soft_taints;  ///< Node; whether it gets the taint or loses it.
  std::vector<Note> notes;
  std::vector<RequestUpdate> requests;
  Status status;
};

}  // namespace berth::autoscaler
