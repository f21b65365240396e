#include "controllers/common.h"

#include <cmath>

namespace berth::controllers {
namespace {

json::Object status_of(const json::Value& document) { return json::get_object(document, {"status"}); }

void canonical_to(std::string& out, const json::Value& value) {
  if (const auto* array = value.if_array()) {
    out += '[';
    for (const json::Value& item : *array) {
      canonical_to(out, item);
      out += ',';
    }
    out += ']';
  } else if (const auto* object = value.if_object()) {
    std::vector<const json::Object::value_type*> fields;
    for (const auto& field : *object)
      if (!field.value().is_null()) fields.push_back(&field);
    std::sort(fields.begin(), fields.end(), [](const auto* a, const auto* b) { return a->key() < b->key(); });
    out += '{';
    for (const auto* field : fields) {
      json::serialize_to(out, json::Value(field->key()));
      out += ':';
      canonical_to(out, field->value());
      out += ',';
    }
    out += '}';
  } else {
    json::serialize_to(out, value);
  }
}

json::Array owners_without(const json::Value& document, std::string_view uid) {
  json::Array kept;
  for (const json::Value& owner : json::get_array(document, {"metadata", "ownerReferences"}))
    if (json::get_string(owner, {"uid"}) != uid) kept.push_back(owner);
  return kept;
}

Write adopt(Kind kind, const Object& object, Kind owner_kind, const Object& owner) {
  json::Array owners = owners_without(*object.parsed(), owner.uid());
  owners.push_back(owner_reference(owner_kind, owner));
  Write write = patch_object(kind, object, {{"metadata", json::Object{{"ownerReferences", std::move(owners)}}}});
  write.may_fail = true;  // Somebody else was faster: the next event decides anew.
  return write;
}

Write release(Kind kind, const Object& object, const Object& owner) {
  Write write =
      patch_object(kind, object, {{"metadata", json::Object{{"ownerReferences", owners_without(*object.parsed(), owner.uid())}}}});
  write.may_fail = true;
  return write;
}

int phase_rank(PodPhase phase) { return phase == PodPhase::kPending ? 0 : phase == PodPhase::kUnknown ? 1 : 2; }

/// Ages compare by order of magnitude (LogarithmicScaleDown), so that the choice among pods of about one age is random by uid.
int age_bucket(TimePoint since, TimePoint now) {
  if (since == TimePoint{}) return 0;
  const double seconds = std::max(1.0, std::chrono::duration<double>(now - since).count());
  return static_cast<int>(std::log2(seconds));
}

}  // namespace

json::Object merge_diff(const json::Object& before, const json::Object& after) {
  json::Object patch;
  for (const auto& field : before)
    if (!after.contains(field.key()) && !field.value().is_null()) patch[field.key()] = nullptr;
  for (const auto& field : after) {
    const json::Value* old = before.if_contains(field.key());
    if (old != nullptr && json::equal(*old, field.value())) continue;
    if (old != nullptr && old->is_object() && field.value().is_object()) {
      patch[field.key()] = merge_diff(old->get_object(), field.value().get_object());
    } else {
      patch[field.key()] = field.value();
    }
  }
  return patch;
}

std::optional<Write> patch_status(Kind kind, const Object& object, const json::Value& document, const json::Object& status, bool locked) {
  json::Object diff = merge_diff(status_of(document), status);
  if (diff.empty()) return std::nullopt;
  Write write = patch_object(kind, object, {{"status", std::move(diff)}}, locked);
  write.subresource = "status";
  return write;
}

Write patch_object(Kind kind, const Object& object, json::Object patch, bool locked) {
  json::Value body(std::move(patch));
  // Another object may have taken the name.
  json::set(body, {"metadata", "uid"}, json::Value(object.uid()));
  if (locked) json::set(body, {"metadata", "resourceVersion"}, json::Value(std::to_string(object.revision())));
  Write write;
  write.verb = Write::Verb::kPatch;
  write.kind = kind;
  write.ns = object.ns();
  write.name = object.name();
  write.uid = object.uid();
  write.body = std::move(body);
  return write;
}

Write delete_object(Kind kind, const Object& object) {
  Write write;
  write.verb = Write::Verb::kDelete;
  write.kind = kind;
  write.ns = object.ns();
  write.name = object.name();
  write.uid = object.uid();
  write.delete_options.precondition_uid = object.uid();
  write.delete_options.propagation = Propagation::kBackground;
  return write;
}

Write create_object(Kind kind, std::string ns, json::Value body) {
  Write write;
  write.verb = Write::Verb::kCreate;
  write.kind = kind;
  write.ns = std::move(ns);
  write.name = json::get_string(body, {"metadata", "name"});
  write.body = std::move(body);
  return write;
}

void plan_disruption(const Object& pod, std::string_view reason, std::string_view message, TimePoint now, Plan& plan) {
  json::Array conditions{json::Object{{"type", "DisruptionTarget"},
                                      {"status", "True"},
                                      {"reason", reason},
                                      {"message", message},
                                      {"observedGeneration", json::get_int(*pod.parsed(), {"metadata", "generation"})},
                                      {"lastTransitionTime", format_rfc3339(now)}}};
  Write mark = patch_object(kinds().pod, pod, {{"status", json::Object{{"conditions", std::move(conditions)}}}});
  mark.patch_type = PatchType::kStrategicMerge;
  mark.subresource = "status";
  plan.writes.push_back(std::move(mark));
  Write remove = delete_object(kinds().pod, pod);
  remove.stage = 1;
  plan.writes.push_back(std::move(remove));
}

json::Object owner_reference(Kind kind, const Object& owner, bool is_controller) {
  return {{"apiVersion", kind->api_version()}, {"kind", kind->kind},        {"name", owner.name()}, {"uid", owner.uid()},
          {"controller", is_controller},       {"blockOwnerDeletion", true}};
}

bool has_finalizer(const json::Value& document, std::string_view name) {
  for (const json::Value& finalizer : json::get_array(document, {"metadata", "finalizers"}))
    if (finalizer.is_string() && json::as_view(finalizer) == name) return true;
  return false;
}

Write remove_finalizer(Kind kind, const Object& object, const json::Value& document, std::string_view name) {
  json::Array kept;
  for (const json::Value& finalizer : json::get_array(document, {"metadata", "finalizers"}))
    if (!finalizer.is_string() || json::as_view(finalizer) != name) kept.push_back(finalizer);
  json::Value value = kept.empty() ? json::Value(nullptr) : json::Value(std::move(kept));
  return patch_object(kind, object, {{"metadata", json::Object{{"finalizers", std::move(value)}}}});
}

Write add_finalizer(Kind kind, const Object& object, const json::Value& document, std::string_view name) {
  json::Array finalizers = json::get_array(document, {"metadata", "finalizers"});
  finalizers.push_back(json::Value(name));
  return patch_object(kind, object, {{"metadata", json::Object{{"finalizers", std::move(finalizers)}}}});
}

std::int64_t burst_of(const Object& owner, std::int64_t burst) {
  const auto fit = static_cast<std::int64_t>(Plan::kMostBytes / std::max<std::size_t>(owner.text_bytes(), 1));
  return std::clamp<std::int64_t>(fit, 1, burst);
}

json::Object pod_from_template(const json::Value& pod_template, Kind owner_kind, const Object& owner, const std::string& generate_name) {
  json::Object metadata{{"generateName", generate_name}, {"namespace", owner.ns()}};
  for (const char* part : {"labels", "annotations", "finalizers"})
    if (const json::Value* value = json::find(pod_template, {"metadata", part})) metadata[part] = *value;
  metadata["ownerReferences"] = json::Array{owner_reference(owner_kind, owner)};
  return {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}, {"spec", json::get_object(pod_template, {"spec"})}};
}

Claim claim_pods(Kind owner_kind, const Object& owner, const model::Selector& selector, const Cache& cache, bool (*wants)(const PodInfo&)) {
  Claim claim;
  const PodRange controlled = cache.pods_controlled(owner.uid());
  claim.pods.reserve(controlled.size());
  LabelMemo matching;
  for (const PodRef& pod : controlled) {
    if (pod->ns() != owner.ns()) continue;
    if (matching(*pod, [&](const model::Labels& labels) { return selector.matches(labels); })) {
      if (wants(*pod)) claim.pods.push_back(pod);
      claim.terminating += pod->deleting && !pod->is_finished();
    } else if (!owner.is_deleting() && !pod->deleting) {
      claim.writes.push_back(release(kinds().pod, *pod->object, owner));
    }
  }
  if (owner.is_deleting() || selector.is_nothing()) return claim;
  if (cache.orphan_pods(owner.ns()).empty()) return claim;
  cache.for_each_matching(owner.ns(), selector, [&](const PodRef& pod) {
    if (!pod->object->controller_uid().empty() || pod->deleting || !wants(*pod)) return;
    claim.writes.push_back(adopt(kinds().pod, *pod->object, owner_kind, owner));
    claim.pods.push_back(pod);
  });
  return claim;
}

ObjectClaim claim_objects(Kind owner_kind, const Object& owner, const model::Selector& selector, Kind kind, const Cache& cache) {
  ObjectClaim claim;
  for (const ObjectRef& object : cache.controlled(kind, owner.uid())) {
    if (object->ns() != owner.ns()) continue;
    if (selector.matches(object->labels())) {
      claim.objects.push_back(object);
    } else if (!owner.is_deleting() && !object->is_deleting()) {
      claim.writes.push_back(release(kind, *object, owner));
    }
  }
  if (owner.is_deleting() || selector.is_nothing()) return claim;
  for (const ObjectRef& object : cache.uncontrolled(kind, owner.ns())) {
    if (object->is_deleting() || !selector.matches(object->labels())) continue;
    claim.writes.push_back(adopt(kind, *object, owner_kind, owner));
    claim.objects.push_back(object);
  }
  return claim;
}

std::string canonical(const json::Value& value) {
  std::string out;
  canonical_to(out, value);
  return out;
}

std::int64_t scaled_value(const json::Value* value, std::int64_t total, bool round_up, std::int64_t fallback) {
  if (value == nullptr) return fallback;
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64()) return static_cast<std::int64_t>(value->get_uint64());
  if (!value->is_string()) return fallback;
  const std::string_view text = json::as_view(*value);
  std::int64_t percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc{}) return fallback;
  if (end == text.data() + text.size()) return percent;
  if (end != text.data() + text.size() - 1 || *end != '%') return fallback;
  return round_up ? (percent * total + 99) / 100 : percent * total / 100;
}

TimePoint read_time(const json::Value& document, json::Path path) {
  const std::string_view text = json::get_string(document, path);
  return text.empty() ? TimePoint{} : parse_rfc3339(text).value_or(TimePoint{});
}

Duration seconds_at(const json::Value& document, json::Path path) { return std::chrono::seconds(json::get_int(document, path)); }

std::optional<Duration> next_availability(const std::vector<PodRef>& pods, Duration min_ready, TimePoint now) {
  std::optional<Duration> next;
  if (min_ready.count() == 0) return next;
  for (const PodRef& pod : pods) {
    if (!pod->ready || pod->deleting || pod->is_available(min_ready, now)) continue;
    const Duration left = pod->ready_since + min_ready - now;
    if (!next || left < *next) next = left;
  }
  return next;
}

model::Selector label_selector_of(const json::Value& document) {
  return model::Selector::from_label_selector(json::find(document, {"spec", "selector"})).value_or(model::Selector::nothing());
}

void enqueue_pod_owners(Kind owner_kind, const Event& event, const Cache& cache, KeySink& sink) {
  const auto enqueue_owner = [&](const ObjectRef& pod) {
    if (pod && pod->controller_kind() == owner_kind->kind) sink.add(pod->ns() + "/" + pod->controller_name());
  };
  enqueue_owner(event.after);
  if (!event.after || (event.before && event.before->controller_uid() != event.after->controller_uid())) enqueue_owner(event.before);
  if (!event.after || !event.after->controller_uid().empty()) return;
  // An orphan: whoever selects it may adopt it. Only a change of labels or owner can make a difference.
  if (event.before && event.before->controller_uid().empty() && event.before->labels() == event.after->labels()) return;
  for (const ObjectRef& owner : cache.selecting(owner_kind, event.after->ns(), event.after->labels())) sink.add(owner->key());
}

void sort_for_deletion(std::vector<PodRef>& pods, const std::vector<PodRef>& related, TimePoint now) {
  std::unordered_map<std::string_view, int> on_node;
  for (const PodRef& pod : related)
    if (pod->is_active()) ++on_node[pod->node];
  struct Ranked {
    PodRef pod;
    int colocated, ready_age, age;
  };
  std::vector<Ranked> ranked;
  ranked.reserve(pods.size());
  for (PodRef& pod : pods) {
    const int colocated = on_node[pod->node], ready_age = age_bucket(pod->ready_since, now), age = age_bucket(pod->created, now);
    ranked.push_back({std::move(pod), colocated, ready_age, age});
  }
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    const PodInfo &x = *a.pod, &y = *b.pod;
    if (x.node.empty() != y.node.empty()) return x.node.empty();
    if (phase_rank(x.phase) != phase_rank(y.phase)) return phase_rank(x.phase) < phase_rank(y.phase);
    if (x.ready != y.ready) return !x.ready;
    if (x.deletion_cost != y.deletion_cost) return x.deletion_cost < y.deletion_cost;
    if (a.colocated != b.colocated) return a.colocated > b.colocated;
    if (x.ready && y.ready && a.ready_age != b.ready_age) return a.ready_age < b.ready_age;
    if (x.restarts != y.restarts) return x.restarts > y.restarts;
    if (a.age != b.age) return a.age < b.age;
    return x.uid() < y.uid();
  });
  for (std::size_t i = 0; i < ranked.size(); ++i) pods[i] = std::move(ranked[i].pod);
}

}  // namespace berth::controllers
