// The scheduling cycle: the next pod of the queue, its decision, and the node's room taken for it.
#include <fmt/format.h>

#include "base/check.h"
#include "scheduler/scheduler_impl.h"

namespace berth::scheduler {

using client::ObjectRef;
using placement::Decision;
using placement::FrameworkPtr;
using placement::NodeIndex;
using placement::PodInfoPtr;

void Scheduler::Impl::post_turn() {
  if (turn_posted || !is_ready || !is_leader) return;
  turn_posted = true;
  loop.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->turn();
  });
}

void Scheduler::Impl::turn() {
  turn_posted = false;
  if (!is_leader) return;
  for (std::size_t i = 0; i < options.cycles_per_turn && bindings_in_flight < options.max_bindings_in_flight; ++i) {
    const auto entry = next_entry();
    if (!entry) break;
    schedule_one(*entry);
  }
  update_gauges();
  if (bindings_in_flight >= options.max_bindings_in_flight) return;  // A finished binding posts the next turn.
  if (is_held_up()) return;                                          // An answer does.
  if (queue.has_ready(loop.now())) return post_turn();
  if (timer != TimerId::kNone) loop.cancel(timer);
  timer = TimerId::kNone;
  if (const auto next = queue.next_wake())
    timer = loop.schedule_at(*next, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) {
        self->timer = TimerId::kNone;
        self->post_turn();
      }
    });
}

void Scheduler::Impl::schedule_one(const SchedulingQueue::Entry& entry) {
  Tracked* pod = wanting(entry.pod.uid);
  BERTH_CHECK(pod != nullptr, "the queue holds the pod {}/{}, which wants no node", entry.pod.ns, entry.pod.name);
  // After five minutes of waiting for its victims to be seen going, the watch is not to be trusted: plan anew.
  stop_preempting(*pod);
  const PodInfoPtr info = pod->info;
  const ObjectRef object = pod->object;
  const FrameworkPtr framework = frameworks.at(info->view().scheduler_name);
  if (object->is_deleting()) {
    recorder(info->view().scheduler_name)
        .event(reference(*object), "Warning", "FailedScheduling", fmt::format("skip schedule deleting pod: {}", info->key), "Scheduling");
    return forget_waiting(entry.pod.uid);
  }
  if (stands_aside(entry, *pod)) return;
  if (const placement::Status gate = framework->run_pre_enqueue(info->view(), &cluster); !gate.is_success()) {
    set_gate(*pod, gate.plugin);
    return queue.shut_gate(entry.pod.uid);
  }
  Turn turn{.entry = entry, .info = info, .framework = framework, .started = loop.now()};
  const Decision decision = trial.decide(info);
  const bool has_more_to_ask =
      extenders != nullptr && decision.outcome == Decision::Outcome::kScheduled && extenders->are_interested(info->view());
  if (has_more_to_ask)
    ask(std::move(turn));
  else
    decided(std::move(turn), decision);
}

void Scheduler::Impl::decided(Turn turn, const Decision& decision) {
  const PodInfoPtr info = turn.info;
  const std::string uid = turn.entry.pod.uid;
  const double seconds = seconds_since(turn.started);
  registry
      ->histogram("scheduler_scheduling_algorithm_duration_seconds", "Scheduling algorithm latency in seconds",
                  metrics::exponential_buckets(0.001, 2, 15))
      .observe(seconds);
  switch (decision.outcome) {
    case Decision::Outcome::kScheduled:
      return commit(turn, decision.node);
    case Decision::Outcome::kUnschedulable:
      observe("unschedulable", info, seconds);
      turn.diagnosis = decision.diagnosis;
      return give_up_for_now(std::move(turn));
    case Decision::Outcome::kError:
      if (cluster.node_count() == 0) {
        // Nothing rejected it, so that no event can be known to help: it is tried again and again.
        observe("unschedulable", info, seconds);
        set_nominated(pods.at(uid), "");
        report_failure(info, "Unschedulable", decision.error, "");
        return queue.failed(uid, loop.now());
      }
      observe("error", info, seconds);
      report_error(info, decision.error);
      return queue.failed(uid, loop.now());
  }
}

/// Assumes the pod on the node and begins to bind it.
void Scheduler::Impl::commit(const Turn& turn, NodeIndex node) {
  const auto& [entry, info, framework, started, refused, diagnosis, missed] = turn;
  const TimePoint reserving = loop.now();
  auto reserved = trial.reserve(info, node);
  const bool has_more_than_room = !info->view().volumes.empty() || !info->view().resource_claims.empty();
  if (has_more_than_room || !reserved)
    observe_point("Reserve", info->view().scheduler_name, seconds_since(reserving), reserved ? "Success" : "Error");
  if (!reserved) {
    observe("error", info, seconds_since(started));
    report_error(info, reserved.error().message());
    return queue.failed(entry.pod.uid, loop.now());
  }
  auto writes = reserved->pre_bind(cluster);
  if (!writes) {
    trial.undo(*reserved);
    observe("error", info, seconds_since(started));
    report_error(info, fmt::format("running PreBind plugin \"{}\": {}", writes.error().plugin, writes.error().message()));
    return queue.failed(entry.pod.uid, loop.now());
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
                                                .step_started = loop.now(),
                                                .reservation = std::move(*reserved),
                                                .writes = std::move(*writes)});
  pod.enter(AtPermit{held});
  ++assumed;
  begin_span(*held);
  take_slot(*held);
  if (promised != held->node_name) wake_for_nomination(info, promised);
  permit(held);
}

}  // namespace berth::scheduler
