#include "controllers/kinds.h"

namespace berth::controllers {

const Kinds& kinds() {
  static const Kinds all = [] {
    Kinds k{};
    k.pod = model::find_kind("", "v1", "Pod");
    k.node = model::find_kind("", "v1", "Node");
    k.namespace_ = model::find_kind("", "v1", "Namespace");
    k.event = model::find_kind("", "v1", "Event");
    k.config_map = model::find_kind("", "v1", "ConfigMap");
    k.secret = model::find_kind("", "v1", "Secret");
    k.service = model::find_kind("", "v1", "Service");
    k.service_account = model::find_kind("", "v1", "ServiceAccount");
    k.endpoints = model::find_kind("", "v1", "Endpoints");
    k.replication_controller = model::find_kind("", "v1", "ReplicationController");
    k.resource_quota = model::find_kind("", "v1", "ResourceQuota");
    k.persistent_volume = model::find_kind("", "v1", "PersistentVolume");
    k.persistent_volume_claim = model::find_kind("", "v1", "PersistentVolumeClaim");
    k.lease = model::find_kind("coordination.k8s.io", "v1", "Lease");
    k.endpoint_slice = model::find_kind("discovery.k8s.io", "v1", "EndpointSlice");
    k.ip_address = model::find_kind("networking.k8s.io", "v1", "IPAddress");
    k.service_cidr = model::find_kind("networking.k8s.io", "v1", "ServiceCIDR");
    k.replica_set = model::find_kind("apps", "v1", "ReplicaSet");
    k.deployment = model::find_kind("apps", "v1", "Deployment");
    k.stateful_set = model::find_kind("apps", "v1", "StatefulSet");
    k.daemon_set = model::find_kind("apps", "v1", "DaemonSet");
    k.controller_revision = model::find_kind("apps", "v1", "ControllerRevision");
    k.job = model::find_kind("batch", "v1", "Job");
    k.cron_job = model::find_kind("batch", "v1", "CronJob");
    k.pod_disruption_budget = model::find_kind("policy", "v1", "PodDisruptionBudget");
    k.horizontal_pod_autoscaler = model::find_kind("autoscaling", "v2", "HorizontalPodAutoscaler");
    k.storage_class = model::find_kind("storage.k8s.io", "v1", "StorageClass");
    k.volume_attributes_class = model::find_kind("storage.k8s.io", "v1", "VolumeAttributesClass");
    k.csi_driver = model::find_kind("storage.k8s.io", "v1", "CSIDriver");
    k.volume_attachment = model::find_kind("storage.k8s.io", "v1", "VolumeAttachment");
    k.cluster_role = model::find_kind("rbac.authorization.k8s.io", "v1", "ClusterRole");
    k.resource_claim = model::find_kind("resource.k8s.io", "v1", "ResourceClaim");
    k.resource_slice = model::find_kind("resource.k8s.io", "v1", "ResourceSlice");
    k.device_class = model::find_kind("resource.k8s.io", "v1", "DeviceClass");
    k.device_taint_rule = model::find_kind("resource.k8s.io", "v1beta2", "DeviceTaintRule");
    k.resource_claim_template = model::find_kind("resource.k8s.io", "v1", "ResourceClaimTemplate");
    k.certificate_signing_request = model::find_kind("certificates.k8s.io", "v1", "CertificateSigningRequest");
    k.subject_access_review = model::find_kind("authorization.k8s.io", "v1", "SubjectAccessReview");
    k.pod_group = model::find_kind("scheduling.k8s.io", "v1alpha2", "PodGroup");
    k.workload = model::find_kind("scheduling.k8s.io", "v1alpha2", "Workload");
    k.machine = model::find_kind("machine.openshift.io", "v1beta1", "Machine");
    k.machine_set = model::find_kind("machine.openshift.io", "v1beta1", "MachineSet");
    k.machine_autoscaler = model::find_kind("autoscaling.openshift.io", "v1beta1", "MachineAutoscaler");
    return k;
  }();
  return all;
}

const std::vector<Kind>& collectable_kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> found;
    for (const model::KindInfo& info : model::all_kinds()) {
      const bool is_storage_version = info.group == info.storage_group && info.version == info.storage_version;
      if (!is_storage_version || info.is_virtual || info.kind == "Event") continue;
      if (info.has_verb("list") && info.has_verb("watch") && info.has_verb("delete")) found.push_back(&info);
    }
    return found;
  }();
  return all;
}

Kind kind_of_reference(std::string_view api_version, std::string_view kind) {
  const std::size_t slash = api_version.find('/');
  const std::string_view group = slash == std::string_view::npos ? std::string_view{} : api_version.substr(0, slash);
  Kind any = nullptr;
  for (const model::KindInfo& info : model::all_kinds()) {
    if (info.kind != kind || info.group != group || info.is_virtual) continue;
    if (info.version == info.storage_version && info.storage_group == info.group) return &info;
    if (any == nullptr) any = &info;
  }
  return any;
}

}  // namespace berth::controllers
