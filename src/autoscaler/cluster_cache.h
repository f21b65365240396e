// The API's objects kept as what the autoscaler decides on: MachineSets are its groups of nodes (SPEC H6). Pure: told of objects, no I/O.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "autoscaler/snapshot.h"
#include "base/json.h"
#include "client/object.h"
#include "model/kinds.h"

namespace berth::autoscaler {

struct ProviderState;

// Cluster API's own group has the same objects; its annotations are read and written beside OpenShift's, on the objects of either.
inline constexpr std::string_view kClusterApi = "cluster.x-k8s.io/";
inline constexpr std::string_view kMachineApi = "machine.openshift.io/";
inline constexpr std::string_view kMinSize = "machine.openshift.io/cluster-api-autoscaler-node-group-min-size";
inline constexpr std::string_view kMaxSize = "machine.openshift.io/cluster-api-autoscaler-node-group-max-size";
inline constexpr std::string_view kGroupOptions = "machine.openshift.io/autoscaling-options-";
inline constexpr std::string_view kClusterApiDeleteMachine = "cluster.x-k8s.io/delete-machine";
inline constexpr std::string_view kDeleteMachine = "machine.openshift.io/delete-machine";
inline constexpr std::string_view kOldDeleteMachine = "machine.openshift.io/cluster-api-delete-machine";
inline constexpr std::string_view kMachineAnnotation = "machine.openshift.io/machine";

/// "MachineSet/namespace/name", as node groups are called in events and in the priority expander's patterns; MachineDeployments of Cluster
/// API likewise.
std::string group_id(std::string_view kind, std::string_view ns, std::string_view name);
/// The other way: empty strings when it is not one.
std::pair<std::string, std::string> split_group_id(std::string_view id);

/// What the annotations of a MachineSet say of its machines, for groups that have none yet: cpu, memory, gpu-count, gpu-type, maxPods,
/// ephemeral-disk, labels and taints below capacity.cluster-autoscaler.kubernetes.io/, or OpenShift's vCPU, memoryMb, GPU and maxPods.
/// Labels and taints also come from spec.template.spec. Null when CPU or memory is missing or something is malformed.
model::NodeViewPtr template_of(const json::Value& machine_set);
/// Devices of a node of the set: gpu-count of those of dra-driver, in a slice of node "template". Then gpu-count counts no resource but
/// the one that gpu-type names.
Slices template_slices_of(const json::Value& machine_set);

/// The annotations machine.openshift.io/autoscaling-options-… of a MachineSet: scaledownutilizationthreshold,
/// scaledowngpuutilizationthreshold, scaledownunneededtime, scaledownunreadytime and maxnodeprovisiontime; others say nothing.
GroupOverrides overrides_of(const json::Value& machine_set);

/// Where a group's size and its machines are written.
struct GroupPlace {
  model::Gvr scalable, machines;
  std::string ns, name;
};

/// `kind` has kClusterApi in front for that group's objects, as ClusterCache takes them.
struct WatchedKind {
  std::string_view kind;
  model::Gvr gvr;
};
/// What is watched, where the server serves it. Without MachineSets or MachineDeployments there is nothing to scale.
const std::vector<WatchedKind>& watched_kinds();

/// Single-threaded.
class ClusterCache {
 public:
  explicit ClusterCache(placement::Era era = placement::Era::k136) : era_(era), cluster_(era) {}
  /// Any object; kinds that do not matter are ignored.
  void upsert(const json::Value& object);
  /// A pod as a watch brings it. It is read when somebody asks for pods: of one that changes five times between two passes only the last
  /// revision is. What its changes mean for who was moved is taken at once, from the text.
  void upsert_pod(client::ObjectRef pod);
  void upsert_pod(PodPtr pod);
  /// Beside its document, of which `find` tells, this is all that is known of a node.
  void upsert_node(model::NodeViewPtr node);
  void remove(std::string_view kind, std::string_view ns, std::string_view name);

  /// Holds until the next change. Nodes that have not published the devices of their group are marked so.
  [[nodiscard]] Snapshot snapshot();
  /// The same with the groups and labels that a provider tells of.
  [[nodiscard]] Snapshot snapshot(ProviderState told);
  /// The groups that NodePools buy from, in order of id. `problems`: why sets that are meant to be some are none.
  [[nodiscard]] std::vector<NodeGroup> groups_of_pools(std::vector<std::string>& problems) const;
  /// What a node with a GPU is labelled with (kAcceleratorLabel); empty: nothing says so.
  [[nodiscard]] const std::string& accelerator_label() const { return accelerator_label_; }
  [[nodiscard]] const placement::Cluster& cluster() const { return catch_up(), cluster_; }
  [[nodiscard]] const PodMap& pods() const { return catch_up(), pods_.all; }
  [[nodiscard]] const PodMap& unplaced_pods() const { return catch_up(), pods_.unplaced; }
  /// Changes of pods that nobody has asked for yet.
  [[nodiscard]] std::size_t unread_pods() const { return unread_.size(); }
  [[nodiscard]] const NodeFactsMap& nodes() const { return nodes_; }
  /// Of these; holds until the next change.
  [[nodiscard]] const NodeTotals& totals();
  /// The ClusterAutoscaler named default; null when there is none.
  [[nodiscard]] const json::Value* cluster_autoscaler() const { return cluster_autoscaler_.is_null() ? nullptr : &cluster_autoscaler_; }
  /// Of a group's id; one that is not known any more is looked for among OpenShift's.
  [[nodiscard]] GroupPlace place_of(std::string_view group) const;
  [[nodiscard]] const json::Value* find(std::string_view kind, std::string_view ns, std::string_view name) const;

 private:
  struct Machine {
    std::string set, ns, node, provider_id;  ///< set: its key among the kept.
    bool is_leaving = false;
    std::string failure;  ///< Of one in phase Failed.
  };
  static Machine parse_machine(const json::Value& machine, bool is_cluster_api);
  /// The key of what is scaled: the set, or the MachineDeployment that owns it.
  [[nodiscard]] std::string scaled_by(const std::string& set) const;
  /// nullopt: nobody wants it scaled, or its bounds make no sense, which is said.
  [[nodiscard]] std::optional<NodeGroup> group_of(std::string_view kind, const json::Value& scalable,
                                                  std::vector<std::string>& problems) const;
  /// What of a pod's revision says who was moved, as views into what it was read of.
  struct PodMark {
    std::string_view uid, controller;  ///< controller: its uid.
    const model::Labels* labels = nullptr;
    TimePoint created{};
    bool belongs_to_node = false;  ///< It comes and goes with its node.
    bool is_evicted = false, is_disrupted = false, is_terminal = false, is_finished = false;
    static PodMark of(const Pod& pod);
    /// By its text alone; nullopt: that is no object.
    static std::optional<PodMark> of(const client::Object& pod);
  };
  /// A pod's last revision, to be read; without one, it is gone or has ended.
  struct Unread {
    std::string key;
    client::ObjectRef object;
    std::optional<PodMark> mark;  ///< Of `object`.
    bool is_outdated = false;     ///< Another one of the key stands further back.
  };
  void put_off(const std::string& key, client::ObjectRef object, std::optional<PodMark> mark);
  /// Reads what was put off, in the order of its coming.
  void catch_up() const;
  void take_pod(PodPtr pod) const;
  /// Of the pod as it was last seen; nullopt: it is not there, or has ended.
  [[nodiscard]] std::optional<PodMark> mark_of(const std::string& key) const;
  /// What the change of a pod means for who was moved; nullopt: it was not there, it is gone.
  void remember(const std::optional<PodMark>& before, const std::optional<PodMark>& now);
  void set_accelerator_label(const std::string& label);
  void mark_incomplete_nodes(const std::vector<NodeGroup>& groups);
  void see_request(const json::Value& request);
  /// The requests of the namespace that name the template are read anew.
  void see_template(std::string_view ns, std::string_view name);
  /// Of both kinds, in order of id.
  [[nodiscard]] std::vector<NodeGroup> all_groups(std::vector<std::string>& problems) const;
  [[nodiscard]] Instance instance_of(const std::string& key, const Machine& machine) const;

  placement::Era era_;
  std::string accelerator_label_{kAcceleratorLabel};
  // Pods are read on asking, which changes nothing that anybody sees.
  mutable placement::Cluster cluster_;
  mutable PodSets pods_;
  mutable std::vector<Unread> unread_;                              ///< In the order of coming.
  mutable std::unordered_map<std::string, std::size_t> unread_at_;  ///< Of keys: the place of the one that counts.
  NodeFactsMap nodes_;
  std::optional<NodeTotals> totals_;  ///< Of nodes_; nullopt: something of them has changed since.
  placement::Moves moves_;
  std::map<std::string, Machine> machines_;               ///< By "namespace/name".
  std::map<std::string, json::Value, std::less<>> kept_;  ///< What is scaled, and Nodes, by "Kind/namespace/name".
  /// What a group's annotations and template come to, by its key, with the revision that says so.
  struct ReadGroup {
    std::string revision;
    model::NodeViewPtr template_node;
    Slices template_slices;
    GroupOverrides overrides;
    std::string node_class;
    std::optional<double> price_per_hour;
  };
  mutable std::map<std::string, ReadGroup> read_groups_;
  std::map<std::string, std::string> node_of_machine_, node_of_provider_id_;
  SlicesOfNodes slices_;
  std::map<std::string, placement::PodInfoPtr> daemons_;
  std::set<std::string, std::less<>> jobs_;
  std::map<std::string, std::shared_ptr<const ProvisioningRequest>> requests_;  ///< By "namespace/name"; their documents are kept.
  std::optional<std::string> priorities_, prices_;
  json::Value cluster_autoscaler_;
};

}  // namespace berth::autoscaler
