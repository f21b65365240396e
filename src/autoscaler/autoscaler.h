// The cluster autoscaler as one pure step: the cluster and the time in, what to do out (SPEC section H; core/static_autoscaler).
//
//   step: node counts -> failed growth given up -> waiting pods that fit somewhere set aside -> grow for the others
//                                                                        |            | nothing grew
//                                                                        v            v
//                                                                       done        shrink: unneeded long enough, not in a pause
#pragma once
#include <string>

#include "autoscaler/growing.h"
#include "autoscaler/known_groups.h"
#include "autoscaler/request_room.h"
#include "autoscaler/shrinking.h"

namespace berth::autoscaler {

/// Deterministic in the calls and their arguments. Each part remembers its own between passes; nothing points into a snapshot after the
/// pass that was given it.
class Autoscaler {
 public:
  Autoscaler(placement::Profiles profiles, std::uint64_t seed) : profiles_(std::move(profiles)), growing_(seed) {}

  /// Who is asked by the expander grpc.
  void set_expander(Growing::AskExpander ask) { growing_.set_expander(std::move(ask)); }

  /// One pass. When its time is over, what was not looked at is said in the status and comes first in the next one.
  Actions step(const Snapshot& snapshot, const Options& options, TimePoint now, const TimeLimit& limit = {});

  // What became of the actions.
  void grow_failed(const std::string& group, const std::string& message, const Options& options, TimePoint now) {
    state_.growth_failed(group, message, options, now);
  }
  void removal_ended(const std::string& node, bool succeeded, TimePoint now) { shrinking_.removal_ended(node, succeeded, now); }
  /// The caller's clock jumped, not the time: what lasts goes on lasting as long as it did.
  void shift_times(Duration jump);
  [[nodiscard]] bool is_removing(const std::string& node) const { return shrinking_.is_removing(node); }

 private:
  placement::Profiles profiles_;
  ClusterState state_;
  KnownGroups groups_;
  RequestRoom requests_;
  Growing growing_;
  Shrinking shrinking_;
};

}  // namespace berth::autoscaler
