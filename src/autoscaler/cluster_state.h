// How many nodes there are and of which kind, how many are to come, and which groups may not grow now (clusterstate).
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autoscaler/actions.h"

namespace berth::autoscaler {

/// Remembers between passes: growth under way, groups that pause after a failure, machines that are no nodes yet, targets that are not met.
/// All its times are of this process' own clock: other machines' clocks decide nothing.
class ClusterState {
 public:
  /// Counts into `out.status`; ends growth that has arrived, and gives up what did not come in time. The answer points into the snapshot.
  Memberships update(const Snapshot& snapshot, const Options& options, TimePoint now, Actions& out);

  /// "in backoff after failed scale-up", "not ready for scale-up", or empty. For a group of the last update.
  [[nodiscard]] std::string_view why_not_ready(const GroupStatus& group, TimePoint now) const;
  void growth_started(const std::string& group, std::int64_t nodes, TimePoint now);
  void shift_times(Duration jump);
  void growth_failed(const std::string& group, const std::string& message, const Options& options, TimePoint now);
  /// What is under way and who pauses, into the groups' states.
  void describe(std::vector<GroupStatus>& groups, TimePoint now) const;

  /// Nodes that are registered but have not started, of groups that wait for nodes: as if they were not there yet.
  [[nodiscard]] const std::vector<std::string>& not_started() const { return not_started_; }
  /// Nodes of the whole cluster with those on their way.
  [[nodiscard]] std::int64_t node_count() const { return node_count_; }

 private:
  struct Growth {
    TimePoint since;
    std::int64_t nodes = 0;
  };
  struct Backoff {
    Duration length{0};
    TimePoint until{}, last{};
    std::string message;
  };
  class Update;

  std::map<std::string, Growth> growing_;
  std::map<std::string, Backoff> backoffs_;
  std::map<std::string, TimePoint> missing_since_;       ///< Groups whose target is above what there is of machines.
  std::map<std::string, TimePoint> unregistered_since_;  ///< Machines that are no nodes.
  std::set<std::string> failed_;                         ///< Machines whose failure was told.
  std::vector<std::string> not_started_;
  std::int64_t node_count_ = 0;
};

}  // namespace berth::autoscaler
