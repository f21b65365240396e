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
  kNodeTaints,  ///< Also spec.unschedulable.
  kNodeConditions,
  kNodeOther,  ///< Annotations, images.
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

/// The events that could cure a rejection by the plugin; all of them for a plugin nobody knows.
[[nodiscard]] EventSet events_of(std::string_view plugin);

/// Gives every plugin name a bit. At most 64 names are told apart; the rest share the last bit.
class PluginBits {
 public:
  PluginSet set_of(std::span<const std::string_view> plugins);
  /// The bits of the plugins whose rejection one of the events could cure.
  [[nodiscard]] PluginSet cured_by(EventSet events) const;
  [[nodiscard]] std::vector<std::string_view> names(PluginSet plugins) const;

 private:
  PluginSet bit(std::string_view plugin);
  std::vector<std::string> names_;
  std::vector<EventSet> events_;  ///< Parallel to names_.
};

/// What of a node changed between two revisions, as far as placement reads it; empty for a heartbeat.
[[nodiscard]] EventSet node_changes(const model::NodeView& before, const model::NodeView& after);
/// What of a pending pod changed that its own rejection may depend on.
[[nodiscard]] EventSet own_changes(const placement::PodInfo& before, const placement::PodInfo& after);

/// An event about an assigned pod: `pod` is the pod after it (before it, when it was deleted), `before` its last revision when it changed.
struct PodChange {
  EventSet events;
  const placement::PodInfo* pod = nullptr;
  const placement::PodInfo* before = nullptr;
};
/// Whether the change could cure a rejection of `pending` by InterPodAffinity: it brings a pod that `pending` wants to be near, or takes
/// one away that either keeps off the other.
[[nodiscard]] bool affinity_may_help(const placement::Cluster& cluster, const placement::PodInfo& pending, const PodChange& change);
/// Whether it could cure a rejection by PodTopologySpread: a pod in the namespace that a constraint counts. Pods without hard constraints
/// of their own were rejected by default ones: true.
[[nodiscard]] bool spread_may_help(const placement::PodInfo& pending, const PodChange& change);

}  // namespace berth::scheduler
