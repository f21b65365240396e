// The cluster autoscaler as one pure step: the cluster and the time in, what to do out (SPEC section H; core/static_autoscaler).
//
//   step: node counts -> failed growth given up -> waiting pods that fit somewhere set aside -> grow for the others
//                                                                        |            | nothing grew
//                                                                        v            v
//                                                                       done        shrink: unneeded long enough, not in a pause
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autoscaler/scale_down.h"
#include "autoscaler/scale_up.h"

namespace berth::autoscaler {

/// An Event. `pod` or `node` says about whom; neither: about the status ConfigMap.
struct Note {
  PodPtr pod;
  std::string node;
  bool is_warning = false;
  std::string reason, message;
};

/// A node that is to be emptied and deleted.
struct NodeRemoval {
  std::string node, group, instance;
  double utilization = 0;
  std::vector<PodPtr> evict;  ///< In order of key.
  [[nodiscard]] bool is_empty() const { return evict.empty(); }
};

struct GroupStatus {
  std::string id;
  std::int64_t min = 0, max = 0, target = 0;
  int ready = 0, unready = 0, not_started = 0, unregistered = 0, long_unregistered = 0, being_deleted = 0;
  int upcoming = 0, candidates = 0;
  bool is_healthy = true, is_in_backoff = false, is_growing = false;
  std::string backoff_message;
};

struct Status {
  bool is_healthy = true;
  GroupStatus whole;  ///< Counts over all nodes; id is empty.
  std::vector<GroupStatus> groups;
  std::size_t pending_pods = 0;  ///< That fit nowhere.
  ScaleUpPlan::Result scale_up = ScaleUpPlan::Result::kNotNeeded;
  bool is_scale_down_paused = false;
  std::map<std::string, TimePoint> unneeded;  ///< Since when.
  std::vector<Unremovable> unremovable;
  Amounts totals;
};

/// What is to be done now.
struct Actions {
  std::vector<Resize> grow;
  std::vector<Resize> give_up;  ///< Targets taken back for machines that never came to be; `to` < `from`.
  /// Machines that did not become nodes in time, to be deleted with one replica less: group and instance.
  std::vector<std::pair<std::string, std::string>> delete_instances;
  std::vector<NodeRemoval> remove;
  std::vector<std::pair<std::string, bool>> soft_taints;  ///< Node; whether it gets the taint or loses it.
  std::vector<Note> notes;
  Status status;
};

/// Deterministic in the calls and their arguments. Remembers growth under way, failures, and since when nodes are unneeded.
class Autoscaler {
 public:
  Autoscaler(placement::Profiles profiles, std::uint64_t seed) : profiles_(std::move(profiles)), seed_(seed) {}

  Actions step(const Snapshot& snapshot, const Options& options, TimePoint now);

  // What became of the actions.
  void grow_failed(const std::string& group, const std::string& message, const Options& options, TimePoint now);
  void removal_ended(const std::string& node, bool succeeded, TimePoint now);
  [[nodiscard]] bool is_removing(const std::string& node) const { return removing_.contains(node); }

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
  class Step;

  void back_off(const std::string& group, const std::string& message, const Options& options, TimePoint now);

  placement::Profiles profiles_;
  std::uint64_t seed_;
  std::uint64_t steps_ = 0;
  std::map<std::string, Growth> growing_;
  std::map<std::string, Backoff> backoffs_;
  std::map<std::string, TimePoint> missing_since_;  ///< Groups whose target is above what there is of machines.
  std::map<std::string, TimePoint> unneeded_;       ///< Nodes, since when.
  std::map<std::string, bool> removing_;            ///< Nodes; whether they are drained.
  std::optional<TimePoint> last_growth_, last_removal_, last_removal_failure_;
};

}  // namespace berth::autoscaler
