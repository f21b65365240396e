#include "queues/queue_metrics.h"

namespace berth::queues {
namespace {

/// 1, 2.5, 5, 10, … seconds.
std::vector<double> wait_bounds() {
  std::vector<double> out{1};
  for (double bound : metrics::exponential_buckets(2.5, 2, 13)) out.push_back(bound);
  return out;
}

double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void QueueMetrics::count(const Tally& tally) {
  const metrics::Labels queue = {{"cluster_queue", tally.queue}};
  switch (tally.what) {
    case Tally::What::kQuotaReserved:
      registry_.counter("kueue_quota_reserved_workloads_total", "The total number of quota reserved workloads per 'cluster_queue'", queue)
          .add();
      registry_
          .histogram("kueue_quota_reserved_wait_time_seconds",
                     "The time between a workload was created or requeued until it got quota reservation, per 'cluster_queue'",
                     wait_bounds(), queue)
          .observe(seconds(tally.waited));
      break;
    case Tally::What::kAdmitted:
      registry_.counter("kueue_admitted_workloads_total", "The total number of admitted workloads per 'cluster_queue'", queue).add();
      registry_
          .histogram("kueue_admission_wait_time_seconds",
                     "The time between a workload was created or requeued until admission, per 'cluster_queue'", wait_bounds(), queue)
          .observe(seconds(tally.waited));
      break;
    case Tally::What::kEvicted:
      registry_
          .counter("kueue_evicted_workloads_total", "The number of evicted workloads per 'cluster_queue'",
                   {{"cluster_queue", tally.queue}, {"reason", tally.reason}})
          .add();
      break;
    case Tally::What::kPreempted:
      registry_
          .counter("kueue_preempted_workloads_total", "The number of preempted workloads per 'preempting_cluster_queue'",
                   {{"preempting_cluster_queue", tally.queue}, {"reason", tally.reason}})
          .add();
      break;
  }
}

void QueueMetrics::attempted(const Effects& effects, Duration took) {
  if (effects.admission_cycles == 0) return;
  for (const auto& [result, count] :
       {std::pair("success", effects.successful_cycles), std::pair("inadmissible", effects.admission_cycles - effects.successful_cycles)})
    if (count > 0)
      registry_.counter("kueue_admission_attempts_total", "The total number of attempts to admit workloads.", {{"result", result}})
          .add(count);
  registry_
      .histogram("kueue_admission_attempt_duration_seconds", "The latency of an admission attempt.",
                 {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5},
                 {{"result", effects.successful_cycles > 0 ? "success" : "inadmissible"}})
      .observe(seconds(took) / effects.admission_cycles);
}

void QueueMetrics::gauge(const std::string& name, const std::string& help, metrics::Labels labels, double value) {
  registry_.gauge(name, help, labels).set(value);
  showing_.insert({name, std::move(labels)});
}

void QueueMetrics::show(const std::vector<QueueFigures>& figures) {
  showing_.clear();
  for (const QueueFigures& one : figures) {
    const metrics::Labels queue = {{"cluster_queue", one.queue}};
    const std::string pending = "The number of pending workloads, per 'cluster_queue' and 'status'.";
    gauge("kueue_pending_workloads", pending, {{"cluster_queue", one.queue}, {"status", "active"}},
          static_cast<double>(one.pending_active));
    gauge("kueue_pending_workloads", pending, {{"cluster_queue", one.queue}, {"status", "inadmissible"}},
          static_cast<double>(one.pending_inadmissible));
    gauge("kueue_reserving_active_workloads", "The number of Workloads that are reserving quota, per 'cluster_queue'", queue,
          static_cast<double>(one.reserving));
    gauge("kueue_admitted_active_workloads",
          "The number of admitted Workloads that are active (unsuspended and not finished), per 'cluster_queue'", queue,
          static_cast<double>(one.admitted));
    for (const char* status : {"pending", "active", "terminating"})
      gauge("kueue_cluster_queue_status", "Reports 'cluster_queue' with its 'status'", {{"cluster_queue", one.queue}, {"status", status}},
            std::string_view(status) == (one.is_active ? "active" : "pending") ? 1 : 0);
    gauge("kueue_cluster_queue_weighted_share", "The share of what is used above the nominal quota, by weight", queue,
          static_cast<double>(one.weighted_share));
    for (const QueueFigures::Resource& resource : one.resources) {
      const metrics::Labels labels = {
          {"cohort", one.cohort}, {"cluster_queue", one.queue}, {"flavor", resource.flavor}, {"resource", resource.resource}};
      gauge("kueue_cluster_queue_nominal_quota", "Reports the cluster_queue's resource nominal quota within all the flavors", labels,
            resource.nominal);
      gauge("kueue_cluster_queue_resource_reservation", "Reports the cluster_queue's total resource reservation within all the flavors",
            labels, resource.reserved);
      gauge("kueue_cluster_queue_resource_usage", "Reports the cluster_queue's total resource usage within all the flavors", labels,
            resource.used);
    }
  }
  // What is gone shows nothing; a registry forgets no name.
  for (const auto& [name, labels] : shown_)
    if (!showing_.contains({name, labels})) registry_.gauge(name, "", labels).set(0);
  shown_.merge(showing_);
}

}  // namespace berth::queues
