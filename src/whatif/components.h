// What the other components would do today: another scheduler configuration, the descheduler, the autoscaler, each by its own core.
#pragma once
#include <string_view>

#include "whatif/world.h"

namespace berth::whatif {

/// The world's pods as the cluster's components would read them, in order of key: those that moved run where they are.
std::vector<placement::ReadPodPtr> pods_by_now(const World& world);

/// The profiles of a KubeSchedulerConfiguration or Policy decide from here on. `from`: "pending": for what waits; "empty": every pod that a
/// scheduler places is placed anew, by both configurations, and the difference is told as moves.
Result<void> change_config(World& world, const json::Value& document, std::string_view from);
/// One cycle of a DeschedulerPolicy; what it would evict goes.
Result<void> run_descheduler(World& world, const json::Value& policy);
/// One pass of a ClusterAutoscaler (true: the cluster's own).
Result<void> run_autoscaler(World& world, const json::Value& cluster_autoscaler);

/// What the pools of `documents` (NodePools; true: the cluster's own alone) would buy for the pods that wait: their nodes come, and the
/// scheduler places the pods. What is bought is told in `World::bought`.
Result<void> buy_nodes(World& world, const json::Value& documents, const json::Value& instance_types);

}  // namespace berth::whatif
