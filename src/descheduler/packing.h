// Moves that make room. Pure: asked of a placement::Trial, with the scheduler's own engine saying where every moved pod goes.
//
//   make_room    for a pod, or a gang, that fits nowhere although there is enough room in pieces (kubernetes#68036): the fewest pods that
//                must go, only if all of them find other places and the whole gang is placed
//   consolidate  which nodes could be empty, by which moves, in which order
//
// For the descheduler's strategy Defragmentation, what-if and `berth pack`, and the dashboard. Both leave the trial as the plan does; wrap
// them in a placement::Attempt to have it as it was.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "placement/trial.h"

namespace berth::placement {
class DisruptionLedger;
}

namespace berth::descheduler {

/// A pod that is evicted, and where the scheduler puts the one that is made in its place.
struct Move {
  placement::PodInfoPtr pod;
  std::string from, to;
};

/// Why nobody should move the pod by default: it is going already, nothing would make it again, it is the system's own, or it says so
/// (cluster-autoscaler.kubernetes.io/safe-to-evict: "false"). Empty: it may be moved.
std::string why_it_stays(const placement::PodInfo& pod);

struct PackingRules {
  /// Beyond disruption budgets, which always hold.
  std::function<std::string(const placement::PodInfo&)> why_it_stays = descheduler::why_it_stays;
  std::size_t most_moves = 100;   ///< Of one pod's room.
  std::size_t most_tries = 2000;  ///< Sets of pods that are tried with the engine for one pod.
};

struct RoomPlan {
  struct Place {
    placement::PodInfoPtr pod;
    std::string node;
  };
  std::vector<Move> moves;    ///< In the order of evicting; none where the gang fits as it is.
  std::vector<Place> placed;  ///< The gang.
  std::string why_not;        ///< Empty: the plan works as a whole. Otherwise there is none, and the trial is unchanged.
};

/// Room for all of `gang`, one after the other, the largest first; each gets the fewest moves, among those the smallest pods. Nobody is
/// moved twice, and nobody of a higher priority than the pod that wants the room, since the scheduler would let such a pod back in: name
/// the pod's node as its nominatedNodeName before anything is evicted, and the scheduler does what the plan says. Deterministic.
RoomPlan make_room(placement::Trial& trial, std::span<const placement::PodInfoPtr> gang, const PackingRules& rules = {});

struct ConsolidationPlan {
  struct Step {
    std::string node;
    std::vector<Move> moves;         ///< Empty: the node has nothing to move.
    bool waits_for_budgets = false;  ///< Its pods cannot all be evicted at once.
  };
  struct Stays {
    std::string node, why;
  };
  std::vector<Step> emptied;  ///< In the order of draining; cordon all of them first.
  std::vector<Stays> stays;   ///< In order of name.
};

/// Empties as many nodes as it can, the emptiest first. Nodes that are to be emptied take no pods meanwhile, so that no pod moves twice.
/// `may_be_emptied` narrows the nodes; null: all of them. Afterwards the trial's emptied nodes are cordoned. Deterministic.
ConsolidationPlan consolidate(placement::Trial& trial, const PackingRules& rules = {},
                              const std::function<bool(const placement::NodeInfo&)>& may_be_emptied = {});

/// What of the budgets (by pods/eviction's rule) keeps the pod, for people; empty: nothing does.
std::string why_budgets_hold(const placement::DisruptionLedger& budgets, const placement::PodInfo& pod);

}  // namespace berth::descheduler
