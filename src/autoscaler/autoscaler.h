// The cluster autoscaler as one pure step: the cluster and the time in, what to do out (SPEC section H; core/static_autoscaler).
//
//   step: node counts -> failed growth given up -> waiting pods that fit somewhere set aside -> grow for the others
//                                                                        |            | nothing grew
//                                                                        v            v
//                                                                       done        shrink: unneeded long enough, not in a pause
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autoscaler/cluster_state.h"
#include "autoscaler/provisioning.h"
#include "autoscaler/time_limit.h"

namespace berth::autoscaler {

/// Deterministic in the calls and their arguments. Remembers growth under way, failures, and since when nodes are unneeded.
class Autoscaler {
 public:
  Autoscaler(placement::Profiles profiles, std::uint64_t seed) : profiles_(std::move(profiles)), seed_(seed) {}

  /// Who is asked by the expander grpc.
  void set_expander(std::function<Result<std::vector<std::string>>(const std::vector<ExpansionOption>&)> ask) {
    ask_expander_ = std::move(ask);
  }

  /// One pass. When its time is over, what was not looked at is said in the status and comes first in the next one.
  Actions step(const Snapshot& snapshot, const Options& options, TimePoint now, const TimeLimit& limit = {});

  // What became of the actions.
  void grow_failed(const std::string& group, const std::string& message, const Options& options, TimePoint now) {
    state_.growth_failed(group, message, options, now);
  }
  void removal_ended(const std::string& node, bool succeeded, TimePoint now);
  /// The caller's clock jumped, not the time: what lasts goes on lasting as long as it did.
  void shift_times(Duration jump);
  [[nodiscard]] bool is_removing(const std::string& node) const { return removing_.contains(node); }

 private:
  class Step;

  placement::Profiles profiles_;
  std::uint64_t seed_;
  std::uint64_t steps_ = 0;
  std::function<Result<std::vector<std::string>>(const std::vector<ExpansionOption>&)> ask_expander_;
  ClusterState state_;
  Provisioning provisioning_;
  bool is_turn_of_requests_ = false;                            ///< Of a request and of pods that both want nodes, one grows in a pass.
  std::map<std::string, NodeTemplate, std::less<>> templates_;  ///< By group: of the last good node, or as the provider says.
  std::map<std::string, TimePoint> unneeded_;                   ///< Nodes, since when.
  std::vector<std::string> left_;                               ///< Nodes that the last pass had no time for, in turn.
  std::map<std::string, std::string> told_;                     ///< Nodes that would be worth removing, and what holds them.
  std::map<std::string, bool> removing_;                        ///< Nodes; whether they are drained.
  std::optional<TimePoint> last_growth_, last_removal_, last_removal_failure_;
  std::map<std::string, std::size_t> groups_;  ///< Of the last pass, with how many nodes.
};

}  // namespace berth::autoscaler
