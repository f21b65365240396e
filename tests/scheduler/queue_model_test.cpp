// The queue against a plain list of pods, each with its box: whatever is done to both, by seed, both say the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/queue.h"
#include "tests/support/life.h"

namespace berth::scheduler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

enum class Box { kActive, kBackoff, kUnschedulable, kGated, kInFlight };

struct Pod {
  SchedulingQueue::Entry entry;
  Box box = Box::kActive;
  TimePoint until{};
  int came = 0;
  bool pops_early = false;
  std::uint64_t kind = 0;
};

/// The order among those that are ready.
auto key(const Pod& pod) { return std::tuple(-std::int64_t{pod.entry.pod.priority}, pod.entry.queued_at, pod.came); }

/// What the queue does, with no index.
class Plain {
 public:
  explicit Plain(QueueOptions options) : options_(options) {}

  void add_or_update(const QueuedPod& pod, TimePoint now, bool reactivate) {
    Pod* known = find(pod.uid);
    if (known == nullptr) {
      pods.push_back({.entry = {.pod = pod, .queued_at = now}, .box = pod.gated ? Box::kGated : Box::kActive, .came = ++came_});
      return tell(pod.gated ? "unschedulable" : "active", "UnschedulablePodAdd");
    }
    known->entry.pod = pod;
    if (known->box == Box::kInFlight) return;
    if (pod.gated) {
      known->box = Box::kGated;
    } else if (known->box == Box::kGated) {
      known->box = Box::kActive;
      tell("active", "UnschedulablePodUpdatePodSchedulingGatesEliminated");
    } else if (known->box == Box::kUnschedulable && reactivate) {
      leave_unschedulable(*known, now, "update");
    }
  }
  std::optional<SchedulingQueue::Entry> pop(TimePoint now) {
    promote(now);
    Pod* next = first([](const Pod& one) { return one.box == Box::kActive; }, [](const Pod& one) { return key(one); });
    if (next == nullptr) {
      next = first([](const Pod& one) { return one.box == Box::kBackoff && one.pops_early; },
                   [](const Pod& one) { return std::pair(std::chrono::floor<seconds>(one.until), key(one)); });
      if (next == nullptr) return std::nullopt;
      tell("active", "PopFromBackoffQ");
    }
    return fly(*next, now);
  }
  std::optional<SchedulingQueue::Entry> take(const std::string& uid, TimePoint now) {
    Pod* pod = find(uid);
    if (pod == nullptr || pod->box == Box::kGated || pod->box == Box::kInFlight) return std::nullopt;
    return fly(*pod, now);
  }
  void unschedulable(const std::string& uid, PluginSet rejected_by, TimePoint now, std::uint64_t kind) {
    Pod* pod = flying(uid);
    if (pod == nullptr) return;
    came_back(*pod, rejected_by, now);
    pod->kind = kind;
    ++pod->entry.unschedulable_count;
    pod->entry.consecutive_errors = 0;
    pod->box = pod->entry.pod.gated ? Box::kGated : Box::kUnschedulable;
    pod->until = now + options_.max_unschedulable;
    hold(*pod);
    tell("unschedulable", "ScheduleAttemptFailure");
  }
  void failed(const std::string& uid, TimePoint now) {
    Pod* pod = flying(uid);
    if (pod == nullptr) return;
    came_back(*pod, 0, now);
    ++pod->entry.consecutive_errors;
    pod->box = pod->entry.pod.gated ? Box::kGated : Box::kBackoff;
    pod->until = backoff_end(pod->entry);
    pod->pops_early = false;
    tell(pod->entry.pod.gated ? "unschedulable" : "backoff", "ScheduleAttemptFailure");
  }
  void shut_gate(const std::string& uid) {
    Pod* pod = flying(uid);
    if (pod == nullptr) return;
    --pod->entry.attempts;
    pod->entry.pod.gated = true;
    pod->box = Box::kGated;
    hold(*pod);
  }
  std::size_t wake(PluginSet plugins, TimePoint now, const SchedulingQueue::CouldHelp& helps, const SchedulingQueue::MayMove& may_move) {
    std::size_t moved = 0;
    for (Pod& pod : pods) {
      const bool is_asked = pod.entry.rejected_by == 0 || (pod.entry.rejected_by & plugins) != 0;
      if (pod.box != Box::kUnschedulable || !is_asked || !helps(pod.entry) || !may_move(pod.entry)) continue;
      leave_unschedulable(pod, now, "event");
      ++moved;
    }
    return moved;
  }
  bool wake_one(const std::string& uid, TimePoint now) {
    Pod* pod = find(uid);
    if (pod == nullptr || pod->box != Box::kUnschedulable) return false;
    leave_unschedulable(*pod, now, "ForceActivate");
    return true;
  }
  void retry_after_backoff(const std::string& uid, TimePoint now) {
    Pod* pod = find(uid);
    if (pod == nullptr || pod->box != Box::kUnschedulable) return;
    pod->box = Box::kBackoff;
    pod->until = std::max(now, backoff_end(pod->entry));
    pod->pops_early = false;
    tell("backoff", "ForceActivate");
  }
  void activate(const std::string& uid) {
    Pod* pod = find(uid);
    if (pod == nullptr || (pod->box != Box::kUnschedulable && pod->box != Box::kBackoff)) return;
    pod->box = Box::kActive;
    tell("active", "ForceActivate");
  }
  void remove(const std::string& uid) {
    std::erase_if(pods, [&](const Pod& one) { return one.entry.pod.uid == uid; });
    held.erase(uid);
  }
  void promote(TimePoint now) {
    for (Pod& pod : pods) {
      if (pod.box == Box::kBackoff && pod.until <= now) {
        pod.box = Box::kActive;
        tell("active", "BackoffComplete");
      }
      if (pod.box == Box::kUnschedulable && pod.until <= now) {
        pod.entry.waited_in_vain = true;
        leave_unschedulable(pod, now, "UnschedulableTimeout");
      }
    }
  }
  /// All that can be asked, in words.
  std::string shown() const {
    std::size_t counts[5] = {};
    std::optional<TimePoint> next;
    for (const Pod& pod : pods) {
      ++counts[static_cast<std::size_t>(pod.box)];
      if (pod.box == Box::kBackoff || pod.box == Box::kUnschedulable) next = next ? std::min(*next, pod.until) : pod.until;
    }
    return fmt::format("{} {} {} {}, next {}", counts[0], counts[1], counts[2], counts[3], next ? next->time_since_epoch().count() : -1);
  }
  bool holds_rejected_by(PluginSet plugins) const {
    return std::ranges::any_of(pods, [&](const Pod& one) {
      return one.box == Box::kUnschedulable && (one.entry.rejected_by == 0 || (one.entry.rejected_by & plugins) != 0);
    });
  }
  Pod* find(const std::string& uid) {
    const auto found = std::ranges::find(pods, uid, [](const Pod& one) { return one.entry.pod.uid; });
    return found != pods.end() ? &*found : nullptr;
  }

  std::vector<Pod> pods;
  std::vector<std::string> told;
  std::map<std::string, PluginSet> held;

 private:
  template <typename Which, typename Key>
  Pod* first(Which which, Key key_of) {
    Pod* out = nullptr;
    for (Pod& pod : pods)
      if (which(pod) && (out == nullptr || key_of(pod) < key_of(*out))) out = &pod;
    return out;
  }
  Pod* flying(const std::string& uid) {
    Pod* pod = find(uid);
    return pod != nullptr && pod->box == Box::kInFlight ? pod : nullptr;
  }
  SchedulingQueue::Entry fly(Pod& pod, TimePoint now) {
    pod.box = Box::kInFlight;
    held.erase(pod.entry.pod.uid);
    ++pod.entry.attempts;
    if (pod.entry.first_attempt == TimePoint{}) pod.entry.first_attempt = now;
    return pod.entry;
  }
  void came_back(Pod& pod, PluginSet rejected_by, TimePoint now) {
    pod.entry.rejected_by = rejected_by;
    pod.entry.queued_at = now;
    pod.entry.waited_in_vain = false;
  }
  void hold(const Pod& pod) {
    if (pod.entry.rejected_by != 0) held[pod.entry.pod.uid] = pod.entry.rejected_by;
  }
  TimePoint backoff_end(const SchedulingQueue::Entry& entry) const {
    const int tries = entry.consecutive_errors > 0 ? entry.consecutive_errors : entry.unschedulable_count;
    if (tries == 0) return entry.queued_at;
    const Duration doubled = options_.initial_backoff * (1 << std::min(tries - 1, 20));
    return entry.queued_at + std::min<Duration>(options_.max_backoff, doubled);
  }
  void leave_unschedulable(Pod& pod, TimePoint now, std::string_view event) {
    pod.until = backoff_end(pod.entry);
    pod.box = pod.until > now ? Box::kBackoff : Box::kActive;
    pod.pops_early = options_.pops_from_backoff && pod.entry.consecutive_errors == 0;
    tell(pod.box == Box::kBackoff ? "backoff" : "active", event);
  }
  void tell(std::string_view queue, std::string_view event) { told.push_back(fmt::format("{} {}", queue, event)); }

  QueueOptions options_;
  int came_ = 0;
};

std::string shown(const SchedulingQueue::Entry& one) {
  return fmt::format("{} priority {}{} queued {} first {} attempts {} unschedulable {} errors {}{} by {:b}", one.pod.uid, one.pod.priority,
                     one.pod.gated ? " gated" : "", one.queued_at.time_since_epoch().count(), one.first_attempt.time_since_epoch().count(),
                     one.attempts, one.unschedulable_count, one.consecutive_errors, one.waited_in_vain ? " in vain" : "", one.rejected_by);
}

class Pair {
 public:
  Pair(std::uint64_t seed, QueueOptions options) : dice_(seed), queue_(options), plain_(options) {
    queue_.observe({[this](std::string_view name, std::string_view event) { told_.push_back(fmt::format("{} {}", name, event)); },
                    [this](const std::string& uid, PluginSet plugins, bool holds) {
                      if (holds)
                        EXPECT_TRUE(held_.emplace(uid, plugins).second) << uid;
                      else
                        EXPECT_EQ(held_.erase(uid), 1U) << uid;
                    }});
  }

  void step() {
    if (dice_.chance(40)) now_ += milliseconds(dice_.chance(90) ? 100 * dice_.below(30) : 60'000 * dice_.below(8));
    const std::string uid = fmt::format("p{}", dice_.below(12));
    const PluginSet plugins = dice_.chance(15) ? 0 : PluginSet{1} << dice_.below(4) | PluginSet{1} << dice_.below(4);
    act(dice_.below(20), uid, plugins);
    compare();
  }

 private:
  void act(int what, const std::string& uid, PluginSet plugins) {
    if (what < 4) {
      const QueuedPod pod{uid, "default", uid, 5 * dice_.below(3), dice_.chance(15)};
      const bool reactivate = dice_.chance(50);
      queue_.add_or_update(pod, now_, reactivate, "update");
      plain_.add_or_update(pod, now_, reactivate);
    } else if (what < 9) {
      expect_same(queue_.pop(now_), plain_.pop(now_));
    } else if (what < 10) {
      expect_same(queue_.take(uid, now_), plain_.take(uid, now_));
    } else if (what < 14) {
      const std::uint64_t kind = static_cast<std::uint64_t>(dice_.below(3));
      queue_.unschedulable(uid, plugins, now_, kind == 0 ? nullptr : std::make_shared<const PodKind>(kind));
      plain_.unschedulable(uid, plugins, now_, kind);
    } else if (what < 15) {
      queue_.failed(uid, now_);
      plain_.failed(uid, now_);
    } else if (what < 17) {
      wake(plugins);
    } else {
      act_on_one(dice_.below(7), uid);
    }
  }
  void act_on_one(int what, const std::string& uid) {
    switch (what) {
      case 0:
        EXPECT_EQ(queue_.wake_one(uid, now_), plain_.wake_one(uid, now_));
        return;
      case 1:
        queue_.retry_after_backoff(uid, now_);
        return plain_.retry_after_backoff(uid, now_);
      case 2:
        queue_.activate(uid);
        return plain_.activate(uid);
      case 3:
        queue_.remove(uid);
        return plain_.remove(uid);
      case 4:
        queue_.shut_gate(uid);
        return plain_.shut_gate(uid);
      case 5:
        return queue_.set_kind(uid, std::make_shared<const PodKind>(1 + static_cast<std::uint64_t>(dice_.below(3))));
      default:
        plain_.promote(now_);
        EXPECT_EQ(queue_.has_ready(now_), std::ranges::any_of(plain_.pods, [](const Pod& one) {
                    return one.box == Box::kActive || (one.box == Box::kBackoff && one.pops_early);
                  }));
    }
  }
  /// Helps by what pods of one kind have in common; who may move is each one's own.
  void wake(PluginSet plugins) {
    const int least = 5 * dice_.below(4), stays = dice_.below(12);
    const auto helps = [&](const SchedulingQueue::Entry& one) { return one.pod.priority >= least; };
    const auto may_move = [&](const SchedulingQueue::Entry& one) { return one.pod.uid != fmt::format("p{}", stays); };
    EXPECT_EQ(queue_.wake(plugins, now_, helps, "event", may_move), plain_.wake(plugins, now_, helps, may_move));
  }
  static void expect_same(const std::optional<SchedulingQueue::Entry>& a, const std::optional<SchedulingQueue::Entry>& b) {
    EXPECT_EQ(a ? shown(*a) : "nobody", b ? shown(*b) : "nobody");
  }
  void compare() {
    std::ranges::sort(told_);
    std::ranges::sort(plain_.told);
    EXPECT_EQ(std::exchange(told_, {}), std::exchange(plain_.told, {}));
    EXPECT_EQ(held_, plain_.held);
    const auto sizes = queue_.sizes();
    const auto next = queue_.next_wake();
    EXPECT_EQ(fmt::format("{} {} {} {}, next {}", sizes.active, sizes.backoff, sizes.unschedulable, sizes.gated,
                          next ? next->time_since_epoch().count() : -1),
              plain_.shown());
    for (const PluginSet plugins : {0b0000, 0b0001, 0b0110, 0b1000})
      EXPECT_EQ(queue_.holds_rejected_by(plugins), plain_.holds_rejected_by(plugins)) << plugins;
    for (int i = 0; i < 12; ++i) {
      const std::string uid = fmt::format("p{}", i);
      const auto* entry = queue_.find(uid);
      const Pod* pod = plain_.find(uid);
      EXPECT_EQ(entry != nullptr ? shown(*entry) : "unknown", pod != nullptr ? shown(pod->entry) : "unknown");
      EXPECT_EQ(queue_.contains(uid), pod != nullptr);
      EXPECT_EQ(queue_.is_in_flight(uid), pod != nullptr && pod->box == Box::kInFlight);
    }
  }

  testing::Dice dice_;
  TimePoint now_ = TimePoint{} + std::chrono::hours(1000);
  SchedulingQueue queue_;
  Plain plain_;
  std::vector<std::string> told_;
  std::map<std::string, PluginSet> held_;
};

TEST(SchedulingQueueModel, AgreesWithAPlainList) {
  for (std::uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
    Pair pair(seed, {.pops_from_backoff = seed % 3 != 0});
    for (int i = 0; i < 600 && !HasFailure(); ++i) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", seed, i));
      pair.step();
    }
  }
}

}  // namespace
}  // namespace berth::scheduler
