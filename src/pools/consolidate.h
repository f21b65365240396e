// Which nodes of pools are not worth their price: empty ones, those whose pods have room elsewhere, and those that cheaper ones replace.
// Each step is proven in a trial before anything is done. Pure: no clock, no I/O.
#pragma once
#include <string>
#include <vector>

#include "pools/plan.h"

namespace berth::pools {

/// A node that a claim of a pool made.
struct OwnedNode {
  std::string claim, node;
  std::size_t pool = 0;
  std::string type, zone, capacity_type;
  double price = 0;  ///< Of an hour; 0 where the catalogue does not know it any more.
  bool is_initialized = false;
  bool is_leaving = false;         ///< On its way out: it counts against the budgets.
  std::string blocked;             ///< Why its own annotations keep it; empty: they do not.
  std::string drifted;             ///< In which way it is not as its pool would make it now; empty: it is.
  std::optional<TimePoint> quiet;  ///< Since when no pod came or went; nullopt: not known.
};

struct ConsolidationInput {
  ProvisionInput provision;  ///< `waiting` is of no matter: what waits is placed first, by the asker.
  std::vector<OwnedNode> nodes;
};

/// Nodes that go together, and what comes instead of them first.
struct Disruption {
  Reason reason = Reason::kEmpty;
  std::vector<std::size_t> nodes;  ///< Indices into ConsolidationInput::nodes.
  std::vector<NewClaim> replacements;
  std::vector<placement::PodInfoPtr> evicted;
  double savings = 0;  ///< Of an hour; of drift it may be negative.
};

struct ConsolidationPlan {
  std::vector<Disruption> steps;
  /// Nodes that stay, and why: sentences for events.
  std::vector<std::pair<std::size_t, std::string>> staying;
  double cost = 0;     ///< Of an hour of all nodes, before.
  double savings = 0;  ///< Of all steps.
};

/// The nodes whose pods have been quiet for their pool's consolidateAfter, and whose pool consolidates at all.
bool is_consolidatable(const OwnedNode& node, const NodePool& pool, TimePoint now);

/// Emptiness, then drift, then consolidation, as the budgets allow. The trial is left as it was.
ConsolidationPlan plan_consolidation(const ConsolidationInput& input);

/// Nodes that go whatever budgets and pods say: what has to come instead of them, for as many of their pods as a place can be bought for.
/// The trial is left as it was.
Disruption plan_replacement(const ConsolidationInput& input, const std::vector<std::size_t>& nodes, Reason reason);

}  // namespace berth::pools
