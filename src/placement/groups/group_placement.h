// Groups in what-ifs: who stands where, and a whole group put where it would go. For all who plan; the scheduler binds by itself.
#pragma once
#include <string>
#include <vector>

#include "placement/groups/group_decision.h"

namespace berth::placement {

/// Nodes on which members stand; a member's successor in thought (`successor_of`) is that member.
std::vector<NodeIndex> standing_of(const PodGroups& groups, const Cluster& cluster, std::string_view key);
/// How many of those asked about have a place.
std::size_t count_placed(const GroupDecision& decision);
/// `decide_group`, and all that found a place are there from now on, with devices and volumes. Unless it is scheduled nothing has changed;
/// of a place that could not be given after all the decision says so as an error.
GroupDecision place_group(Trial& trial, const GroupQuestion& question);
/// The same group as if each of its pods were of use alone, wherever: for how many there is room.
PodGroup one_by_one(const PodGroup& group);

}  // namespace berth::placement
