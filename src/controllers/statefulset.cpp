// StatefulSets: pods with names, one after the other (pkg/controller/statefulset).
#include "controllers/common.h"
#include "controllers/revisions.h"
#include "controllers/workloads.h"

namespace berth::controllers {
namespace {

constexpr const char* kRevisionLabel = "controller-revision-hash";

/// The pod's ordinal when its name is SET-ORDINAL; -1 otherwise.
std::int64_t ordinal_of(const std::string& set, const std::string& pod) {
  if (pod.size() <= set.size() + 1 || !pod.starts_with(set) || pod[set.size()] != '-') return -1;
  std::int64_t ordinal = -1;
  const char* begin = pod.data() + set.size() + 1;
  const auto [end, error] = std::from_chars(begin, pod.data() + pod.size(), ordinal);
  return error == std::errc{} && end == pod.data() + pod.size() ? ordinal : -1;
}

bool any_pod(const PodInfo&) { return true; }

std::string revision_of(const PodInfo& pod) {
  const std::string* label = pod.labels().get(kRevisionLabel);
  return label == nullptr ? std::string() : *label;
}

/// One set as a step sees it.
struct SetView {
  ObjectRef object;
  json::Value document;
  std::int64_t replicas = 1, start = 0, partition = 0;
  bool ordered = true, rolling = true;
  Duration min_ready{0};
  std::map<std::int64_t, PodRef> pods;
  Revisions revisions;
  std::string current, update;  ///< Revision names.

  [[nodiscard]] bool is_wanted(std::int64_t ordinal) const { return ordinal >= start && ordinal < start + replicas; }
};

class StatefulSetController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "statefulset-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().stateful_set, kinds().pod, kinds().controller_revision, kinds().persistent_volume_claim}; }
  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().pod) {
      enqueue_pod_owners(kinds().stateful_set, event, cache, sink, label_selector_of);
    } else if (event.kind == kinds().stateful_set) {
      sink.add(event.object().key());
    } else if (event.kind == kinds().controller_revision && event.object().controller_kind() == "StatefulSet") {
      sink.add(event.object().ns() + "/" + event.object().controller_name());
    }
  }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;
};

json::Object make_pod(const SetView& set, std::int64_t ordinal, const json::Value& pod_template, const std::string& revision) {
  const std::string pod_name = fmt::format("{}-{}", set.object->name(), ordinal);
  json::Value pod = pod_from_template(pod_template, kinds().stateful_set, *set.object, "");
  json::erase(pod, {"metadata", "generateName"});
  json::set(pod, {"metadata", "name"}, json::Value(pod_name));
  json::set(pod, {"metadata", "labels", "statefulset.kubernetes.io/pod-name"}, json::Value(pod_name));
  json::set(pod, {"metadata", "labels", "apps.kubernetes.io/pod-index"}, json::Value(std::to_string(ordinal)));
  json::set(pod, {"metadata", "labels", kRevisionLabel}, json::Value(revision));
  json::set(pod, {"spec", "hostname"}, json::Value(pod_name));
  if (const std::string_view service = json::get_string(set.document, {"spec", "serviceName"}); !service.empty()) json::set(pod, {"spec", "subdomain"}, json::Value(service));
  json::Array volumes;
  std::set<std::string> claimed;
  for (const json::Value& claim : json::get_array(set.document, {"spec", "volumeClaimTemplates"})) {
    const std::string claim_name(json::get_string(claim, {"metadata", "name"}));
    claimed.insert(claim_name);
    volumes.push_back(json::Object{{"name", claim_name}, {"persistentVolumeClaim", json::Object{{"claimName", claim_name + "-" + pod_name}, {"readOnly", false}}}});
  }
  for (const json::Value& volume : json::get_array(pod, {"spec", "volumes"}))
    if (!claimed.contains(std::string(json::get_string(volume, {"name"})))) volumes.push_back(volume);
  if (!volumes.empty()) json::set(pod, {"spec", "volumes"}, std::move(volumes));
  return pod.get_object();
}

void create_claims(Plan& plan, const SetView& set, const std::string& pod_name, const Cache& cache) {
  for (const json::Value& claim_template : json::get_array(set.document, {"spec", "volumeClaimTemplates"})) {
    const std::string name = std::string(json::get_string(claim_template, {"metadata", "name"})) + "-" + pod_name;
    if (cache.get(kinds().persistent_volume_claim, set.object->ns(), name)) continue;
    json::Object labels = json::get_object(claim_template, {"metadata", "labels"});
    for (const auto& label : json::get_object(set.document, {"spec", "selector", "matchLabels"})) labels[label.key()] = label.value();
    json::Object metadata{{"name", name}, {"namespace", set.object->ns()}, {"labels", std::move(labels)}};
    if (const json::Value* annotations = json::find(claim_template, {"metadata", "annotations"})) metadata["annotations"] = *annotations;
    if (json::get_string(set.document, {"spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"}) == "Delete") metadata["ownerReferences"] = json::Array{owner_reference(kinds().stateful_set, *set.object)};
    Write write = create_object(kinds().persistent_volume_claim, set.object->ns(),
                                json::Object{{"apiVersion", "v1"}, {"kind", "PersistentVolumeClaim"}, {"metadata", std::move(metadata)}, {"spec", json::get_object(claim_template, {"spec"})}});
    write.on_success = note_about(kinds().stateful_set, *set.object, "Normal", "SuccessfulCreate", fmt::format("create Claim {} Pod {} in StatefulSet {} success", name, pod_name, set.object->name()));
    write.on_failure = note_about(kinds().stateful_set, *set.object, "Warning", "FailedCreate", fmt::format("create Claim {} for Pod {} in StatefulSet {} failed error: {{}}", name, pod_name, set.object->name()));
    plan.writes.push_back(std::move(write));
  }
}

void create_pod(Plan& plan, const SetView& set, std::int64_t ordinal, const Cache& cache) {
  // While an update runs, pods below the partition (or those still counted as current) come back with the old template.
  const std::int64_t current_until = set.start + (json::find(set.document, {"spec", "updateStrategy", "rollingUpdate"}) == nullptr ? json::get_int(set.document, {"status", "currentReplicas"}) : set.partition);
  const bool old = set.rolling && set.current != set.update && ordinal < current_until;
  const Revision* revision = old ? set.revisions.find(set.current) : nullptr;
  json::Value pod_template = json::get_object(set.document, {"spec", "template"});
  if (revision != nullptr && revision->pod_template() != nullptr) {
    pod_template = *revision->pod_template();
    json::erase(pod_template, {"$patch"});
  }
  const std::string pod_name = fmt::format("{}-{}", set.object->name(), ordinal);
  create_claims(plan, set, pod_name, cache);
  Write write = create_object(kinds().pod, set.object->ns(), make_pod(set, ordinal, pod_template, revision != nullptr ? set.current : set.update));
  write.stage = 1;
  write.on_success = note_about(kinds().stateful_set, *set.object, "Normal", "SuccessfulCreate", fmt::format("create Pod {} in StatefulSet {} successful", pod_name, set.object->name()));
  write.on_failure = note_about(kinds().stateful_set, *set.object, "Warning", "FailedCreate", fmt::format("create Pod {} in StatefulSet {} failed error: {{}}", pod_name, set.object->name()));
  plan.writes.push_back(std::move(write));
}

void delete_pod(Plan& plan, const SetView& set, const PodInfo& pod) {
  Write write = delete_object(kinds().pod, *pod.object);
  write.stage = 1;
  write.on_success = note_about(kinds().stateful_set, *set.object, "Normal", "SuccessfulDelete", fmt::format("delete Pod {} in StatefulSet {} successful", pod.name(), set.object->name()));
  plan.writes.push_back(std::move(write));
}

bool is_healthy(const SetView& set, const PodInfo& pod, TimePoint now) { return pod.phase == PodPhase::kRunning && !pod.deleting && pod.is_available(set.min_ready, now); }

/// Claims of pods that are scaled away go with them where the policy says so.
void bind_condemned_claims(Plan& plan, const SetView& set, const PodInfo& pod, const Cache& cache) {
  if (json::get_string(set.document, {"spec", "persistentVolumeClaimRetentionPolicy", "whenScaled"}) != "Delete") return;
  for (const json::Value& claim_template : json::get_array(set.document, {"spec", "volumeClaimTemplates"})) {
    const ObjectRef claim = cache.get(kinds().persistent_volume_claim, pod.ns(), std::string(json::get_string(claim_template, {"metadata", "name"})) + "-" + pod.name());
    if (!claim || claim->is_deleting()) continue;
    const json::Value document = claim->document();
    json::Array owners = json::get_array(document, {"metadata", "ownerReferences"});
    if (std::any_of(owners.begin(), owners.end(), [&](const json::Value& owner) { return json::get_string(owner, {"uid"}) == pod.uid(); })) continue;
    owners.push_back(owner_reference(kinds().pod, *pod.object, false));
    plan.writes.push_back(patch_object(kinds().persistent_volume_claim, *claim, {{"metadata", json::Object{{"ownerReferences", std::move(owners)}}}}));
  }
}

/// Makes the wanted pods; false when an ordered set has to wait.
bool fill(Plan& plan, const SetView& set, TimePoint now, const Cache& cache) {
  for (std::int64_t ordinal = set.start; ordinal < set.start + set.replicas; ++ordinal) {
    const auto it = set.pods.find(ordinal);
    if (it == set.pods.end()) {
      create_pod(plan, set, ordinal, cache);
      if (set.ordered) return false;
      continue;
    }
    const PodInfo& pod = *it->second;
    if (pod.is_finished() && !pod.deleting) {
      plan.events.push_back(note_about(kinds().stateful_set, *set.object, "Warning", "RecreatingFailedPod",
                                       fmt::format("StatefulSet {}/{} is recreating failed Pod {}", pod.ns(), set.object->name(), pod.name())));
      delete_pod(plan, set, pod);
      if (set.ordered) return false;
      continue;
    }
    if (set.ordered && !is_healthy(set, pod, now)) return false;
  }
  return true;
}

/// Removes the pods that are not wanted, highest first; false when an ordered set has to wait.
bool drain(Plan& plan, const SetView& set, const Cache& cache) {
  const PodInfo* first_unhealthy = nullptr;
  for (const auto& [ordinal, pod] : set.pods)
    if (first_unhealthy == nullptr && !(pod->ready && !pod->deleting)) first_unhealthy = pod.get();
  for (auto it = set.pods.rbegin(); it != set.pods.rend(); ++it) {
    const PodInfo& pod = *it->second;
    if (set.is_wanted(it->first)) continue;
    if (pod.deleting) {
      if (set.ordered) return false;
      continue;
    }
    if (set.ordered && !pod.ready && &pod != first_unhealthy) return false;
    bind_condemned_claims(plan, set, pod, cache);
    delete_pod(plan, set, pod);
    if (set.ordered) return false;
  }
  return true;
}

/// One step of a rolling update, from the top down to the partition.
void roll_pods(Plan& plan, const SetView& set, TimePoint now) {
  if (!set.rolling) return;
  for (auto it = set.pods.rbegin(); it != set.pods.rend(); ++it) {
    if (it->first < set.start + set.partition) return;
    if (!set.is_wanted(it->first)) continue;
    const PodInfo& pod = *it->second;
    if (revision_of(pod) != set.update && !pod.deleting) return delete_pod(plan, set, pod);
    if (!is_healthy(set, pod, now)) return;
  }
}

json::Object status_of(const SetView& set, TimePoint now) {
  std::int64_t ready = 0, available = 0, current = 0, updated = 0, replicas = 0, updated_ready = 0;
  for (const auto& [ordinal, pod] : set.pods) {
    ++replicas;
    const bool is_ready = pod->phase == PodPhase::kRunning && pod->ready;
    ready += is_ready;
    available += is_ready && pod->is_available(set.min_ready, now);
    if (pod->deleting || pod->is_finished()) continue;
    current += revision_of(*pod) == set.current;
    updated += revision_of(*pod) == set.update;
    updated_ready += revision_of(*pod) == set.update && is_ready;
  }
  std::string current_revision = set.current;
  if (set.rolling && set.current != set.update && updated == set.replicas && updated_ready == set.replicas && replicas == set.replicas) {
    current_revision = set.update;
    current = updated;
  }
  json::Object status = json::get_object(set.document, {"status"});
  status["replicas"] = replicas;
  for (const auto& [field, count] : {std::pair{"readyReplicas", ready}, {"currentReplicas", current}, {"updatedReplicas", updated}}) {
    if (count != 0) status[field] = count;
    else status.erase(field);
  }
  status["availableReplicas"] = available;
  status["observedGeneration"] = json::get_int(set.document, {"metadata", "generation"});
  status["currentRevision"] = current_revision;
  status["updateRevision"] = set.update;
  if (!status.contains("collisionCount")) status["collisionCount"] = 0;
  return status;
}

Plan StatefulSetController::reconcile(const std::string& key, TimePoint now, const Cache& cache) {
  Plan plan;
  const auto [ns, name] = split_key(key);
  SetView set;
  set.object = cache.get(kinds().stateful_set, ns, name);
  if (!set.object) return plan;
  set.document = set.object->document();
  const model::Selector selector = label_selector_of(set.document);
  if (selector.is_nothing() || selector.is_everything()) return plan;
  set.replicas = json::get_int(set.document, {"spec", "replicas"}, 1);
  set.start = json::get_int(set.document, {"spec", "ordinals", "start"});
  set.ordered = json::get_string(set.document, {"spec", "podManagementPolicy"}) != "Parallel";
  set.rolling = json::get_string(set.document, {"spec", "updateStrategy", "type"}) != "OnDelete";
  set.partition = json::get_int(set.document, {"spec", "updateStrategy", "rollingUpdate", "partition"});
  set.min_ready = seconds_at(set.document, {"spec", "minReadySeconds"});
  Claim claim = claim_pods(kinds().stateful_set, *set.object, selector, cache, any_pod);
  // Only pods with the set's names are adopted: others can never be one of its replicas.
  std::erase_if(claim.writes, [&](const Write& write) { return ordinal_of(name, write.name) < 0; });
  plan.writes = std::move(claim.writes);
  for (const PodRef& pod : claim.pods)
    if (const std::int64_t ordinal = ordinal_of(name, pod->name()); ordinal >= 0) set.pods[ordinal] = pod;
  set.revisions = sync_revisions(plan, kinds().stateful_set, *set.object, set.document, cache);
  set.update = set.revisions.update_name;
  set.current = json::get_string(set.document, {"status", "currentRevision"}, set.update);
  if (set.current.empty()) set.current = set.update;
  if (!set.object->is_deleting() && fill(plan, set, now, cache) && drain(plan, set, cache)) roll_pods(plan, set, now);
  std::set<std::string> live = {set.current, set.update};
  for (const PodRef& pod : claim.pods) live.insert(revision_of(*pod));
  truncate_history(plan, set.document, set.revisions, live);
  if (auto write = patch_status(kinds().stateful_set, *set.object, set.document, status_of(set, now))) plan.writes.push_back(std::move(*write));
  plan.requeue_after = next_availability(claim.pods, set.min_ready, now);
  return plan;
}

}  // namespace

ControllerPtr make_statefulset_controller() { return std::make_unique<StatefulSetController>(); }

}  // namespace berth::controllers
