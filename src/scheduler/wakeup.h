// Which cluster events could let a pod be scheduled that was rejected by which plugins: kube-scheduler's EventsToRegister, and the part of
// its queueing hints that looks at one pod or one node (pkg/scheduler/framework/plugins/*, EventsToRegister and isSchedulableAfter…).
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placement/cluster.h"
#include "scheduler/queue.h"

namespace berth::scheduler {

enum class ClusterEvent : std::uint8_t {
  kNodeAdded,
  kNodeAllocatable,
  kNodeLabels,
  kNodeTaints,  ///< Also the end of spec.unschedulable.
  kNodeConditions,
  kNodeOther,     ///< Annotations, images.
  kNodeFeatures,  ///< status.declaredFeatures
  kNodeCordoned,  ///< Helps nobody.
  kNodeDeleted,
  kAssignedPodAdded,
  kAssignedPodLabels,
  kAssignedPodResized,
  kAssignedPodDeleted,  ///< Or terminal: its room, ports and volumes are free.
  kOwnLabels,           ///< The pending pod's own: these wake that pod alone.
  kOwnTolerations,
  kOwnScaledDown,
  kPersistentVolume,
  kClaim,
  kStorageClass,
  kCsiNode,
  kCsiDriver,
  kCsiStorageCapacity,
  kNamespaces,
  kServices,          ///< Services and the workloads that own pods.
  kResourceClaim,     ///< Gave its devices back.
  kDevices,           ///< Classes and slices of devices.
  kOwnClaims,         ///< The claims that were made for the pending pod.
  kDisruptionBudget,  ///< Helps only where budgets are hard.
  kVolumeAttachmentDeleted,
  kCount
};

/// A set of events that happened at once: bit i is ClusterEvent i.
class EventSet {
 public:
  constexpr EventSet() = default;
  constexpr EventSet(ClusterEvent event) : bits_(1u << static_cast<unsigned>(event)) {}  // NOLINT: one event is a set.
  constexpr EventSet(std::initializer_list<ClusterEvent> events) {
    for (const ClusterEvent event : events) bits_ |= EventSet(event).bits_;
  }
  constexpr EventSet& operator|=(EventSet other) {
    bits_ |= other.bits_;
    return *this;
  }
  [[nodiscard]] constexpr bool has(ClusterEvent event) const { return (bits_ & EventSet(event).bits_) != 0; }
  [[nodiscard]] constexpr bool intersects(EventSet other) const { return (bits_ & other.bits_) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }

 private:
  std::uint32_t bits_ = 0;
};
static_assert(static_cast<unsigned>(ClusterEvent::kCount) <= 32);

/// The events that could cure a rejection by the plugin; all of them for a plugin nobody knows.
[[nodiscard]] EventSet events_of(std::string_view plugin);

struct Change;
struct HintContext;
/// See hints.h.
using Hint = bool (*)(const HintContext& context, const placement::PodInfo& pending, const Change& change);

/// What became of an object of a consulted kind.
enum class ObjectVerb : std::uint8_t { kAdded, kUpdated, kDeleted };
/// The event as kube-scheduler's metrics name it (ClusterEvent.Label): "NodeAdd", "AssignedPodDelete"; `verb` is for consulted kinds, whose
/// resource is `kind`.
[[nodiscard]] std::string event_label(ClusterEvent event, std::string_view kind = {}, ObjectVerb verb = ObjectVerb::kUpdated);

/// Gives every plugin name a bit. At most 64 names are told apart; the rest share the last bit.
class PluginBits {
 public:
  PluginSet set_of(std::span<const std::string_view> plugins);
  /// The bits of the plugins whose rejection one of the events could cure.
  [[nodiscard]] PluginSet cured_by(EventSet events) const;
  [[nodiscard]] std::vector<std::string_view> names(PluginSet plugins) const;
  /// One of the plugins' hints says that the change could cure its rejection of the pod.
  [[nodiscard]] bool any_hint(PluginSet plugins, const HintContext& context, const placement::PodInfo& pending, const Change& change) const;

 private:
  PluginSet bit(std::string_view plugin);
  std::vector<std::string> names_;
  std::vector<EventSet> events_;  ///< Parallel to names_.
  std::vector<Hint> hints_;       ///< Parallel to names_.
};

/// What of a node changed between two revisions, as far as placement reads it; empty for a heartbeat.
[[nodiscard]] EventSet node_changes(const model::NodeView& before, const model::NodeView& after);
/// Some request of the pod became smaller.
[[nodiscard]] bool is_scaled_down(const placement::PodInfo& before, const placement::PodInfo& after);
/// What of a pending pod changed that its own rejection may depend on.
[[nodiscard]] EventSet own_changes(const placement::PodInfo& before, const placement::PodInfo& after);

}  // namespace berth::scheduler
