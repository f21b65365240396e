// What each plugin says to an event: could it cure the plugin's own rejection of a pod? kube-scheduler 1.36's queueing hints
// (pkg/scheduler/framework/plugins/*, the functions that EventsToRegister names), and where those would leave a pod waiting that the event
// did help, a little more: docs/scheduling.md lists it.
#pragma once
#include <string_view>

#include "base/json.h"
#include "placement/cluster.h"
#include "placement/profile.h"
#include "scheduler/wakeup.h"

namespace berth::scheduler {

/// One thing that happened. Of what it happened to, the state before and after; null before it was there and once it is gone. Only the pair
/// that the event is about is set.
struct Change {
  ClusterEvent event = ClusterEvent::kCount;
  const placement::PodInfo* pod_before = nullptr;  ///< Assigned pods, nominated ones, or the pending pod itself.
  const placement::PodInfo* pod = nullptr;
  const model::NodeView* node_before = nullptr;
  const model::NodeView* node = nullptr;
  const json::Value* object_before = nullptr;  ///< Of the consulted kinds.
  const json::Value* object = nullptr;
};

/// What a hint may look at besides.
struct HintContext {
  const placement::Cluster& cluster;
  const placement::Profile& profile;
};

/// The plugin's hint: true when the pod, which the plugin rejected, is worth another attempt. Requires that the plugin registered the event
/// (events_of). One that always says yes for plugins without any.
[[nodiscard]] Hint hint_of(std::string_view plugin);

}  // namespace berth::scheduler
