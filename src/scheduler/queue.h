// The scheduling queue (kube-scheduler's pkg/scheduler/backend/queue): which pod is next, and when a pod that did not fit is tried again.
//
//                add                       pop
//   (new pod) ---------> [ active ] -----------------> (being scheduled)
//       |                  ^     ^                        |         |
//       | gated            |     | backoff over           |         | bound: forget
//       v         gate open|  [ backoff ] <---------------+  error: try again after the backoff
//    [ gated ] ------------+     ^                        |
//                                | an event that could help
//                         [ unschedulable ] <-------------+  no node fits
//                                | in there for 5 minutes: active
//
// A pod is in exactly one of the boxes. While `active` is empty, pods that wait in `backoff` after no node fitted are popped before their
// time (today's SchedulerPopFromBackoffQ): the backoff protects busy schedulers, not idle ones. Pure: time comes in as a value; no threads.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"

namespace berth::scheduler {

/// What the queue must know of a pod. `uid` identifies it; the rest orders it.
struct QueuedPod {
  std::string uid, ns, name;
  std::int32_t priority = 0;
  bool gated = false;
};

/// Which of the rejecting plugins decide on retries: bit i stands for the i-th name the scheduler registered. 0: any event may help.
using PluginSet = std::uint64_t;

/// Pods of one kind and priority get one answer from every hint and every node. Whoever fills the queue says which pods those are; `id` is
/// never given twice.
struct PodKind {
  std::uint64_t id = 0;
};
using PodKindPtr = std::shared_ptr<const PodKind>;

struct QueueOptions {
  Duration initial_backoff = std::chrono::seconds(1);
  Duration max_backoff = std::chrono::seconds(10);
  /// A pod that no event woke is tried again after this time (podMaxInUnschedulablePodsDuration).
  Duration max_unschedulable = std::chrono::minutes(5);
  bool pops_from_backoff = true;
};

/// Told of every move, for metrics. Members may be empty.
struct QueueObserver {
  /// A pod entered a queue ("active", "backoff", "unschedulable") because of the event.
  std::function<void(std::string_view queue, std::string_view event)> on_incoming;
  /// Whether the queue holds the pod as rejected by these plugins, or does no more (it is popped or gone).
  std::function<void(const std::string& uid, PluginSet rejected_by, bool holds)> on_rejection;
};

class SchedulingQueue {
 public:
  explicit SchedulingQueue(QueueOptions options) : options_(options) {}
  void observe(QueueObserver observer) { observer_ = std::move(observer); }

  struct Entry {
    QueuedPod pod;
    TimePoint queued_at;  ///< Orders pods of one priority: when it came, or when its last attempt ended; its backoff counts from here.
    TimePoint first_attempt{};  ///< Epoch until first popped.
    int attempts = 0;
    int unschedulable_count = 0;  ///< Attempts in which no node fitted.
    int consecutive_errors = 0;   ///< Attempts since then that failed otherwise; while there are any, they alone make the backoff.
    bool waited_in_vain = false;  ///< No event woke it: it is tried because it waited so long.
    PluginSet rejected_by = 0;
  };

  /// A pod that needs a node, new or changed. A pod already known keeps its place unless the change may make it schedulable
  /// (`reactivate`): then it leaves `unschedulable` for `backoff` or `active`. A gate that closes or opens moves it.
  void add_or_update(const QueuedPod& pod, TimePoint now, bool reactivate, std::string_view event = "UnschedulablePodUpdate");
  void remove(const std::string& uid);  ///< The pod is bound or gone.

  /// Highest priority first, then the one queued longest. The pod stays known as in flight until done, unschedulable or failed is called.
  std::optional<Entry> pop(TimePoint now);
  std::optional<Entry> take(const std::string& uid, TimePoint now);  ///< This very pod's turn; nullopt: gated, in flight or not here.
  [[nodiscard]] bool has_ready(TimePoint now);
  void done(const std::string& uid);
  void shut_gate(const std::string& uid);  ///< A gate that was open when it was queued is shut: it was not tried.
  /// `kind` groups it with others that wait; null: it is like no other.
  void unschedulable(const std::string& uid, PluginSet rejected_by, TimePoint now, PodKindPtr kind = nullptr);
  /// A pod that waits as unschedulable is of another kind from now on.
  void set_kind(const std::string& uid, PodKindPtr kind);
  /// The attempt failed for another reason (a conflict, the server): tried again after the backoff.
  void failed(const std::string& uid, TimePoint now);

  /// Asked of one of the pods that are rejected by the same plugins, of one kind and priority, for all of them.
  using CouldHelp = std::function<bool(const Entry&)>;
  /// Asked of each pod that would move; empty: all do.
  using MayMove = std::function<bool(const Entry&)>;
  /// Moves unschedulable pods that were rejected by one of `plugins` (or by none known) and for which `could_help` says yes.
  /// Returns how many moved. `event` names the cause. Costs what it asks and moves, however many others wait.
  std::size_t wake(PluginSet plugins, TimePoint now, const CouldHelp& could_help, std::string_view event = "ForceActivate",
                   const MayMove& may_move = {});
  /// Moves one unschedulable pod, whatever rejected it. False when it does not wait as such.
  bool wake_one(const std::string& uid, TimePoint now, std::string_view event = "ForceActivate");
  /// Some unschedulable pod was rejected by one of `plugins`, or by none known.
  [[nodiscard]] bool holds_rejected_by(PluginSet plugins) const;
  /// Moves one unschedulable pod to backoff, where it stays until its backoff is over even if there is nothing else to do.
  void retry_after_backoff(const std::string& uid, TimePoint now);
  /// Moves one pod to active at once, its backoff forgotten (kube-scheduler's Activate).
  void activate(const std::string& uid);

  /// When something will be ready by itself (a backoff ends, a long wait ends); nullopt: only a call can change anything.
  [[nodiscard]] std::optional<TimePoint> next_wake() const;

  struct Sizes {
    std::size_t active = 0, backoff = 0, unschedulable = 0, gated = 0;
  };
  [[nodiscard]] Sizes sizes() const;
  /// Popped, and neither done nor back.
  [[nodiscard]] bool is_in_flight(const std::string& uid) const;
  [[nodiscard]] bool contains(const std::string& uid) const { return pods_.contains(uid); }
  /// The entry, or null; valid until the next change.
  [[nodiscard]] const Entry* find(const std::string& uid) const;

 private:
  enum class Box { kActive, kBackoff, kUnschedulable, kGated, kInFlight };
  struct Group;
  struct Slot {
    Entry entry;
    PodKindPtr kind;         ///< Of its last rejection.
    Group* group = nullptr;  ///< While in kUnschedulable.
    Box box = Box::kActive;
    TimePoint box_until{};  ///< kBackoff: its end; kUnschedulable: when the long wait ends.
    std::uint64_t sequence = 0;
    bool pops_early = false;  ///< In kBackoff: also in early_.
  };
  struct ActiveKey {
    std::int32_t priority;
    TimePoint queued_at;
    std::uint64_t sequence;
    Slot* slot;
    bool operator<(const ActiveKey& o) const {
      if (priority != o.priority) return priority > o.priority;
      if (queued_at != o.queued_at) return queued_at < o.queued_at;
      return sequence < o.sequence;
    }
  };
  /// Unschedulable pods that get one answer.
  struct GroupKey {
    PluginSet rejected_by;
    std::int32_t priority;
    std::uint64_t kind;
    friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
  };
  struct Group {
    GroupKey key;
    std::map<std::uint64_t, Slot*> slots;  ///< By sequence.
    std::uint64_t asked = 0;               ///< The last wake that came by.
  };
  static constexpr std::size_t kAnyPlugin = 64;  ///< Where groups rejected by nobody known are listed.
  using TimedKey = std::tuple<TimePoint, std::uint64_t, Slot*>;
  /// Whose backoff ends in the same second goes by priority and age.
  using EarlyKey = std::pair<std::int64_t, ActiveKey>;

  [[nodiscard]] static ActiveKey active_key(Slot& slot) { return {slot.entry.pod.priority, slot.entry.queued_at, slot.sequence, &slot}; }
  [[nodiscard]] static EarlyKey early_key(Slot& slot) {
    return {std::chrono::floor<std::chrono::seconds>(slot.box_until.time_since_epoch()).count(), active_key(slot)};
  }
  const Entry& begin_flight(Slot& slot, TimePoint now);
  void leave(Slot& slot);
  void enter(Slot& slot, Box box, TimePoint until = {}, bool pops_early = false);
  void count(std::string_view queue, std::string_view event) const {
    if (observer_.on_incoming) observer_.on_incoming(queue, event);
  }
  void hold_rejection(const Slot& slot, bool holds) const {
    if (observer_.on_rejection && slot.entry.rejected_by != 0) observer_.on_rejection(slot.entry.pod.uid, slot.entry.rejected_by, holds);
  }
  [[nodiscard]] TimePoint backoff_end(const Entry& entry) const;
  void enter_backoff_or_active(Slot& slot, TimePoint now, std::string_view event);
  void promote(TimePoint now);
  void join_group(Slot& slot);
  void leave_group(Slot& slot);
  template <typename Each>
  static void for_each_list(PluginSet rejected_by, Each each) {
    if (rejected_by == 0) each(kAnyPlugin);
    for (std::size_t i = 0; i < kAnyPlugin; ++i)
      if ((rejected_by >> i & 1) != 0) each(i);
  }

  QueueOptions options_;
  QueueObserver observer_;
  std::uint64_t sequence_ = 0;
  std::unordered_map<std::string, std::unique_ptr<Slot>> pods_;
  std::set<ActiveKey> active_;
  std::set<TimedKey> backoff_, unschedulable_;
  std::set<EarlyKey> early_;  ///< Those of backoff_ that may be popped before their time.
  std::map<GroupKey, Group> groups_;
  std::array<std::map<GroupKey, Group*>, kAnyPlugin + 1> groups_of_plugin_;
  std::uint64_t wakes_ = 0;
  std::size_t gated_ = 0;
};

}  // namespace berth::scheduler
