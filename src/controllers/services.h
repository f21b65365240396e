// Controllers of what hangs on pods and claims: endpoints, quotas, volumes.
#pragma once
#include "controllers/controller.h"

namespace berth::controllers {

/// pkg/controller/endpoint: the pods behind each Service.
ControllerPtr make_endpoints_controller();
/// pkg/controller/endpointslice: the same in slices of at most 100.
ControllerPtr make_endpoint_slice_controller();
/// pkg/controller/endpointslicemirroring: slices of Endpoints that somebody keeps by hand for a Service without selector.
ControllerPtr make_endpoint_slice_mirroring_controller();
/// Ranges of Services' addresses: ready, and kept while addresses of them are used.
ControllerPtr make_service_cidr_controller();
/// An IPAddress for each address of a Service, gone with it.
ControllerPtr make_ip_address_controller();
/// pkg/controller/resourcequota: status.hard and status.used, recounted.
ControllerPtr make_resource_quota_controller();
/// Who makes volumes out of nothing: directories, on the node of the claim's first pod.
inline constexpr std::string_view kLocalProvisioner = "berth.dev/local";
/// pkg/controller/volume/persistentvolume: binds claims to volumes; provisions for the built-in local provisioner (berth.dev/local).
ControllerPtr make_volume_binder();
/// pkg/controller/volume/attachdetach: VolumeAttachments of CSI volumes, for nodes whose pods use them.
ControllerPtr make_attach_detach_controller();
/// pkg/controller/volume/expand: says of a claim that is to grow who has to do it.
ControllerPtr make_volume_expander();
/// pkg/controller/volume/pvcprotection and pvprotection: takes the protection finalizers off what nobody uses any more.
ControllerPtr make_volume_protection_controller();
/// pkg/controller/volume/vacprotection: the protection finalizer of volume attributes classes, on and off.
ControllerPtr make_attributes_class_protection_controller();
/// pkg/controller/scheduling/podgroupprotection: takes the protection finalizer off groups that no pod belongs to any more.
ControllerPtr make_pod_group_protection_controller();
/// pkg/controller/volume/ephemeral: the claims of pods' generic ephemeral volumes.
ControllerPtr make_ephemeral_volume_controller();
struct ResourceClaimOptions {
  bool knows_groups = false;  ///< Claims that PodGroups share (gate DRAWorkloadResourceClaims).
};
/// pkg/controller/resourceclaim: the claims of pods' templates, and claims that nobody uses any more.
ControllerPtr make_resource_claim_controller(ResourceClaimOptions options = {});
/// pkg/controller/devicetainteviction: pods leave devices that are tainted.
ControllerPtr make_device_taint_eviction_controller();

}  // namespace berth::controllers
