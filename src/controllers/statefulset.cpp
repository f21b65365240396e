// StatefulSets: pods with names, one after the other (pkg/controller/statefulset).
#include "controllers/common.h"
#include "controllers/revisions.h"
#include "controllers/workloads.h"

namespace berth::controllers {
namespace {

constexpr std::int64_t kBurst = 500;  ///< Pods that one step makes at most.
constexpr const char* kRevisionLabel = "controller-revision-hash";
constexpr const char* kPodNameLabel = "statefulset.kubernetes.io/pod-name";
constexpr const char* kPodIndexLabel = "apps.kubernetes.io/pod-index";

/// The pod's ordinal when its name is SET-ORDINAL; -1 otherwise.
std::int64_t ordinal_of(const std::string& set, const std::string& pod) {
  if (pod.size() <= set.size() + 1 || !pod.starts_with(set) || pod[set.size()] != '-') return -1;
  std::int64_t ordinal = -1;
  const char* begin = pod.data() + set.size() + 1;
  const auto [end, error] = std::from_chars(begin, pod.data() + pod.size(), ordinal);
  return error == std::errc{} && end == pod.data() + pod.size() ? ordinal : -1;
}

std::string revision_of(const PodInfo& pod) {
  const std::string* label = pod.labels().get(kRevisionLabel);
  return label == nullptr ? std::string() : *label;
}

/// One set as a step sees it.
struct SetView {
  ObjectRef object;
  json::Value document;
  std::int64_t replicas = 1, start = 0, partition = 0;
  std::optional<std::int64_t> max_unavailable;  ///< nullopt: one pod after the other, each waited for.
  bool ordered = true, rolling = true;
  Duration min_ready{0};
  std::map<std::int64_t, PodRef> pods;
  Revisions revisions;
  std::string current, update;  ///< Revision names.

  [[nodiscard]] std::size_t claim_templates() const {
    return std::max<std::size_t>(json::get_array(document, {"spec", "volumeClaimTemplates"}).size(), 1);
  }
  [[nodiscard]] bool is_wanted(std::int64_t ordinal) const { return ordinal >= start && ordinal < start + replicas; }
  /// Not running, not ready for long enough, or on its way out.
  [[nodiscard]] bool is_unavailable(const PodInfo& pod, TimePoint now) const {
    return pod.phase != PodPhase::kRunning || pod.deleting || !pod.is_available(min_ready, now);
  }
};

class StatefulSetController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "statefulset-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    return {kinds().stateful_set, kinds().pod, kinds().controller_revision, kinds().persistent_volume_claim};
  }
  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().pod) {
      enqueue_pod_owners(kinds().stateful_set, event, cache, sink);
    } else if (event.kind == kinds().stateful_set) {
      sink.add(event.object().key());
    } else if (event.kind == kinds().controller_revision && event.object().controller_kind() == "StatefulSet") {
      sink.add(event.object().ns() + "/" + event.object().controller_name());
    } else if (event.kind == kinds().persistent_volume_claim && !event.after) {
      // A pod may have waited for the old claim to go: claims are called TEMPLATE-SET-ORDINAL.
      cache.for_each_in(kinds().stateful_set, event.before->ns(), [&](const ObjectRef& set) {
        if (event.before->name().find(fmt::format("-{}-", set->name())) != std::string::npos) sink.add(set->key());
      });
    }
  }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;
};

json::Object make_pod(const SetView& set, std::int64_t ordinal, const json::Value& pod_template, const std::string& revision) {
  const std::string pod_name = fmt::format("{}-{}", set.object->name(), ordinal);
  json::Value pod = pod_from_template(pod_template, kinds().stateful_set, *set.object, set.object->name() + "-");
  json::set(pod, {"metadata", "name"}, json::Value(pod_name));
  json::set(pod, {"metadata", "labels", kPodNameLabel}, json::Value(pod_name));
  json::set(pod, {"metadata", "labels", kPodIndexLabel}, json::Value(std::to_string(ordinal)));
  json::set(pod, {"metadata", "labels", kRevisionLabel}, json::Value(revision));
  json::set(pod, {"spec", "hostname"}, json::Value(pod_name));
  if (const std::string_view service = json::get_string(set.document, {"spec", "serviceName"}); !service.empty())
    json::set(pod, {"spec", "subdomain"}, json::Value(service));
  json::Array volumes;
  std::set<std::string> claimed;
  for (const json::Value& claim : json::get_array(set.document, {"spec", "volumeClaimTemplates"})) {
    const std::string claim_name(json::get_string(claim, {"metadata", "name"}));
    claimed.insert(claim_name);
    volumes.push_back(
        json::Object{{"name", claim_name}, {"persistentVolumeClaim", json::Object{{"claimName", claim_name + "-" + pod_name}}}});
  }
  for (const json::Value& volume : json::get_array(pod, {"spec", "volumes"}))
    if (!claimed.contains(std::string(json::get_string(volume, {"name"})))) volumes.push_back(volume);
  if (!volumes.empty()) json::set(pod, {"spec", "volumes"}, std::move(volumes));
  return pod.get_object();
}

std::string claim_name(const json::Value& claim_template, const std::string& pod_name) {
  return std::string(json::get_string(claim_template, {"metadata", "name"})) + "-" + pod_name;
}

/// A claim that goes with a former pod of this name: the garbage collector has yet to see to it.
bool is_left_behind(const Object& claim, const std::string& pod_name, const Cache& cache) {
  for (const OwnerReference& owner : owner_references(*claim.parsed())) {
    if (owner.kind != "Pod" || owner.name != pod_name) continue;
    const PodRef pod = cache.pod(claim.ns(), pod_name);
    if (!pod || pod->uid() != owner.uid) return true;
  }
  return false;
}

/// The claims that the pod needs and the cluster does not have. False: one of them is on its way out, or there are more than one plan has
/// room for, so the pod has to wait.
bool create_claims(Plan& plan, const SetView& set, const std::string& pod_name, const Cache& cache) {
  for (const json::Value& claim_template : json::get_array(set.document, {"spec", "volumeClaimTemplates"})) {
    const std::string name = claim_name(claim_template, pod_name);
    if (const ObjectRef present = cache.get(kinds().persistent_volume_claim, set.object->ns(), name)) {
      if (is_left_behind(*present, pod_name, cache)) return false;
      if (present->is_deleting()) {
        if (!cache.pod(set.object->ns(), pod_name) && plan.events.size() < kBurst)
          plan.events.push_back(note_about(
              kinds().stateful_set, *set.object, "Warning", "FailedCreate",
              fmt::format("Create Pod {} in StatefulSet {} failed error: pvc {} is being deleted", pod_name, set.object->name(), name)));
        return false;
      }
      continue;
    }
    if (plan.is_full()) return false;
    json::Object labels = json::get_object(claim_template, {"metadata", "labels"});
    for (const auto& label : json::get_object(set.document, {"spec", "selector", "matchLabels"})) labels[label.key()] = label.value();
    json::Object metadata{{"name", name}, {"namespace", set.object->ns()}, {"labels", std::move(labels)}};
    if (const json::Value* annotations = json::find(claim_template, {"metadata", "annotations"})) metadata["annotations"] = *annotations;
    if (json::get_string(set.document, {"spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"}) == "Delete")
      metadata["ownerReferences"] = json::Array{owner_reference(kinds().stateful_set, *set.object)};
    Write write = create_object(kinds().persistent_volume_claim, set.object->ns(),
                                json::Object{{"apiVersion", "v1"},
                                             {"kind", "PersistentVolumeClaim"},
                                             {"metadata", std::move(metadata)},
                                             {"spec", json::get_object(claim_template, {"spec"})}});
    write.on_success = note_about(kinds().stateful_set, *set.object, "Normal", "SuccessfulCreate",
                                  fmt::format("Create Claim {} Pod {} in StatefulSet {} success", name, pod_name, set.object->name()));
    write.on_failure =
        note_about(kinds().stateful_set, *set.object, "Warning", "FailedCreate",
                   fmt::format("Create Claim {} for Pod {} in StatefulSet {} failed error: {{}}", name, pod_name, set.object->name()));
    write.is_quiet_where_it_exists = true;
    plan.add(std::move(write), set.object->text_bytes() / set.claim_templates());
  }
  return true;
}

/// Why claims are looked at: with a pod that is made or waits to start, with one that runs, with one that is one too many.
enum class Occasion { kStart, kRunning, kCondemned };

EventNote note_of(const SetView& set, std::string_view type, std::string_view reason, std::string message) {
  return note_about(kinds().stateful_set, *set.object, type, reason, std::move(message));
}

/// The owners that persistentVolumeClaimRetentionPolicy gives a claim: the set where its deletion takes the claim, the pod where its
/// scaling away does (KEP-1847). nullopt: they are as they should be, or not ours to touch. `foreign`: somebody else controls it; then only
/// our own marks go.
std::optional<json::Array> owners_of_claim(const SetView& set, const Object& claim, const std::string& pod_name, const Object* pod,
                                           bool condemned, bool& foreign) {
  const auto deletes = [&](const char* when) {
    return json::get_string(set.document, {"spec", "persistentVolumeClaimRetentionPolicy", when}) == "Delete";
  };
  const bool by_pod = deletes("whenScaled") && condemned, by_set = deletes("whenDeleted") && !by_pod;
  bool has_set = false, has_pod = false, half = false;
  json::Array others;
  foreign = false;
  const auto parsed = claim.parsed();
  const json::Value& document = *parsed;
  for (const json::Value& owner : json::get_array(document, {"metadata", "ownerReferences"})) {
    const std::string_view kind = json::get_string(owner, {"kind"}), name = json::get_string(owner, {"name"});
    const bool controls = json::get_bool(owner, {"controller"});
    const bool is_set = kind == "StatefulSet" && name == set.object->name(), is_pod = kind == "Pod" && name == pod_name;
    const std::string_view uid = is_set ? std::string_view(set.object->uid()) : pod == nullptr ? std::string_view() : pod->uid();
    // A former set's or pod's claim: the garbage collector sees to it.
    if ((is_set || is_pod) && json::get_string(owner, {"uid"}) != uid) return std::nullopt;
    has_set |= is_set;
    has_pod |= is_pod;
    half |= (is_set || is_pod) && !controls;
    foreign |= !is_set && !is_pod && controls && (deletes("whenScaled") || deletes("whenDeleted"));
    if (!is_set && !is_pod) others.push_back(owner);
  }
  if (foreign) return has_set || has_pod ? std::optional(std::move(others)) : std::nullopt;
  if (!half && has_set == by_set && has_pod == (by_pod && pod != nullptr)) return std::nullopt;
  if (by_pod && pod != nullptr) others.push_back(owner_reference(kinds().pod, *pod));
  if (by_set) others.push_back(owner_reference(kinds().stateful_set, *set.object));
  return others;
}

/// Makes the owners of a pod's claims right. `pod` is null before it is made.
void own_claims(Plan& plan, const SetView& set, const std::string& pod_name, const Object* pod, Occasion occasion, const Cache& cache) {
  Write* last = nullptr;
  for (const json::Value& claim_template : json::get_array(set.document, {"spec", "volumeClaimTemplates"})) {
    const ObjectRef claim = cache.get(kinds().persistent_volume_claim, set.object->ns(), claim_name(claim_template, pod_name));
    if (!claim || claim->is_deleting()) continue;
    bool foreign = false;
    auto owners = owners_of_claim(set, *claim, pod_name, pod, occasion == Occasion::kCondemned, foreign);
    if (foreign && (owners || occasion == Occasion::kStart) && plan.events.size() < kBurst)
      plan.events.push_back(note_of(set, "Warning", "ConflictingController",
                                    fmt::format("PersistentVolumeClaim {} has a conflicting OwnerReference that acts as a manging "
                                                "controller, the retention policy is ignored for this claim",
                                                claim->name())));
    if (!owners) continue;
    json::Value value = owners->empty() ? json::Value(nullptr) : json::Value(std::move(*owners));
    plan.writes.push_back(
        patch_object(kinds().persistent_volume_claim, *claim, {{"metadata", json::Object{{"ownerReferences", std::move(value)}}}}));
    last = &plan.writes.back();
  }
  if (last == nullptr || occasion != Occasion::kRunning) return;
  last->on_success =
      note_of(set, "Normal", "SuccessfulUpdate", fmt::format("Update Pod {} in StatefulSet {} successful", pod_name, set.object->name()));
}

/// An adopted pod may lack the labels that name it.
void keep_identity(Plan& plan, const SetView& set, std::int64_t ordinal, const PodInfo& pod) {
  json::Object missing;
  const std::string* name = pod.labels().get(kPodNameLabel);
  const std::string* index = pod.labels().get(kPodIndexLabel);
  if (name == nullptr || *name != pod.name()) missing[kPodNameLabel] = pod.name();
  if (index == nullptr) missing[kPodIndexLabel] = std::to_string(ordinal);
  if (missing.empty() || pod.deleting) return;
  Write write = patch_object(kinds().pod, *pod.object, {{"metadata", json::Object{{"labels", std::move(missing)}}}});
  write.on_success = note_about(kinds().stateful_set, *set.object, "Normal", "SuccessfulUpdate",
                                fmt::format("Update Pod {} in StatefulSet {} successful", pod.name(), set.object->name()));
  write.on_failure = note_about(kinds().stateful_set, *set.object, "Warning", "FailedUpdate",
                                fmt::format("Update Pod {} in StatefulSet {} failed error: {{}}", pod.name(), set.object->name()));
  plan.writes.push_back(std::move(write));
}

void create_pod(Plan& plan, const SetView& set, std::int64_t ordinal, const Cache& cache) {
  // While an update runs, pods below the partition come back with the old template.
  const bool old = set.rolling && set.current != set.update && ordinal < set.start + set.partition;
  const Revision* revision = old ? set.revisions.find(set.current) : nullptr;
  json::Value pod_template = json::get_object(set.document, {"spec", "template"});
  if (revision != nullptr && revision->pod_template() != nullptr) {
    pod_template = *revision->pod_template();
    json::erase(pod_template, {"$patch"});
  }
  const std::string pod_name = fmt::format("{}-{}", set.object->name(), ordinal);
  if (!create_claims(plan, set, pod_name, cache)) return;
  own_claims(plan, set, pod_name, nullptr, Occasion::kStart, cache);
  Write write =
      create_object(kinds().pod, set.object->ns(), make_pod(set, ordinal, pod_template, revision != nullptr ? set.current : set.update));
  write.stage = 1;
  write.on_success = note_about(kinds().stateful_set, *set.object, "Normal", "SuccessfulCreate",
                                fmt::format("Create Pod {} in StatefulSet {} successful", pod_name, set.object->name()));
  write.on_failure = note_about(kinds().stateful_set, *set.object, "Warning", "FailedCreate",
                                fmt::format("Create Pod {} in StatefulSet {} failed error: {{}}", pod_name, set.object->name()));
  // As Kubernetes: whoever has the name already is seen, or adopted, in a moment (stateful_pod_control.go).
  write.is_quiet_where_it_exists = true;
  plan.add(std::move(write), set.object->text_bytes());
}

void delete_pod(Plan& plan, const SetView& set, const PodInfo& pod) {
  Write write = delete_object(kinds().pod, *pod.object);
  write.stage = 1;
  write.on_success = note_about(kinds().stateful_set, *set.object, "Normal", "SuccessfulDelete",
                                fmt::format("Delete Pod {} in StatefulSet {} successful", pod.name(), set.object->name()));
  write.on_failure = note_about(kinds().stateful_set, *set.object, "Warning", "FailedDelete",
                                fmt::format("Delete Pod {} in StatefulSet {} failed error: {{}}", pod.name(), set.object->name()));
  plan.writes.push_back(std::move(write));
}

/// Makes the wanted pods, a burst of them at a time; false when the set has to wait before it removes or updates any.
bool fill(Plan& plan, const SetView& set, TimePoint now, const Cache& cache) {
  std::int64_t room = burst_of(*set.object, kBurst);
  for (std::int64_t ordinal = set.start; ordinal < set.start + set.replicas; ++ordinal) {
    if (plan.is_full()) return false;
    const auto it = set.pods.find(ordinal);
    if (it == set.pods.end()) {
      if (room == 0) return false;
      const std::size_t before = plan.writes.size();
      create_pod(plan, set, ordinal, cache);
      if (set.ordered) return false;
      // What has to wait for its claims takes nobody's place.
      room -= plan.writes.size() != before;
      continue;
    }
    const PodInfo& pod = *it->second;
    if (pod.is_finished()) {
      // Succeeded as well: an evicted pod's phase follows its containers' exit codes.
      if (!pod.deleting) delete_pod(plan, set, pod);
      if (set.ordered) return false;
      continue;
    }
    if (pod.phase == PodPhase::kPending && create_claims(plan, set, pod.name(), cache))
      own_claims(plan, set, pod.name(), pod.object.get(), Occasion::kStart, cache);
    if (set.ordered && set.is_unavailable(pod, now)) return false;
    keep_identity(plan, set, ordinal, pod);
    if (pod.phase != PodPhase::kPending) own_claims(plan, set, pod.name(), pod.object.get(), Occasion::kRunning, cache);
  }
  return true;
}

/// Removes the pods that are not wanted, highest first; false when an ordered set has to wait.
bool drain(Plan& plan, const SetView& set, TimePoint now, const Cache& cache) {
  const PodInfo* first_unavailable = nullptr;
  for (const bool wanted : {true, false})
    for (const auto& [ordinal, pod] : set.pods)
      if (first_unavailable == nullptr && set.is_wanted(ordinal) == wanted && set.is_unavailable(*pod, now)) first_unavailable = pod.get();
  for (const auto& [ordinal, pod] : set.pods)
    if (!set.is_wanted(ordinal) && !plan.is_full()) own_claims(plan, set, pod->name(), pod->object.get(), Occasion::kCondemned, cache);
  for (auto it = set.pods.rbegin(); it != set.pods.rend(); ++it) {
    const PodInfo& pod = *it->second;
    if (set.is_wanted(it->first)) continue;
    if (plan.is_full()) return false;
    if (pod.deleting) {
      if (set.ordered) return false;
      continue;
    }
    if (set.ordered && set.is_unavailable(pod, now) && &pod != first_unavailable) return false;
    delete_pod(plan, set, pod);
    if (set.ordered) return false;
  }
  return true;
}

/// One step of a rolling update, from the top down to the partition.
void roll_pods(Plan& plan, const SetView& set, TimePoint now) {
  if (!set.rolling) return;
  // With maxUnavailable: as many at once as that leaves; without, each is waited for.
  std::int64_t room = 1;
  if (set.max_unavailable) {
    room = *set.max_unavailable - set.replicas;  // As if none was there.
    for (const auto& [ordinal, pod] : set.pods)
      if (set.is_wanted(ordinal)) room += !set.is_unavailable(*pod, now);
  }
  std::int64_t expected = set.start + set.replicas;
  for (auto it = set.pods.lower_bound(expected); it != set.pods.begin() && room > 0;) {
    --it;
    if (it->first < set.start + set.partition || plan.is_full()) return;
    // One that is missing is on its way (Parallel): it is waited for like any other.
    if (!set.max_unavailable && it->first != --expected) return;
    const PodInfo& pod = *it->second;
    if (revision_of(pod) != set.update && !pod.deleting) {
      delete_pod(plan, set, pod);
      --room;
    } else if (!set.max_unavailable && set.is_unavailable(pod, now)) {
      return;
    }
  }
}

json::Object status_of(const SetView& set, TimePoint now) {
  std::int64_t ready = 0, available = 0, current = 0, updated = 0, replicas = 0;
  for (const auto& [ordinal, pod] : set.pods) {
    ++replicas;
    const bool is_ready = pod->phase == PodPhase::kRunning && pod->ready;
    ready += is_ready;
    available += is_ready && pod->is_available(set.min_ready, now);
    if (pod->deleting) continue;
    current += revision_of(*pod) == set.current;
    updated += revision_of(*pod) == set.update;
  }
  std::string current_revision = set.current;
  if (set.rolling && updated == set.replicas && ready == set.replicas && replicas == set.replicas) {
    current_revision = set.update;
    current = updated;
  }
  json::Object status = json::get_object(set.document, {"status"});
  status["replicas"] = replicas;
  for (const auto& [field, count] : {std::pair{"readyReplicas", ready}, {"currentReplicas", current}, {"updatedReplicas", updated}}) {
    if (count != 0)
      status[field] = count;
    else
      status.erase(field);
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
  if (const json::Value* most = json::find(set.document, {"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}))
    set.max_unavailable = std::max<std::int64_t>(1, scaled_value(most, set.replicas, false, 1));
  Claim claim = claim_pods(kinds().stateful_set, *set.object, selector, cache, any_pod);
  // Only pods with the set's names are adopted: others can never be one of its replicas.
  std::erase_if(claim.writes, [&](const Write& write) { return ordinal_of(name, write.name) < 0; });
  plan.writes = std::move(claim.writes);
  for (const PodRef& pod : claim.pods)
    if (const std::int64_t ordinal = ordinal_of(name, pod->name()); ordinal >= 0) set.pods[ordinal] = pod;
  if (set.object->is_deleting()) {
    // Its revisions are being collected: one made anew would go as fast as it came, over and over.
    set.update = json::get_string(set.document, {"status", "updateRevision"});
    set.current = json::get_string(set.document, {"status", "currentRevision"}, set.update);
    if (auto write = patch_status(kinds().stateful_set, *set.object, set.document, status_of(set, now)))
      plan.writes.push_back(std::move(*write));
    return plan;
  }
  set.revisions = sync_revisions(plan, kinds().stateful_set, *set.object, set.document, cache);
  set.update = set.revisions.update_name;
  set.current = json::get_string(set.document, {"status", "currentRevision"}, set.update);
  if (set.revisions.find(set.current) == nullptr) set.current = set.update;  // None yet, or somebody deleted it.
  if (fill(plan, set, now, cache) && drain(plan, set, now, cache)) roll_pods(plan, set, now);
  std::set<std::string> live = {set.current, set.update};
  for (const PodRef& pod : claim.pods) live.insert(revision_of(*pod));
  truncate_history(plan, set.document, set.revisions, live);
  if (auto write = patch_status(kinds().stateful_set, *set.object, set.document, status_of(set, now)))
    plan.writes.push_back(std::move(*write));
  plan.requeue_after = next_availability(claim.pods, set.min_ready, now);
  return plan;
}

}  // namespace

ControllerPtr make_statefulset_controller() { return std::make_unique<StatefulSetController>(); }

}  // namespace berth::controllers
