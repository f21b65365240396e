// The state that placement decides on: nodes with their pods, and the objects that plugins consult. A value: no I/O, no clock.
#pragma once
#include <array>
#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/views/device_views.h"
#include "model/views/node_view.h"
#include "model/views/pod_view.h"
#include "model/views/storage_views.h"
#include "model/views/workload_views.h"
#include "placement/node_notes.h"
#include "placement/pages.h"
#include "placement/resource.h"
#include "placement/sharded_map.h"

namespace berth::model {
struct NodeTopologyView;
}

namespace berth::placement {

/// A dense index of nodes; slots of removed nodes are used again.
struct NodeIndex {
  std::uint32_t value = UINT32_MAX;
  [[nodiscard]] bool is_valid() const { return value != UINT32_MAX; }
  friend auto operator<=>(NodeIndex, NodeIndex) = default;
};

class Cluster;

/// A pod affinity term with its namespaces resolved: an empty list with no selector means the owner's own namespace.
struct AffinityTerm {
  std::vector<std::string> namespaces;  ///< Sorted.
  std::optional<model::Selector> namespace_selector;
  model::Selector selector;
  std::string topology_key;
  std::int64_t weight = 0;  ///< Preferred terms only; negative for anti-affinity where a plugin says so.

  /// `namespace_labels` are those of the pod's namespace; one that is not there has no labels.
  [[nodiscard]] bool matches(const model::PodView& pod, const model::Labels& namespace_labels) const;
  friend auto operator<=>(const AffinityTerm&, const AffinityTerm&) = default;
  [[nodiscard]] auto parts() const { return std::tie(namespaces, namespace_selector, selector, topology_key, weight); }
};

/// A pod with all that is derived from it once: shared, never changed.
struct PodInfo : std::enable_shared_from_this<PodInfo> {
  model::PodViewPtr pod;
  std::string key;  ///< "namespace/name"
  PodRequest request;
  /// Set where the request by the spec alone is another than `request`, which counts what the status says of a resize.
  std::shared_ptr<const Resource> spec_request;
  /// The request as the resource scorers count it when defaults apply (cpu and memory with them).
  Resource scoring_request;
  SharedList<std::string> images;          ///< As ImageLocality counts them, tags completed; in 1.36 image volumes last.
  std::size_t image_containers = 0;        ///< How many of `images` are containers'.
  SharedList<model::HostPort> host_ports;  ///< Of containers, and in 1.36 of sidecars; protocol and IP defaulted.
  SharedList<AffinityTerm> required_affinity, required_anti_affinity, preferred_affinity, preferred_anti_affinity;
  std::int64_t start_time_ns = 0;  ///< status.startTime; the far future when absent.
  std::uint64_t traits_hash = 0;   ///< Of what other pods' terms and selectors see: see same_traits.
  std::size_t bytes = 0;           ///< What it holds in memory, about (heap_bytes.h).

  static std::shared_ptr<const PodInfo> make(model::PodViewPtr pod, Era era);
  /// This pod as `now` has it, where nothing but node, phase, start time and nomination is another.
  [[nodiscard]] std::shared_ptr<const PodInfo> moved_on(model::PodViewPtr now) const;
  [[nodiscard]] std::size_t count_bytes() const;
  [[nodiscard]] const model::PodView& view() const { return *pod; }
  /// What the pod asks for while it is to be placed (noderesources/fit.go: a pod without a node has nothing to resize).
  [[nodiscard]] const Resource& wanted() const { return spec_request != nullptr ? *spec_request : request.total; }
  [[nodiscard]] bool has_affinity() const {
    return !required_affinity.empty() || !required_anti_affinity.empty() || !preferred_affinity.empty() || !preferred_anti_affinity.empty();
  }
};
using PodInfoPtr = std::shared_ptr<const PodInfo>;

/// Namespace, labels, termination and affinity terms are equal: the two count alike for every selector and hold the same terms.
bool same_traits(const PodInfo& a, const PodInfo& b);

/// Where an image is, for ImageLocality.
struct ImageState {
  std::int64_t size_bytes = 0;
  std::int64_t node_count = 0;
};

/// A node and what is on it (framework.NodeInfo). Copyable: plugins and preemption try changes on a copy.
struct NodeInfo {
  NodeIndex index;
  std::string name;
  model::NodeViewPtr node;  ///< Null while only pods speak of the node: never a candidate.
  std::shared_ptr<const model::NodeTopologyView>
      topology;  ///< The NodeResourceTopology of its name; null: nothing is known of its NUMA nodes.
  Resource allocatable, requested;
  std::int64_t nonzero_cpu_milli = 0, nonzero_memory_bytes = 0;
  std::vector<PodInfoPtr> pods;  ///< In order of arrival.
  std::uint32_t pods_with_affinity = 0, pods_with_required_anti_affinity = 0, pods_with_ports = 0;
  /// Of the pods: volumes that are a claim by name, and others that may be attached (ephemeral ones, disks named in the pod).
  std::uint32_t claim_volumes = 0, other_volumes = 0;
  /// 1.20 alone: each image as the cluster had it when this node was added or last changed (that release never refreshes the count).
  std::vector<std::pair<std::string, ImageState>> image_states;
  std::map<std::string, int, std::less<>> claim_references;  ///< "namespace/claim" to the number of pods using it.
  /// In a cluster: another one after each change of the node, its pods or its nominations; the earlier one again where an attempt is taken
  /// back. One slot with one version is one content (beside four billion changes), so that nobody looks twice. A slot without node has 0.
  std::uint32_t version = 0;
  NodeNotes notes;  ///< What plugins worked out of all this.

  void add_pod(PodInfoPtr pod);
  /// By key; false when not here.
  bool remove_pod(std::string_view key);
  [[nodiscard]] const model::Labels& labels() const { return node->meta.labels; }
  /// The label's value, or null.
  [[nodiscard]] const std::string* label(std::string_view key) const { return node->meta.labels.get(key); }
};

/// One entry of the change log by which engines catch up.
struct Change {
  enum class Kind : std::uint8_t { kPodAdded, kPodRemoved, kNode, kNominated, kOther };
  Kind kind = Kind::kOther;
  NodeIndex node;
  PodInfoPtr pod;  ///< Of pod changes.
};

using ClaimPtr = std::shared_ptr<const model::ResourceClaimView>;

/// Owner: the scheduler shell, a test, a simulation. Single-threaded; a fork may be handed to another thread.
/// Invariants: a pod is on at most one node; NodeInfo sums equal a recount over its pods; nothing throws on any input.
class Cluster {
 public:
  explicit Cluster(Era era = Era::k136);
  ~Cluster();
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;

  [[nodiscard]] Era era() const { return era_; }

  // Objects. Each upsert replaces; unknown kinds are ignored.
  NodeIndex upsert_node(model::NodeViewPtr node);
  bool remove_node(std::string_view name);
  /// With nodeName: runs there (a terminal pod takes no room and is left out). Without: forgotten, or kept as nominated when
  /// nominatedNodeName is set. An assumed pod that arrives bound is confirmed.
  void upsert_pod(model::PodViewPtr pod);
  void upsert_pod(PodInfoPtr pod);
  bool remove_pod(std::string_view key);
  /// Any of the kinds that placement knows, from its document (Node, Pod, Service, PersistentVolume, …). False for other kinds.
  bool upsert(const json::Value& object);
  bool remove(std::string_view kind, std::string_view ns, std::string_view name);

  /// The pod counts as running on `node` from now on (Reserve). Replaces any earlier place of the pod; drops its nomination.
  void assume(const PodInfoPtr& pod, NodeIndex node);
  /// Undoes assume; false when it was not there.
  bool forget(std::string_view key);
  /// The pod waits for room on the named node; an empty name clears it. While there is no such node nobody is kept from anything; the room
  /// is kept once it comes (pods are listed before nodes, nodes come back).
  void nominate(const PodInfoPtr& pod, std::string_view node_name);

  // Reading.
  [[nodiscard]] std::size_t node_count() const { return node_count_; }
  /// One past the largest index in use; slots may be empty or without a node object.
  [[nodiscard]] std::uint32_t slot_count() const { return slot_count_; }
  /// Null for an empty slot. The reference holds until the next change of this cluster.
  [[nodiscard]] const NodeInfo* node(NodeIndex index) const;
  [[nodiscard]] const NodeInfo* find_node(std::string_view name) const;
  /// Grows with each node object that comes; of a node that is there.
  [[nodiscard]] std::uint64_t arrival(NodeIndex index) const { return arrivals_[index.value]; }
  /// Above those of all nodes that ever came, also in attempts that were taken back: while it stands, nobody came.
  [[nodiscard]] std::uint64_t next_arrival() const { return next_arrival_; }
  /// All nodes with a node object, in order of arrival.
  [[nodiscard]] std::vector<const NodeInfo*> nodes() const;
  [[nodiscard]] PodInfoPtr find_pod(std::string_view key) const;
  /// The node a pod runs or is assumed on; invalid when none.
  [[nodiscard]] NodeIndex pod_node(std::string_view key) const;
  [[nodiscard]] std::size_t pod_count() const;
  /// Pods on nodes that have any affinity term, and those with required anti-affinity.
  [[nodiscard]] std::size_t affinity_pods() const { return affinity_pods_; }
  [[nodiscard]] std::size_t required_anti_affinity_pods() const { return required_anti_affinity_pods_; }
  /// Pods nominated to the node; empty mostly.
  [[nodiscard]] const std::vector<PodInfoPtr>& nominated(NodeIndex index) const;
  [[nodiscard]] bool has_nominations() const { return !nominations_->by_node.empty(); }
  [[nodiscard]] bool is_nominated(std::string_view key) const { return nominated_node(key).is_valid(); }
  /// The node a pod is nominated to; invalid when none, or none that is there.
  [[nodiscard]] NodeIndex nominated_node(std::string_view key) const;
  /// Nominated pods that have any affinity term.
  [[nodiscard]] std::size_t nominated_affinity_pods() const { return nominated_affinity_pods_; }
  /// Null when no node has the image.
  [[nodiscard]] const ImageState* image(std::string_view name) const;

  template <typename T>
  using Table = std::map<std::string, std::shared_ptr<const T>, std::less<>>;  ///< By "namespace/name" or "name".
  [[nodiscard]] const Table<model::ServiceView>& services() const { return *objects_.services; }
  [[nodiscard]] const Table<model::WorkloadView>& replication_controllers() const { return *objects_.replication_controllers; }
  [[nodiscard]] const Table<model::WorkloadView>& replica_sets() const { return *objects_.replica_sets; }
  [[nodiscard]] const Table<model::WorkloadView>& stateful_sets() const { return *objects_.stateful_sets; }
  [[nodiscard]] const Table<model::NamespaceView>& namespaces() const { return *objects_.namespaces; }
  [[nodiscard]] const Table<model::PersistentVolumeView>& persistent_volumes() const { return *objects_.persistent_volumes; }
  [[nodiscard]] const Table<model::PersistentVolumeClaimView>& claims() const { return *objects_.claims; }
  [[nodiscard]] const Table<model::StorageClassView>& storage_classes() const { return *objects_.storage_classes; }
  [[nodiscard]] const Table<model::CsiNodeView>& csi_nodes() const { return *objects_.csi_nodes; }
  [[nodiscard]] const Table<model::CsiDriverView>& csi_drivers() const { return *objects_.csi_drivers; }
  [[nodiscard]] const Table<model::CsiStorageCapacityView>& storage_capacities() const { return *objects_.storage_capacities; }
  [[nodiscard]] const Table<model::PodDisruptionBudgetView>& disruption_budgets() const { return *objects_.disruption_budgets; }
  [[nodiscard]] const Table<model::ResourceClaimView>& resource_claims() const { return *objects_.resource_claims; }
  [[nodiscard]] const Table<model::ResourceSliceView>& resource_slices() const { return *objects_.resource_slices; }
  [[nodiscard]] const Table<model::DeviceClassView>& device_classes() const { return *objects_.device_classes; }
  [[nodiscard]] const Table<model::DeviceTaintRuleView>& device_taint_rules() const { return *objects_.device_taint_rules; }
  /// Null when absent.
  [[nodiscard]] std::shared_ptr<const model::ResourceClaimView> find_claim(std::string_view ns, std::string_view name) const;
  /// What a claim, by its uid, is about to get: decided, but not yet in the claim itself. Null for none.
  [[nodiscard]] std::shared_ptr<const model::Allocation> pending_allocation(std::string_view claim_uid) const;
  struct PendingAllocation {
    std::shared_ptr<const model::Allocation> allocation;
    std::string group;        ///< The PodGroup of the pods that it was decided for, in the claim's namespace; empty: none.
    std::size_t holders = 1;  ///< Pods that count on it.
    friend bool operator==(const PendingAllocation&, const PendingAllocation&) = default;
  };
  using Allocations = std::map<std::string, PendingAllocation, std::less<>>;
  /// By the claim's uid.
  [[nodiscard]] const Allocations& pending_allocations() const { return *pending_allocations_; }
  /// Null: no longer. A claim that comes with an allocation of its own has no pending one any more.
  void set_pending_allocation(const std::string& claim_uid, std::shared_ptr<const model::Allocation> allocation,
                              const std::string& group = {});
  /// Of the group that the pending allocation was decided for, whose pods share it; empty for others, and where there is none.
  [[nodiscard]] std::string_view pending_group(std::string_view claim_uid) const;
  /// One more pod, or one less, counts on this very pending allocation; the last one takes it away. Of another one, or none: nothing.
  void hold_pending_allocation(const std::string& claim_uid, const std::shared_ptr<const model::Allocation>& allocation);
  void drop_pending_allocation(const std::string& claim_uid, const std::shared_ptr<const model::Allocation>& allocation);
  [[nodiscard]] const Table<model::NodeTopologyView>& node_topologies() const { return *objects_.node_topologies; }
  [[nodiscard]] const Table<model::PriorityClassView>& priority_classes() const { return *objects_.priority_classes; }
  /// By "node/name": those of one node stand together.
  [[nodiscard]] const Table<model::VolumeAttachmentView>& volume_attachments() const { return *objects_.volume_attachments; }
  void upsert(std::shared_ptr<const model::PersistentVolumeView> object);
  void upsert(std::shared_ptr<const model::PersistentVolumeClaimView> object);
  void upsert(std::shared_ptr<const model::NamespaceView> object);
  void upsert(std::shared_ptr<const model::ServiceView> object);
  void upsert(std::shared_ptr<const model::CsiNodeView> object);
  void upsert(std::shared_ptr<const model::ResourceClaimView> object);
  void upsert(std::shared_ptr<const model::PodDisruptionBudgetView> object);
  /// No node attaches fewer volumes of any driver (CSINode); a smaller number may be told once the node with that is gone.
  [[nodiscard]] std::int64_t least_volume_limit() const { return least_volume_limit_; }
  /// Labels of a namespace; empty when it is not there.
  [[nodiscard]] const model::Labels& namespace_labels(std::string_view name) const;

  // The change log: entries [log_begin(), log_end()); older ones are gone and mean "rebuild".
  [[nodiscard]] std::uint64_t log_begin() const { return log_.begin(); }
  [[nodiscard]] std::uint64_t log_end() const { return log_.end(); }
  [[nodiscard]] const Change& change(std::uint64_t position) const { return log_[position]; }
  /// Whoever follows starts over: the pods that the log names are held by nobody but the cluster.
  void forget_log() {
    log_.restart(log_end());
    log_bytes_ = 0;
  }
  /// Counts changes of everything that is not a node or a pod.
  [[nodiscard]] std::uint64_t objects_version() const { return objects_version_; }
  [[nodiscard]] std::uint64_t namespaces_version() const { return namespaces_version_; }
  /// Counts changes of disruption budgets.
  [[nodiscard]] std::uint64_t budgets_version() const { return budgets_version_; }
  /// Counts changes of services and workloads: what default spreading selects by.
  [[nodiscard]] std::uint64_t workloads_version() const { return workloads_version_; }
  /// Counts changes of the set of images on nodes, and of the number of nodes.
  [[nodiscard]] std::uint64_t images_version() const { return images_version_; }

 private:
  static constexpr std::uint32_t kChunkNodes = 256;
  using NodeChunk = std::array<std::shared_ptr<NodeInfo>, kChunkNodes>;
  struct PodSlot {
    const PodInfo* pod = nullptr;
    NodeIndex node;
  };
  struct Nomination {
    PodInfoPtr pod;
    std::string node_name;
    NodeIndex node;  ///< Invalid while there is no such node.
  };
  struct Nominations {
    std::map<std::string, Nomination, std::less<>> by_pod;  ///< By the pod's key.
    std::map<NodeIndex, std::vector<PodInfoPtr>> by_node;   ///< Only nodes that are there.
  };
  using Images = std::map<std::string, ImageState, std::less<>>;
  template <typename T>
  using TablePtr = std::shared_ptr<Table<T>>;
  struct Objects {
    TablePtr<model::ServiceView> services;
    TablePtr<model::WorkloadView> replication_controllers, replica_sets, stateful_sets;
    TablePtr<model::NamespaceView> namespaces;
    TablePtr<model::PersistentVolumeView> persistent_volumes;
    TablePtr<model::PersistentVolumeClaimView> claims;
    TablePtr<model::StorageClassView> storage_classes;
    TablePtr<model::CsiNodeView> csi_nodes;
    TablePtr<model::CsiDriverView> csi_drivers;
    TablePtr<model::CsiStorageCapacityView> storage_capacities;
    TablePtr<model::VolumeAttachmentView> volume_attachments, volume_attachments_by_name;
    TablePtr<model::PodDisruptionBudgetView> disruption_budgets;
    TablePtr<model::PriorityClassView> priority_classes;
    TablePtr<model::ResourceClaimView> resource_claims;
    TablePtr<model::ResourceSliceView> resource_slices;
    TablePtr<model::DeviceClassView> device_classes;
    TablePtr<model::DeviceTaintRuleView> device_taint_rules;
    TablePtr<model::NodeTopologyView> node_topologies;
  };

  friend class Trial;
  friend class Attempt;
  /// Copy on write: cheap, independent of this one from now on. Its change log starts empty. A Trial's alone: whoever wants a copy to try
  /// something on wants its engine too.
  [[nodiscard]] Cluster fork() const;
  Cluster(const Cluster&) = default;
  // cluster_journal.cpp: what is changed after `begin` stays by `keep`, or is undone by `take_back`. In the opposite order of beginning.
  struct Journal;
  void begin(Journal& journal);
  void keep(Journal& journal);
  void take_back(Journal& journal);
  void undo_changes(const Journal& journal);
  /// Before the first write to a slot, and before each to a name.
  void keep_slot(NodeIndex index);
  void keep_name(const std::string& name);

  NodeInfo& writable(NodeIndex index);
  std::uint32_t new_version();
  NodeIndex slot_for(std::string_view name);
  void release_slot_if_empty(NodeIndex index);
  void place(const PodInfoPtr& pod, NodeIndex node);
  bool take_away(std::string_view key);
  void drop_nomination(std::string_view key);
  /// Room is kept for the nomination on the node from now on; or no longer.
  void attach(Nomination& nomination, NodeIndex node);
  void detach(Nomination& nomination);
  Nominations& nominations() { return unshare(nominations_); }
  void count_images(const model::NodeView& node, int sign);
  void record(Change::Kind kind, NodeIndex node, PodInfoPtr pod = nullptr);
  void shorten_log();
  template <typename T>
  void touch_objects();
  template <typename T>
  void put(TablePtr<T>& table, std::shared_ptr<const T> object, std::string key);
  void put_attachment(std::shared_ptr<const model::VolumeAttachmentView> attachment);
  bool drop_attachment(std::string_view name);
  void put_topology(const std::shared_ptr<const model::NodeTopologyView>& topology);
  bool drop_topology(std::string_view name);
  void tell_topology(std::string_view node_name, std::shared_ptr<const model::NodeTopologyView> topology);
  template <typename T>
  bool drop(TablePtr<T>& table, std::string_view key);

  Era era_;
  std::size_t node_count_ = 0;
  std::size_t affinity_pods_ = 0, required_anti_affinity_pods_ = 0, nominated_affinity_pods_ = 0;
  std::uint32_t slot_count_ = 0;
  std::vector<std::shared_ptr<NodeChunk>> chunks_;
  std::vector<NodeIndex> free_slots_;
  ShardedMap<std::string, NodeIndex, TextHash> names_;
  ShardedMap<std::string_view, PodSlot, TextHash> pods_;  ///< The keys are views into the pods.
  std::shared_ptr<Nominations> nominations_ = std::make_shared<Nominations>();
  std::shared_ptr<Images> images_ = std::make_shared<Images>();
  Objects objects_;
  std::shared_ptr<Allocations> pending_allocations_ = std::make_shared<Allocations>();
  PagedLog<Change> log_;
  std::size_t log_bytes_ = 0;   ///< Of the pods in it, each time that one is named.
  Journal* journal_ = nullptr;  ///< Of the innermost attempt; null mostly.
  std::uint64_t objects_version_ = 0, images_version_ = 0, namespaces_version_ = 0, workloads_version_ = 0, budgets_version_ = 0;
  std::uint32_t last_version_ = 0;
  std::int64_t least_volume_limit_ = INT64_MAX;
  std::uint64_t next_arrival_ = 0;
  Pages<std::uint64_t> arrivals_;  ///< By slot: order of arrival of the node object.
};

}  // namespace berth::placement
