// What the scheduler, the preemption and the controllers read of a Pod, parsed once per revision.
#pragma once
#include <memory>

#include "model/views/common.h"

namespace berth::model {

struct HostPort {
  std::int32_t port = 0;
  std::string protocol;  ///< As given; empty counts as TCP.
  std::string host_ip;   ///< As given; empty counts as 0.0.0.0.
  friend bool operator==(const HostPort&, const HostPort&) = default;
  [[nodiscard]] auto parts() const { return std::tie(port, protocol, host_ip); }
};

struct ContainerView {
  std::string name, image;
  ResourceList requests, limits;
  std::vector<HostPort> host_ports;  ///< Only ports with a hostPort other than 0.
  bool restarts_always = false;      ///< Init containers: a sidecar.
  friend bool operator==(const ContainerView&, const ContainerView&) = default;
  [[nodiscard]] auto parts() const { return std::tie(name, image, requests, limits, host_ports, restarts_always); }
};

/// status.containerStatuses and initContainerStatuses, as far as in-place resize needs them.
struct ContainerResourceStatus {
  std::string name;
  std::optional<ResourceList> requests;  ///< resources.requests: what runs now; nullopt when absent.
  ResourceList allocated;                ///< allocatedResources: what the node agreed to.
  bool is_init = false;
  friend bool operator==(const ContainerResourceStatus&, const ContainerResourceStatus&) = default;
  [[nodiscard]] auto parts() const { return std::tie(name, requests, allocated, is_init); }
};

struct PodAffinityTerm {
  Selector selector;           ///< A null labelSelector matches nothing.
  std::string selector_error;  ///< Not empty when the selector could not be parsed.
  std::vector<std::string> namespaces;
  std::optional<Selector> namespace_selector;  ///< Present and empty matches all namespaces.
  std::string topology_key;
  friend bool operator==(const PodAffinityTerm&, const PodAffinityTerm&) = default;
  [[nodiscard]] auto parts() const { return std::tie(selector, selector_error, namespaces, namespace_selector, topology_key); }
};

struct WeightedPodAffinityTerm {
  std::int64_t weight = 0;
  PodAffinityTerm term;
  friend bool operator==(const WeightedPodAffinityTerm&, const WeightedPodAffinityTerm&) = default;
  [[nodiscard]] auto parts() const { return std::tie(weight, term); }
};

struct TopologySpreadConstraint {
  std::int64_t max_skew = 0;
  std::string topology_key;
  bool is_hard = false;  ///< whenUnsatisfiable: DoNotSchedule.
  Selector selector;
  std::string selector_error;
  std::optional<std::int64_t> min_domains;
  bool honor_affinity = true;  ///< nodeAffinityPolicy; absent is Honor.
  bool honor_taints = false;   ///< nodeTaintsPolicy; absent is Ignore.
  std::vector<std::string> match_label_keys;
  static TopologySpreadConstraint parse(const json::Value& constraint);
  friend bool operator==(const TopologySpreadConstraint&, const TopologySpreadConstraint&) = default;
  [[nodiscard]] auto parts() const {
    return std::tie(max_skew, topology_key, is_hard, selector, selector_error, min_domains, honor_affinity, honor_taints, match_label_keys);
  }
};

/// One entry of spec.volumes, as far as placement reads it.
struct VolumeView {
  enum class Kind {
    kOther,
    kGcePersistentDisk,
    kAwsElasticBlockStore,
    kAzureDisk,
    kCinder,
    kIscsi,
    kRbd,
    kPersistentVolumeClaim,
    kEphemeral,
    kCsi,
    kImage
  };
  Kind kind = Kind::kOther;
  std::string name;  ///< Empty where the kind is kOther: each pod's token has another.
  /// pdName, volumeID, diskName, volumeID, iqn, image, claimName, (the ephemeral claim's name is pod name "-" volume name), driver,
  /// reference.
  std::string id;
  std::string disk_uri;               ///< azureDisk.diskURI
  std::string pool;                   ///< rbd
  std::vector<std::string> monitors;  ///< rbd
  std::string target_portal;          ///< iscsi
  std::int64_t lun = 0;               ///< iscsi
  bool read_only = false;
  friend bool operator==(const VolumeView&, const VolumeView&) = default;
  [[nodiscard]] auto parts() const { return std::tie(kind, name, id, disk_uri, pool, monitors, target_portal, lun, read_only); }
};

/// An entry of spec.resourceClaims, with what status.resourceClaimStatuses says of it.
struct PodResourceClaim {
  std::string name;
  std::string claim_name, template_name;  ///< As the spec has them; at most one is not empty.
  bool has_status = false;                ///< The claim of the template was made, or found needless.
  std::string made_name;                  ///< Empty: none is needed.
  std::string group;                      ///< The PodGroup that the pod is of, which may share the claim; empty: none.
  friend bool operator==(const PodResourceClaim&, const PodResourceClaim&) = default;
  [[nodiscard]] auto parts() const { return std::tie(name, claim_name, template_name, has_status, made_name, group); }
};

/// Lists are the same ones for all pods of a template: there may be a million.
struct PodView {
  ObjectMeta meta;
  std::string node_name;            ///< spec.nodeName
  std::string nominated_node_name;  ///< status.nominatedNodeName
  std::string scheduler_name;
  std::string priority_class_name;
  std::int64_t priority = 0;
  bool preemption_never = false;  ///< preemptionPolicy: Never
  SharedList<std::string> scheduling_gates;
  std::string phase, start_time;  ///< status; RFC 3339 as given.
  bool host_network = false;
  bool is_guaranteed = false;                         ///< status.qosClass, or what the spec comes to.
  std::int64_t termination_grace_period_seconds = 0;  ///< 30 when absent.

  SharedList<ContainerView> containers, init_containers;
  SharedResourceList overhead;
  /// spec.resources: pod-level requests, and what status says of them.
  SharedResourceList pod_requests, pod_limits;
  /// status.resources and allocatedResources of the pod; null without the first.
  std::shared_ptr<const ContainerResourceStatus> pod_level_status;
  SharedList<ContainerResourceStatus> container_statuses;
  bool resize_infeasible = false;  ///< The first PodResizePending condition has the reason Infeasible.
  bool is_unready = false;  ///< A condition Ready that is not True: as it was when the pod was read, the scheduler does not follow it.
  bool terminating_by_preemption = false;  ///< The first DisruptionTarget condition is True with reason PreemptionByScheduler.

  Labels::Pairs node_selector;  ///< Sorted by key.
  NodeAffinity node_affinity;
  SharedList<PodAffinityTerm> required_affinity, required_anti_affinity;
  SharedList<WeightedPodAffinityTerm> preferred_affinity, preferred_anti_affinity;
  SharedList<Toleration> tolerations;
  SharedList<TopologySpreadConstraint> spread_constraints;
  SharedList<VolumeView> volumes;
  SharedList<PodResourceClaim> resource_claims;
  /// Features of the kubelet that the spec cannot do without (component-helpers nodedeclaredfeatures, InferForScheduling).
  SharedList<std::string> required_features;

  static PodView parse(const json::Value& pod);
  [[nodiscard]] const std::string& ns() const { return meta.ns; }
  [[nodiscard]] const std::string& name() const { return meta.name; }
  [[nodiscard]] std::string key() const { return meta.ns + "/" + meta.name; }
  /// phase Succeeded or Failed: takes no room on its node.
  [[nodiscard]] bool is_terminal() const { return phase == "Succeeded" || phase == "Failed"; }
  /// nodeSelector and required node affinity both hold.
  [[nodiscard]] bool matches_node_selector(const Labels& node_labels, std::string_view node_name) const;
};
using PodViewPtr = std::shared_ptr<const PodView>;

}  // namespace berth::model
