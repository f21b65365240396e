// What the autoscaler decides on: the cluster as placement sees it, what it needs to know beyond that, and the groups of nodes that can
// grow.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "placement/cluster.h"
#include "placement/groups/pod_groups.h"
#include "placement/moves.h"
#include "placement/read_pod.h"

namespace berth::autoscaler {

struct ProvisioningRequest;

inline constexpr std::string_view kToBeDeletedTaint = "ToBeDeletedByClusterAutoscaler";
inline constexpr std::string_view kDeletionCandidateTaint = "DeletionCandidateOfClusterAutoscaler";
inline constexpr std::string_view kScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
using model::kSafeToEvict;
inline constexpr std::string_view kAcceleratorLabel = "cluster-api/accelerator";
inline constexpr std::string_view kEvictDaemon = "cluster-autoscaler.kubernetes.io/enable-ds-eviction";
inline constexpr std::string_view kPodScaleUpDelay = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay";
/// On a pod: the ProvisioningRequest whose room it takes. It adds no node itself.
inline constexpr std::string_view kConsumeRequest = "autoscaling.x-k8s.io/consume-provisioning-request";
inline constexpr std::string_view kOldConsumeRequest = "cluster-autoscaler.kubernetes.io/consume-provisioning-request";
/// A label of a group's template: the group is not the autoscaler's, but what the NodePools of this MachineNodeClass buy from.
inline constexpr std::string_view kMachineClassLabel = "berth.dev/machine-node-class";
/// Of what is scaled, or of a node that a NodePool bought: what an hour of it costs, with a currency behind or none ("0.096 USD").
inline constexpr std::string_view kPriceAnnotation = "berth.dev/price-per-hour";
inline constexpr std::string_view kDelayDeletion = "delay-deletion.cluster-autoscaler.kubernetes.io/";

using Pod = placement::ReadPod;  ///< Without its status.
using PodPtr = placement::ReadPodPtr;
using PodMap = std::map<std::string, PodPtr, std::less<>>;  ///< By "namespace/name".

/// Pods, and the few of them that a pass asks for at once. A pass that finds nothing to do must not walk all pods.
struct PodSets {
  PodMap all;
  PodMap unplaced;     ///< Bound to no node.
  PodMap below_zero;   ///< Of negative priority: most thresholds are below zero.
  PodMap terminating;  ///< With a deletion time.
  PodMap consumers;    ///< Of ProvisioningRequests.
  placement::PodGroups groups;
  void put(PodPtr pod);
  void erase(std::string_view key);

 private:
  void leave_group(const Pod& pod);
};

/// What placement's view of a node leaves out: whether it has started, and whether it still works (utils/kubernetes/ready.go).
struct NodeFacts {
  /// By its conditions (Ready, DiskPressure, NetworkUnavailable) and by the taints that say the same.
  bool is_ready = false;
  bool lacks_device = false;     ///< Labelled with an accelerator that its plugin has not registered.
  bool lacks_slices = false;     ///< A driver that its group's nodes have has not published its devices.
  bool is_starting = false;      ///< It has a startup taint.
  bool is_cordoned = false;      ///< spec.unschedulable
  bool delays_deletion = false;  ///< An annotation below kDelayDeletion: somebody has something to do before it goes.
  bool is_to_be_deleted = false, is_candidate = false;  ///< It has kToBeDeletedTaint; kDeletionCandidateTaint.
  std::int64_t cores = 0, memory_bytes = 0;             ///< Of its capacity, as the cluster's limits count them.
  std::vector<std::string> taints;                      ///< Their keys.
  TimePoint created{}, changed{};                       ///< changed: when its readiness last did.
  static NodeFacts of(const model::NodeView& node, std::string_view accelerator_label = kAcceleratorLabel);

  /// Ready, with all that it is to have.
  [[nodiscard]] bool is_working() const { return is_ready && (is_cordoned || (!lacks_device && !lacks_slices && !is_starting)); }
};
using NodeFactsMap = std::map<std::string, NodeFacts, std::less<>>;

/// Sums over nodes, and the few that a pass must look at. Between two passes most clusters' nodes stay as they are: no pass walks them.
struct NodeTotals {
  std::int64_t working = 0, to_be_deleted = 0, candidates = 0;
  std::int64_t cores = 0, memory_bytes = 0;  ///< Of those that are not to be deleted; INT64_MAX: that many, or more.
  std::vector<std::string> not_working;
  std::map<std::string, std::int64_t, std::less<>> taints;  ///< By key.
  static NodeTotals of(const NodeFactsMap& nodes);
};

enum class Readiness { kReady, kNotStarted, kUnready };
/// A node that does not work counts as not started for its first fifteen minutes.
Readiness readiness_of(const NodeFacts& node, TimePoint now);

/// What a group's own annotations set instead of the ClusterAutoscaler's values.
struct GroupOverrides {
  std::optional<double> utilization_threshold, gpu_utilization_threshold;
  std::optional<Duration> unneeded_time, unready_time, max_node_provision_time;
  std::vector<std::string> problems;  ///< Annotations that make no sense: without effect.
};

/// A machine of a group.
struct Instance {
  std::string id;           ///< The provider's: "namespace/name" of the Machine.
  std::string node;         ///< Empty: it has not become a node yet.
  bool is_leaving = false;  ///< Deleted or marked for it: the group's target no longer counts it.
  std::string failure{};    ///< Why it will never become a node, as its maker says; empty: it is or will be one.
};

/// ResourceSlices of one node, as documents.
using Slices = std::vector<json::Value>;
using SlicesOfNodes = std::map<std::string, std::map<std::string, json::Value>, std::less<>>;  ///< By node, by name.

struct NodeGroup {
  std::string id;
  std::int64_t min = 0, max = 0, target = 0;
  std::vector<Instance> instances;
  /// What a new node would be when the group has none to look at; null: not known, such a group cannot grow from zero.
  model::NodeViewPtr template_node;
  Slices template_slices;  ///< Its devices: of a node named "template".
  GroupOverrides overrides;
  std::optional<double> price_per_hour;  ///< Of one node, as the provider says.
  std::string node_class{};              ///< By kMachineClassLabel; empty: it is the autoscaler's.
};

/// Where a node belongs.
struct Membership {
  const NodeGroup* group = nullptr;
  const Instance* instance = nullptr;
};
using Memberships = std::map<std::string, Membership, std::less<>>;  ///< By node, only those of groups.

struct Snapshot {
  const placement::Cluster* cluster = nullptr;
  const PodSets* pod_sets = nullptr;  ///< Every pod that is not gone.
  [[nodiscard]] const PodMap& pods() const { return pod_sets->all; }
  const placement::Moves* moves = nullptr;     ///< Who was moved already; null: nobody knows.
  const NodeFactsMap* nodes = nullptr;         ///< Of every node of the cluster.
  const NodeTotals* totals = nullptr;          ///< Of `nodes`.
  const SlicesOfNodes* slices = nullptr;       ///< Of nodes that have some.
  std::vector<NodeGroup> groups;               ///< The autoscaler's, in order of id.
  std::vector<placement::PodInfoPtr> daemons;  ///< One pod of each DaemonSet, as it would come to a node.
  std::set<std::string, std::less<>> jobs;     ///< "namespace/name"
  std::set<std::string, std::less<>> daemon_sets;
  /// ConfigMap cluster-autoscaler-priority-expander's data.priorities; nullopt when there is none.
  std::optional<std::string> priorities;
  /// ConfigMap cluster-autoscaler-price-expander's data.prices; nullopt when there is none.
  std::optional<std::string> prices;
  std::vector<std::string> problems;                                 ///< Why sets that somebody wants scaled are not.
  std::set<std::string> left_alone;                                  ///< Groups that are there, and of which too little is known.
  std::map<std::string, double> pod_prices;                          ///< Of an hour, as the provider says, by shape_of.
  std::vector<std::shared_ptr<const ProvisioningRequest>> requests;  ///< In order of creation.
};

/// What GPUs are called where device plugins count them (utils/gpu).
inline constexpr std::string_view kGpuResources[] = {"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/xe", "habana.ai/gaudi",
                                                     "microsoft.com/directx"};

/// By annotation: no node is added for the pod before it is that old.
std::optional<Duration> scale_up_delay(const Pod& pod);
/// The ProvisioningRequest whose room the pod takes; empty: none.
std::string_view consumed_request(const Pod& pod);

/// A taint that a node loses when it has started: below ignore-taint. or startup-taint.cluster-autoscaler.kubernetes.io/.
bool is_startup_taint(std::string_view key);
bool has_taint(const model::NodeView& node, std::string_view key);
/// The pod as its DaemonSet would make it, tolerating what daemons tolerate; not bound to a node.
placement::PodInfoPtr daemon_pod(const json::Value& daemon_set, placement::Era era);

}  // namespace berth::autoscaler
