// The core's beginning, and the scheduling cycle: the next pod of the queue, its decision, and the node's room taken for it.
#include "scheduler/core.h"

#include <fmt/format.h>

#include "base/check.h"

namespace berth::scheduler {

using client::ObjectRef;
using placement::Decision;
using placement::FrameworkPtr;
using placement::NodeIndex;
using placement::PodInfoPtr;

namespace {

QueueOptions queue_options(const SchedulerOptions& options) {
  QueueOptions out = options.queue;
  if (options.profiles.front().era == placement::Era::k120) out.pops_from_backoff = false;
  return out;
}

}  // namespace

Core::Core(SchedulerOptions o, placement::Profiles profiles, Known k, const Clock& stopwatch, std::function<void(Effect)> sink)
    : options(std::move(o)),
      group_options(options.groups != nullptr ? *options.groups : GroupOptions()),
      known(std::move(k)),
      out(std::move(sink)),
      meters(stopwatch, options.metrics, options.tracer),
      cluster(options.profiles.front().era),
      trial(cluster, std::move(profiles), {options.engine, options.preemption, group_options.choose_among_equals}),
      queue(queue_options(options)),
      frameworks(trial.profiles().by_name()) {
  queue.observe({[this](std::string_view name, std::string_view event) { count_incoming(name, event); },
                 [this](const std::string& uid, PluginSet rejected_by, bool holds) { count_rejection(uid, rejected_by, holds); }});
}

client::ObjectReference Core::reference(const client::Object& pod) {
  client::ObjectReference out;
  out.api_version = "v1";
  out.kind = "Pod";
  out.ns = pod.ns();
  out.name = pod.name();
  out.uid = pod.uid();
  out.resource_version = fmt::format("{}", pod.revision());
  return out;
}

client::ObjectReference Core::reference(const placement::PodInfo& pod) {
  client::ObjectReference out;
  out.api_version = "v1";
  out.kind = "Pod";
  out.ns = pod.view().meta.ns;
  out.name = pod.view().meta.name;
  out.uid = pod.view().meta.uid;
  return out;
}

void Core::count_incoming(std::string_view queue_name, std::string_view event) {
  meters.registry()
      .counter("scheduler_queue_incoming_pods_total", "Number of pods added to scheduling queues by event and queue type.",
               {{"event", std::string(event)}, {"queue", std::string(queue_name)}})
      .add();
}

void Core::count_rejection(const std::string& uid, PluginSet rejected_by, bool holds) {
  const Tracked* pod = wanting(uid);
  if (pod == nullptr) return;
  for (const std::string_view plugin : bits.names(rejected_by))
    if (!is_reason_of_queue(plugin)) meters.held_back(plugin, pod->info->view().scheduler_name, holds);
}

void Core::set_gate(Tracked& tracked, std::string_view plugin) {
  if (tracked.gated_by == plugin) return;
  const model::PodView& pod = tracked.info->view();
  const std::string before = std::exchange(tracked.gated_by, std::string(plugin));
  if (!before.empty()) {
    meters.held_back(before, pod.scheduler_name, false);
    const auto left = gates.find(before);
    BERTH_CHECK(left != gates.end() && left->second.uids.erase(pod.meta.uid) == 1, "pod {} is not among those that {} holds back",
                tracked.info->key, before);
    if (left->second.uids.empty()) gates.erase(left);
  }
  if (plugin.empty()) return;
  meters.held_back(plugin, pod.scheduler_name, true);
  Gate& gate = gates[tracked.gated_by];
  if (const placement::Plugin* by = frameworks.at(pod.scheduler_name)->find(plugin)) gate.asked_again_on |= by->gate_events();
  gate.uids.insert(pod.meta.uid);
}

void Core::lead(bool leads) {
  is_leader = leads;
  if (!is_leader) {
    for (const auto& [uid, pod] : pods)
      if (pod.as<AwaitingClaims>() != nullptr) look_again(uid);
    while (!group_waits.empty()) wait_no_longer(std::string(group_waits.begin()->first));
    while (!at_permit.empty()) binding_failed(pods.at(*at_permit.begin()).held(), {}, "leadership was lost");
  }
  post_turn();
}

Tracked* Core::wanting(const std::string& uid) {
  const auto found = pods.find(uid);
  return found != pods.end() && found->second.held() == nullptr ? &found->second : nullptr;
}

Tracked* Core::holder(const HeldPtr& held) {
  const auto found = pods.find(held->entry.pod.uid);
  return found != pods.end() && found->second.held() == held ? &found->second : nullptr;
}

void Core::note_gone(const placement::PodInfo& info) {
  constexpr std::size_t kLarge = std::size_t{16} << 10, kMostGone = std::size_t{32} << 20;
  if (info.bytes < kLarge) return;
  gone_bytes += info.bytes;
  if (gone_bytes < kMostGone) return;
  gone_bytes = 0;
  trial.forget();
}

void Core::post_turn() {
  if (is_ready && is_leader) out.take_turns();
}

bool Core::take_turn() {
  if (!is_leader || bindings_in_flight >= options.max_bindings_in_flight) return false;
  const auto entry = next_entry();
  if (entry) schedule_one(*entry);
  return entry.has_value();
}

std::optional<TimePoint> Core::next_turn() {
  const auto sizes = queue.sizes();
  meters.gauge({sizes.active, sizes.backoff, sizes.unschedulable, sizes.gated, cluster.node_count(), cluster.pod_count(), assumed,
                bindings_in_flight});
  // A finished binding, or an answer, says when it goes on.
  if (bindings_in_flight >= options.max_bindings_in_flight || is_held_up()) return std::nullopt;
  return queue.has_ready(now) ? now : queue.next_wake();
}

void Core::schedule_one(const SchedulingQueue::Entry& entry) {
  Tracked* pod = wanting(entry.pod.uid);
  BERTH_CHECK(pod != nullptr, "the queue holds the pod {}/{}, which wants no node", entry.pod.ns, entry.pod.name);
  // After five minutes of waiting for its victims to be seen going, the watch is not to be trusted: plan anew.
  stop_preempting(*pod);
  const PodInfoPtr info = pod->info;
  const ObjectRef object = pod->object;
  const FrameworkPtr framework = frameworks.at(info->view().scheduler_name);
  if (object->is_deleting()) {
    out.report(info->view().scheduler_name, reference(*object), "Warning", "FailedScheduling",
               fmt::format("skip schedule deleting pod: {}", info->key), "Scheduling");
    return forget_waiting(entry.pod.uid);
  }
  if (const std::string key = groups.group_of(entry.pod.uid); are_groups_on() && !key.empty()) {
    if (!asked.empty() && extenders != nullptr) {
      // Its mates may be of interest to those who are asked, or be asked about right now.
      pod->enter(Aside{entry});
      return aside.push_back(entry.pod.uid);
    }
    return schedule_group(entry, key);
  }
  if (stands_aside(entry, *pod)) return;
  if (const placement::Status gate = framework->run_pre_enqueue(info->view(), &cluster); !gate.is_success()) {
    set_gate(*pod, gate.plugin);
    return queue.shut_gate(entry.pod.uid);
  }
  Turn turn{.entry = entry, .info = info, .framework = framework, .started = meters.start()};
  const Decision decision = decide_beside_rooms(info, turn.held_back);
  const bool has_more_to_ask =
      extenders != nullptr && decision.outcome == Decision::Outcome::kScheduled && extenders->are_interested(info->view());
  if (has_more_to_ask)
    ask(std::move(turn));
  else
    decided(std::move(turn), decision);
}

void Core::decided(Turn turn, const Decision& decision) {
  const PodInfoPtr info = turn.info;
  const std::string uid = turn.entry.pod.uid;
  const double seconds = meters.since(turn.started);
  meters.registry()
      .histogram("scheduler_scheduling_algorithm_duration_seconds", "Scheduling algorithm latency in seconds",
                 metrics::exponential_buckets(0.001, 2, 15))
      .observe(seconds);
  switch (decision.outcome) {
    case Decision::Outcome::kScheduled:
      return commit(turn, decision.node);
    case Decision::Outcome::kUnschedulable:
      meters.attempt("unschedulable", *info, seconds);
      turn.diagnosis = decision.diagnosis;
      return give_up_for_now(std::move(turn));
    case Decision::Outcome::kError:
      if (cluster.node_count() == 0) {
        // Nothing rejected it, so that no event can be known to help: it is tried again and again.
        meters.attempt("unschedulable", *info, seconds);
        set_nominated(pods.at(uid), "");
        report_failure(info, "Unschedulable", decision.error, "");
        return queue.failed(uid, now);
      }
      meters.attempt("error", *info, seconds);
      report_error(info, decision.error);
      return queue.failed(uid, now);
  }
}

/// Assumes the pod on the node and begins to bind it.
void Core::commit(const Turn& turn, NodeIndex node) {
  if (const HeldPtr held = hold_place(turn, node)) permit(held);
}

HeldPtr Core::hold_place(const Turn& turn, NodeIndex node) {
  const auto& [entry, info, framework, started, refused, diagnosis, missed, held_back, mates_rejected_by] = turn;
  const TimePoint reserving = meters.start();
  auto reserved = trial.reserve(info, node);
  const bool has_more_than_room = !info->view().volumes.empty() || !info->view().resource_claims.empty();
  if (has_more_than_room || !reserved)
    meters.point("Reserve", info->view().scheduler_name, meters.since(reserving), reserved ? "Success" : "Error");
  if (!reserved) {
    meters.attempt("error", *info, meters.since(started));
    report_error(info, reserved.error().message());
    queue.failed(entry.pod.uid, now);
    return nullptr;
  }
  auto writes = reserved->pre_bind(cluster);
  if (!writes) {
    trial.undo(*reserved);
    meters.attempt("error", *info, meters.since(started));
    report_error(info, fmt::format("running PreBind plugin \"{}\": {}", writes.error().plugin, writes.error().message()));
    queue.failed(entry.pod.uid, now);
    return nullptr;
  }
  // In the queue it stays in flight until the binding is over: a failure keeps its count of attempts.
  Tracked& pod = pods.at(entry.pod.uid);
  const std::string promised = pod.nominated();
  index_claims(info, nullptr);
  set_gate(pod, {});  // It may have been shut while extenders were asked.
  const auto held = std::make_shared<Held>(Held{.entry = entry,
                                                .info = info,
                                                .object = pod.object,
                                                .framework = framework,
                                                .node = node,
                                                .node_name = cluster.node(node)->name,
                                                .started = started,
                                                .step_started = meters.start(),
                                                .reservation = std::move(*reserved),
                                                .writes = std::move(*writes)});
  pod.enter(AtPermit{held});
  ++assumed;
  meters.begin_span(*held);
  take_slot(*held);
  if (promised != held->node_name) wake_for_nomination(info, promised);
  return held;
}

}  // namespace berth::scheduler
