// The kinds that decide where pods go: what a Cluster is made of, for whoever reads one from an API server.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "placement/events.h"

namespace berth::placement {

struct ClusterResource {
  std::string_view kind, group, plural;
  ClusterEvent event;  ///< What one that comes, changes or goes is to pods that wait.
  /// Best first; of old servers the later ones.
  std::array<std::string_view, 3> versions = {"v1"};
  /// A CustomResourceDefinition makes it: it may come while who reads it runs.
  bool is_custom = false;
};

/// Pods last: a pod that comes when its node, claims and classes are there is looked at once.
inline constexpr std::array<ClusterResource, 22> kClusterResources = {{
    {"Namespace", "", "namespaces", ClusterEvent::kNamespaces},
    {"Node", "", "nodes", ClusterEvent::kNodeAdded},
    {"Service", "", "services", ClusterEvent::kServices},
    {"ReplicationController", "", "replicationcontrollers", ClusterEvent::kServices},
    {"ReplicaSet", "apps", "replicasets", ClusterEvent::kServices},
    {"StatefulSet", "apps", "statefulsets", ClusterEvent::kServices},
    {"PersistentVolume", "", "persistentvolumes", ClusterEvent::kPersistentVolume},
    {"PersistentVolumeClaim", "", "persistentvolumeclaims", ClusterEvent::kClaim},
    {"StorageClass", "storage.k8s.io", "storageclasses", ClusterEvent::kStorageClass, {"v1", "v1beta1"}},
    {"CSINode", "storage.k8s.io", "csinodes", ClusterEvent::kCsiNode, {"v1", "v1beta1"}},
    {"CSIDriver", "storage.k8s.io", "csidrivers", ClusterEvent::kCsiDriver, {"v1", "v1beta1"}},
    {"CSIStorageCapacity", "storage.k8s.io", "csistoragecapacities", ClusterEvent::kCsiStorageCapacity, {"v1", "v1beta1", "v1alpha1"}},
    {"ResourceClaim", "resource.k8s.io", "resourceclaims", ClusterEvent::kResourceClaim},
    {"ResourceSlice", "resource.k8s.io", "resourceslices", ClusterEvent::kDevices},
    {"DeviceClass", "resource.k8s.io", "deviceclasses", ClusterEvent::kDevices},
    {"DeviceTaintRule", "resource.k8s.io", "devicetaintrules", ClusterEvent::kDevices, {"v1beta2"}},
    {"NodeResourceTopology", "topology.node.k8s.io", "noderesourcetopologies", ClusterEvent::kNodeTopology, {"v1alpha2"}, true},
    {"VolumeAttachment", "storage.k8s.io", "volumeattachments", ClusterEvent::kVolumeAttachmentDeleted},
    {"PodGroup", "scheduling.k8s.io", "podgroups", ClusterEvent::kNodeCordoned, {"v1alpha2"}},
    {"PodDisruptionBudget", "policy", "poddisruptionbudgets", ClusterEvent::kDisruptionBudget, {"v1", "v1beta1"}},
    {"PriorityClass", "scheduling.k8s.io", "priorityclasses", ClusterEvent::kCount},
    {"Pod", "", "pods", ClusterEvent::kAssignedPodAdded},
}};

/// Null for a kind of no consequence.
constexpr const ClusterResource* find_cluster_resource(std::string_view kind) {
  for (const ClusterResource& one : kClusterResources)
    if (one.kind == kind) return &one;
  return nullptr;
}

}  // namespace berth::placement
