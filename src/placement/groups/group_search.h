// Where the greedy order places too few members of a group: whether others orders, or any assignment at all, place enough.
//
//   sums: can enough have a place at all? --no--> nothing is searched
//   the kinds of members that the fewest nodes take first, greedily; then the largest first
//   plain members (group_room.h): each node takes a pattern of kinds, node by node, with a bound
//   others: member by member, node by node, with the engine's word on each
#pragma once
#include <optional>

#include "placement/groups/group_decision.h"

namespace berth::placement {

/// A decision that places as many as are needed, over all nodes of the trial; nullopt: none was found within `steps`, which is lowered by
/// what was used (a step is about a microsecond). Without an answer from sums and orders, no better one exists where steps are left.
/// The trial is as it was afterwards.
[[nodiscard]] std::optional<GroupDecision> search_places(Trial& trial, const GroupQuestion& question, std::size_t& steps);

}  // namespace berth::placement
