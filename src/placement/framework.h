// The scheduling framework: kube-scheduler's extension points, in its words (pkg/scheduler/framework/interface.go).
//
// The life of a pod through a profile:
//
//   PreEnqueue -> (queue, QueueSort) -> PreFilter -> Filter (each node) -> PreScore -> Score (each feasible node) -> NormalizeScore
//                                          |             | none fits
//                                          v             v
//                                       PostFilter (preemption)       chosen: Reserve -> Permit -> PreBind -> Bind -> PostBind
//
// A plugin is a small stateless object; what it computes for one pod lives in the CycleState. Filter and Score here are the plain
// form: pod and node in, verdict or score out. How columns of nodes (placement/columns/pod_class.h) stand in for it is said by the plugin's
// ColumnKind.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "placement/cluster.h"
#include "placement/events.h"
#include "placement/profile.h"
#include "placement/signature.h"
#include "placement/status.h"

namespace berth::config {
class Reader;
}

namespace berth::placement {

inline constexpr std::int64_t kMaxNodeScore = 100;

/// What a plugin keeps of one pod's cycle.
struct StateData {
  virtual ~StateData() = default;
  [[nodiscard]] virtual std::unique_ptr<StateData> clone() const = 0;
};

/// `struct MyState : Cloneable<MyState> {…}` gives clone() by copy construction.
template <typename T>
struct Cloneable : StateData {
  [[nodiscard]] std::unique_ptr<StateData> clone() const override { return std::make_unique<T>(static_cast<const T&>(*this)); }
};

/// An annotation that a pod gets with its place.
struct PodAnnotation {
  std::string key, value;
  std::string_view plugin;  ///< Whose it is.
};

/// One pod's cycle over one cluster: the plugins' states by slot. The cluster must outlive it and not change meanwhile.
class CycleState {
 public:
  CycleState(const Cluster& cluster, std::size_t slots) : cluster_(&cluster), data_(slots), skip_filter_(slots, 0), skip_score_(slots, 0) {}
  CycleState(CycleState&&) = default;
  CycleState& operator=(CycleState&&) = default;
  /// A deep copy: AddPod and RemovePod on it leave this one as it is.
  CycleState(const CycleState& other);
  [[nodiscard]] CycleState clone() const { return *this; }
  /// From now on over this cluster: the same, or a fork that does not differ in what the states were made from.
  void bind(const Cluster& cluster) { cluster_ = &cluster; }

  [[nodiscard]] const Cluster& cluster() const { return *cluster_; }
  void set(std::size_t slot, std::unique_ptr<StateData> data) { data_[slot] = std::move(data); }
  /// Null when the plugin stored nothing.
  template <typename T>
  [[nodiscard]] T* get(std::size_t slot) const {
    return static_cast<T*>(data_[slot].get());
  }

  void skip_filter(std::size_t slot) { skip_filter_[slot] = 1; }
  void skip_score(std::size_t slot) { skip_score_[slot] = 1; }
  [[nodiscard]] bool filter_skipped(std::size_t slot) const { return skip_filter_[slot] != 0; }
  [[nodiscard]] bool score_skipped(std::size_t slot) const { return skip_score_[slot] != 0; }
  void clear_score_skips() { std::ranges::fill(skip_score_, 0); }

  /// From Reserve: the pod gets this annotation with its place. Whoever looks at the node finds the pod with it from now on, and it is
  /// written before the pod is bound. The last word on a key counts; a reservation that is undone takes it back.
  void annotate(std::string key, std::string value, std::string_view plugin);
  [[nodiscard]] std::span<const PodAnnotation> annotations() const { return annotations_; }
  void clear_annotations() { annotations_.clear(); }

 private:
  const Cluster* cluster_;
  std::vector<std::unique_ptr<StateData>> data_;
  std::vector<std::uint8_t> skip_filter_, skip_score_;
  std::vector<PodAnnotation> annotations_;
};

/// PreFilter's answer: a status, and optionally the only nodes worth filtering (names that may not exist).
struct PreFilterOutcome {
  Status status;
  std::optional<std::set<std::string>> node_names;
};

/// A write that PreBind asks of the shell before the pod is bound: a JSON merge patch on one object, then, when `wait_bound`, until the
/// claim is bound (VolumeBinding).
struct PreBindWrite {
  std::string group, resource, ns, name;
  json::Value merge_patch;
  bool wait_bound = false;
  std::string_view plugin{};  ///< Whose step it is; set by the framework.
  // Of a resource claim (DynamicResources): no merge patch, but a reservation for the pod, with the allocation unless it has one.
  std::string uid;
  std::shared_ptr<const model::Allocation> allocation;
  /// Null, or the claim that is made first; `uid` stands for its own until then, and `pod_status` is what the pod's status says of it,
  /// but for its name (resourceClaimName).
  json::Value to_create{};
  json::Object pod_status{};
};

/// A claim that is to give its devices back, so that the pod can get others (DynamicResources' PostFilter).
struct ClaimRelease {
  std::string ns, name, uid;
  bool is_deleted = false;  ///< It goes as a whole: an earlier attempt made it.
};

class PostFilterCall;
struct PostFilterResult;

/// What a Permit plugin says of a pod that has its node. Success: it may be bound. A rejection: the pod gives its place back. Wait: it
/// keeps its place until every plugin that made it wait allows it, or one rejects it, or `timeout` is over, which rejects it; fifteen
/// minutes count at most.
struct PermitOutcome {
  Status status;
  Duration timeout{0};
};
inline constexpr Duration kLongestPermitWait = std::chrono::minutes(15);

/// The pods of this scheduler that wait at Permit (framework.Handle's IterateOverWaitingPods, GetWaitingPod, RejectWaitingPod). What is
/// asked of it happens after the Permit stage that asked.
class WaitingPods {
 public:
  virtual ~WaitingPods() = default;
  /// In order of uid.
  virtual void for_each(const std::function<void(const PodInfo& pod, std::string_view node_name)>& each) const = 0;
  /// The plugin makes the pod wait no longer.
  virtual void allow(const std::string& uid, std::string_view plugin) = 0;
  virtual void reject(const std::string& uid, std::string_view plugin, const std::string& message) = 0;
};

/// The request that binds a pod: a POST.
struct BindCall {
  std::string group, version, resource, ns, name, subresource;
  std::string body;  ///< JSON.
};

/// The points at which a plugin takes part.
struct Points {
  bool pre_enqueue = false, queue_sort = false, pre_filter = false, filter = false, post_filter = false, pre_score = false, score = false,
       reserve = false, permit = false, pre_bind = false, bind = false, post_bind = false;
  bool counts_pods = false;  ///< Of PreFilter: pods that come and go are told to its state (AddPod, RemovePod).
};

struct ResourceColumns;
struct TopologySetup;
struct TopologyOutcome;
class RemovableLoad;

/// How the columnar path may use a plugin.
enum class ColumnKind : std::uint8_t {
  kPlainOnly,  ///< Looks at the whole cluster in its own way: pods under it are decided by the plain form.
  kNothing,    ///< Neither rejects nor scores a pod without special claims.
  kStatic,     ///< Verdict and raw score depend on the class of pods and the node object alone.
  kNodeLocal,  ///< They depend on the node and what is on it.
  kTopology,   ///< They depend on the nodes that share a domain with the node: the plugin has a `topology_part`.
  kVolumes,    ///< Concerns pods with volumes or claims only; those are checked node by node, best node first.
};
/// What a plugin of kind kStatic reads of the node object, for one pod: nodes that are alike in it are asked once.
enum class NodePart : std::uint8_t {
  kWhole,    ///< Anything.
  kTaints,   ///< Its taints, and whether it is cordoned.
  kImages,   ///< Which of the pod's images are there: without any, the score is 0. It has no Filter.
  kNothing,  ///< Nothing: all nodes are alike.
};
/// How raw scores become 0–100.
enum class Normalization : std::uint8_t { kNone, kByMax, kByMaxReversed, kOwn };

template <typename P>
class PluginOf;

/// Base of all plugins, by way of PluginOf (plugin_of.h), which knows what is overridden. Stateless after construction; every method is
/// const and may run on any thread.
class Plugin {
 public:
  virtual ~Plugin() = default;
  /// The Kubernetes name.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Where it takes part: wherever it overrides something, but for what it leaves out.
  [[nodiscard]] virtual Points points() const = 0;
  /// Takes points away at which the release's plugin takes no part.
  virtual void leave_out(Points& /*points*/) const {}

  /// Tells what this plugin reads of the pod, at whatever point: a field left out may not change any of its answers. Left to its default,
  /// every pod is like no other: right, and slow.
  virtual void sign(Signer& signer, const PodInfo& /*pod*/) const { signer.identity(); }

  [[nodiscard]] virtual ColumnKind column_kind() const { return ColumnKind::kPlainOnly; }
  /// Only where column_kind is kStatic or kNodeLocal; the latter never normalize.
  [[nodiscard]] virtual Normalization normalization() const { return Normalization::kNone; }
  /// Only where column_kind is kStatic. Must answer alike for pods of one signature.
  [[nodiscard]] virtual NodePart reads(const PodInfo& /*pod*/) const { return NodePart::kWhole; }
  /// Only where column_kind is kVolumes: after PreFilter, whether Filter says the same of all nodes that have the same values of the labels
  /// whose keys it puts in `keys`.
  [[nodiscard]] virtual bool says_by_labels(const CycleState& /*state*/, const PodInfo& /*pod*/, std::set<std::string>& /*keys*/) const {
    return false;
  }

  /// Only where column_kind is kVolumes: after PreFilter, whether Filter may end in an error on some node, which ends the attempt whatever
  /// other nodes say: then all of them are asked.
  [[nodiscard]] virtual bool may_fail(const CycleState& /*state*/, const PodInfo& /*pod*/) const { return true; }

  /// Whether Filter passes wherever what is left of each amount (cpu, memory, ephemeral storage, places, other resources) is no less than
  /// what the pod asks for, and nowhere else: then groups are counted by sums.
  [[nodiscard]] virtual bool goes_by_amounts(const PodInfo& /*pod*/) const { return false; }
  /// Only where column_kind is kNodeLocal: whether the pod's scores go by devices, too, which are not the node's own: then all nodes are
  /// asked.
  [[nodiscard]] virtual bool scores_by_devices(const PodInfo& /*pod*/, const Cluster& /*cluster*/) const { return false; }

  /// Only where column_kind is kVolumes: whether what Filter refuses on a node it refuses whoever goes from there. Preemption then asks it
  /// about the nodes that are best otherwise, and not about all.
  [[nodiscard]] virtual bool refuses_for_good() const { return false; }

  /// Puts this plugin's Filter or Score for the pod into the columnar form over node amounts; false when it does not fit in there.
  virtual bool join_filter(ResourceColumns& /*columns*/, const PodInfo& /*pod*/) const { return false; }
  virtual bool join_score(ResourceColumns& /*columns*/, const PodInfo& /*pod*/, std::int64_t /*weight*/) const { return false; }

  /// Only where column_kind is kTopology: what columns of the pod's class go by beside the nodes themselves (columns/topology_part.h).
  [[nodiscard]] virtual TopologyOutcome topology_part(const TopologySetup& setup) const;
  /// What Filter says of the pod in numbers that pods on a node add to, for preemption (removable_load.h): asked once for a class of
  /// pods, after PreFilter. Null: the column kind is gone by, and kPlainOnly and kTopology make preemption try every node in full.
  [[nodiscard]] virtual std::unique_ptr<RemovableLoad> removable_load(const TopologySetup& setup) const;

  /// QueueSort. The queue goes by priority and age, PrioritySort's rule; no other plugin is accepted there.
  [[nodiscard]] virtual bool orders_queue() const { return false; }
  virtual Status pre_enqueue(const model::PodView& /*pod*/) const { return Status::success(); }
  /// As above, for what also depends on other objects.
  virtual Status pre_enqueue_in(const model::PodView& pod, const Cluster& /*cluster*/) const { return pre_enqueue(pod); }

  /// Once per pod, before any node. Skip: this plugin's Filter is not run for the pod.
  virtual PreFilterOutcome pre_filter(CycleState& /*state*/, const PodInfo& /*pod*/) const { return {}; }
  /// The effect of one more or one less pod on `node` upon the PreFilter state; `node` already has, or no longer has, the pod.
  virtual Status add_pod(CycleState& /*state*/, const PodInfo& /*pod*/, const PodInfo& /*added*/, const NodeInfo& /*node*/) const {
    return Status::success();
  }
  virtual Status remove_pod(CycleState& /*state*/, const PodInfo& /*pod*/, const PodInfo& /*removed*/, const NodeInfo& /*node*/) const {
    return Status::success();
  }
  virtual Status filter(const CycleState& /*state*/, const PodInfo& /*pod*/, const NodeInfo& /*node*/) const { return Status::success(); }

  /// Once per pod with all feasible nodes. Skip: this plugin's Score is not run for the pod.
  virtual Status pre_score(CycleState& /*state*/, const PodInfo& /*pod*/, std::span<const NodeInfo* const> /*feasible*/) const {
    return Status::success();
  }
  virtual std::expected<std::int64_t, Status> score(const CycleState& /*state*/, const PodInfo& /*pod*/, const NodeInfo& /*node*/) const {
    return 0;
  }
  /// Brings raw scores to 0–100; `scores` are parallel to `feasible`.
  virtual Status normalize(const CycleState& /*state*/, const PodInfo& /*pod*/, std::span<const NodeInfo* const> /*feasible*/,
                           std::span<std::int64_t> /*scores*/) const {
    return Status::success();
  }

  /// The pod goes to `node`: change the assumed objects of `cluster` (volumes), or what the pod says of itself from now on
  /// (`state.annotate`). Undone by unreserve.
  virtual Status reserve(CycleState& /*state*/, const PodInfo& /*pod*/, const NodeInfo& /*node*/, Cluster& /*cluster*/) const {
    return Status::success();
  }
  virtual void unreserve(CycleState& /*state*/, const PodInfo& /*pod*/, const NodeInfo& /*node*/, Cluster& /*cluster*/) const {}
  /// The pod has its place: may it be bound? Asked once an attempt, plugin by plugin, until one rejects it.
  virtual PermitOutcome permit(CycleState& /*state*/, const PodInfo& /*pod*/, const NodeInfo& /*node*/, WaitingPods& /*waiting*/) const {
    return {};
  }
  /// What must be written before the pod is bound; or why it cannot be, which ends the attempt.
  virtual std::expected<std::vector<PreBindWrite>, Status> pre_bind(const CycleState& /*state*/, const PodInfo& /*pod*/,
                                                                    const NodeInfo& /*node*/) const {
    return std::vector<PreBindWrite>();
  }
  /// How the pod is bound; nullopt leaves it to the next Bind plugin (Skip).
  virtual std::optional<BindCall> bind(const CycleState& /*state*/, const PodInfo& /*pod*/, std::string_view /*node_name*/) const {
    return std::nullopt;
  }
  /// The pod is bound. For plugins that keep count outside; nothing follows from it.
  virtual void post_bind(const CycleState& /*state*/, const PodInfo& /*pod*/, std::string_view /*node_name*/) const {}

  /// After no node took the pod: Success with candidates in `out` when evicting helps; Unschedulable asks the next plugin, with its reasons
  /// kept. What is asked, and what may be answered: placement/preemption.h.
  virtual Status post_filter(const PostFilterCall& /*call*/, PostFilterResult& /*out*/) const { return Status::unschedulable(""); }
  /// What it says of a pod that may not preempt, `why`, and for whom it has nothing else to do; empty: nothing.
  [[nodiscard]] virtual std::string post_filter_refusal(std::string_view /*why*/) const { return {}; }

  /// The events that could cure this plugin's rejection of a pod (EventsToRegister).
  [[nodiscard]] virtual EventSet events_to_register() const { return all_events(); }
  /// Those of them after which PreEnqueue is asked again about a pod that it holds back; it always is when the pod itself changed.
  [[nodiscard]] virtual EventSet gate_events() const { return events_to_register(); }
  /// Whether the change could cure this plugin's rejection of the pod, or open its gate, so that another attempt is worth its cost
  /// (QueueingHintFn); yes when in doubt. `change.event` is one of those registered. Must answer alike for pods of one signature.
  [[nodiscard]] virtual bool queueing_hint(const Cluster& /*cluster*/, const PodInfo& /*pending*/, const EventChange& /*change*/) const {
    return true;
  }

  /// Index of this instance's state in every CycleState of its framework.
  [[nodiscard]] std::size_t slot() const { return slot_; }

 private:
  template <typename P>
  friend class PluginOf;
  friend class Framework;
  Plugin() = default;
  std::size_t slot_ = 0;
};

using PluginPtr = std::unique_ptr<Plugin>;
/// Makes a plugin for a profile: its arguments and era. The error says what is wrong with the arguments.
using PluginFactory = Result<PluginPtr> (*)(const Profile& profile);
/// The same for a plugin whose arguments berth does not know (pluginConfig[].args): it reads them from `args`, which is not present where
/// none are given, and tells `args` what is wrong with them; a plugin it returns all the same. It is asked both when a configuration is
/// read, so that problems have their file, line and field, and when the profile's objects are made.
using PluginBuilder = PluginPtr (*)(const config::Reader& args, const Profile& profile);
struct PluginRegistration {
  std::string_view name;
  PluginFactory make = nullptr;
  PluginBuilder build = nullptr;  ///< Instead of `make`.
};
/// The plugin for the profile, by whichever of the two the registration has.
Result<PluginPtr> make_plugin(const PluginRegistration& registration, const Profile& profile);
/// Every plugin of both eras by its Kubernetes name (placement/registry.cpp: one line each), and those that were added.
std::vector<PluginRegistration> plugin_registry();
/// Adds one of somebody's own, for the whole process and for good. Before the first framework is made, from one thread. False: the name is
/// taken.
bool register_plugin(const PluginRegistration& registration);
/// Null when unknown. The pointer holds for good.
const PluginRegistration* find_plugin(std::string_view name);

/// What is said of a node that PreFilter left out, by the plugins that named others.
Status left_out_by(const std::vector<std::string_view>& narrowed_by);

/// A profile with its plugin objects: runs extension points in order. Immutable; shared by engines.
class Framework {
 public:
  struct Scorer {
    const Plugin* plugin;
    std::int64_t weight;
  };
  /// Fails on a name that nobody knows, or that does not take part at that point. `more`: plugins beside those of the registry; they go
  /// before it.
  static Result<std::shared_ptr<const Framework>> create(Profile profile, std::span<const PluginRegistration> more = {});

  [[nodiscard]] const Profile& profile() const { return profile_; }
  /// What decides where the pod may go. Without onlookers it holds in every cluster and for ever; with them it is the coarser one that
  /// holds for their cluster as it is. Once for each question: it costs less than a microsecond.
  [[nodiscard]] Signature sign(const PodInfo& pod, Onlookers* onlookers = nullptr) const;
  /// The same of what rejects pods, leaving out what only scores: what preemption goes by.
  [[nodiscard]] Signature sign_filters(const PodInfo& pod, Onlookers* onlookers = nullptr) const;
  [[nodiscard]] std::size_t slot_count() const { return plugins_.size(); }
  /// The plugin of that Kubernetes name; null when the profile does not use it.
  [[nodiscard]] const Plugin* find(std::string_view name) const;
  [[nodiscard]] CycleState new_cycle(const Cluster& cluster) const { return {cluster, slot_count()}; }
  [[nodiscard]] std::span<const Plugin* const> pre_filters() const { return pre_filters_; }
  [[nodiscard]] std::span<const Plugin* const> filters() const { return filters_; }
  [[nodiscard]] std::span<const Plugin* const> post_filters() const { return post_filters_; }
  [[nodiscard]] std::span<const Plugin* const> pre_scorers() const { return pre_scorers_; }
  [[nodiscard]] std::span<const Scorer> scorers() const { return scorers_; }

  /// `cluster` may be null: then what depends on other objects is not asked.
  Status run_pre_enqueue(const model::PodView& pod, const Cluster* cluster = nullptr) const;
  /// Success with an optional set of nodes; or the rejection or error (wrapped in Kubernetes' words). `narrowed_by` gets the plugins that
  /// returned node names.
  PreFilterOutcome run_pre_filter(CycleState& state, const PodInfo& pod, std::vector<std::string_view>* narrowed_by = nullptr) const;
  Status run_add_pod(CycleState& state, const PodInfo& pod, const PodInfo& added, const NodeInfo& node) const;
  Status run_remove_pod(CycleState& state, const PodInfo& pod, const PodInfo& removed, const NodeInfo& node) const;
  /// The first rejection in filter order; with always_check_all_filters the union, and in `all` each plugin's own.
  Status run_filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node, std::vector<Status>* all = nullptr) const;
  /// Each plugin's own rejection, in order (always_check_all_filters, explain).
  std::vector<Status> run_every_filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const;
  /// Filter with the nominated pods of equal or higher priority on the node, and again without (RunFilterPluginsWithNominatedPods).
  Status run_filter_with_nominated(const CycleState& state, const PodInfo& pod, const NodeInfo& node,
                                   std::vector<Status>* all = nullptr) const;
  Status run_pre_score(CycleState& state, const PodInfo& pod, std::span<const NodeInfo* const> feasible) const;
  /// Weighted, normalized scores: one row a scorer that was not skipped, parallel to `feasible`.
  struct ScoreRow {
    std::string_view plugin;
    std::vector<std::int64_t> scores;
  };
  Expected<std::vector<ScoreRow>, Status> run_score(const CycleState& state, const PodInfo& pod,
                                                    std::span<const NodeInfo* const> feasible) const;
  /// PreFilter and Filter of the Reserve plugins alone: what their Reserve goes by, for a pod that was decided without a cycle of its own.
  Status prepare_reserve(CycleState& state, const PodInfo& pod, const NodeInfo& node) const;
  /// All or nothing: when one fails, all are told to unreserve, in the opposite order.
  Status run_reserve(CycleState& state, const PodInfo& pod, const NodeInfo& node, Cluster& cluster) const;
  void run_unreserve(CycleState& state, const PodInfo& pod, const NodeInfo& node, Cluster& cluster) const;
  /// A plugin that makes the pod wait, and for how long.
  struct PermitWait {
    std::string_view plugin;
    Duration timeout;
  };
  /// Success, Wait with `waits` filled, or the first plugin's rejection or error (wrapped in Kubernetes' words).
  Status run_permit(CycleState& state, const PodInfo& pod, const NodeInfo& node, WaitingPods& waiting,
                    std::vector<PermitWait>& waits) const;
  std::expected<std::vector<PreBindWrite>, Status> run_pre_bind(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const;
  /// The first Bind plugin's call, with its name; nullopt when all of them skip.
  std::optional<std::pair<std::string_view, BindCall>> run_bind(const CycleState& state, const PodInfo& pod,
                                                                std::string_view node_name) const;
  void run_post_bind(const CycleState& state, const PodInfo& pod, std::string_view node_name) const;
  [[nodiscard]] bool has_permit() const { return !permitters_.empty(); }

 private:
  explicit Framework(Profile profile) : profile_(std::move(profile)) {}
  void order_signing();
  Profile profile_;
  std::vector<PluginPtr> plugins_;
  std::vector<const Plugin*> signing_,
      signing_filters_;  ///< Those that look at the node object alone first, those asked node by node last.
  std::vector<const Plugin*> pre_enqueues_, pre_filters_, filters_, post_filters_, pre_scorers_, reservers_, permitters_, pre_binders_,
      binders_, post_binders_;
  std::vector<Scorer> scorers_;
};
using FrameworkPtr = std::shared_ptr<const Framework>;

}  // namespace berth::placement
