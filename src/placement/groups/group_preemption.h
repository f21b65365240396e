// Who would have to go for a group that fits nowhere (kube-scheduler's framework/preemption/podgrouppreemption.go): the whole cluster is
// its one domain.
//
//   all victims of lower priority go in thought --> does the group fit? --> each is given back, the most important first, unless the group
//                                                                          then fits no more
//
// A group whose disruptionMode is PodGroup is one victim, with the group's priority; every other pod is one by itself.
#pragma once
#include <vector>

#include "placement/groups/group_decision.h"

namespace berth::placement {

struct GroupVictims {
  /// Success with victims; Unschedulable otherwise, with what the PodGroup's condition says of it.
  Status status;
  std::vector<PodInfoPtr> victims;  ///< The most important first.
  std::size_t budget_violations = 0;
};

/// The trial is as it was afterwards.
[[nodiscard]] GroupVictims find_group_victims(Trial& trial, const GroupQuestion& question, const PodGroups& groups);

}  // namespace berth::placement
