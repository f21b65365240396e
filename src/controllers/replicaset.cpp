// ReplicaSet and ReplicationController: as many active pods as asked for (pkg/controller/replicaset).
#include "controllers/common.h"
#include "controllers/workloads.h"

namespace berth::controllers {
namespace {

bool wants_active(const PodInfo& pod) { return pod.is_active(); }

/// How long the next count of a set with so many pods waits at least, since it counts all of them: no longer than nobody notices, but the
/// more the larger the set. Where there is no pod to make, the count may be a little older.
Duration pause_after(std::int64_t pods, bool is_complete) {
  const std::int64_t beyond = std::max<std::int64_t>(pods - 1000, 0);
  if (!is_complete) return std::min<Duration>(Duration(pods + 2 * beyond), std::chrono::milliseconds(100));
  return std::min<Duration>(Duration(3 * pods + 7 * beyond), std::chrono::milliseconds(500));
}

class ReplicaSetController final : public Controller {
 public:
  ReplicaSetController(Kind kind, std::string name, ReplicaSetOptions options) : kind_(kind), name_(std::move(name)), options_(options) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kind_, kinds().pod}; }
  [[nodiscard]] int concurrency() const override { return options_.concurrency; }

  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().pod) {
      enqueue_pod_owners(kind_, event, cache, sink);
    } else {
      sink.add(event.object().key());
    }
  }

  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;

  void on_result(const std::string& key, const Write& write, const ApiResult<json::Value>& result, TimePoint) override {
    if (write.tag != "FailedCreate" && write.tag != "FailedDelete") return;
    if (result || result.error().code == 404) {
      failures_.erase(key);
    } else {
      failures_[key] = {write.tag, result.error().message};
    }
  }

 private:
  struct Failure {
    std::string reason, message;
  };
  void create_pods(Plan& plan, const Object& object, const json::Value& document, std::int64_t count) const;
  void delete_pods(Plan& plan, const Object& object, std::vector<PodRef> pods, std::size_t count, TimePoint now, const Cache& cache) const;
  [[nodiscard]] json::Object status_of(const std::string& key, const json::Value& document, const std::vector<PodRef>& pods,
                                       std::int64_t terminating, TimePoint now) const;

  Kind kind_;
  std::string name_;
  ReplicaSetOptions options_;
  std::map<std::string, Failure> failures_;  ///< The last create or delete that failed, by key.
};

Plan ReplicaSetController::reconcile(const std::string& key, TimePoint now, const Cache& cache) {
  Plan plan;
  const auto [ns, name] = split_key(key);
  const ObjectRef object = cache.get(kind_, ns, name);
  if (!object) {
    failures_.erase(key);
    return plan;
  }
  const auto parsed = object->parsed();
  const json::Value& document = *parsed;
  const model::Selector selector = selector_of(kind_, document);
  Claim claim = claim_pods(kind_, *object, selector, cache, wants_active);
  plan.writes = std::move(claim.writes);
  const std::int64_t wanted = json::get_int(document, {"spec", "replicas"}, 1);
  const auto have = static_cast<std::int64_t>(claim.pods.size());
  if (!object->is_deleting() && !selector.is_nothing()) {
    if (have < wanted) create_pods(plan, *object, document, std::min(wanted - have, burst_of(*object, options_.burst)));
    if (have > wanted)
      delete_pods(plan, *object, claim.pods, static_cast<std::size_t>(std::min<std::int64_t>(have - wanted, options_.burst)), now, cache);
  }
  if (have == wanted) failures_.erase(key);
  if (auto write = patch_status(kind_, *object, document, status_of(key, document, claim.pods, claim.terminating, now)))
    plan.writes.insert(plan.writes.begin(), std::move(*write));
  plan.requeue_after = next_availability(claim.pods, seconds_at(document, {"spec", "minReadySeconds"}), now);
  plan.cooldown = pause_after(have, have >= wanted);
  return plan;
}

void ReplicaSetController::create_pods(Plan& plan, const Object& object, const json::Value& document, std::int64_t count) const {
  const json::Value* pod_template = json::find(document, {"spec", "template"});
  if (pod_template == nullptr) return;
  const json::Value pod = pod_from_template(*pod_template, kind_, object, object.name() + "-");
  plan.writes.reserve(plan.writes.size() + static_cast<std::size_t>(count) + 1);
  for (std::int64_t i = 0; i < count; ++i) {
    Write write = create_object(kinds().pod, object.ns(), pod);
    write.slow_start = true;
    write.tag = "FailedCreate";
    write.on_success = note_about(kind_, object, "Normal", "SuccessfulCreate", "Created pod: {}");
    write.on_failure = note_about(kind_, object, "Warning", "FailedCreate", "Error creating: {}");
    plan.add(std::move(write), object.text_bytes());
  }
}

void ReplicaSetController::delete_pods(Plan& plan, const Object& object, std::vector<PodRef> pods, std::size_t count, TimePoint now,
                                       const Cache& cache) const {
  if (count < pods.size()) {
    // Pods of all ReplicaSets of one Deployment count for colocation, so that a rollout keeps its pods spread. Where nobody controls the
    // set, none do.
    std::vector<PodRef> related;
    if (!object.controller_uid().empty()) {
      for (const ObjectRef& sibling : cache.controlled(kind_, object.controller_uid()))
        for (const PodRef& pod : cache.pods_controlled(sibling->uid())) related.push_back(pod);
    }
    sort_for_deletion(pods, related, now);
  }
  for (std::size_t i = 0; i < count; ++i) {
    Write write = delete_object(kinds().pod, *pods[i]->object);
    write.tag = "FailedDelete";
    write.on_success = note_about(kind_, object, "Normal", "SuccessfulDelete", "Deleted pod: " + pods[i]->name());
    write.on_failure = note_about(kind_, object, "Warning", "FailedDelete", "Error deleting: {}");
    plan.writes.push_back(std::move(write));
  }
}

json::Object ReplicaSetController::status_of(const std::string& key, const json::Value& document, const std::vector<PodRef>& pods,
                                             std::int64_t terminating, TimePoint now) const {
  const model::Labels template_labels = model::Labels::from_json(json::find(document, {"spec", "template", "metadata", "labels"}));
  const Duration min_ready = seconds_at(document, {"spec", "minReadySeconds"});
  std::int64_t labelled = 0, ready = 0, available = 0;
  const auto has_all = [&wanted = template_labels.pairs()](const model::Labels& labels) {
    return std::all_of(wanted.begin(), wanted.end(), [&](const auto& pair) {
      const std::string* value = labels.get(pair.first);
      return value != nullptr && *value == pair.second;
    });
  };
  LabelMemo fully;
  for (const PodRef& pod : pods) {
    labelled += fully(*pod, has_all);
    ready += pod->ready;
    available += pod->is_available(min_ready, now);
  }
  json::Object status = json::get_object(document, {"status"});
  const auto set_count = [&status](std::string_view field, std::int64_t count) {
    if (count != 0)
      status[field] = count;
    else
      status.erase(field);  // Kubernetes leaves zero counts out.
  };
  status["replicas"] = static_cast<std::int64_t>(pods.size());
  set_count("fullyLabeledReplicas", labelled);
  set_count("readyReplicas", ready);
  set_count("availableReplicas", available);
  // A count since 1.35 that says zero, too: absent means that nobody counts. ReplicationControllers have none.
  if (kind_ == kinds().replica_set) status["terminatingReplicas"] = terminating;
  set_count("observedGeneration", json::get_int(document, {"metadata", "generation"}));
  json::Array conditions = json::get_array(document, {"status", "conditions"});
  if (const auto it = failures_.find(key); it != failures_.end()) {
    if (find_condition(document, "ReplicaFailure") == nullptr)
      set_condition(conditions, {"ReplicaFailure", "True", it->second.reason, it->second.message}, now);
  } else {
    remove_condition(conditions, "ReplicaFailure");
  }
  if (conditions.empty())
    status.erase("conditions");
  else
    status["conditions"] = std::move(conditions);
  return status;
}

}  // namespace

ControllerPtr make_replicaset_controller(ReplicaSetOptions options) {
  return std::make_unique<ReplicaSetController>(kinds().replica_set, "replicaset-controller", options);
}
ControllerPtr make_replication_controller(ReplicaSetOptions options) {
  return std::make_unique<ReplicaSetController>(kinds().replication_controller, "replication-controller", options);
}

}  // namespace berth::controllers
