// Workloads that get other sizes: who is made, who is given up.
#include <fmt/format.h>

#include <algorithm>

#include "whatif/steps.h"
#include "whatif/workloads.h"

namespace berth::whatif {
namespace {

constexpr std::int64_t kMostReplicas = 1'000'000;

void delete_pod(World& world, const std::string& pod, const std::string& reason) {
  world.leave(pod, {.outcome = "deleted", .reason = reason, .comes_back = false});
}

void keep_replicas(World& world, const json::Value* document, std::int64_t replicas) {
  if (document == nullptr) return;
  json::Value changed = *document;
  json::set(changed, {"spec", json::get_string(changed, {"kind"}) == "Job" ? "parallelism" : "replicas"}, json::Value(replicas));
  keep_object(world, std::move(changed));
}

/// An autoscaler of pods that has its own opinion.
void tell_of_autoscalers(World& world, const Workload& workload, std::int64_t replicas) {
  const std::string prefix = Tables::key("HorizontalPodAutoscaler", workload.ns, "");
  const auto& objects = world.tables().objects;
  for (auto at = objects.lower_bound(prefix); at != objects.end() && at->first.starts_with(prefix); ++at) {
    const json::Value& one = *at->second;
    if (json::get_string(one, {"spec", "scaleTargetRef", "kind"}) != workload.kind ||
        json::get_string(one, {"spec", "scaleTargetRef", "name"}) != workload.name)
      continue;
    const std::int64_t least = json::get_int(one, {"spec", "minReplicas"}, 1), most = json::get_int(one, {"spec", "maxReplicas"}, 1);
    const std::string name(json::get_string(one, {"metadata", "name"}));
    if (replicas < least || replicas > most)
      world.note(fmt::format("HorizontalPodAutoscaler {} keeps {} between {} and {} replicas: it takes {} back", name, workload.key(),
                             least, most, replicas));
    else
      world.note(fmt::format("HorizontalPodAutoscaler {} scales {}: it may choose another size than {}", name, workload.key(), replicas));
  }
}

Result<void> scale_stateful_set(World& world, const Workload& workload, std::int64_t replicas) {
  const json::Value document = *workload.document;
  const std::int64_t first = json::get_int(document, {"spec", "ordinals", "start"});
  const bool in_order = json::get_string(document, {"spec", "podManagementPolicy"}) != "Parallel";
  std::map<std::int64_t, std::string, std::greater<>> there;
  for (const std::string& pod : pods_of(world, workload)) {
    const std::int64_t ordinal = ordinal_of(workload.name, std::string_view(pod).substr(workload.ns.size() + 1));
    if (ordinal >= 0) there.emplace(ordinal, pod);
  }
  for (const auto& [ordinal, pod] : there)
    if (ordinal >= first + replicas) delete_pod(world, pod, world.reason());
  world.settle();
  std::string waits_for;
  for (std::int64_t ordinal = first; ordinal < first + replicas; ++ordinal) {
    const std::string name = fmt::format("{}-{}", workload.name, ordinal), key = workload.ns + "/" + name;
    if (!there.contains(ordinal)) {
      make_claims(world, document, name);
      if (auto made = make_pod(world, document, name); !made) return made;
    }
    Record* record = world.find(key);
    if (record == nullptr) continue;
    if (!waits_for.empty() && record->node.empty() && record->is_new) {
      record->is_parked = true;
      record->message = fmt::format("StatefulSet {} makes it once {} runs (podManagementPolicy OrderedReady)", workload.name, waits_for);
      continue;
    }
    if (!in_order) continue;
    world.settle();
    if (world.find(key)->node.empty()) waits_for = name;
  }
  world.settle();
  return {};
}

Result<void> make_more(World& world, const Workload& workload, std::int64_t count) {
  const PodSet& set = workload.sets[std::min(workload.newest, workload.sets.size() - 1)];
  if (set.document != nullptr) {
    auto made = make_pods(world, json::Value(*set.document), count);
    if (!made) return std::unexpected(made.error());
    return {};
  }
  const auto pods = pods_of(world, set);
  if (pods.empty()) return invalid(fmt::format("{} {} has no pods, and its template is not among the objects", set.kind, set.name));
  world.note(
      fmt::format("the template of {} {} is not among the objects: its new pods are like {}", workload.kind, workload.key(), pods.front()));
  make_pods_like(world, pods.front(), count);
  return {};
}

}  // namespace

Result<void> scale(World& world, const std::string& text, const std::string& kind, std::int64_t replicas) {
  ObjectName name = parse_object_name(text, world.options().default_namespace);
  if (!kind.empty()) name.kind = kind_meant(kind).empty() ? kind : kind_meant(kind);
  if (name.kind == "DaemonSet")
    return invalid(fmt::format("DaemonSet {} has no scale: it has a pod on each node that it wants", name.name));
  if (replicas < 0 || replicas > kMostReplicas)
    return invalid(fmt::format("replicas: {} is not between 0 and {}", replicas, kMostReplicas));
  auto workload = find_workload(world, name);
  if (!workload) return std::unexpected(workload.error());
  tell_of_autoscalers(world, *workload, replicas);
  if (workload->kind == "StatefulSet") {
    keep_replicas(world, workload->document, replicas);
    workload = find_workload(world, name);
    if (auto done = scale_stateful_set(world, *workload, replicas); !done) return done;
    world.recount_scales();
    return {};
  }
  if (workload->sets.empty()) return invalid(fmt::format("{} {} has no ReplicaSet among the objects", workload->kind, workload->key()));
  std::size_t active = 0;
  for (const PodSet& set : workload->sets) active += pods_of(world, set).empty() ? 0 : 1;
  if (active > 1)
    world.note(fmt::format("a rollout of {} is under way: the whole difference is taken from or given to the newest ReplicaSet first",
                           workload->key()));
  std::vector<std::string> there;
  for (const std::string& pod : pods_of(world, *workload))
    if (!world.find(pod)->view().meta.is_deleting) there.push_back(pod);
  const auto have = static_cast<std::int64_t>(there.size());
  keep_replicas(world, workload->document, replicas);
  if (workload->kind == "Deployment") keep_replicas(world, workload->sets[workload->newest].document, replicas);
  workload = find_workload(world, name);
  if (have > replicas) {
    const bool is_of_deployment = workload->kind == "Deployment";
    const auto order = in_order_of_deletion(world, there, is_of_deployment ? there : std::vector<std::string>());
    for (std::size_t i = 0; i < static_cast<std::size_t>(have - replicas); ++i) delete_pod(world, order[i], world.reason());
  } else if (have < replicas) {
    if (auto done = make_more(world, *workload, replicas - have); !done) return done;
  }
  world.recount_scales();
  world.settle();
  return {};
}

Result<std::string> running_pod(const World& world, const std::string& text) {
  const ObjectName name = parse_object_name(text, world.options().default_namespace);
  const std::string key = name.ns + "/" + name.name;
  const auto found = world.tables().pods.find(key);
  if (found != world.tables().pods.end() && !found->second.node.empty()) return key;
  std::vector<std::string> names;
  for (const auto& [pod, one] : world.tables().pods)
    if (one.view().ns() == name.ns) names.push_back(pod);
  std::ranges::sort(names);
  const std::vector<std::string_view> views(names.begin(), names.end());
  return invalid(fmt::format("no pod {} runs on a node{}", key, config::suggestion(key, views)));
}

Result<void> evict_pod(World& world, const std::string& text) {
  const auto key = running_pod(world, text);
  if (!key) return std::unexpected(key.error());
  if (const auto why = world.evict(*key, world.reason())) world.block(*key, *why);
  world.settle();
  return {};
}

}  // namespace berth::whatif
