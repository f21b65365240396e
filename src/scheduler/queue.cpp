#include "scheduler/queue.h"

#include "base/check.h"

namespace berth::scheduler {

void SchedulingQueue::leave(Slot& slot) {
  std::size_t left = 1;  ///< A pod is in its box, and in no other.
  switch (slot.box) {
    case Box::kActive:
      left = active_.erase(active_key(slot));
      break;
    case Box::kBackoff:
      left = backoff_.erase({slot.box_until, slot.sequence, &slot});
      if (slot.pops_early) left &= early_.erase(early_key(slot));
      break;
    case Box::kUnschedulable:
      left = unschedulable_.erase({slot.box_until, slot.sequence, &slot});
      leave_group(slot);
      break;
    case Box::kGated:
      left = gated_-- > 0 ? 1 : 0;
      break;
    case Box::kInFlight:
      break;
  }
  BERTH_CHECK(left == 1, "pod {}/{} is not in the box {} of the queue that it is to leave", slot.entry.pod.ns, slot.entry.pod.name,
              static_cast<int>(slot.box));
}

void SchedulingQueue::enter(Slot& slot, Box box, TimePoint until, bool pops_early) {
  slot.box = box;
  slot.box_until = until;
  slot.pops_early = pops_early && box == Box::kBackoff && options_.pops_from_backoff;
  bool is_new = true;
  switch (box) {
    case Box::kActive:
      is_new = active_.insert(active_key(slot)).second;
      break;
    case Box::kBackoff:
      is_new = backoff_.insert({until, slot.sequence, &slot}).second;
      if (slot.pops_early) is_new &= early_.insert(early_key(slot)).second;
      break;
    case Box::kUnschedulable:
      is_new = unschedulable_.insert({until, slot.sequence, &slot}).second;
      join_group(slot);
      break;
    case Box::kGated:
      ++gated_;
      break;
    case Box::kInFlight:
      break;
  }
  BERTH_CHECK(is_new, "pod {}/{} is twice in the box {} of the queue", slot.entry.pod.ns, slot.entry.pod.name, static_cast<int>(box));
}

void SchedulingQueue::join_group(Slot& slot) {
  constexpr std::uint64_t kOwn = std::uint64_t{1} << 63;
  const GroupKey key{slot.entry.rejected_by, slot.entry.pod.priority, slot.kind ? slot.kind->id : kOwn | slot.sequence};
  const auto [found, is_new] = groups_.try_emplace(key);
  Group& group = found->second;
  if (is_new) {
    group.key = key;
    for_each_list(key.rejected_by, [&](std::size_t list) { groups_of_plugin_[list].emplace(key, &group); });
  }
  BERTH_CHECK(slot.group == nullptr && group.slots.emplace(slot.sequence, &slot).second, "pod {}/{} is in a group already",
              slot.entry.pod.ns, slot.entry.pod.name);
  slot.group = &group;
}

void SchedulingQueue::leave_group(Slot& slot) {
  BERTH_CHECK(slot.group != nullptr && slot.group->slots.erase(slot.sequence) == 1, "pod {}/{} is not in the group that it is to leave",
              slot.entry.pod.ns, slot.entry.pod.name);
  Group& group = *std::exchange(slot.group, nullptr);
  if (!group.slots.empty()) return;
  const GroupKey key = group.key;
  for_each_list(key.rejected_by, [&](std::size_t list) { groups_of_plugin_[list].erase(key); });
  groups_.erase(key);
}

TimePoint SchedulingQueue::backoff_end(const Entry& entry) const {
  const int count = entry.consecutive_errors > 0 ? entry.consecutive_errors : entry.unschedulable_count;
  if (count == 0) return entry.queued_at;
  Duration backoff = options_.initial_backoff;
  for (int i = 1; i < count && backoff < options_.max_backoff; ++i) backoff *= 2;
  return entry.queued_at + std::min(backoff, options_.max_backoff);
}

void SchedulingQueue::enter_backoff_or_active(Slot& slot, TimePoint now, std::string_view event) {
  const TimePoint end = backoff_end(slot.entry);
  if (end > now)
    enter(slot, Box::kBackoff, end, slot.entry.consecutive_errors == 0);
  else
    enter(slot, Box::kActive);
  count(end > now ? "backoff" : "active", event);
}

void SchedulingQueue::add_or_update(const QueuedPod& pod, TimePoint now, bool reactivate, std::string_view event) {
  auto& owned = pods_[pod.uid];
  if (!owned) {
    owned = std::make_unique<Slot>();
    owned->sequence = ++sequence_;
    owned->entry.pod = pod;
    owned->entry.queued_at = now;
    enter(*owned, pod.gated ? Box::kGated : Box::kActive);
    count(pod.gated ? "unschedulable" : "active", "UnschedulablePodAdd");
    return;
  }
  Slot& slot = *owned;
  const Box box = slot.box;
  if (box == Box::kInFlight) {
    slot.entry.pod = pod;
    return;
  }
  const TimePoint until = slot.box_until;
  const bool pops_early = slot.pops_early;
  leave(slot);
  slot.entry.pod = pod;
  if (pod.gated) {
    enter(slot, Box::kGated);
  } else if (box == Box::kGated) {
    enter(slot, Box::kActive);
    count("active", "UnschedulablePodUpdatePodSchedulingGatesEliminated");
  } else if (box == Box::kUnschedulable && reactivate) {
    enter_backoff_or_active(slot, now, event);
  } else {
    enter(slot, box, until, pops_early);
  }
}

void SchedulingQueue::remove(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  leave(*found->second);
  if (found->second->box != Box::kInFlight) hold_rejection(*found->second, false);
  pods_.erase(found);
}

void SchedulingQueue::promote(TimePoint now) {
  for (std::set<TimedKey>* timed : {&backoff_, &unschedulable_})
    while (!timed->empty() && std::get<TimePoint>(*timed->begin()) <= now) {
      Slot& slot = *std::get<Slot*>(*timed->begin());
      const bool long_wait = slot.box == Box::kUnschedulable;
      leave(slot);
      slot.entry.waited_in_vain = slot.entry.waited_in_vain || long_wait;
      if (long_wait) {
        enter_backoff_or_active(slot, now, "UnschedulableTimeout");
      } else {
        enter(slot, Box::kActive);
        count("active", "BackoffComplete");
      }
    }
}

bool SchedulingQueue::has_ready(TimePoint now) {
  promote(now);
  return !active_.empty() || !early_.empty();
}

std::optional<SchedulingQueue::Entry> SchedulingQueue::pop(TimePoint now) {
  promote(now);
  if (active_.empty() && early_.empty()) return std::nullopt;
  Slot& slot = active_.empty() ? *early_.begin()->second.slot : *active_.begin()->slot;
  if (active_.empty()) count("active", "PopFromBackoffQ");
  return begin_flight(slot, now);
}

std::optional<SchedulingQueue::Entry> SchedulingQueue::take(const std::string& uid, TimePoint now) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second->box == Box::kInFlight || found->second->box == Box::kGated) return std::nullopt;
  return begin_flight(*found->second, now);
}

const SchedulingQueue::Entry& SchedulingQueue::begin_flight(Slot& slot, TimePoint now) {
  leave(slot);
  hold_rejection(slot, false);
  enter(slot, Box::kInFlight);
  ++slot.entry.attempts;
  if (slot.entry.first_attempt == TimePoint{}) slot.entry.first_attempt = now;
  return slot.entry;
}

void SchedulingQueue::done(const std::string& uid) { remove(uid); }

void SchedulingQueue::unschedulable(const std::string& uid, PluginSet rejected_by, TimePoint now, PodKindPtr kind) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second->box != Box::kInFlight) return;
  Slot& slot = *found->second;
  slot.entry.rejected_by = rejected_by;
  slot.kind = std::move(kind);
  slot.entry.queued_at = now;
  slot.entry.waited_in_vain = false;
  ++slot.entry.unschedulable_count;
  slot.entry.consecutive_errors = 0;
  hold_rejection(slot, true);
  count("unschedulable", "ScheduleAttemptFailure");
  if (slot.entry.pod.gated)
    enter(slot, Box::kGated);
  else
    enter(slot, Box::kUnschedulable, now + options_.max_unschedulable);
}

void SchedulingQueue::failed(const std::string& uid, TimePoint now) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second->box != Box::kInFlight) return;
  Slot& slot = *found->second;
  slot.entry.rejected_by = 0;
  slot.entry.queued_at = now;
  slot.entry.waited_in_vain = false;
  ++slot.entry.consecutive_errors;
  if (slot.entry.pod.gated)
    enter(slot, Box::kGated);
  else
    enter(slot, Box::kBackoff, backoff_end(slot.entry));
  count(slot.entry.pod.gated ? "unschedulable" : "backoff", "ScheduleAttemptFailure");
}

void SchedulingQueue::set_kind(const std::string& uid, PodKindPtr kind) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second->box != Box::kUnschedulable) return;
  Slot& slot = *found->second;
  leave_group(slot);
  slot.kind = std::move(kind);
  join_group(slot);
}

std::size_t SchedulingQueue::wake(PluginSet plugins, TimePoint now, const CouldHelp& could_help, std::string_view event,
                                  const MayMove& may_move) {
  ++wakes_;
  std::vector<Slot*> moving;
  const auto ask = [&](std::size_t list) {
    for (const auto& [key, group] : groups_of_plugin_[list]) {
      if (std::exchange(group->asked, wakes_) == wakes_ || !could_help(group->slots.begin()->second->entry)) continue;
      for (const auto& [sequence, slot] : group->slots)
        if (!may_move || may_move(slot->entry)) moving.push_back(slot);
    }
  };
  ask(kAnyPlugin);
  if (plugins != 0) for_each_list(plugins, ask);
  for (Slot* slot : moving) {
    leave(*slot);
    enter_backoff_or_active(*slot, now, event);
  }
  return moving.size();
}

bool SchedulingQueue::wake_one(const std::string& uid, TimePoint now, std::string_view event) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second->box != Box::kUnschedulable) return false;
  leave(*found->second);
  enter_backoff_or_active(*found->second, now, event);
  return true;
}

void SchedulingQueue::shut_gate(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second->box != Box::kInFlight) return;
  Slot& slot = *found->second;
  --slot.entry.attempts;  // It was no attempt.
  slot.entry.pod.gated = true;
  hold_rejection(slot, true);
  enter(slot, Box::kGated);
}

bool SchedulingQueue::holds_rejected_by(PluginSet plugins) const {
  bool holds = !groups_of_plugin_[kAnyPlugin].empty();
  if (plugins != 0) for_each_list(plugins, [&](std::size_t list) { holds = holds || !groups_of_plugin_[list].empty(); });
  return holds;
}

void SchedulingQueue::retry_after_backoff(const std::string& uid, TimePoint now) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second->box != Box::kUnschedulable) return;
  Slot& slot = *found->second;
  leave(slot);
  enter(slot, Box::kBackoff, std::max(now, backoff_end(slot.entry)));
  count("backoff", "ForceActivate");
}

void SchedulingQueue::activate(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  Slot& slot = *found->second;
  if (slot.box != Box::kBackoff && slot.box != Box::kUnschedulable) return;
  leave(slot);
  enter(slot, Box::kActive);
  count("active", "ForceActivate");
}

std::optional<TimePoint> SchedulingQueue::next_wake() const {
  std::optional<TimePoint> next;
  for (const std::set<TimedKey>* timed : {&backoff_, &unschedulable_})
    if (!timed->empty()) next = next ? std::min(*next, std::get<TimePoint>(*timed->begin())) : std::get<TimePoint>(*timed->begin());
  return next;
}

SchedulingQueue::Sizes SchedulingQueue::sizes() const { return {active_.size(), backoff_.size(), unschedulable_.size(), gated_}; }

bool SchedulingQueue::is_in_flight(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found != pods_.end() && found->second->box == Box::kInFlight;
}

const SchedulingQueue::Entry* SchedulingQueue::find(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second->entry;
}

}  // namespace berth::scheduler
