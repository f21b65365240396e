// What happens in a cluster, as far as it could let a pod be scheduled that was rejected before (kube-scheduler's ClusterEvent): what
// plugins register for (EventsToRegister), and what their queueing hints look at.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "base/json.h"

namespace berth::model {
struct NodeView;
}

namespace berth::placement {

struct PodInfo;

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
  kAssignedPodOther,    ///< Annotations, owners, anything else of it but its status.
  kAssignedPodDeleted,  ///< Or terminal: its room, ports and volumes are free.
  kOwnLabels,           ///< The pending pod's own: these wake that pod alone.
  kOwnTolerations,
  kOwnScaledDown,
  kOwnOther,  ///< Its annotations, its owners.
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
  kNodeTopology,  ///< A node's NUMA nodes.
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
  friend constexpr EventSet operator|(EventSet a, EventSet b) { return a |= b; }
  [[nodiscard]] constexpr bool has(ClusterEvent event) const { return (bits_ & EventSet(event).bits_) != 0; }
  [[nodiscard]] constexpr bool intersects(EventSet other) const { return (bits_ & other.bits_) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr EventSet without(EventSet other) const {
    EventSet out;
    out.bits_ = bits_ & ~other.bits_;
    return out;
  }

 private:
  std::uint32_t bits_ = 0;
};
static_assert(static_cast<unsigned>(ClusterEvent::kCount) <= 32);

/// Every plugin that waits for new nodes is told of taints too (kube-scheduler's buildQueueingHintMap): a node may come tainted.
inline constexpr EventSet kNewNode = {ClusterEvent::kNodeAdded, ClusterEvent::kNodeTaints};
/// What could help a pod that a plugin rejected which does not say: all but what helps nobody, or only where budgets are hard.
constexpr EventSet all_events() {
  EventSet out;
  for (unsigned i = 0; i < static_cast<unsigned>(ClusterEvent::kCount); ++i)
    if (const auto event = static_cast<ClusterEvent>(i); event != ClusterEvent::kDisruptionBudget && event != ClusterEvent::kNodeCordoned)
      out |= event;
  return out;
}

/// One thing that happened. Of what it happened to, the state before and after; null before it was there and once it is gone. Only the pair
/// that the event is about is set.
struct EventChange {
  ClusterEvent event = ClusterEvent::kCount;
  const PodInfo* pod_before = nullptr;  ///< Assigned pods, nominated ones, or the pending pod itself.
  const PodInfo* pod = nullptr;
  const model::NodeView* node_before = nullptr;
  const model::NodeView* node = nullptr;
  const json::Value* object_before = nullptr;  ///< Of the consulted kinds.
  const json::Value* object = nullptr;

  [[nodiscard]] bool is_node_update() const { return node != nullptr && node_before != nullptr; }
  [[nodiscard]] bool is_object_update() const { return object != nullptr && object_before != nullptr; }
};

}  // namespace berth::placement
