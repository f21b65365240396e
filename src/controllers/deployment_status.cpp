// A Deployment's status: counts, Available, Progressing with its deadline, ReplicaFailure (pkg/controller/deployment/progress.go).
#include "controllers/deployment_model.h"

namespace berth::controllers::deployment {
namespace {

std::int64_t count(const json::Object& status, std::string_view field) {
  const json::Value* value = status.if_contains(field);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

const json::Value* condition_of(const json::Object& status, std::string_view type) {
  const json::Value* conditions = status.if_contains("conditions");
  if (conditions == nullptr || !conditions->is_array()) return nullptr;
  for (const json::Value& condition : conditions->get_array())
    if (json::get_string(condition, {"type"}) == type) return &condition;
  return nullptr;
}

json::Array& conditions_of(json::Object& status) {
  json::Value& conditions = status["conditions"];
  if (!conditions.is_array()) conditions = json::Array{};
  return conditions.get_array();
}

/// The sum over all sets; nothing as long as one that is observed does not count them.
void put_terminating(json::Object& status, const View& view) {
  std::int64_t total = 0;
  for (const Set& set : view.sets) {
    if (!set.terminating && set.is_observed) {
      status.erase("terminatingReplicas");
      return;
    }
    total += set.terminating.value_or(0);
  }
  status["terminatingReplicas"] = total;
}

json::Object counts(View& view, TimePoint now) {
  json::Object status = json::get_object(view.document, {"status"});
  std::int64_t replicas = 0, ready = 0, available = 0;
  for (const Set& set : view.sets) {
    replicas += set.status_replicas;
    ready += set.ready;
    available += set.available;
  }
  const auto put = [&status](std::string_view field, std::int64_t value) {
    if (value != 0)
      status[field] = value;
    else
      status.erase(field);
  };
  put("replicas", replicas);
  put("updatedReplicas", view.newest == nullptr ? 0 : view.newest->status_replicas);
  put("readyReplicas", ready);
  put("availableReplicas", available);
  put("unavailableReplicas", std::max<std::int64_t>(0, view.total_replicas() - available));
  put_terminating(status, view);
  put("observedGeneration", json::get_int(view.document, {"metadata", "generation"}));
  if (available >= view.wanted.replicas - view.wanted.max_unavailable) {
    set_deployment_condition(status, {"Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability."}, now);
  } else {
    set_deployment_condition(status, {"Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."},
                             now);
  }
  return status;
}

bool made_progress(const json::Object& before, const json::Object& after) {
  return count(after, "updatedReplicas") > count(before, "updatedReplicas") ||
         count(after, "replicas") - count(after, "updatedReplicas") < count(before, "replicas") - count(before, "updatedReplicas") ||
         count(after, "readyReplicas") > count(before, "readyReplicas") ||
         count(after, "availableReplicas") > count(before, "availableReplicas");
}

void set_progress(View& view, json::Object& status, TimePoint now, std::optional<Duration>& requeue_after) {
  const json::Value* present = condition_of(status, "Progressing");
  const std::string reason(present == nullptr ? std::string_view{} : json::get_string(*present, {"reason"}));
  const bool was_complete = count(status, "replicas") == count(status, "updatedReplicas") && reason == "NewReplicaSetAvailable";
  if (was_complete && is_complete(view, status)) return;
  const std::string subject = view.newest == nullptr ? fmt::format("Deployment \"{}\"", view.object->name())
                                                     : fmt::format("ReplicaSet \"{}\"", view.newest->name());
  if (is_complete(view, status)) {
    set_deployment_condition(status, {"Progressing", "True", "NewReplicaSetAvailable", subject + " has successfully progressed."}, now);
    return;
  }
  if (was_complete) return;
  if (made_progress(json::get_object(view.document, {"status"}), status)) {
    const std::string since(present != nullptr && json::get_string(*present, {"status"}) == "True"
                                ? json::get_string(*present, {"lastTransitionTime"})
                                : std::string_view{});
    remove_condition(conditions_of(status), "Progressing");
    set_deployment_condition(status, {"Progressing", "True", "ReplicaSetUpdated", subject + " is progressing."}, now);
    if (!since.empty()) conditions_of(status).back().get_object()["lastTransitionTime"] = since;
    present = condition_of(status, "Progressing");
  } else if (present != nullptr && reason != "NewReplicaSetAvailable") {
    const TimePoint deadline = read_time(*present, {"lastUpdateTime"}) + *view.wanted.progress_deadline;
    if (reason == "ProgressDeadlineExceeded") return;
    if (deadline < now) {
      set_deployment_condition(status, {"Progressing", "False", "ProgressDeadlineExceeded", subject + " has timed out progressing."}, now);
      return;
    }
  }
  if (present != nullptr)
    requeue_after = std::max<Duration>(read_time(*present, {"lastUpdateTime"}) + *view.wanted.progress_deadline - now, Duration{0}) +
                    std::chrono::seconds(1);
}

}  // namespace

void set_deployment_condition(json::Object& status, const Condition& wanted, TimePoint now) {
  json::Array& conditions = conditions_of(status);
  const json::Value* present = condition_of(status, wanted.type);
  if (present != nullptr && json::get_string(*present, {"status"}) == wanted.status &&
      json::get_string(*present, {"reason"}) == wanted.reason)
    return;
  set_condition(conditions, wanted, now, true);
}

bool is_complete(const View& view, const json::Object& status) {
  const std::int64_t wanted = view.wanted.replicas;
  return count(status, "updatedReplicas") == wanted && count(status, "replicas") == wanted &&
         count(status, "availableReplicas") == wanted &&
         count(status, "observedGeneration") >= json::get_int(view.document, {"metadata", "generation"});
}

json::Object rollout_status(View& view, TimePoint now, std::optional<Duration>& requeue_after, bool with_progress) {
  json::Object status = counts(view, now);
  if (!with_progress) return status;
  if (!view.wanted.progress_deadline) {
    remove_condition(conditions_of(status), "Progressing");
  } else {
    set_progress(view, status, now, requeue_after);
  }
  const json::Value* failure = view.newest == nullptr ? nullptr : find_condition(view.newest->document, "ReplicaFailure");
  for (const Set& set : view.sets)
    if (failure == nullptr) failure = find_condition(set.document, "ReplicaFailure");
  if (failure != nullptr) {
    set_deployment_condition(status,
                             {"ReplicaFailure", std::string(json::get_string(*failure, {"status"})),
                              std::string(json::get_string(*failure, {"reason"})), std::string(json::get_string(*failure, {"message"}))},
                             now);
  } else {
    remove_condition(conditions_of(status), "ReplicaFailure");
  }
  return status;
}

}  // namespace berth::controllers::deployment
