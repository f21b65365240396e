// What a Workload goes through besides admission: stopped queues, deactivation, time limits, eviction, the end.
#include <fmt/format.h>

#include <algorithm>

#include "queues/core_impl.h"

namespace berth::queues {
namespace {

using json::Value;

bool was_requeued_for(const Workload& workload, std::string_view reason) {
  const Condition* requeued = workload.condition("Requeued");
  return requeued != nullptr && !requeued->is_true && requeued->reason == reason;
}

}  // namespace

void CoreState::reconcile_workload(const WorkloadKey& key) {
  const auto found = workloads.find(key);
  const ObjectKey object = object_of(key);
  if (found == workloads.end() || document(object) == nullptr || !may_write(object)) return;
  const Workload& workload = found->second.workload;
  if (workload.is_deleting || workload.is("Finished")) return;
  if (workload.is_active ? live_active(key, workload) : live_inactive(key, workload)) return;
  if (workload.has_reservation())
    static_cast<void>(live_with_reservation(key, workload));
  else
    tell_why_inadmissible(key, workload);
}

void CoreState::evict(const WorkloadKey& key, Value changed, std::string_view reason, const std::string& message,
                      std::vector<Tally> tallies) {
  const ObjectKey object = object_of(key);
  const std::string queue(json::get_string(changed, {"status", "admission", "clusterQueue"}));
  set_eviction(changed, reason, message, now);
  std::vector<EventNote> events;
  if (!queue.empty()) {
    tallies.push_back({.what = Tally::What::kEvicted, .queue = queue, .reason = std::string(reason)});
    events.push_back(note(object, "Normal", reason == "Preempted" ? "Preempted" : fmt::format("EvictedDueTo{}", reason), message));
  }
  update(object, std::move(changed), true, std::move(events), std::move(tallies));
}

bool CoreState::live_active(const WorkloadKey& key, const Workload& workload) {
  const ObjectKey object = object_of(key);
  Value changed = *document(object);
  if (workload.is("DeactivationTarget")) {
    json::set(changed, {"spec", "active"}, Value(false));
    update(object, std::move(changed), false);
    return true;
  }
  const Condition* requeued = workload.condition("Requeued");
  if (requeued == nullptr || requeued->is_true) return false;
  const LocalQueue* local = local_queue_of(workload);
  const auto queue = local == nullptr ? queues.end() : queues.find(local->cluster_queue);
  if (requeued->reason.starts_with("Deactivated")) {
    set_condition(changed, "Requeued", true, "Reactivated", "The workload was reactivated", now);
  } else if (requeued->reason == "PodsReadyTimeout") {
    if (workload.requeue_at && *workload.requeue_at > now) {
      look_again(object, *workload.requeue_at);
      return false;
    }
    json::erase(changed, {"status", "requeueState", "requeueAt"});
    set_condition(changed, "Requeued", true, "BackoffFinished", "The workload backoff was finished", now);
  } else if (was_requeued_for(workload, "LocalQueueStopped") && local != nullptr && local->stop == StopPolicy::kNone) {
    set_condition(changed, "Requeued", true, "LocalQueueRestarted", "The LocalQueue was restarted after being stopped", now);
  } else if (was_requeued_for(workload, "ClusterQueueStopped") && queue != queues.end() && queue->second.stop == StopPolicy::kNone) {
    set_condition(changed, "Requeued", true, "ClusterQueueRestarted", "The ClusterQueue was restarted after being stopped", now);
  } else {
    return false;
  }
  update(object, std::move(changed), true);
  return true;
}

bool CoreState::live_inactive(const WorkloadKey& key, const Workload& workload) {
  if (workload.is("Evicted") && !workload.is("DeactivationTarget")) return false;
  Value changed = *document(object_of(key));
  std::string reason = "Deactivated", message = "The workload is deactivated";
  if (const Condition* target = workload.condition("DeactivationTarget"); target != nullptr) {
    reason += "DueTo" + target->reason;
    message += " due to " + target->message;
    json::Array kept = json::get_array(changed, {"status", "conditions"});
    drop_if(kept, [](const Value& one) { return json::get_string(one, {"type"}) == "DeactivationTarget"; });
    json::set(changed, {"status", "conditions"}, std::move(kept));
  }
  json::erase(changed, {"status", "requeueState"});
  if (workload.is("Evicted"))
    update(object_of(key), std::move(changed), true);
  else
    evict(key, std::move(changed), reason, message);
  return true;
}

bool CoreState::live_with_reservation(const WorkloadKey& key, const Workload& workload) {
  if (workload.is("Evicted")) return false;
  const LocalQueue* local = local_queue_of(workload);
  if (local != nullptr && local->stop == StopPolicy::kHoldAndDrain) {
    evict(key, *document(object_of(key)), "LocalQueueStopped", "The LocalQueue is stopped");
    return true;
  }
  const auto queue = queues.find(*workload.admitted_by);
  if (queue != queues.end() && queue->second.stop == StopPolicy::kHoldAndDrain) {
    evict(key, *document(object_of(key)), "ClusterQueueStopped", "The ClusterQueue is stopped");
    return true;
  }
  return check_times(key, workload);
}

bool CoreState::check_times(const WorkloadKey& key, const Workload& workload) {
  const Condition* admitted = workload.condition("Admitted");
  if (admitted == nullptr || !admitted->is_true) return false;
  const ObjectKey object = object_of(key);
  if (workload.most_execution_seconds && !workload.is("DeactivationTarget")) {
    const TimePoint end = admitted->since + std::chrono::seconds(*workload.most_execution_seconds - workload.past_execution_seconds);
    if (end <= now) {
      Value changed = *document(object);
      set_condition(changed, "DeactivationTarget", true, "MaximumExecutionTimeExceeded", "exceeding the maximum execution time", now);
      json::erase(changed, {"status", "accumulatedPastExexcutionTimeSeconds"});
      update(object, std::move(changed), true,
             {note(object, "Warning", "MaximumExecutionTimeExceeded",
                   fmt::format("The maximum execution time ({}s) exceeded", *workload.most_execution_seconds))});
      return true;
    }
    look_again(object, end);
  }
  if (!settings.pods_ready_timeout || workload.is("PodsReady")) return false;
  const TimePoint end = admitted->since + *settings.pods_ready_timeout;
  if (end > now) {
    look_again(object, end);
    return false;
  }
  Value changed = *document(object);
  const std::int64_t count = workload.requeue_count + 1;
  if (settings.requeue_limit && count > *settings.requeue_limit) {
    set_condition(changed, "DeactivationTarget", true, "RequeuingLimitExceeded", "exceeding the maximum number of re-queuing retries", now);
    update(object, std::move(changed), true);
    return true;
  }
  const Duration pause =
      std::min(settings.requeue_most, settings.requeue_base * (std::int64_t{1} << std::min<std::int64_t>(count - 1, 20)));
  json::set(changed, {"status", "requeueState"}, json::Object{{"count", count}, {"requeueAt", format_rfc3339(now + pause)}});
  evict(key, std::move(changed), "PodsReadyTimeout", fmt::format("Exceeded the PodsReady timeout {}", text_of(key)));
  return true;
}

void CoreState::tell_why_inadmissible(const WorkloadKey& key, const Workload& workload) {
  if (!workload.is_active) return;
  const ObjectKey object = object_of(key);
  const LocalQueue* local = local_queue_of(workload);
  std::string reason = "Inadmissible", message;
  if (local == nullptr) {
    message = fmt::format("LocalQueue {} doesn't exist", workload.queue);
  } else if (local->stop != StopPolicy::kNone) {
    message = fmt::format("LocalQueue {} is inactive", workload.queue);
  } else if (!queues.contains(local->cluster_queue)) {
    message = fmt::format("ClusterQueue {} doesn't exist", local->cluster_queue);
  } else if (const auto why = inactive.find(local->cluster_queue); why != inactive.end() && !why->second.reason.empty()) {
    message = fmt::format("ClusterQueue {} is inactive", local->cluster_queue);
  } else {
    const WorkloadState& state = workloads[key];
    const Waiting& others = waiting[local->cluster_queue];
    const bool is_first = !state.place || others.active.empty() || *others.active.begin() == *state.place;
    if (!queues[local->cluster_queue].is_strict || is_first || workload.condition("QuotaReserved") != nullptr) return;
    reason = "Pending";
    message = fmt::format("waits behind others in ClusterQueue {}, whose queueingStrategy is StrictFIFO", local->cluster_queue);
  }
  Value changed = *document(object);
  if (unset_reservation(changed, reason, message, now)) update(object, std::move(changed), true);
}

void CoreState::clear_admission(const WorkloadKey& key) {
  const ObjectKey object = object_of(key);
  if (!may_write(object)) return;
  const Condition evicted = *workloads[key].workload.condition("Evicted");
  Value changed = *document(object);
  set_condition(changed, "Requeued", evicted.reason == "Preempted", evicted.reason, evicted.message, now);
  unset_reservation(changed, "Pending", evicted.message, now);
  update(object, std::move(changed), true);
}

void CoreState::finish(const WorkloadKey& key, bool succeeded, std::string_view reason, const std::string& message,
                       const ObjectKey& owner) {
  const ObjectKey object = object_of(key);
  if (!may_write(object)) return;
  Value changed = *document(object);
  const std::string_view why = !reason.empty() ? reason : succeeded ? "Succeeded" : "Failed";
  if (set_condition(changed, "Finished", true, why, message, now))
    update(object, std::move(changed), true,
           {note(owner, "Normal", "FinishedWorkload", fmt::format("Workload '{}' is declared finished", text_of(key)))});
}

}  // namespace berth::queues
