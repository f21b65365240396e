// The scheduler's state and steps: told of events (what the watch shows, answers, turns), it decides and has effects (effects.h). It knows
// no clock but `now`, no thread and no server: what the API said last is asked of `known`. One file a stage: watching.cpp (what the
// informers say), waking.cpp (wake-ups), core.cpp (one pod's decision), asking.cpp (extenders), binding.cpp and
// claim_binding.cpp (Permit, volumes and devices, then the node), preempting.cpp (pods that fit nowhere).
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "placement/groups/pod_groups.h"
#include "scheduler/consulted.h"
#include "scheduler/effects.h"
#include "scheduler/extender.h"
#include "scheduler/group_options.h"
#include "scheduler/meters.h"
#include "scheduler/scheduler.h"
#include "scheduler/tracked.h"
#include "scheduler/waiting_kinds.h"
#include "scheduler/wakeup.h"

namespace berth::placement {
struct GroupDecision;
struct GroupQuestion;
struct GroupReservation;
}  // namespace berth::placement

namespace berth::scheduler {

inline const client::Gvr kPods{"", "v1", "pods"};
inline const client::Gvr kNodes{"", "v1", "nodes"};
inline const client::Gvr kResourceClaims{"resource.k8s.io", "v1", "resourceclaims"};
/// Where binding is, and whose step it is; both empty for what no plugin does.
struct Step {
  std::string_view point, plugin;
  friend bool operator==(const Step&, const Step&) = default;
};
inline constexpr Step kClaimStep{"PreBind", "DynamicResources"};
inline const client::Gvr kClaims{"", "v1", "persistentvolumeclaims"};

/// What of a pod decides whether placement must look at a new revision of it, read without building a document.
struct PodGlance {
  std::string_view node_name, phase, generation, scheduler_name, resize, nominated, start_time, claims;
  std::string_view annotations, owners;
  std::string_view group;                             ///< spec.schedulingGroup.podGroupName
  std::string_view running, running_init, resources;  ///< What the status says that containers, and the pod, run with.
  std::string_view conditions;
  HeldText text;  ///< Of which all these are views.
  explicit PodGlance(HeldText of);
  [[nodiscard]] bool is_terminal() const { return phase == "Succeeded" || phase == "Failed"; }
};
/// Labels and spec are equal. Servers of before 1.33 count no generation of pods; their specs are compared as texts.
[[nodiscard]] bool same_spec(const client::Object& a, const PodGlance& glance_a, const client::Object& b, const PodGlance& glance_b);
/// So are annotations and owners: they count no generation, and plugins decide by them.
[[nodiscard]] inline bool same_metadata(const PodGlance& a, const PodGlance& b) {
  return a.annotations == b.annotations && a.owners == b.owners;
}

/// Single-threaded. Deterministic in what it is told. Answers may come in any order, and late; each comes once.
struct Core {
  /// The last revision of an object that the watch has shown; null: none. It is asked while an event is told.
  using Known = std::function<client::ObjectRef(const client::Gvr& gvr, const std::string& ns, const std::string& name)>;
  /// `stopwatch` measures what is reported of lengths of time, and decides nothing.
  Core(SchedulerOptions options, placement::Profiles profiles, Known known, const Clock& stopwatch, std::function<void(Effect)> sink);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // What it is told. `now` is set before.
  void lead(bool leads);
  void node_added(const client::ObjectRef& object);
  void node_updated(const client::ObjectRef& before, const client::ObjectRef& after);
  void node_deleted(const client::ObjectRef& object);
  /// `before` and `after` as in a watch: null before it was there, null once it is gone.
  void object_changed(const Consulted& kind, const client::ObjectRef& before, const client::ObjectRef& after);
  void pod_added(const client::ObjectRef& object);
  void pod_updated(const client::ObjectRef& before, const client::ObjectRef& after);
  void pod_deleted(const client::ObjectRef& object);
  /// Decides about the pod whose turn it is; false: nobody's.
  bool take_turn();
  /// When the next turn is; nullopt: not before something happens.
  [[nodiscard]] std::optional<TimePoint> next_turn();

  /// What Permit plugins see of the pods that wait at Permit.
  class PermitRoom;

  const SchedulerOptions options;
  const GroupOptions group_options;
  const Known known;
  TimePoint now{};
  Outbox out;
  Meters meters;
  placement::Cluster cluster;
  placement::Trial trial;                      ///< Over `cluster`: who asks where a pod goes, or puts it there, asks this.
  std::shared_ptr<const Extenders> extenders;  ///< Whether they have a say; they are asked by effects. Null without any.
  SchedulingQueue queue;
  WaitingKinds kinds_of_pods;
  PluginBits bits;
  const std::map<std::string, placement::FrameworkPtr, std::less<>>& frameworks;  ///< The trial's profiles, by scheduler name.
  std::unordered_map<std::string, Tracked> pods;                                  ///< By uid.
  /// Pods that one plugin's PreEnqueue holds back.
  struct Gate {
    EventSet asked_again_on;  ///< Of all profiles.
    std::set<std::string> uids;
  };
  std::map<std::string, Gate, std::less<>> gates;  ///< By the plugin's name; none without pods.
  /// Indexes of `pods`: uids by what the pods of one stage wait for.
  std::unordered_map<std::string, std::set<std::string>> waiting_for_claim;  ///< By "namespace/name": without a place, and using it.
  std::unordered_map<std::string, std::set<std::string>> bindings_by_claim;  ///< By resource, namespace and name: AwaitingClaims.
  /// By the victim's uid: Preempting. Two may count on one victim before it is seen going.
  std::unordered_map<std::string, std::vector<std::string>> preempted_by;
  std::set<std::string> at_permit;
  std::string asked;                    ///< About whom extenders are being asked; empty: nobody. It may be gone.
  std::deque<std::string> aside;        ///< First come, first served.
  std::uint64_t node_changes_seen = 0;  ///< Nodes that came or went.
  std::size_t bindings_in_flight = 0;
  std::size_t assumed = 0;      ///< Held places that the watch has said nothing of.
  std::size_t gone_bytes = 0;   ///< Of large pods that went since columns were last given back.
  placement::PodGroups groups;  ///< Their members: pods that are there and have not ended.
  bool serves_groups = false;   ///< The server has the kind; else what pods say of groups means nothing.
  /// What a PodGroup's condition says, as last seen or written.
  struct GroupCondition {
    std::string status, reason, message;
    friend bool operator==(const GroupCondition&, const GroupCondition&) = default;
  };
  std::map<std::string, GroupCondition, std::less<>> group_conditions;  ///< By the group's key.
  std::map<std::string, std::string, std::less<>> group_preempting;     ///< By the group's key, the member that waits for the victims.
  /// Room that is kept for a gang, by the group's key: stand-ins of its members are nominated there, whom the API does not know.
  struct GroupRoomKept {
    placement::PodGroupPtr group;
    std::vector<std::pair<placement::PodInfoPtr, std::string>> stand_ins{};  ///< With the node of each.
    std::optional<TimePoint> starts_at;                                      ///< By then all that is in the way has ended.
    TimePoint until;
    std::string told{};  ///< What the group's condition says of it.
    Ask alarm = 0;
  };
  std::map<std::string, GroupRoomKept, std::less<>> reservations;
  /// Since when a gang fits nowhere, and the alarm that says it is long enough; by the group's key.
  struct GroupWait {
    TimePoint since;
    Ask alarm = 0;
  };
  std::map<std::string, GroupWait, std::less<>> group_waits;
  std::map<std::string, Ask, std::less<>> incomplete_groups;  ///< By the group's key, the alarm that says it has been so for long.
  bool is_leader = false;
  bool is_ready = false;  ///< All that placement consults is known.

  // watching.cpp
  void wake_for_object(const Consulted& kind, const client::ObjectRef& before, const json::Value* after, ObjectVerb verb);
  /// A pod that has a node: in the cluster it takes its room.
  /// `info`: what is known of it already; null: it is read.
  void place(const client::ObjectRef& object, EventSet events, placement::PodInfoPtr info = nullptr);
  /// The watch says of a pod what was assumed of it, as far as placement asks: then it need not be read again. False: it must.
  bool confirm_assumed(const client::ObjectRef& object, const PodGlance& now);
  bool take_away_ended(const client::Object& object);
  [[nodiscard]] placement::PodInfoPtr with_status(const client::Object& object, const PodGlance& now);
  /// A pod that needs a node: ours to place, or somebody else's. `before` is its last revision, null at first sight.
  void want_node(const client::ObjectRef& object, const PodGlance& glance, const client::ObjectRef& before);
  /// The pod without a place; null when it has one, or none is wanted of us.
  [[nodiscard]] Tracked* wanting(const std::string& uid);
  /// Who still holds the place; null once it was given back.
  [[nodiscard]] Tracked* holder(const HeldPtr& held);
  /// No node is wanted for it any more.
  void forget_waiting(const std::string& uid);
  /// The watch has shown what became of the place: nothing is assumed of it. False: it was not.
  bool assume_no_more(const std::string& uid);
  /// The pod is gone for good: when that was so for many large ones, nothing of them is kept.
  void note_gone(const placement::PodInfo& info);
  /// Where the pod counts on room from now on; empty for nowhere. Pods of no higher priority that the old node was kept from are woken.
  void set_nominated(Tracked& pod, const std::string& node_name);

  // waking.cpp
  /// Wakes the pods that the events could help, as the hints of the plugins that rejected them say. `node` is the node they happened on,
  /// where there is one: when more than a thousand pods wait, only those are woken that the node takes now, or would after a preemption.
  /// Pods above `up_to_priority` are left where they are.
  void wake(EventSet events, placement::NodeIndex node, EventChange change = {}, std::optional<std::int64_t> up_to_priority = std::nullopt);
  std::size_t wake_for(placement::NodeIndex node, const EventChange& change, std::string_view label,
                       std::optional<std::int64_t> up_to_priority = std::nullopt);
  /// Some waiting pod was rejected by a plugin that one of the events could cure, or by none known.
  [[nodiscard]] bool could_wake(EventSet events) const;
  /// Some plugin that holds pods back wants to be asked again after such an event.
  [[nodiscard]] bool could_open_gates(ClusterEvent event) const;
  /// PreEnqueue is asked again about the pods that such plugins hold back.
  void ask_gates(const EventChange& change);
  void ask_gate(Tracked& pod);
  /// What happens while extenders are asked may help the pod that they are asked about.
  void note_missed(EventSet events);
  /// Something helped this one pod.
  void wake_pod(const std::string& uid);
  /// Its victims are still to be seen going: it stays where it is, and is tried again then.
  bool waits_for_victims(const std::string& uid);
  [[nodiscard]] bool node_takes(const std::string& uid, const placement::NodeInfo& node);
  /// The pod counts on room on the node no more: that is as good as a pod that left, for pods of no higher priority.
  void wake_for_nomination(const placement::PodInfoPtr& pod, const std::string& node_name);
  /// Pods that count on room on the node, whose promise may no longer hold, are tried again.
  void wake_nominated(placement::NodeIndex node);

  // core.cpp: the cycle
  void post_turn();
  void schedule_one(const SchedulingQueue::Entry& entry);
  void decided(Turn turn, const placement::Decision& decision);
  void commit(const Turn& turn, placement::NodeIndex node);
  /// The pod has its place from now on; null, with all said and done, when it cannot have it.
  HeldPtr hold_place(const Turn& turn, placement::NodeIndex node);

  // groups.cpp: several pods, one decision
  [[nodiscard]] bool are_groups_on() const { return serves_groups && group_options.gangs; }
  void group_changed(const client::ObjectRef& before, const client::ObjectRef& after);
  /// The pod counts among its group's, or does no more.
  void note_member(const client::Object& object, const PodGlance& glance, bool is_there);
  /// PreEnqueue: the profile's plugins, then whether the pod's group is complete.
  [[nodiscard]] placement::Status gate_of(const model::PodView& pod) const;
  [[nodiscard]] bool waits_for_group(PluginSet rejected_by) const;
  void ask_gates_of_group(const std::string& key);
  void wake_members(const std::string& key);
  /// The turn of one member is that of all that wait.
  void schedule_group(const SchedulingQueue::Entry& entry, const std::string& key);
  [[nodiscard]] std::vector<Turn> gather_group(const SchedulingQueue::Entry& entry, const std::string& key);
  [[nodiscard]] bool agree_on_profile(const std::vector<Turn>& turns);
  struct GroupTurn {
    placement::PodGroupPtr group;
    std::vector<Turn> turns;                     ///< By the order in which they choose.
    std::vector<placement::PodInfoPtr> members;  ///< The same as pods.
    TimePoint started;
  };
  // group_asking.cpp
  /// A group whose members extenders are asked about, one after the other; null: none.
  struct AskedGroup;
  std::shared_ptr<AskedGroup> asked_group;
  [[nodiscard]] bool has_say_about(const GroupTurn& turn) const;
  void ask_about_group(GroupTurn turn, placement::GroupDecision plan);
  [[nodiscard]] bool is_in_domain(placement::NodeIndex node) const;
  void go_on_with_group();
  void hold_member(placement::NodeIndex node);
  void group_answered(const std::string& uid, const placement::Decision& decision, const std::string& node_name);
  void finish_group();
  void abandon_group(bool at_once);
  void fail_asked_group(const std::string& about, const std::string& error);
  /// Of the group's pods, how many have a place.
  [[nodiscard]] std::int64_t count_standing(const std::string& key) const;
  bool give_up_group_for_now(const GroupTurn& turn, const placement::GroupQuestion& question, placement::GroupDecision& decision);
  void place_group(const GroupTurn& turn, const placement::GroupDecision& decision);
  /// What a group that has no places waits for.
  enum class GroupOutlook : std::uint8_t {
    kNothing,   ///< No victim helps.
    kVictims,   ///< They are asked to go, and the members are promised the places.
    kPromised,  ///< They go since an earlier attempt: what was promised then holds.
  };
  [[nodiscard]] std::vector<std::string_view> rejectors_of(const placement::PodGroup& group,
                                                           const placement::GroupDecision& decision) const;
  void reject_group(const GroupTurn& turn, const placement::GroupDecision& decision, const std::vector<std::string_view>& rejected_by,
                    GroupOutlook outlook);
  void fail_group(const GroupTurn& turn, const placement::GroupDecision& decision);
  /// Its own reasons, in its own words.
  void reject_member(Turn turn, const placement::PodGroup& group, std::shared_ptr<const placement::Diagnosis> diagnosis,
                     bool keeps_promise = false);
  /// Unless victims are asked to go, `message` says why not; else the members are to wait for the places that they have in `decision` from
  /// then on.
  GroupOutlook preempt_for_group(const GroupTurn& turn, const placement::GroupQuestion& question, placement::GroupDecision& decision,
                                 std::string& message);
  void reject_for_mistake(const GroupTurn& turn);
  /// The group or its members changed: one with fewer pods than its minCount is told of after a while.
  void watch_completeness(const std::string& key);
  void tell_incomplete(const std::string& key);
  [[nodiscard]] std::string others_of(const GroupTurn& turn, const placement::GroupDecision& decision) const;
  [[nodiscard]] bool has_hard_budgets(const placement::Framework& framework) const;
  void set_group_condition(const placement::PodGroup& group, GroupCondition condition);
  [[nodiscard]] static client::ObjectReference reference(const placement::PodGroup& group);

  // reserving.cpp
  [[nodiscard]] static bool is_stand_in(const placement::PodInfo& pod);
  /// The gang fits nowhere, and no victim helps: room may be kept for it. What its condition says of that; empty: nothing.
  std::string wait_longer(const GroupTurn& turn, const placement::GroupQuestion& question);
  std::string keep_room(const GroupTurn& turn, const placement::GroupReservation& plan);
  /// `why` is told, unless it is empty.
  void give_room_back(const std::string& key, std::string_view why);
  /// The same, and how long it waited is forgotten.
  void wait_no_longer(const std::string& key, std::string_view why = {});
  void put_stand_ins(const GroupRoomKept& kept);
  void lift_stand_ins(const GroupRoomKept& kept);
  /// spec.activeDeadlineSeconds.
  [[nodiscard]] std::optional<Duration> deadline_of(const placement::PodInfo& pod) const;
  /// When a pod that runs ends at the latest; nullopt: not known.
  [[nodiscard]] std::optional<TimePoint> end_of(const placement::PodInfo& pod) const;
  /// The pod came before the gang, or ends before it could start.
  [[nodiscard]] bool passes_by(const placement::PodInfo& pod, const GroupRoomKept& kept) const;
  /// While it lives, rooms that the pods may all pass by are not kept; `all`: none is.
  class BesideRooms {
   public:
    BesideRooms(Core& core, std::span<const placement::PodInfoPtr> pods, bool all);
    ~BesideRooms();
    BesideRooms(const BesideRooms&) = delete;
    BesideRooms& operator=(const BesideRooms&) = delete;
    [[nodiscard]] bool empty() const { return lifted_.empty(); }

   private:
    Core& core_;
    std::vector<const GroupRoomKept*> lifted_;
  };
  /// Where the pod goes; `held_back` says for whom room is kept that it would have.
  placement::Decision decide_beside_rooms(const placement::PodInfoPtr& pod, std::string& held_back);
  placement::GroupDecision decide_group_beside_rooms(const placement::GroupQuestion& question);
  /// For whom room is kept from pods of this priority.
  [[nodiscard]] std::string rooms_kept_from(std::int64_t priority) const;

  // asking.cpp
  /// The pod whose turn it is; nullopt: none, or extenders must answer first.
  [[nodiscard]] std::optional<SchedulingQueue::Entry> next_entry();
  /// So many pods stand aside that nobody's turn comes before an answer.
  [[nodiscard]] bool is_held_up() const;
  /// The pod must wait until extenders have answered about another.
  bool stands_aside(const SchedulingQueue::Entry& entry, Tracked& pod);
  /// Asks the extenders which of the nodes that the engine found feasible they want.
  void ask(Turn turn);
  void answered(const std::string& uid, placement::Decision decision, const std::shared_ptr<placement::Evaluation>& evaluation,
                const std::string& node_name);
  void ask_about_preemption(Turn turn, placement::PostFilterResult result);
  void preemption_answered(const std::string& uid, placement::PostFilterResult result, Result<std::vector<placement::Candidate>> left);
  void begin_asking(Turn turn);
  /// What was asked about the pod, unless the answer says nothing any more: then the pod has been dealt with.
  [[nodiscard]] std::optional<Turn> take_answer(const std::string& uid, bool depends_on_nodes);

  // binding.cpp: Permit
  void permit(const HeldPtr& held);
  void permit_allowed(const std::string& uid, const std::string& plugin);
  void permit_rejected(const std::string& uid, const std::string& plugin, const std::string& message);
  /// It gives back what it holds and wants a node again; null: it wants none any more.
  Tracked* take_place_from(const HeldPtr& held);
  void not_permitted(const HeldPtr& held, const placement::Status& status);
  /// The pod waits no longer; null: it did not.
  HeldPtr leave_permit(const std::string& uid);

  // binding.cpp
  /// Says in the API where the pod will be, so that nobody is surprised while its volumes are bound, nor a restarted scheduler elsewhere.
  void announce(const HeldPtr& held);
  void next_pre_bind(const HeldPtr& held);
  void wait_for_claims(const HeldPtr& held);
  void keep_waiting(Tracked& pod, const HeldPtr& held);
  void stop_waiting(const Tracked& pod);
  /// Something happened that the pod's wait for its claims may end by.
  void look_again(const std::string& uid);
  void claim_moved(std::string_view resource, const client::Object& claim);
  void bind(const HeldPtr& held);
  void bind_by_extender(const HeldPtr& held);
  void post_binding(const HeldPtr& held);

  // claim_binding.cpp
  enum class ClaimState : std::uint8_t { kReady, kWaiting, kFailed };
  void create_claim(const HeldPtr& held);
  /// Whom the claim is reserved for: the pod, or its group where that shares it.
  [[nodiscard]] json::Object user_of_claim(const model::PodView& pod, const std::string& claim) const;
  void bind_claim(const HeldPtr& held, json::Value document, int conflicts);
  void read_claim(const HeldPtr& held, int conflicts);
  void claim_is_bound(const HeldPtr& held, const json::Value& claim);
  void tell_of_claim(const HeldPtr& held, const placement::PreBindWrite& write);
  void delete_claim(const std::string& ns, const std::string& name, const std::string& uid);
  [[nodiscard]] ClaimState claim_state(const HeldPtr& held, std::size_t index);
  void unreserve_claims(const Held& held);
  void release_claim(const placement::ClaimRelease& claim);
  void claim_changed(const std::string& key, const placement::ClaimPtr& before, const placement::ClaimPtr& after);
  void index_claims(const placement::PodInfoPtr& before, const placement::PodInfoPtr& after);

  /// The server's answer to a binding did not arrive: asks how it ended, again and again, and holds the room meanwhile.
  void find_out(const HeldPtr& held, const std::string& why);
  void binding_done(const HeldPtr& held);
  /// `why` is the failed step's error.
  void binding_failed(HeldPtr held, Step step, const std::string& why);
  /// Unreserve, and the room is free again unless the pod is bound.
  void give_place_back(const HeldPtr& held);
  void show_volumes_again(const Held& held);
  void take_slot(Held& held);
  void give_slot(Held& held);

  // preempting.cpp
  void give_up_for_now(Turn turn);
  void give_up_after(Turn turn, const placement::PostFilterResult& result);
  /// Back to the queue, with its condition and event.
  void rejected(const Turn& turn, const std::string& post_filter_message, const std::optional<std::string>& nominate);
  /// Where evicting helps, by the engine.
  [[nodiscard]] placement::PostFilterResult find_room(const Turn& turn);
  /// Evicts the victims, each with its grace period, and takes the nomination from lower pods that count on the same node. A victim whose
  /// volumes are still being bound is not deleted: its binding is called off, and it queues again.
  /// Returns the node that is to be nominated.
  std::string preempt(const placement::PodInfoPtr& info, placement::Candidate choice);
  /// For whom pods are evicted, as is told of it.
  struct Preemptor {
    std::string profile;
    std::string_view type;  ///< "pod", "podgroup"
    std::string name;       ///< How the victim's event calls it.
    client::ObjectReference by;
    std::string where;  ///< The node's name, or "cluster".
  };
  [[nodiscard]] Preemptor as_preemptor(const placement::PodInfoPtr& pod, const std::string& node_name) const;
  /// Marks the victims and deletes them; those whose node is not asked for yet are called off. `waiter`: the pod that is not tried again
  /// before all are seen going.
  void evict_all(const Preemptor& preemptor, const std::string& waiter, const std::vector<placement::PodInfoPtr>& victims);
  void evict(const Preemptor& preemptor, const placement::PodInfoPtr& victim, const client::ObjectRef& object);
  /// The event on the victim; `how` is added to its words.
  void report_eviction(const Preemptor& preemptor, const client::ObjectReference& victim, std::string_view how = {});
  void eviction_failed(const std::string& victim_uid, const std::string& why);
  /// The victim goes or is gone: one less to wait for.
  void victim_seen(const std::string& victim_uid);
  void victim_seen_by(const std::string& preemptor_uid, const std::string& victim_uid);
  /// Its victims are nobody's but the others' that count on them.
  void stop_preempting(Tracked& pod);
  /// Its node is not asked for yet: who wants its place need not delete it.
  [[nodiscard]] bool can_be_called_off(const Tracked& pod) const;
  void call_off(const HeldPtr& held, const Preemptor& preemptor);
  /// Condition PodScheduled=False and a FailedScheduling event; the condition is written only when its text or the nomination changes.
  /// `may_lag`: the API may have a nomination that the watch has not shown yet.
  void report_failure(const placement::PodInfoPtr& info, std::string_view reason, const std::string& message,
                      const std::optional<std::string>& nominate, bool may_lag = false);
  /// An attempt ended in an error: reported, the nomination withdrawn.
  void report_error(const placement::PodInfoPtr& info, const std::string& message, bool may_lag = false);

  // core.cpp
  [[nodiscard]] static client::ObjectReference reference(const client::Object& pod);
  [[nodiscard]] static client::ObjectReference reference(const placement::PodInfo& pod);
  void count_incoming(std::string_view queue_name, std::string_view event);
  /// scheduler_unschedulable_pods of the plugins that hold the pod back.
  void count_rejection(const std::string& uid, PluginSet rejected_by, bool holds);
  /// `plugin` holds the pod back from now on; empty: none does.
  void set_gate(Tracked& pod, std::string_view plugin);
};

}  // namespace berth::scheduler
