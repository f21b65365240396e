// Thousands of simulated nodes as one pure core: it is told of objects and of time, and says what to write to the API server.
//
// What it writes is one Write at a time per object: while a write is under way, later changes of that object gather and become the next
// one. A pod whose containers start at once therefore costs one status patch, a pod that is deleted one delete.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/version.h"
#include "node/eviction/kubelet_config.h"
#include "node/eviction/manager.h"
#include "node/simulated/pod_simulation.h"
#include "node/simulated/scenario.h"

namespace berth::placement::numa {
struct Refusal;
}

namespace berth::node::simulated {

/// On a Node object: the name of the fleet that plays its machine. Nodes without it, or of another fleet, are never touched; a node that
/// anybody creates with it comes to life.
inline constexpr std::string_view kFleetAnnotation = "sim.berth.dev/fleet";
/// On a Node object: the number that its addresses are made of. No two nodes of a cluster have the same, whatever their fleet.
inline constexpr std::string_view kIndexAnnotation = "sim.berth.dev/index";
inline constexpr int kMostNodes = 1'000'000;  ///< As many as have an address of 172.16.0.0/12 (addresses.h).
/// On a Node object that others create: its resources, "cpu=64,memory=512Gi" over the fleet's own.
inline constexpr std::string_view kCapacityAnnotation = "sim.berth.dev/capacity";
/// "true" on a node: it gets no heartbeats and its pods stand still, as if its machine had died. "false" or removal brings it back.
inline constexpr std::string_view kDeadAnnotation = "sim.berth.dev/dead";
/// On a Lease: "steady": as if it were renewed in every period from now on; "ended 3s ago": the last renewal was so long before this write.
inline constexpr std::string_view kHeartbeatsAnnotation = "sim.berth.dev/heartbeats";

struct NodeTemplate {
  std::map<std::string, std::string> capacity = {{"cpu", "32"}, {"memory", "256Gi"}, {"pods", "110"}, {"ephemeral-storage", "200Gi"}};
  /// Empty: the same as the capacity. With FleetOptions::reserves_resources it is computed.
  std::map<std::string, std::string> allocatable;
  std::map<std::string, std::string> labels, annotations;
  json::Array taints;
  std::string instance_type = "simulated-32-256";
  friend bool operator==(const NodeTemplate&, const NodeTemplate&) = default;
  [[nodiscard]] auto parts() const { return std::tie(capacity, allocatable, labels, annotations, taints, instance_type); }
};

struct FleetOptions {
  std::string name = "default";
  std::string kubelet_version{kBuildVersion};
  std::optional<Duration> lease_period;   ///< Absent: a quarter of `kubelet`'s node_lease_duration_seconds, as a kubelet renews.
  std::optional<Duration> status_period;  ///< Between reports without a change; absent: its node_status_report_frequency_ns.
  /// Leases say that they are renewed until they say otherwise, and are not (kHeartbeatsAnnotation): who reads them by that rule sees the
  /// same, and a day of a thousand idle nodes costs nothing. For simulations.
  bool steady_heartbeats = false;
  Duration start_delay = std::chrono::milliseconds(0);
  Duration stop_delay = std::chrono::milliseconds(200);
  enum class Events { kNone, kWarnings, kAll } events = Events::kWarnings;
  /// Of every node: how long its Lease lasts, and its eviction thresholds, which matter where a pod with usage curves runs.
  eviction::KubeletSettings kubelet = [] {
    eviction::KubeletSettings settings;
    settings.eviction_hard = eviction::default_eviction_hard();
    return settings;
  }();
  /// Allocatable is what these settings leave of the capacity, as on a real node. False: all of it, whatever the settings.
  bool reserves_resources = false;
  /// There is somebody who takes program orders. Without, containers with a role run until they are stopped, and do nothing.
  bool runs_programs = false;
  /// Behaviour of pods that do not say it themselves.
  Scenario scenario;
  /// Where the API server reaches the nodes' kubelet endpoints; 0: nowhere.
  int kubelet_port = 0;
  std::string kubelet_address;  ///< Empty: the node's own, made-up address.
};

/// The resources of which these settings reserve more than such a node has: a kubelet would not start. Empty: fine.
[[nodiscard]] std::vector<std::string> overreserved(const FleetOptions& options, const NodeTemplate& node);

/// A container's program is to be run in earnest, or to be stopped (ContainerBehaviour::role).
struct ProgramOrder {
  bool is_start = true;
  std::string ns, pod, uid;
  std::size_t container = 0;  ///< Index into PodSpec::containers.
  std::string container_name, container_id;
  RoleCommand command;  ///< Of a start.
};

/// One thing to be written to the API server. `body` is serialised JSON.
struct Write {
  enum class Kind { kCreateNode, kNodeLabels, kNodeStatus, kNodeTopology, kCreateLease, kRenewLease, kPodStatus, kDeletePod, kEvent };
  Kind kind = Kind::kEvent;
  std::string ns, name, uid, body;
};

struct WriteOutcome {
  int code = 200;                     ///< HTTP status; 0: the server was not reached.
  std::string uid, resource_version;  ///< Of the object in the answer.
};

/// Pure; not thread-safe. Times must not go backwards.
class Fleet {
 public:
  explicit Fleet(FleetOptions options);
  ~Fleet();

  struct NodeSpec {
    std::string name, zone, region;
    int index = 0;  ///< Which of the fleet it is, from 0; its addresses follow from it as far as they are free.
    Shared<NodeTemplate> node_template;
  };
  /// Makes a node that the API does not have.
  void add_node(const NodeSpec& spec, TimePoint now);
  /// Takes over a node that the API has, with its resources, place and times. False when it is not one of this fleet's.
  bool adopt_node(const json::Value& node, const NodeTemplate& defaults, TimePoint now);
  /// Forgets a node and its pods; writes nothing (a machine that is switched off).
  void remove_node(std::string_view name);
  void observe_node(const json::Value& node, TimePoint now);
  /// FleetOptions::steady_heartbeats from now on.
  void set_steady_heartbeats(bool steady, TimePoint now);
  /// Sees a node that is not of this fleet, so that no node of this one gets its addresses.
  void observe_stranger(const json::Value& node);
  void forget_stranger(std::string_view name);
  [[nodiscard]] bool owns(const json::Value& node) const;
  /// The node says which number its addresses are made of. Who does not is to be adopted after all who do: it gets one that is free.
  [[nodiscard]] static bool has_number(const json::Value& node);
  [[nodiscard]] bool has_node(std::string_view name) const { return nodes_.contains(std::string(name)); }

  /// A pod was seen, new or changed. Pods of other nodes are ignored. Of pods that were there before the fleet, those with an address come
  /// first: the others are given one that is not theirs.
  void observe_pod(const json::Value& pod, TimePoint now);
  /// Cheap check whether this uid is known and needs no second look unless it is being deleted.
  [[nodiscard]] bool knows_pod(std::string_view uid) const { return pods_.contains(uid); }
  void forget_pod(std::string_view uid);

  [[nodiscard]] std::optional<TimePoint> next_wake() const;
  void advance(TimePoint now);
  /// The next write, or nullopt when there is none to start now; of a node and of a pod in turn.
  std::optional<Write> next_write(TimePoint now);
  void finish_write(const Write& write, const WriteOutcome& outcome, TimePoint now);

  /// The next program to start or stop, in order.
  std::optional<ProgramOrder> next_program();
  void program_wrote(const ProgramOrder& start, std::string_view text);
  void program_ended(const ProgramOrder& start, int exit_code, TimePoint now);

  [[nodiscard]] std::size_t node_count() const { return nodes_.size(); }
  [[nodiscard]] std::size_t pod_count() const { return pods_.size(); }
  /// Nodes whose object, status and lease have all been written at least once.
  [[nodiscard]] std::size_t ready_count() const { return ready_count_; }
  [[nodiscard]] const PodSimulation* find_pod(std::string_view ns, std::string_view name) const;
  [[nodiscard]] const PodSimulation* find_pod(std::string_view uid) const;
  /// Where a pod's document can be had again: asked only for pods of nodes under a closer look.
  using DocumentSource = std::function<std::optional<json::Value>(const std::string& ns, const std::string& name)>;
  void set_document_source(DocumentSource source) { documents_ = std::move(source); }
  /// Calls for every pod of a node, or of all nodes when the name is empty.
  void for_each_pod(std::string_view node, const std::function<void(const PodSimulation&)>& each) const;
  [[nodiscard]] std::vector<std::string> node_names() const;
  /// What the node's Summary API says.
  [[nodiscard]] json::Value summary(std::string_view node, TimePoint now) const;

 private:
  struct Node;
  struct Pod;
  using NodeRef = std::shared_ptr<Node>;
  using PodRef = std::shared_ptr<Pod>;

  void touch(const PodRef& pod, TimePoint now);
  /// The kubelet's own look at a pod that is new on a node: a refused one is failed.
  void admit(const PodRef& pod, const json::Value& document, TimePoint now);
  void admit_held(const PodRef& pod, TimePoint now);
  void schedule(const PodRef& pod, std::optional<TimePoint> when);
  void schedule(const NodeRef& node, TimePoint when);
  void enqueue(const PodRef& pod);
  void enqueue(const NodeRef& node);
  void collect_events(Pod& pod, TimePoint now);
  void follow_programs(Pod& pod);
  void stop_pod(const PodRef& pod, const json::Value& document, TimePoint now);
  static void see_labels(Node& node, const json::Value& document);
  // Of nodes whose NUMA nodes are told by an annotation (numa.h; fleet_numa.cpp).
  void see_numa(const NodeRef& node, const json::Value& document);
  void numa_changed(const NodeRef& node);
  [[nodiscard]] std::set<std::string> active_pods(const Node& node) const;
  std::optional<placement::numa::Refusal> refuse_by_numa(Node& node, const json::Value& pod);
  std::optional<Write> topology_write(Node& node, TimePoint now);
  /// Extended resources that somebody gave the node by its capacity are allocatable, as a kubelet has it; whether there are new ones.
  static bool see_extended_resources(Node& node, const json::Value& document);
  void set_dead(const NodeRef& node, bool dead, TimePoint now);
  void report_again(const NodeRef& node);
  void end_steadiness(const NodeRef& node, TimePoint now);
  std::optional<Write> next_report(TimePoint now);
  std::optional<Write> next_renewal(TimePoint now, bool only_late);
  [[nodiscard]] std::optional<TimePoint> renewals_from() const;
  [[nodiscard]] bool has_news(const Node& node) const;
  [[nodiscard]] static TimePoint next_due(const Node& node);
  /// What a node that was in a queue has to write.
  std::optional<Write> take_write(const NodeRef& node, TimePoint now);
  std::optional<Write> next_pod_write(TimePoint now);
  std::optional<Write> node_write(Node& node, TimePoint now);
  std::optional<Write> pod_write(Pod& pod, TimePoint now);
  void finish_node_write(Node& node, const Write& write, const WriteOutcome& outcome, TimePoint now);
  void finish_pod_write(const PodRef& pod, const Write& write, const WriteOutcome& outcome, TimePoint now);
  void start_node(NodeRef node, TimePoint now);
  /// One pass of a node's eviction manager, and of its kernel's: containers over their memory limit are OOM-killed.
  void check_pressure(const NodeRef& node, TimePoint now);
  [[nodiscard]] eviction::NodeUsage node_usage(const Node& node, TimePoint now,
                                               std::unordered_map<std::string, eviction::PodUsage>* pods) const;
  void add_event(const PodSpec& spec, const PodEvent& event, TimePoint now);
  [[nodiscard]] int free_index(int wanted) const;
  void take_index(int index, int change);
  void offer(Node& node) const;
  [[nodiscard]] std::string node_body(const Node& node) const;
  [[nodiscard]] std::string node_status_body(const Node& node, TimePoint now) const;
  /// `heartbeats`: kHeartbeatsAnnotation's value; empty: without.
  [[nodiscard]] std::string lease_body(const Node& node, TimePoint renewed, const std::string& heartbeats) const;

  [[nodiscard]] Duration lease_period() const;
  [[nodiscard]] Duration status_period() const;
  /// How late a renewal may be where pods have much to tell.
  [[nodiscard]] Duration renewal_slack() const;

  FleetOptions options_;
  DocumentSource documents_;
  std::unordered_map<std::string, NodeRef> nodes_;
  std::map<int, int> indexes_;                         ///< Numbers in use, each with how many nodes use it.
  std::optional<int> last_index_;                      ///< Given to a node of this fleet.
  std::unordered_map<std::string, int> strangers_;     ///< Numbers of other fleets' nodes, by name.
  std::unordered_map<std::string_view, PodRef> pods_;  ///< By uid, as the pod has it.
  /// By time, and of equal times by who came first: the same inputs have the same order.
  template <typename Ref>
  using Wakes = std::map<std::pair<TimePoint, std::uint64_t>, Ref>;
  Wakes<PodRef> pod_wakes_;
  Wakes<NodeRef> node_wakes_;
  std::uint64_t arrivals_ = 0;
  std::deque<NodeRef> node_queue_;  ///< Those that have to tell more than that they live …
  /// … and those that have not, since when. Some have left for the other meanwhile.
  Wakes<NodeRef> renewals_;
  std::deque<PodRef> pod_queue_;
  bool pods_turn_ = false;
  TimePoint last_report_{};  ///< When a pod's last one was written.
  std::deque<Write> events_;
  std::deque<ProgramOrder> program_orders_;
  std::uint64_t event_number_ = 0;
  std::size_t ready_count_ = 0;
};

}  // namespace berth::node::simulated
