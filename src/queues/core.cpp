#include "queues/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "queues/core_impl.h"

namespace berth::queues {
namespace {

using json::get_string;
using json::Value;

std::int64_t revision_of(const Value& document) {
  const std::string_view text = get_string(document, {"metadata", "resourceVersion"});
  std::int64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

std::string_view uid_of(const Value& document) { return get_string(document, {"metadata", "uid"}); }

ObjectKey key_of(Kind kind, const Value& document) {
  return {kind, std::string(get_string(document, {"metadata", "namespace"})), std::string(get_string(document, {"metadata", "name"}))};
}

Duration backoff(int failures) {
  const Duration first = std::chrono::milliseconds(200), most = std::chrono::seconds(60);
  return std::min(most, first * (std::int64_t{1} << std::min(failures - 1, 12)));
}

/// What changes when somebody writes a spec, or begins to delete.
std::string spec_mark(const Value& document) {
  return fmt::format("{} {} {}", uid_of(document), json::get_int(document, {"metadata", "generation"}),
                     get_string(document, {"metadata", "deletionTimestamp"}));
}

bool differs(const Workload& a, const Workload& b, std::string_view type) {
  const Condition *x = a.condition(type), *y = b.condition(type);
  if (x == nullptr || y == nullptr) return x != y;
  return x->is_true != y->is_true || x->reason != y->reason || x->since != y->since;
}

}  // namespace

std::string text_of(const WorkloadKey& key) { return key.first + "/" + key.second; }

Core::Core(Settings settings) : impl_(std::make_unique<CoreState>(std::move(settings))) {}
Core::~Core() = default;
Core::Core(Core&&) noexcept = default;
Core& Core::operator=(Core&&) noexcept = default;

void Core::observe(Kind kind, const Value& document) {
  const ObjectKey key = key_of(kind, document);
  Stored& stored = impl_->objects[key];
  const std::int64_t revision = revision_of(document);
  if (!stored.seen.is_null() && revision <= stored.revision) return;
  stored.revision = revision;
  stored.seen = document;
  if (stored.is_in_flight) return;
  stored.document = document;
  impl_->absorb(key);
}

void Core::forget(const ObjectKey& object) {
  const auto found = impl_->objects.find(object);
  if (found == impl_->objects.end()) return;
  const Value last = found->second.document.is_null() ? std::move(found->second.seen) : std::move(found->second.document);
  impl_->objects.erase(found);
  impl_->told.erase(object);
  impl_->absorb_gone(object, last);
}

void Core::answered(const Write& write, const WriteResult& result, TimePoint now) {
  impl_->now = now;
  const bool succeeded = result.code < 300;
  // The watch may have told of it before.
  if (succeeded) std::ranges::copy(write.events, std::back_inserter(impl_->effects.events));
  const auto found = impl_->objects.find(write.object);
  if (found == impl_->objects.end() || !found->second.is_in_flight) return;
  Stored& stored = found->second;
  if (succeeded && !stored.seen.is_null() && !result.document.is_null() && uid_of(result.document) != uid_of(stored.seen)) return;
  stored.is_in_flight = false;
  if (succeeded) {
    stored.failures = 0;
    // The watch says when it is gone.
    if (write.verb == Write::Verb::kDelete) stored.not_before = now + std::chrono::seconds(5);
    if (write.verb != Write::Verb::kDelete && revision_of(result.document) > stored.revision) {
      stored.revision = revision_of(result.document);
      stored.seen = result.document;
    }
  } else {
    stored.not_before = now + backoff(++stored.failures);
  }
  if (stored.not_before > now) impl_->look_again(write.object, stored.not_before);
  if (stored.seen.is_null()) {  // A creation that failed.
    stored.document = nullptr;
    impl_->mark_dirty(write.object);
    return;
  }
  stored.document = stored.seen;
  impl_->absorb(write.object);
}

Effects Core::step(TimePoint now) {
  CoreState& impl = *impl_;
  impl.now = now;
  while (!impl.timers.empty() && impl.timers.begin()->first <= now) {
    const ObjectKey key = impl.timers.begin()->second;
    impl.timers.erase(impl.timers.begin());
    impl.mark_dirty(key);
  }
  // What one round touches, another looks at; each round writes something or is the last.
  constexpr int kMostRounds = 100'000;
  for (int round = 0; round < kMostRounds; ++round) {
    if (impl.structure_changed) {
      impl.rebuild();
    } else if (!impl.dirty.empty()) {
      const ObjectKey key = *impl.dirty.begin();
      impl.dirty.erase(impl.dirty.begin());
      if (key.kind == Kind::kJob)
        impl.reconcile_job(key);
      else
        impl.reconcile_workload({key.ns, key.name});
    } else if (!impl.dirty_groups.empty()) {
      const GroupKey group = *impl.dirty_groups.begin();
      impl.dirty_groups.erase(impl.dirty_groups.begin());
      impl.reconcile_group(group);
    } else if (!impl.stirred.empty()) {
      impl.run_cycles();
    } else {
      break;
    }
  }
  impl.write_statuses();
  Effects out = std::exchange(impl.effects, {});
  if (!impl.timers.empty()) out.wake = impl.timers.begin()->first;
  return out;
}

void CoreState::mark_dirty(const ObjectKey& key) {
  switch (key.kind) {
    case Kind::kJob:
      dirty.insert(key);
      break;
    case Kind::kWorkload: {
      dirty.insert(key);
      const auto found = workloads.find({key.ns, key.name});
      if (found != workloads.end()) {
        touch_owner(found->second.workload);
        requeue(found->second, false);
      }
      // One whose creation failed: whoever wanted it looks again.
      if (found == workloads.end()) {
        for (const auto& [other, stored] : objects)
          if (other.kind == Kind::kJob && other.ns == key.ns) dirty.insert(other);
        for (const auto& [group, pods] : groups)
          if (group.ns == key.ns) dirty_groups.insert(group);
      }
      break;
    }
    case Kind::kPod:
      if (const Value* pod = document(key)) dirty_groups.insert(group_of(*pod));
      break;
    case Kind::kLocalQueue:
      dirty_local_queues.insert({key.ns, key.name});
      break;
    case Kind::kClusterQueue:
      dirty_queues.insert(key.name);
      break;
    default:
      for (const auto& [name, queue] : queues) dirty_queues.insert(name);
  }
}

void CoreState::absorb(const ObjectKey& key) {
  const Value& document = objects[key].document;
  switch (key.kind) {
    case Kind::kClusterQueue:
    case Kind::kLocalQueue:
    case Kind::kResourceFlavor:
    case Kind::kCohort: {
      // Statuses are written all the time, mostly by us.
      std::string mark = spec_mark(document);
      if (std::string& last = spec_marks[key]; last != mark) {
        last = std::move(mark);
        absorb_structure(key, document);
      } else {
        mark_dirty(key);
      }
      return;
    }
    case Kind::kWorkload:
      return absorb_workload(key, document);
    case Kind::kJob:
      dirty.insert(key);
      return;
    case Kind::kPod: {
      const GroupKey group = group_of(document);
      groups[group].insert(key.name);
      dirty_groups.insert(group);
      return;
    }
    case Kind::kPodGroup:
      dirty_groups.insert({key.ns, key.name, GroupType::kPodGroup});
      return;
    case Kind::kNamespace:
      for (const auto& [name, queue] : queues) stir(name, true);
      return;
    case Kind::kWorkloadPriorityClass:
    case Kind::kPriorityClass:
      // Somebody may wait for that class.
      for (const auto& [about, text] : told) {
        if (about.kind == Kind::kJob) dirty.insert(about);
        if (about.kind == Kind::kPod) mark_dirty(about);
      }
      return;
  }
}

void CoreState::absorb_structure(const ObjectKey& key, const Value& document) {
  if (key.kind == Kind::kClusterQueue) {
    queues[key.name] = ClusterQueue::parse(document);
    structure_changed = true;
    for (const auto& [name, queue] : local_queues)
      if (queue.cluster_queue == key.name) touch_workloads_of(name);
    for (const auto& [workload, reservation] : books.of_queue(key.name)) dirty.insert(object_of(workload));
  } else if (key.kind == Kind::kLocalQueue) {
    LocalQueue& queue = local_queues[{key.ns, key.name}];
    queue = LocalQueue::parse(document);
    dirty_local_queues.insert({key.ns, key.name});
    dirty_queues.insert(queue.cluster_queue);
    touch_workloads_of({key.ns, key.name});
  } else if (key.kind == Kind::kResourceFlavor) {
    flavors[key.name] = Flavor::parse(document);
    structure_changed = true;
  } else {
    cohorts[key.name] = Cohort::parse(document);
    structure_changed = true;
  }
}

void CoreState::absorb_gone(const ObjectKey& key, const Value& last) {
  spec_marks.erase(key);
  switch (key.kind) {
    case Kind::kClusterQueue:
      queues.erase(key.name);
      inactive.erase(key.name);
      structure_changed = true;
      for (const auto& [name, queue] : local_queues)
        if (queue.cluster_queue == key.name) touch_workloads_of(name);
      for (const auto& [workload, reservation] : books.of_queue(key.name)) dirty.insert(object_of(workload));
      break;
    case Kind::kLocalQueue:
      local_queues.erase({key.ns, key.name});
      touch_workloads_of({key.ns, key.name});
      break;
    case Kind::kResourceFlavor:
      flavors.erase(key.name);
      structure_changed = true;
      break;
    case Kind::kCohort:
      cohorts.erase(key.name);
      structure_changed = true;
      break;
    case Kind::kWorkload:
      drop_workload({key.ns, key.name});
      break;
    case Kind::kJob:
      lost_templates.erase(key);
      for (const WorkloadKey& workload : workloads_of(std::string(uid_of(last)))) remove(object_of(workload), {});
      break;
    case Kind::kPod: {
      const GroupKey group = group_of(last);
      if (const auto found = groups.find(group); found != groups.end()) found->second.erase(key.name);
      dirty_groups.insert(group);
      break;
    }
    case Kind::kPodGroup:
      dirty_groups.insert({key.ns, key.name, GroupType::kPodGroup});
      break;
    default:
      break;
  }
}

void CoreState::absorb_workload(const ObjectKey& key, const Value& document) {
  const WorkloadKey name{key.ns, key.name};
  Workload workload = Workload::parse(document);
  const auto [place, is_new] = workloads.try_emplace(name);
  WorkloadState& state = place->second;
  if (is_new) state.arrival = ++arrivals;
  const Workload before = std::exchange(state.workload, std::move(workload));
  const Workload& now_is = state.workload;
  if (before.owner_uid != now_is.owner_uid || is_new) {
    by_owner[before.owner_uid].erase(name);
    by_owner[now_is.owner_uid].insert(name);
  }
  if (before.queue != now_is.queue || is_new) {
    by_local_queue[{key.ns, before.queue}].erase(name);
    by_local_queue[{key.ns, now_is.queue}].insert(name);
    touch_queues_of(before);
  }
  const Reservation* held = books.find(name);
  const std::string held_of = held == nullptr ? "" : held->queue;
  const FlavorAmounts held_before = held == nullptr ? FlavorAmounts() : held->usage;
  if (!held_of.empty()) dirty_queues.insert(held_of);
  if (now_is.has_reservation() && !now_is.is("Finished")) {
    books.put({.key = name,
               .queue = *now_is.admitted_by,
               .uid = now_is.uid,
               .usage = now_is.usage(),
               .priority = now_is.priority,
               .queued = queued_since(now_is),
               .reserved = now_is.condition("QuotaReserved")->since,
               .is_admitted = now_is.is("Admitted"),
               .is_evicted = now_is.is("Evicted")});
    dirty_queues.insert(*now_is.admitted_by);
    if (!held_of.empty()) stir(held_of, held_of != *now_is.admitted_by || held_before != now_is.usage());
  } else if (!held_of.empty()) {
    books.erase(name);
    stir(held_of, true);
  }
  dirty.insert(key);
  touch_owner(now_is);
  touch_queues_of(now_is);
  const bool is_news = is_new || before.generation != now_is.generation || before.reclaimable != now_is.reclaimable ||
                       differs(before, now_is, "Evicted") || differs(before, now_is, "Requeued");
  requeue(state, is_news);
}

void CoreState::drop_workload(const WorkloadKey& key) {
  const auto found = workloads.find(key);
  if (found == workloads.end()) return;
  WorkloadState& state = found->second;
  const Workload& workload = state.workload;
  leave_queue(state);
  by_owner[workload.owner_uid].erase(key);
  by_local_queue[{key.first, workload.queue}].erase(key);
  touch_owner(workload);
  touch_queues_of(workload);
  if (workload.owner_kind == "Job" && workload.pod_sets.size() == 1)
    if (const ObjectKey job{Kind::kJob, key.first, workload.owner_name}; document(job) != nullptr)
      lost_templates[job] = workload.pod_sets.front().pod_template;
  if (const Reservation* held = books.find(key)) {
    const std::string queue = held->queue;
    books.erase(key);
    dirty_queues.insert(queue);
    stir(queue, true);
  }
  workloads.erase(found);
}

void CoreState::touch_owner(const Workload& workload) {
  if (workload.owner_kind == "Job") {
    if (const ObjectKey job{Kind::kJob, workload.ns, workload.owner_name}; document(job) != nullptr) dirty.insert(job);
    return;
  }
  if (workload.owner_kind != "Pod") return;
  bool is_found = false;
  for (const GroupKey& group :
       {GroupKey{workload.ns, workload.owner_name, GroupType::kSingle}, GroupKey{workload.ns, workload.name, GroupType::kLabel}})
    if (groups.contains(group)) {
      dirty_groups.insert(group);
      is_found = true;
    }
  if (is_found) return;
  for (const auto& [group, pods] : groups)
    if (group.ns == workload.ns && (pods.contains(workload.owner_name) || group.name == workload.name)) dirty_groups.insert(group);
}

void CoreState::touch_queues_of(const Workload& workload) {
  dirty_local_queues.insert({workload.ns, workload.queue});
  if (const LocalQueue* local = local_queue_of(workload)) dirty_queues.insert(local->cluster_queue);
}

void CoreState::touch_workloads_of(const WorkloadKey& local_queue) {
  dirty_local_queues.insert(local_queue);
  const auto found = by_local_queue.find(local_queue);
  if (found == by_local_queue.end()) return;
  for (const WorkloadKey& key : found->second) {
    dirty.insert(object_of(key));
    requeue(workloads[key], true);
  }
}

const Value* CoreState::document(const ObjectKey& key) const {
  const auto found = objects.find(key);
  return found == objects.end() || found->second.document.is_null() ? nullptr : &found->second.document;
}

bool CoreState::may_write(const ObjectKey& key) const {
  const auto found = objects.find(key);
  return found == objects.end() || (!found->second.is_in_flight && found->second.not_before <= now);
}

void CoreState::update(const ObjectKey& key, Value changed, bool is_status, std::vector<EventNote> events, std::vector<Tally> tallies) {
  Stored& stored = objects[key];
  stored.is_in_flight = true;
  stored.document = std::move(changed);
  effects.writes.push_back({.verb = Write::Verb::kUpdate,
                            .object = key,
                            .is_status = is_status,
                            .body = stored.document,
                            .events = std::move(events),
                            .tallies = std::move(tallies)});
  absorb(key);
}

void CoreState::create(const ObjectKey& key, Value made, std::vector<EventNote> events) {
  objects[key].is_in_flight = true;
  effects.writes.push_back({.verb = Write::Verb::kCreate, .object = key, .body = std::move(made), .events = std::move(events)});
}

void CoreState::remove(const ObjectKey& key, std::vector<EventNote> events) {
  if (document(key) == nullptr || !may_write(key)) return;
  Stored& stored = objects[key];
  stored.is_in_flight = true;
  effects.writes.push_back(
      {.verb = Write::Verb::kDelete, .object = key, .uid = std::string(uid_of(stored.document)), .events = std::move(events)});
}

EventNote CoreState::note(const ObjectKey& key, std::string_view type, std::string_view reason, std::string message) const {
  const Value* found = document(key);
  return {.object = key,
          .uid = found == nullptr ? "" : std::string(uid_of(*found)),
          .type = std::string(type),
          .reason = std::string(reason),
          .message = std::move(message)};
}

void CoreState::complain(const ObjectKey& about, const std::string& reason, const std::string& message) {
  std::string& last = told[about];
  if (last == message) return;
  last = message;
  effects.events.push_back(note(about, "Warning", reason, message));
}

void CoreState::rebuild() {
  structure_changed = false;
  books.rebuild(QuotaTree(queues, cohorts));
  judge_queues();
  for (auto& [key, state] : workloads) requeue(state, false);
  for (const auto& [name, queue] : queues) {
    dirty_queues.insert(name);
    stir(name, true);
  }
  for (const auto& [name, queue] : local_queues) {
    dirty_local_queues.insert(name);
    if (const auto found = by_local_queue.find(name); found != by_local_queue.end())
      for (const WorkloadKey& key : found->second) dirty.insert(object_of(key));
  }
}

std::vector<std::string> CoreState::rivals_of(const std::string& queue) const {
  const QuotaTree& tree = books.tree();
  const QuotaNode node = tree.queue(queue);
  if (node == QuotaNode::kNone) return {queue};
  std::vector<std::string> out;
  for (const QuotaNode one : tree.queues_below(tree.root(node))) out.push_back(tree.name(one));
  return out;
}

void CoreState::stir(const std::string& queue, bool retries_inadmissible) {
  stirred.insert(queue);
  if (!retries_inadmissible) return;
  for (const std::string& rival : rivals_of(queue))
    if (const auto found = waiting.find(rival); found != waiting.end()) {
      found->second.active.merge(found->second.inadmissible);
      dirty_queues.insert(rival);
    }
}

const LocalQueue* CoreState::local_queue_of(const Workload& workload) const {
  const auto found = local_queues.find({workload.ns, workload.queue});
  return found == local_queues.end() ? nullptr : &found->second;
}

TimePoint CoreState::queued_since(const Workload& workload) const {
  const Condition* evicted = workload.condition("Evicted");
  return evicted != nullptr && evicted->is_true && evicted->reason == "PodsReadyTimeout" ? evicted->since : workload.created;
}

bool CoreState::is_eligible(const WorkloadState& state) const {
  const Workload& workload = state.workload;
  if (workload.is_deleting || !workload.is_active || state.is_held || workload.has_reservation() || workload.is("Finished")) return false;
  const Condition* requeued = workload.condition("Requeued");
  if (requeued != nullptr && !requeued->is_true) return false;
  const LocalQueue* local = local_queue_of(workload);
  return local != nullptr && !local->is_deleting && local->stop == StopPolicy::kNone && queues.contains(local->cluster_queue);
}

void CoreState::leave_queue(WorkloadState& state) {
  if (state.place) {
    Waiting& left = waiting[state.queue];
    left.active.erase(*state.place);
    left.inadmissible.erase(*state.place);
    dirty_queues.insert(state.queue);
  }
  state.place.reset();
  state.queue.clear();
}

void CoreState::requeue(WorkloadState& state, bool is_news) {
  const Workload& workload = state.workload;
  if (!is_eligible(state)) return leave_queue(state);
  const std::string queue = local_queue_of(workload)->cluster_queue;
  const QueuePlace place{-workload.priority, queued_since(workload), state.arrival, workload.key()};
  const bool stays_out = !is_news && state.queue == queue && state.place && waiting[queue].inadmissible.contains(*state.place);
  leave_queue(state);
  state.queue = queue;
  state.place = place;
  dirty_queues.insert(queue);
  (stays_out ? waiting[queue].inadmissible : waiting[queue].active).insert(place);
  if (!stays_out) stir(queue, false);
}

}  // namespace berth::queues
