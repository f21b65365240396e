// Who would have to go for a group that fits nowhere (kube-scheduler's framework/preemption/podgrouppreemption.go).
//
//   all victims of lower priority go in thought --> does the group fit? --> each is given back, the most important first, unless the group
//                                                                          then fits no more
//
// A group whose disruptionMode is PodGroup is one victim, with the group's priority; every other pod is one by itself. The whole cluster is
// one domain, as in 1.36; beyond it, with a required topology each domain is asked, and the one is taken whose victims are the best to
// lose: no budget broken, then the lowest first victim, then the smallest sum, then the fewest, then those that started last.
//
// Where sums say how many members have room (group_room.h), nothing else is asked until the end.
#pragma once
#include <vector>

#include "placement/groups/group_decision.h"

namespace berth::placement {

struct GroupVictims {
  /// Success with victims; Unschedulable otherwise, with what the PodGroup's condition says of it.
  Status status;
  std::vector<PodInfoPtr> victims;  ///< The most important first.
  std::size_t budget_violations = 0;
  bool is_waiting = false;      ///< Victims of an earlier plan are still on their way out of the places that members were promised.
  GroupDecision decision = {};  ///< On success: where the members go once the victims are gone.
};

/// The trial is as it was afterwards.
[[nodiscard]] GroupVictims find_group_victims(Trial& trial, const GroupQuestion& question, const PodGroups& groups);

/// The same without sums: the engine is asked about every step. What tests hold the other against; orders of magnitude slower.
[[nodiscard]] GroupVictims find_group_victims_plainly(Trial& trial, const GroupQuestion& question, const PodGroups& groups);

}  // namespace berth::placement
