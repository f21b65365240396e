// Extended resources that a device class backs: a container asks for `vendor.example/gpu: 2` as ever, and where the node has none of its
// own, two devices of the class are claimed for it (KEP 5004; DRAExtendedResource, on by default in 1.36).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "placement/cluster.h"

namespace berth::placement::devices {

/// The class whose spec.extendedResourceName is the resource (of several the newest, then the first by name), or that the resource names
/// itself, as deviceclass.resource.kubernetes.io/CLASS. Null without one.
[[nodiscard]] const model::DeviceClassView* class_behind(const Cluster& cluster, std::string_view resource);

/// What the pod asks for and a class backs, in order. What a node has of its own does not count here.
[[nodiscard]] std::vector<std::string> backed_resources(const Resource& wanted, const Cluster& cluster);

/// Whether the node has none of it, so that it has to come by devices.
[[nodiscard]] bool is_left_to_devices(const Cluster& cluster, const Resource& allocatable, std::string_view resource);

/// The one claim for all of it on one node.
struct ExtendedClaim {
  std::shared_ptr<const model::ResourceClaimView> view;  ///< Not made yet: its uid stands for the pod's.
  json::Value document;                                  ///< To be created.
  json::Array mappings;                                  ///< status.extendedResourceClaimStatus.requestMappings of the pod
};

/// A request per container and resource. Init containers that end share what later containers ask for: they get more only where they need
/// more.
[[nodiscard]] ExtendedClaim make_extended_claim(const model::PodView& pod, const std::vector<std::string>& resources,
                                                const Cluster& cluster);

/// The claim is one of those.
[[nodiscard]] bool is_extended_claim(const model::ResourceClaimView& claim);
/// The uid of the pod's while it is not made.
[[nodiscard]] std::string extended_claim_uid(const model::PodView& pod);
/// The pod's, once made; null before.
[[nodiscard]] std::shared_ptr<const model::ResourceClaimView> find_extended_claim(const model::PodView& pod, const Cluster& cluster);

}  // namespace berth::placement::devices
