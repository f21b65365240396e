// The greedy order by which kube-scheduler places a group: one member after the other, each where it likes best.
#pragma once
#include "placement/groups/group_decision.h"

namespace berth::placement {

inline constexpr std::string_view kGroupUnschedulable = "pod group is unschedulable";

/// All nodes of the trial are one domain. `order` has each position in the question's members once. The trial is as it was afterwards.
[[nodiscard]] GroupDecision decide_in_order(Trial& trial, const GroupQuestion& question, std::span<const std::size_t> order);
/// In the order in which they choose.
[[nodiscard]] GroupDecision decide_in_order(Trial& trial, const GroupQuestion& question);

/// Asks for one member and, where it has a place, puts it there. False: an error, which ends the decision.
bool place_member(Trial& trial, const PodInfoPtr& pod, MemberDecision& out);
/// What place_member said of the member that failed, as the group's.
void fail_by(const MemberDecision& member, GroupDecision& out);
/// The plugins that rejected members.
void note_rejections(const GroupDecision& decision, std::set<std::string_view>& rejected_by);
/// Stands for a domain that is not asked: by sums it has too little room.
inline constexpr std::string_view kTooSmall = "NodeResourcesFit";
/// Outcome and message by how many have a place and stand.
void settle_outcome(const GroupQuestion& question, GroupDecision& out);

}  // namespace berth::placement
