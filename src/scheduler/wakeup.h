// What happened, as the queue sees it: which of the rejecting plugins an event concerns (what it means to them is theirs to say:
// placement/plugins, events_to_register and queueing_hint), and what of a node or a pod changed between two revisions.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placement/events.h"
#include "placement/framework.h"
#include "scheduler/queue.h"

namespace berth::scheduler {

using placement::ClusterEvent;
using placement::EventChange;
using placement::EventSet;

/// What became of an object of a consulted kind.
enum class ObjectVerb : std::uint8_t { kAdded, kUpdated, kDeleted };
/// The event as kube-scheduler's metrics name it (ClusterEvent.Label): "NodeAdd", "AssignedPodDelete"; `verb` is for consulted kinds, whose
/// resource is `kind`.
[[nodiscard]] std::string event_label(ClusterEvent event, std::string_view kind = {}, ObjectVerb verb = ObjectVerb::kUpdated);

/// Stands among rejecting plugins for a preemption that hard budgets forbade.
inline constexpr std::string_view kDisruptionBudgets = "DisruptionBudgets";

/// Stands among rejecting plugins, and at PreEnqueue, for a group of pods that is not complete: groups.cpp wakes its members itself.
inline constexpr std::string_view kGangScheduling = "GangScheduling";

/// Stands among rejecting plugins for the domains of a group's required topology: nodes that come or change their labels make others.
inline constexpr std::string_view kGroupDomains = "PodGroupDomains";

/// Only the queue goes by it: no plugin is called so, and no metric tells of it.
[[nodiscard]] inline bool is_reason_of_queue(std::string_view name) { return name == kDisruptionBudgets || name == kGroupDomains; }

/// Gives every plugin name a bit. At most 64 names are told apart; the rest share the last bit.
class PluginBits {
 public:
  /// The plugins are the framework's; any event may help where it has none of the name.
  PluginSet set_of(std::span<const std::string_view> plugins, const placement::Framework& framework);
  /// The bits of the plugins whose rejection one of the events could cure.
  [[nodiscard]] PluginSet cured_by(EventSet events) const;
  [[nodiscard]] std::vector<std::string_view> names(PluginSet plugins) const;
  /// One of the plugins registers for the event, as the framework has it, and its hint says that the change could cure its rejection of the
  /// pod.
  [[nodiscard]] bool any_hint(PluginSet plugins, const placement::Framework& framework, const placement::Cluster& cluster,
                              const placement::PodInfo& pending, const EventChange& change) const;

 private:
  PluginSet bit(std::string_view plugin, const placement::Framework& framework);
  std::vector<std::string> names_;
  std::vector<EventSet> events_;  ///< Parallel to names_: what any profile's plugin of the name registers for.
};

/// What of a node changed between two revisions, as far as placement reads it; empty for a heartbeat.
[[nodiscard]] EventSet node_changes(const model::NodeView& before, const model::NodeView& after);
/// Some request of the pod became smaller.
[[nodiscard]] bool is_scaled_down(const placement::PodInfo& before, const placement::PodInfo& after);
/// What of a pending pod changed that its own rejection may depend on.
[[nodiscard]] EventSet own_changes(const placement::PodInfo& before, const placement::PodInfo& after);

}  // namespace berth::scheduler
