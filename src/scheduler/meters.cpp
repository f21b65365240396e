#include "scheduler/meters.h"

#include <fmt/format.h>

namespace berth::scheduler {

Meters::Meters(const Clock& clock, std::shared_ptr<metrics::Registry> registry, std::shared_ptr<net::tracing::Tracer> tracer)
    : clock_(clock), registry_(registry ? std::move(registry) : std::make_shared<metrics::Registry>()), tracer_(std::move(tracer)) {
  registry_->counter("scheduler_pod_scheduled_after_flush_total",
                     "Number of pods successfully scheduled after being flushed from unschedulablePods due to timeout.");
}

void Meters::attempt(const char* result, const placement::PodInfo& pod, double seconds) {
  const metrics::Labels labels = {{"profile", pod.view().scheduler_name}, {"result", result}};
  registry_->counter("scheduler_schedule_attempts_total", "Number of attempts to schedule pods, by the result.", labels).add();
  registry_
      ->histogram("scheduler_scheduling_attempt_duration_seconds",
                  "Scheduling attempt latency in seconds (scheduling algorithm + binding).", metrics::exponential_buckets(0.001, 2, 15),
                  labels)
      .observe(seconds);
}

void Meters::group_attempt(const char* result, const std::string& profile, double seconds) {
  const metrics::Labels labels = {{"profile", profile}, {"result", result}};
  registry_
      ->counter("scheduler_podgroup_schedule_attempts_total",
                "Number of attempts to schedule groups of pods, by the result: 'unschedulable' where the group fits nowhere, 'error' for a "
                "failure of the scheduler's own.",
                labels)
      .add();
  registry_
      ->histogram("scheduler_podgroup_scheduling_attempt_duration_seconds", "Pod group scheduling attempt latency in seconds",
                  metrics::exponential_buckets(0.001, 2, 15), labels)
      .observe(seconds);
}

void Meters::group_algorithm(double seconds) {
  registry_
      ->histogram("scheduler_podgroup_scheduling_algorithm_duration_seconds", "Pod group scheduling algorithm latency in seconds",
                  metrics::exponential_buckets(0.001, 2, 15))
      .observe(seconds);
}

metrics::Histogram& Meters::frequent(const std::array<std::string_view, 4>& key, const std::function<metrics::Histogram&()>& make) {
  if (const auto known = frequent_series_.find(key); known != frequent_series_.end()) return *known->second;
  std::array<std::string_view, 4> kept;
  for (std::size_t i = 0; i < key.size(); ++i) kept[i] = frequent_texts_.emplace_back(key[i]);
  return *frequent_series_.emplace(kept, &make()).first->second;
}

void Meters::point(const char* point, const std::string& profile, double seconds, const char* status) {
  frequent({"point", point, profile, status}, [&]() -> metrics::Histogram& {
    return registry_->histogram(
        "scheduler_framework_extension_point_duration_seconds", "Latency for running all plugins of a specific extension point.",
        metrics::exponential_buckets(0.0001, 2, 12), {{"extension_point", point}, {"profile", profile}, {"status", status}});
  }).observe(seconds);
}

void Meters::event(const std::string& label, TimePoint start) {
  frequent({"event", label, "", ""}, [&]() -> metrics::Histogram& {
    return registry_->histogram("scheduler_event_handling_duration_seconds", "Event handling latency in seconds.",
                                metrics::exponential_buckets(0.0001, 2, 12), {{"event", label}});
  }).observe(since(start));
}

void Meters::events(EventSet events, TimePoint start) {
  for (unsigned i = 0; i < static_cast<unsigned>(ClusterEvent::kCount); ++i)
    if (const auto one = static_cast<ClusterEvent>(i); events.has(one) && one != ClusterEvent::kNodeCordoned)
      event(event_label(one), start);
}

void Meters::held_back(std::string_view plugin, const std::string& profile, bool holds) {
  registry_
      ->gauge("scheduler_unschedulable_pods",
              "The number of unschedulable pods broken down by plugin name. A pod counts for every plugin that rejected it, so that the "
              "figures of several plugins are not to be added.",
              {{"plugin", std::string(plugin)}, {"profile", profile}})
      .add(holds ? 1 : -1);
}

void Meters::gauge(const std::array<std::size_t, 8>& values) {
  if (gauges_[0] == nullptr) {
    std::size_t next = 0;
    for (const char* name : {"active", "backoff", "unschedulable", "gated"})
      gauges_[next++] = &registry_->gauge("scheduler_pending_pods", "Number of pending pods, by the queue type.", {{"queue", name}});
    for (const char* type : {"nodes", "pods", "assumed_pods"})
      gauges_[next++] = &registry_->gauge("scheduler_cache_size", "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
                                          {{"type", type}});
    gauges_[next] = &registry_->gauge("scheduler_goroutines", "Number of running goroutines split by the work they do such as binding.",
                                      {{"operation", "binding"}});
  }
  for (std::size_t i = 0; i < values.size(); ++i) gauges_[i]->set(static_cast<double>(values[i]));
}

void Meters::begin_span(Held& held) {
  if (!tracer_) return;
  const model::PodView& pod = held.info->view();
  auto& span = held.span.emplace(tracer_->begin("Schedule pod", net::tracing::SpanKind::kInternal, tracer_->way_of(pod.meta.uid)));
  span.start_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(held.started.time_since_epoch()).count();
  span.attributes = {{"k8s.namespace.name", pod.meta.ns},
                     {"k8s.pod.name", pod.meta.name},
                     {"k8s.pod.uid", pod.meta.uid},
                     {"k8s.node.name", held.node_name},
                     {"scheduler.profile", pod.scheduler_name},
                     {"scheduler.attempts", std::int64_t{held.entry.attempts}}};
}

void Meters::end_span(Held& held, const std::string& error) {
  if (!held.span) return;
  held.span->error = error;
  tracer_->end(std::move(*held.span));
  held.span.reset();
}

void Meters::bound(const Held& held, TimePoint now) {
  registry_->histogram("scheduler_pod_scheduling_attempts", "Number of attempts to successfully schedule a pod.", {1, 2, 4, 8, 16})
      .observe(held.entry.attempts);
  registry_
      ->histogram("scheduler_pod_scheduling_sli_duration_seconds",
                  "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue.",
                  metrics::exponential_buckets(0.01, 2, 20),
                  {{"attempts", held.entry.attempts >= 15 ? "15+" : fmt::format("{}", held.entry.attempts)}})
      .observe(static_cast<double>((now - held.entry.first_attempt).count()) / 1e6);
  if (held.entry.waited_in_vain)
    registry_
        ->counter("scheduler_pod_scheduled_after_flush_total",
                  "Number of pods successfully scheduled after being flushed from unschedulablePods due to timeout.")
        .add();
}

}  // namespace berth::scheduler
