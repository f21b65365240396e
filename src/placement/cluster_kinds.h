// The resources of which a Cluster is made, for whoever reads one from an API server.
#pragma once
#include <array>
#include <string_view>

namespace berth::placement {

struct ClusterResource {
  std::string_view group, plural;
};

/// What placement consults, pods last: a pod that comes when its node, claims and classes are there is looked at once.
inline constexpr std::array<ClusterResource, 19> kClusterResources = {{{"", "namespaces"},
                                                                       {"", "nodes"},
                                                                       {"", "services"},
                                                                       {"", "replicationcontrollers"},
                                                                       {"apps", "replicasets"},
                                                                       {"apps", "statefulsets"},
                                                                       {"", "persistentvolumes"},
                                                                       {"", "persistentvolumeclaims"},
                                                                       {"storage.k8s.io", "storageclasses"},
                                                                       {"storage.k8s.io", "csinodes"},
                                                                       {"storage.k8s.io", "csidrivers"},
                                                                       {"storage.k8s.io", "csistoragecapacities"},
                                                                       {"resource.k8s.io", "deviceclasses"},
                                                                       {"resource.k8s.io", "resourceslices"},
                                                                       {"resource.k8s.io", "resourceclaims"},
                                                                       {"storage.k8s.io", "volumeattachments"},
                                                                       {"policy", "poddisruptionbudgets"},
                                                                       {"scheduling.k8s.io", "priorityclasses"},
                                                                       {"", "pods"}}};

}  // namespace berth::placement
