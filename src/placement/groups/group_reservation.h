// Where a group that fits nowhere, and that no victim helps, comes to its places soonest: room that is worth being kept for it.
//
//   domains of the required levels, the roomiest first --> pods whose end is known go in thought, the earliest first, until it fits
//            none ends in time --> nodes are cleared in thought, the roomiest first, until it fits: when that will be, nobody knows
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "placement/groups/group_decision.h"

namespace berth::placement {

struct GroupReservation {
  std::vector<std::pair<std::size_t, NodeIndex>> places;  ///< Positions among the members asked about, and where each will be.
  std::optional<TimePoint> starts_at;                     ///< By then all that is in the way has ended; nullopt: not known.
  std::string domain;                                     ///< As in GroupDecision.
  std::size_t in_the_way = 0;                             ///< Pods that have to end first.
};

/// When the pod ends at the latest; nullopt: not known.
using EndsAt = std::function<std::optional<TimePoint>(const PodInfo& pod)>;

/// Nullopt: it would not fit even where everybody had ended but the pods of DaemonSets. The trial is as it was afterwards. Costs a few
/// decisions in each of the sixteen roomiest domains.
[[nodiscard]] std::optional<GroupReservation> plan_reservation(Trial& trial, const GroupQuestion& question, const EndsAt& ends_at);

}  // namespace berth::placement
