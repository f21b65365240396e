// Deployments: revisions of a pod template as ReplicaSets, rolled out step by step (pkg/controller/deployment).
#include "controllers/deployment_model.h"
#include "controllers/pod_template_hash.h"
#include "controllers/workloads.h"

namespace berth::controllers {
namespace {

using namespace deployment;

class DeploymentController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "deployment-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().deployment, kinds().replica_set, kinds().pod}; }
  void on_event(const Event& event, const Cache& cache, TimePoint now, KeySink& sink) override;
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;
  void on_result(const std::string& key, const Write& write, const ApiResult<json::Value>& result, TimePoint) override {
    if (write.tag != "create-set") return;
    if (result)
      create_failures_.erase(key);
    else
      create_failures_[key] = fmt::format("Failed to create new replica set \"{}\": {}", write.name, result.error().message);
  }

 private:
  Plan roll_out(View& view, TimePoint now, const Cache& cache, Plan plan);
  void create_new_set(Plan& plan, View& view, TimePoint now, const Cache& cache);
  void keep_revision(Plan& plan, View& view);
  void find_new_set(Plan& plan, View& view, TimePoint now);
  void finish(Plan& plan, View& view, const json::Object& status, std::int64_t stage = 0);

  std::map<std::string, std::string> create_failures_;
};

View make_view(const ObjectRef& object, json::Value document, const std::vector<ObjectRef>& sets) {
  View view;
  view.object = object;
  view.wanted = read_wanted(document);
  view.document = std::move(document);
  for (const ObjectRef& owned : sets) {
    Set set;
    set.object = owned;
    set.document = owned->document();
    set.replicas = json::get_int(set.document, {"spec", "replicas"}, 1);
    set.status_replicas = json::get_int(set.document, {"status", "replicas"});
    set.ready = json::get_int(set.document, {"status", "readyReplicas"});
    set.available = json::get_int(set.document, {"status", "availableReplicas"});
    if (const json::Value* terminating = json::find(set.document, {"status", "terminatingReplicas"}); terminating != nullptr)
      set.terminating = json::get_int(set.document, {"status", "terminatingReplicas"});
    set.is_observed = json::get_int(set.document, {"status", "observedGeneration"}) != 0;
    set.revision = set.annotation(kRevision, 0);
    set.created = read_time(set.document, {"metadata", "creationTimestamp"});
    view.sets.push_back(std::move(set));
  }
  std::sort(view.sets.begin(), view.sets.end(),
            [](const Set& a, const Set& b) { return std::tie(a.created, a.name()) < std::tie(b.created, b.name()); });
  if (const json::Value* wanted = json::find(view.document, {"spec", "template"})) {
    for (Set& set : view.sets) {
      const json::Value* have = json::find(set.document, {"spec", "template"});
      if (view.newest == nullptr && have != nullptr && same_template(*have, *wanted)) view.newest = &set;
    }
  }
  return view;
}

/// A Deployment's annotations, but for its own bookkeeping, are shown on its current ReplicaSet.
json::Object inherited_annotations(const json::Value& document) {
  json::Object annotations = json::get_object(document, {"metadata", "annotations"});
  for (const char* own : kOwnAnnotations) annotations.erase(own);
  return annotations;
}

/// The former revisions of a set, the newest last; the oldest are forgotten where the text would grow beyond 2000 characters.
std::string longer_history(std::string history, const std::string& revision) {
  constexpr std::size_t kMost = 2000;
  if (history.empty()) return revision;
  history += "," + revision;
  while (history.size() > kMost) {
    const std::size_t comma = history.find(',');
    if (comma == std::string::npos) break;
    history.erase(0, comma + 1);
  }
  return history;
}

std::int64_t next_revision(View& view) {
  std::int64_t highest = 0;
  for (const Set* set : view.old_sets()) highest = std::max(highest, set->revision);
  return highest + 1;
}

/// DEPLOYMENT-HASH, the Deployment's name cut where the whole would be too long for a name.
std::string set_name(const std::string& deployment, const std::string& hash) {
  constexpr std::size_t kLongestName = 253;
  return deployment.substr(0, kLongestName - 1 - hash.size()) + "-" + hash;
}

/// Whether pods of former templates are still there, terminating ones included (Recreate waits for them).
bool old_pods_remain(View& view, const Cache& cache) {
  for (const Set* set : view.old_sets()) {
    if (set->status_replicas > 0) return true;
    for (const PodRef& pod : cache.pods_controlled(set->object->uid()))
      if (!pod->is_finished()) return true;
  }
  return false;
}

bool is_scaling_event(View& view) {
  for (const Set* set : view.active_sets())
    if (set->annotation(kDesiredReplicas, view.wanted.replicas) != view.wanted.replicas) return true;
  return false;
}

void DeploymentController::on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) {
  if (event.kind == kinds().deployment) {
    sink.add(event.object().key());
    return;
  }
  if (event.kind == kinds().pod) {
    // Only Recreate waits for pods, and only for their end.
    if (event.after && !event.pod_after->is_finished()) return;
    const Object& pod = event.object();
    if (pod.controller_kind() != "ReplicaSet") return;
    const ObjectRef set = cache.get(kinds().replica_set, pod.ns(), pod.controller_name());
    if (set && set->controller_kind() == "Deployment") sink.add(set->ns() + "/" + set->controller_name());
    return;
  }
  for (const ObjectRef& set : {event.before, event.after})
    if (set && set->controller_kind() == "Deployment") sink.add(set->ns() + "/" + set->controller_name());
  if (event.after && event.after->controller_uid().empty())
    for (const ObjectRef& candidate : cache.selecting(kinds().deployment, event.after->ns(), event.after->labels()))
      sink.add(candidate->key());
}

Plan DeploymentController::reconcile(const std::string& key, TimePoint now, const Cache& cache) {
  Plan plan;
  const auto [ns, name] = split_key(key);
  const ObjectRef object = cache.get(kinds().deployment, ns, name);
  if (!object) {
    create_failures_.erase(key);
    return plan;
  }
  json::Value document = object->document();
  const model::Selector selector = label_selector_of(document);
  if (selector.is_everything()) {
    plan.events.push_back(note_about(kinds().deployment, *object, "Warning", "SelectingAll",
                                     "This deployment is selecting all pods. A non-empty selector is required."));
    return plan;
  }
  ObjectClaim claim = claim_objects(kinds().deployment, *object, selector, kinds().replica_set, cache);
  plan.writes = std::move(claim.writes);
  View view = make_view(object, std::move(document), claim.objects);
  if (object->is_deleting()) {
    finish(plan, view, rollout_status(view, now, plan.requeue_after, false));
    return plan;
  }
  return roll_out(view, now, cache, std::move(plan));
}

Plan DeploymentController::roll_out(View& view, TimePoint now, const Cache& cache, Plan plan) {
  const json::Value* progressing = find_condition(view.document, "Progressing");
  const std::string_view reason = progressing == nullptr ? std::string_view{} : json::get_string(*progressing, {"reason"});
  if (view.wanted.progress_deadline && reason != "ProgressDeadlineExceeded") {
    // A pause stops the deadline's clock, a resume starts it anew.
    json::Object status = json::get_object(view.document, {"status"});
    if (view.wanted.paused && reason != "DeploymentPaused") {
      set_deployment_condition(status, {"Progressing", "Unknown", "DeploymentPaused", "Deployment is paused"}, now);
      json::set(view.document, {"status"}, std::move(status));
    } else if (!view.wanted.paused && reason == "DeploymentPaused") {
      set_deployment_condition(status, {"Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed"}, now);
      json::set(view.document, {"status"}, std::move(status));
    }
  }
  if (!view.wanted.paused && roll_back(plan, view)) return plan;
  if (view.newest != nullptr) find_new_set(plan, view, now);
  if (view.wanted.paused || is_scaling_event(view)) {
    scale_proportionally(plan, view);
    if (view.wanted.paused) clean_history(plan, view);
    finish(plan, view, rollout_status(view, now, plan.requeue_after, false));
    return plan;
  }
  if (!view.wanted.rolling) {
    bool scaled = false;
    for (Set* set : view.old_sets())
      if (set->replicas > 0) scaled |= scale_set(plan, view, *set, 0);
    if (scaled || old_pods_remain(view, cache)) {
      finish(plan, view, rollout_status(view, now, plan.requeue_after, true));
      return plan;
    }
  }
  if (view.newest == nullptr) {
    create_new_set(plan, view, now, cache);
    return plan;
  }
  const bool scaled = view.wanted.rolling ? roll(plan, view) : scale_set(plan, view, *view.newest, view.wanted.replicas);
  json::Object status = rollout_status(view, now, plan.requeue_after, true);
  if (!scaled && is_complete(view, status)) clean_history(plan, view);
  finish(plan, view, status);
  return plan;
}

void DeploymentController::create_new_set(Plan& plan, View& view, TimePoint now, const Cache& cache) {
  const json::Value* pod_template = json::find(view.document, {"spec", "template"});
  if (pod_template == nullptr) return;
  const std::optional<std::int64_t> collisions = collision_count(view.document);
  const std::string hash = pod_template_hash(*pod_template, collisions);
  const std::string name = set_name(view.object->name(), hash);
  json::Object status = json::get_object(view.document, {"status"});
  if (cache.get(kinds().replica_set, view.object->ns(), name)) {
    // Somebody else's, or another template with this hash: the next step hashes with a higher count.
    status["collisionCount"] = collisions.value_or(0) + 1;
    finish(plan, view, status);
    return;
  }
  const std::int64_t replicas = new_set_replicas(view, 0);
  json::Object annotations = inherited_annotations(view.document);
  annotations[kRevision] = std::to_string(next_revision(view));
  annotations[kDesiredReplicas] = std::to_string(view.wanted.replicas);
  annotations[kMaxReplicas] = std::to_string(view.wanted.max_total());
  json::Value labelled = *pod_template;
  json::set(labelled, {"metadata", "labels", kHashLabel}, json::Value(hash));
  json::Value selector = json::get_object(view.document, {"spec", "selector"});
  json::set(selector, {"matchLabels", kHashLabel}, json::Value(hash));
  json::Object spec{{"replicas", replicas}, {"selector", std::move(selector)}};
  if (const std::int64_t min_ready = json::get_int(view.document, {"spec", "minReadySeconds"}); min_ready != 0)
    spec["minReadySeconds"] = min_ready;
  json::Object metadata{{"name", name},
                        {"namespace", view.object->ns()},
                        {"labels", json::get_object(labelled, {"metadata", "labels"})},
                        {"annotations", std::move(annotations)},
                        {"ownerReferences", json::Array{owner_reference(kinds().deployment, *view.object)}}};
  spec["template"] = std::move(labelled);
  Write write = create_object(
      kinds().replica_set, view.object->ns(),
      json::Object{{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"metadata", std::move(metadata)}, {"spec", std::move(spec)}});
  write.tag = "create-set";
  if (replicas > 0)
    write.on_success = note_about(kinds().deployment, *view.object, "Normal", "ScalingReplicaSet",
                                  fmt::format("Scaled up replica set {} from 0 to {}", name, replicas));
  write.on_failure = note_about(kinds().deployment, *view.object, "Warning", "ReplicaSetCreateError",
                                fmt::format("Failed to create new replica set \"{}\": {{}}", name));
  plan.writes.push_back(std::move(write));
  const auto failed = create_failures_.find(view.object->key());
  if (failed != create_failures_.end() && view.wanted.progress_deadline) {
    set_deployment_condition(status, {"Progressing", "False", "ReplicaSetCreateError", failed->second}, now);
    finish(plan, view, status);
  }
  // Only what is told at once: the counts follow with the set's first event.
  view.revision = std::to_string(next_revision(view));
  if (view.wanted.progress_deadline) {
    set_deployment_condition(status, {"Progressing", "True", "NewReplicaSetCreated", fmt::format("Created new replica set \"{}\"", name)},
                             now);
    plan.requeue_after = *view.wanted.progress_deadline + std::chrono::seconds(1);
  }
  finish(plan, view, status, 1);
}

/// What goes with finding the set of the present template: its bookkeeping, and a first condition where there was none.
void DeploymentController::find_new_set(Plan& plan, View& view, TimePoint now) {
  keep_revision(plan, view);
  if (!view.wanted.progress_deadline || find_condition(view.document, "Progressing") != nullptr) return;
  json::Object status = json::get_object(view.document, {"status"});
  set_deployment_condition(
      status, {"Progressing", "True", "FoundNewReplicaSet", fmt::format("Found new replica set \"{}\"", view.newest->name())}, now);
  json::set(view.document, {"status"}, std::move(status));
}

void DeploymentController::keep_revision(Plan& plan, View& view) {
  Set& set = *view.newest;
  const std::int64_t revision = next_revision(view);
  json::Object annotations = inherited_annotations(view.document);
  if (set.revision < revision) {
    annotations[kRevision] = std::to_string(revision);
    if (set.revision > 0) {
      annotations[kRevisionHistory] = longer_history(
          std::string(json::get_string(set.document, {"metadata", "annotations", kRevisionHistory})), std::to_string(set.revision));
    }
  }
  json::Object changed;
  for (const auto& field : annotations)
    if (field.value().is_string() &&
        json::get_string(set.document, {"metadata", "annotations", field.key()}) != json::as_view(field.value()))
      changed[field.key()] = field.value();
  json::Object patch;
  if (!changed.empty()) patch["metadata"] = json::Object{{"annotations", std::move(changed)}};
  if (const std::int64_t min_ready = json::get_int(view.document, {"spec", "minReadySeconds"});
      min_ready != json::get_int(set.document, {"spec", "minReadySeconds"}))
    patch["spec"] = json::Object{{"minReadySeconds", min_ready}};
  if (!patch.empty()) plan.writes.push_back(patch_object(kinds().replica_set, *set.object, std::move(patch), false));
  view.revision = std::to_string(std::max(revision, set.revision));
}

void DeploymentController::finish(Plan& plan, View& view, const json::Object& status, std::int64_t stage) {
  const auto seen_parsed = view.object->parsed();
  const json::Value& seen = *seen_parsed;
  json::Object patch;
  if (json::Object diff = merge_diff(json::get_object(seen, {"status"}), status); !diff.empty()) patch["status"] = std::move(diff);
  // The revision goes with the status: a changed annotation would count as another generation of the Deployment otherwise.
  if (!view.revision.empty() && json::get_string(seen, {"metadata", "annotations", kRevision}) != view.revision)
    patch["metadata"] = json::Object{{"annotations", json::Object{{kRevision, view.revision}}}};
  if (patch.empty()) return;
  Write write = patch_object(kinds().deployment, *view.object, std::move(patch), false);
  write.subresource = "status";
  write.stage = stage;
  plan.writes.push_back(std::move(write));
}

}  // namespace

ControllerPtr make_deployment_controller() { return std::make_unique<DeploymentController>(); }

}  // namespace berth::controllers
