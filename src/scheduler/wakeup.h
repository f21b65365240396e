// Which cluster events could let a pod be scheduled that was rejected by which plugins (kube-scheduler's EventsToRegister and queueing hints).
#pragma once
#include <span>
#include <string_view>

#include "scheduler/queue.h"

namespace berth::scheduler {

enum class ClusterEvent {
  kNodeAdded,
  kNodeChanged,         ///< Allocatable, labels, taints, unschedulable or images.
  kAssignedPodAdded,
  kAssignedPodChanged,  ///< Labels, or resources resized.
  kAssignedPodRemoved,  ///< Deleted or terminal: its room, ports and volumes are free.
  kVolumes,             ///< PersistentVolume(Claim), StorageClass, CSINode, CSIDriver, CSIStorageCapacity.
  kNamespaces,
  kServices,            ///< Services and the workloads that own pods.
};

/// Gives every plugin name a bit. At most 64 names are told apart; the rest share the last bit.
class PluginBits {
 public:
  PluginSet set_of(std::span<const std::string_view> plugins);
  /// The bits of the plugins whose rejection the event could cure; plugins nobody knows are always included.
  PluginSet cured_by(ClusterEvent event);

 private:
  PluginSet bit(std::string_view plugin);
  std::vector<std::string> names_;
  std::vector<PluginSet> cured_;  ///< By event; rebuilt when names are added.
};

}  // namespace berth::scheduler
