#include "tests/queues/world.h"

#include <fmt/format.h>

#include "queues/documents.h"

namespace berth::queues::testing {

using json::Array;
using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using json::Object;
using json::Value;

Value yaml(std::string_view text) {
  auto parsed = json::parse_yaml("# YAML\n" + std::string(text));
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? *parsed : Value();
}

namespace {

void merge(Value& target, const Value& change) {
  if (!change.is_object()) {
    target = change;
    return;
  }
  if (!target.is_object()) target = Object{};
  for (const auto& [key, value] : change.get_object()) {
    if (value.is_null())
      target.get_object().erase(key);
    else
      merge(target.get_object()[key], value);
  }
}

bool is_namespaced(Kind kind) {
  return kind == Kind::kLocalQueue || kind == Kind::kWorkload || kind == Kind::kJob || kind == Kind::kPod || kind == Kind::kPodGroup;
}

/// {default: {cpu: 4, memory: {nominal: 1Gi, borrow: 0, lend: 1Gi}}} as resource groups: one for all.
Array resource_groups(const Value& quota) {
  Array resources, flavors;
  for (const auto& [flavor, amounts] : quota.get_object()) {
    Array quotas;
    for (const auto& [resource, amount] : amounts.get_object()) {
      if (flavors.empty()) resources.emplace_back(resource);
      Object one{{"name", resource}};
      if (amount.is_object()) {
        one["nominalQuota"] = *json::find(amount, "nominal");
        if (const Value* limit = json::find(amount, "borrow")) one["borrowingLimit"] = *limit;
        if (const Value* limit = json::find(amount, "lend")) one["lendingLimit"] = *limit;
      } else {
        one["nominalQuota"] = amount;
      }
      quotas.push_back(std::move(one));
    }
    flavors.push_back(Object{{"name", flavor}, {"resources", std::move(quotas)}});
  }
  if (flavors.empty()) return {};
  return {Object{{"coveredResources", std::move(resources)}, {"flavors", std::move(flavors)}}};
}

Object requests_of(const Value& from) {
  Object out;
  for (const char* resource : {"cpu", "memory", "gpu"})
    if (const Value* amount = json::find(from, resource)) out[resource] = *amount;
  return out;
}

std::string what_of(const Tally& tally) {
  switch (tally.what) {
    case Tally::What::kQuotaReserved:
      return "reserved " + tally.queue;
    case Tally::What::kAdmitted:
      return "admitted " + tally.queue;
    case Tally::What::kEvicted:
      return "evicted " + tally.queue + " " + tally.reason;
    case Tally::What::kPreempted:
      return "preempted " + tally.queue + " " + tally.reason;
  }
  return {};
}

}  // namespace

void World::store(const ObjectKey& key, Value document) {
  json::set(document, {"metadata", "resourceVersion"}, Value(std::to_string(++revision_)));
  objects[key] = document;
  core.observe(key.kind, document);
}

void World::drop(const ObjectKey& key) {
  objects.erase(key);
  core.forget(key);
}

void World::put(Kind kind, Value document) {
  if (is_namespaced(kind) && get_string(document, {"metadata", "namespace"}).empty())
    json::set(document, {"metadata", "namespace"}, Value("default"));
  const ObjectKey key{kind, std::string(get_string(document, {"metadata", "namespace"})),
                      std::string(get_string(document, {"metadata", "name"}))};
  const auto before = objects.find(key);
  if (before == objects.end()) {
    json::set(document, {"metadata", "uid"}, Value(fmt::format("uid-{}", ++uids_)));
    json::set(document, {"metadata", "creationTimestamp"}, Value(format_rfc3339(now)));
    json::set(document, {"metadata", "generation"}, Value(1));
  } else {
    Object meta = get_object(before->second, {"metadata"});
    merge(document.get_object()["metadata"], Value(meta));
    if (const Value* status = json::find(before->second, "status")) json::set(document, {"status"}, *status);
    json::set(document, {"metadata", "generation"}, Value(get_int(before->second, {"metadata", "generation"}) + 1));
  }
  store(key, std::move(document));
}

void World::patch(const ObjectKey& key, const Value& change) {
  ASSERT_TRUE(objects.contains(key)) << key.name;
  Value document = objects[key];
  merge(document, change);
  if (!json::equal(get_object(document, {"spec"}), get_object(objects[key], {"spec"})))
    json::set(document, {"metadata", "generation"}, Value(get_int(document, {"metadata", "generation"}) + 1));
  store(key, std::move(document));
}

void World::remove(const ObjectKey& key) {
  const auto found = objects.find(key);
  if (found == objects.end()) return;
  if (get_array(found->second, {"metadata", "finalizers"}).empty() && !(key.kind == Kind::kPod && pods_stay)) return drop(key);
  Value document = found->second;
  if (json::find(document, {"metadata", "deletionTimestamp"}) != nullptr) return;
  json::set(document, {"metadata", "deletionTimestamp"}, Value(format_rfc3339(now)));
  store(key, std::move(document));
}

WriteResult World::apply(const Write& write) {
  ++writes;
  if (const auto refused = refusals.extract(write.object)) return {.code = refused.mapped(), .message = "refused"};
  const auto found = objects.find(write.object);
  if (write.verb == Write::Verb::kCreate) {
    if (found != objects.end()) return {.code = 409, .message = "already exists"};
    put(write.object.kind, write.body);
    return {.document = objects[write.object]};
  }
  if (found == objects.end()) return {.code = 404, .message = "not found"};
  if (write.verb == Write::Verb::kDelete) {
    if (write.uid != get_string(found->second, {"metadata", "uid"})) return {.code = 409, .message = "another uid"};
    remove(write.object);
    return {};
  }
  if (get_string(write.body, {"metadata", "resourceVersion"}) != get_string(found->second, {"metadata", "resourceVersion"}))
    return {.code = 409, .message = "the object has been modified"};
  Value document = found->second;
  if (write.is_status) {
    json::erase(document, {"status"});
    if (const Value* status = json::find(write.body, "status")) json::set(document, {"status"}, *status);
  } else {
    const bool is_changed = !json::equal(get_object(document, {"spec"}), get_object(write.body, {"spec"}));
    json::set(document, {"spec"}, get_object(write.body, {"spec"}));
    json::set(document, {"metadata"}, get_object(write.body, {"metadata"}));
    if (is_changed) json::set(document, {"metadata", "generation"}, Value(get_int(document, {"metadata", "generation"}) + 1));
    if (json::find(document, {"metadata", "deletionTimestamp"}) != nullptr && get_array(document, {"metadata", "finalizers"}).empty()) {
      drop(write.object);
      return {.document = document};
    }
  }
  store(write.object, std::move(document));
  return {.document = objects[write.object]};
}

void World::perform(Effects effects) {
  for (const EventNote& event : effects.events) events.push_back(fmt::format("{} {}: {}", event.object.name, event.reason, event.message));
  for (const Write& write : effects.writes) {
    const WriteResult result = apply(write);
    core.answered(write, result, now);
    if (result.code < 300)
      for (const Tally& tally : write.tallies) ++tallies[what_of(tally)];
  }
}

bool World::follow_jobs() {
  bool changed = false;
  for (const auto& [key, document] : std::map<ObjectKey, Value>(objects)) {
    if (key.kind != Kind::kJob || !get_array(document, {"status", "conditions"}).empty()) continue;
    const bool suspended = get_bool(document, {"spec", "suspend"});
    const std::int64_t active = get_int(document, {"status", "active"}),
                       wanted = suspended ? 0 : get_int(document, {"spec", "parallelism"});
    if (active == wanted || (suspended && pods_stay)) continue;
    Value next = document;
    json::set(next, {"status", "active"}, Value(wanted));
    if (!suspended) json::set(next, {"status", "startTime"}, Value(format_rfc3339(now)));
    store(key, std::move(next));
    changed = true;
  }
  return changed;
}

bool World::follow_pods() {
  if (pods_stay) return false;
  bool changed = false;
  for (const auto& [key, document] : std::map<ObjectKey, Value>(objects)) {
    if (key.kind != Kind::kPod || json::find(document, {"metadata", "deletionTimestamp"}) == nullptr) continue;
    drop(key);
    changed = true;
  }
  return changed;
}

void World::settle() {
  for (int i = 0; i < 10'000; ++i) {
    Effects effects = core.step(now);
    const bool quiet = effects.writes.empty();
    perform(std::move(effects));
    if (!follow_jobs() && !follow_pods() && quiet) return;
  }
  ADD_FAILURE() << "it does not come to rest";
}

void World::restart(Settings settings) {
  core = Core(settings);
  for (const auto& [key, document] : objects) core.observe(key.kind, document);
}

const Value* World::find(const ObjectKey& key) const {
  const auto found = objects.find(key);
  return found == objects.end() ? nullptr : &found->second;
}

const Value* World::workload_of(const std::string& name) const {
  for (const auto& [key, document] : objects) {
    if (key.kind != Kind::kWorkload) continue;
    if (key.name == name) return &document;
    for (const Value& owner : get_array(document, {"metadata", "ownerReferences"}))
      if (get_string(owner, {"name"}) == name) return &document;
  }
  return nullptr;
}

std::vector<Workload> World::workloads() const {
  std::vector<Workload> out;
  for (const auto& [key, document] : objects)
    if (key.kind == Kind::kWorkload) out.push_back(Workload::parse(document));
  return out;
}

std::string World::condition(const Value& document, std::string_view type) const {
  for (const Value& one : get_array(document, {"status", "conditions"}))
    if (get_string(one, {"type"}) == type)
      return fmt::format("{} {}: {}", get_string(one, {"status"}), get_string(one, {"reason"}), get_string(one, {"message"}));
  return {};
}

void World::flavor(const Value& flavor) {
  const bool is_name = flavor.is_string();
  Object spec;
  if (!is_name)
    for (const auto& [from, to] :
         {std::pair("labels", "nodeLabels"), std::pair("taints", "nodeTaints"), std::pair("tolerations", "tolerations")})
      if (const Value* found = json::find(flavor, from)) spec[to] = *found;
  put(Kind::kResourceFlavor,
      Object{{"metadata", Object{{"name", is_name ? json::as_view(flavor) : get_string(flavor, {"name"})}}}, {"spec", std::move(spec)}});
}

void World::queue(const Value& queue) {
  Value spec = Object{{"namespaceSelector", Object{}}};
  const std::string name(get_string(queue, {"name"}));
  if (const Value* cohort = json::find(queue, "cohort")) json::set(spec, {"cohort"}, *cohort);
  if (const Value* quota = json::find(queue, "quota")) json::set(spec, {"resourceGroups"}, resource_groups(*quota));
  if (const Value* more = json::find(queue, "spec")) merge(spec, *more);
  put(Kind::kClusterQueue, Object{{"metadata", Object{{"name", name}}}, {"spec", std::move(spec)}});
  if (find({Kind::kLocalQueue, "default", name}) == nullptr && !get_bool(queue, {"alone"}))
    put(Kind::kLocalQueue, Object{{"metadata", Object{{"name", name}}}, {"spec", Object{{"clusterQueue", name}}}});
}

void World::cohort(const Value& cohort) {
  Value spec = Object{};
  if (const Value* parent = json::find(cohort, "parent")) json::set(spec, {"parentName"}, *parent);
  if (const Value* quota = json::find(cohort, "quota")) json::set(spec, {"resourceGroups"}, resource_groups(*quota));
  put(Kind::kCohort, Object{{"metadata", Object{{"name", get_string(cohort, {"name"})}}}, {"spec", std::move(spec)}});
}

void World::job(const Value& job) {
  Object labels{{kQueueLabel, get_string(job, {"queue"})}};
  if (const auto name = get_string(job, {"class"}); !name.empty()) labels[kPriorityClassLabel] = name;
  if (const auto most = get_int(job, {"most-seconds"}); most > 0) labels[kMostSecondsLabel] = std::to_string(most);
  Value pod = Object{{"containers", Array{Object{{"name", "c"}, {"image", "i"}, {"resources", Object{{"requests", requests_of(job)}}}}}}};
  for (const char* field : {"nodeSelector", "tolerations", "affinity", "priorityClassName"})
    if (const Value* found = json::find(job, field)) json::set(pod, {field}, *found);
  Object spec{{"suspend", get_bool(job, {"suspend"}, true)},
              {"parallelism", get_int(job, {"pods"}, 1)},
              {"completions", get_int(job, {"completions"}, get_int(job, {"pods"}, 1))},
              {"template", Object{{"metadata", Object{{"labels", Object{{"job-name", "x"}}}}}, {"spec", std::move(pod)}}}};
  put(Kind::kJob, Object{{"apiVersion", "batch/v1"},
                         {"kind", "Job"},
                         {"metadata", Object{{"name", get_string(job, {"name"})}, {"labels", std::move(labels)}}},
                         {"spec", std::move(spec)}});
}

void World::pod(const Value& pod) {
  Object labels{{kQueueLabel, get_string(pod, {"queue"})}, {kManagedLabel, "true"}}, annotations;
  if (const auto group = get_string(pod, {"group"}); !group.empty()) {
    labels[kGroupNameLabel] = group;
    annotations[kGroupCountAnnotation] = std::to_string(get_int(pod, {"of"}));
  }
  Object spec{{"containers", Array{Object{{"name", "c"}, {"image", "i"}, {"resources", Object{{"requests", requests_of(pod)}}}}}},
              {"schedulingGates", Array{Object{{"name", kAdmissionGate}}}}};
  if (const auto group = get_string(pod, {"pod-group"}); !group.empty()) spec["schedulingGroup"] = Object{{"podGroupName", group}};
  put(Kind::kPod,
      Object{
          {"metadata", Object{{"name", get_string(pod, {"name"})}, {"labels", std::move(labels)}, {"annotations", std::move(annotations)}}},
          {"spec", std::move(spec)},
          {"status", Object{{"phase", "Pending"}}}});
}

void World::finish_job(const std::string& name, bool succeeded) {
  patch({Kind::kJob, "default", name},
        Object{{"status", Object{{"active", 0},
                                 {"conditions",
                                  Array{Object{{"type", succeeded ? "Complete" : "Failed"}, {"status", "True"}, {"message", "done"}}}}}}});
}

}  // namespace berth::queues::testing
