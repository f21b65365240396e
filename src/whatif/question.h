// A question applied to a world: its changes in their order, then every single loss, then who would have to go.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "whatif/world.h"

namespace berth::whatif {

/// The error begins with the change's name: "changes[2].drain: …".
Result<void> apply_changes(World& world, const json::Value& question, const NameOfChange& name_of = {});
/// `each` of the answer: {"eachCount", "eachPending", "each"}, the latter two of this part; empty when it was not asked.
Result<json::Object> each_loss(World& world, const json::Value& question, Part part = {});
/// For every pod of `pending` (of an answer), who would have to go for it.
void add_preemption(World& world, json::Array& pending);

/// How many more of a pod fit, as cluster-capacity asks: {"pod", "total", "nodes", "zones", "reason", "limits"}. `request` is the
/// question's `capacity`: {"pod": a Pod or a workload, "most": n}.
Result<json::Object> capacity_for(World& world, const json::Value& request);
/// Fewest nodes: the world becomes what the plan leads to, and the plan is told: {"nodesNow", "nodesNeeded", "steps", …}. `request` is the
/// question's `pack`: {"shapes": [SHAPE, …]}, or {"instanceTypes": an InstanceTypeCatalogue, "pools": [NodePool, …]} for the cheapest
/// mixture; without either nodes that are there are emptied.
Result<json::Object> pack(World& world, const json::Value& request);

}  // namespace berth::whatif
