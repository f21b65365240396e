// Objects that are applied or deleted.
#include <fmt/format.h>

#include <algorithm>

#include "base/config_reader.h"
#include "controllers/common.h"
#include "controllers/deployment_model.h"
#include "controllers/pod_template_hash.h"
#include "controllers/taints.h"
#include "placement/cluster_kinds.h"
#include "placement/groups/group_placement.h"
#include "whatif/manifests.h"
#include "whatif/steps.h"
#include "whatif/text_table.h"
#include "whatif/workloads.h"

namespace berth::whatif {
namespace {

void delete_pods(World& world, const std::vector<std::string>& pods, const std::string& reason) {
  for (const std::string& pod : pods) world.leave(pod, {.outcome = "deleted", .reason = reason, .comes_back = false});
}

std::string name_of(const json::Value& object) {
  const std::string ns(json::get_string(object, {"metadata", "namespace"})), name(json::get_string(object, {"metadata", "name"}));
  return ns.empty() ? name : ns + "/" + name;
}

/// Its pods are made of the same template as those of the workload before.
bool keeps_template(const json::Value& before, const json::Value& after) {
  const json::Value filled = with_defaults(before);
  const json::Value *old = json::find(filled, {"spec", "template"}), *now = json::find(after, {"spec", "template"});
  return old == nullptr || now == nullptr ? old == now : controllers::deployment::same_template(*old, *now);
}

/// What the template's pods would have besides: annotations that others gave it stay when a file is applied.
void keep_annotations(json::Value& after, const json::Value& before) {
  json::Object kept = json::get_object(before, {"spec", "template", "metadata", "annotations"});
  if (kept.empty()) return;
  for (const auto& [key, value] : json::get_object(after, {"spec", "template", "metadata", "annotations"})) kept[key] = value;
  json::set(after, {"spec", "template", "metadata", "annotations"}, std::move(kept));
}

/// The ReplicaSet that the Deployment makes for its present template.
json::Value new_replica_set(World& world, const json::Value& deployment) {
  const std::string name(json::get_string(deployment, {"metadata", "name"})), ns(json::get_string(deployment, {"metadata", "namespace"}));
  json::Value out = json::Object{{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"spec", json::get_object(deployment, {"spec"})}};
  const std::string hash =
      controllers::pod_template_hash(json::get_object(deployment, {"spec", "template"}), controllers::collision_count(deployment));
  json::set(out, {"spec", "template", "metadata", "labels", controllers::deployment::kHashLabel}, json::Value(hash));
  json::set(out, {"spec", "selector", "matchLabels", controllers::deployment::kHashLabel}, json::Value(hash));
  json::set(out, {"metadata"},
            json::Object{{"name", name + "-" + hash},
                         {"namespace", ns},
                         {"uid", fmt::format("what-if/ReplicaSet/{}/{}/{}", ns, name, hash)},
                         {"annotations", json::Object{{controllers::deployment::kRevision, std::to_string(1'000'000 + world.change())}}},
                         {"ownerReferences", json::Array{json::Object{{"apiVersion", "apps/v1"},
                                                                      {"kind", "Deployment"},
                                                                      {"name", name},
                                                                      {"uid", json::get_string(deployment, {"metadata", "uid"})},
                                                                      {"controller", true}}}}});
  return out;
}

std::size_t with_node(World& world, const std::vector<std::string>& pods) {
  return static_cast<std::size_t>(std::ranges::count_if(pods, [&](const auto& pod) { return !world.find(pod)->node.empty(); }));
}

/// As the Deployment controller goes, step by step, until nothing moves: pods that got a node count as ready.
Result<void> roll_out(World& world, const json::Value& deployment, const std::vector<PodSet>& old_sets) {
  const auto wanted = controllers::deployment::read_wanted(deployment);
  const json::Value set = new_replica_set(world, deployment);
  keep_object(world, set);
  const std::string reason = fmt::format("the rollout of {} replaces it", name_of(deployment));
  std::vector<std::string> fresh;
  const auto old = [&] {
    std::vector<std::string> out;
    for (const PodSet& one : old_sets)
      for (std::string& pod : pods_of(world, one)) out.push_back(std::move(pod));
    return out;
  };
  const auto make = [&](std::int64_t count) -> Result<void> {
    auto made = make_pods(world, set, count);
    if (!made) return std::unexpected(made.error());
    fresh.insert(fresh.end(), made->begin(), made->end());
    world.settle();
    return {};
  };
  if (!wanted.rolling) {
    delete_pods(world, old(), reason);
    return make(wanted.replicas);
  }
  const std::int64_t least = wanted.replicas - wanted.max_unavailable;
  for (bool moved = true; moved;) {
    moved = false;
    std::vector<std::string> before = old();
    const auto have = static_cast<std::int64_t>(fresh.size()), others = static_cast<std::int64_t>(before.size());
    if (const std::int64_t more = std::min(wanted.replicas - have, wanted.max_total() - have - others); more > 0) {
      if (auto done = make(more); !done) return done;
      moved = true;
    }
    const auto ready = static_cast<std::int64_t>(with_node(world, fresh)), old_ready = static_cast<std::int64_t>(with_node(world, before));
    std::int64_t surplus = others + static_cast<std::int64_t>(fresh.size()) - least - (static_cast<std::int64_t>(fresh.size()) - ready);
    std::vector<std::string> go;
    const auto order = in_order_of_deletion(world, before, before);
    std::int64_t healthy_may_go = old_ready + ready - least;
    for (const std::string& pod : order) {
      const bool is_healthy = !world.find(pod)->node.empty();
      if (surplus <= 0 || (is_healthy && healthy_may_go <= 0)) continue;
      --surplus;
      healthy_may_go -= is_healthy ? 1 : 0;
      go.push_back(pod);
    }
    if (go.empty()) continue;
    delete_pods(world, go, reason);
    world.settle();
    moved = true;
  }
  if (const auto ready = static_cast<std::int64_t>(with_node(world, fresh)); ready < wanted.replicas)
    world.note(fmt::format("the rollout of {} gets stuck: {} of {} pods of the new template run, {} of the old ones stay",
                           name_of(deployment), ready, wanted.replicas, old().size()));
  return {};
}

/// With what an apply that says nothing of it leaves as it was, and the API server's defaults.
Result<json::Value> merged(json::Value document, const json::Value* before) {
  if (before != nullptr) {
    if (json::find(document, {"spec", "replicas"}) == nullptr)
      json::set(document, {"spec", "replicas"}, json::Value(json::get_int(*before, {"spec", "replicas"}, 1)));
    keep_annotations(document, *before);
  }
  return checked(std::move(document));
}

Result<void> apply_deployment(World& world, json::Value document, const json::Value* before) {
  auto complete = merged(std::move(document), before);
  if (!complete) return std::unexpected(complete.error());
  const std::int64_t replicas = json::get_int(*complete, {"spec", "replicas"}, 1);
  const bool is_same = before != nullptr && keeps_template(*before, *complete);
  const ObjectName name{"Deployment", std::string(json::get_string(*complete, {"metadata", "namespace"})),
                        std::string(json::get_string(*complete, {"metadata", "name"}))};
  if (before != nullptr && !is_same) {
    auto workload = find_workload(world, name);
    const std::vector<PodSet> old_sets = workload ? workload->sets : std::vector<PodSet>();
    keep_object(world, *complete);
    if (json::get_bool(*complete, {"spec", "paused"})) {
      world.note(fmt::format("Deployment {} is paused: the new template is not rolled out", name_of(*complete)));
      return {};
    }
    return roll_out(world, *complete, old_sets);
  }
  keep_object(world, *complete);
  if (before != nullptr) return scale(world, name.ns + "/" + name.name, "Deployment", replicas);
  const json::Value set = new_replica_set(world, *complete);
  keep_object(world, set);
  auto made = make_pods(world, set, replicas);
  if (!made) return std::unexpected(made.error());
  world.settle();
  return {};
}

Result<void> apply_stateful_set(World& world, json::Value document, const json::Value* before) {
  auto complete = merged(std::move(document), before);
  if (!complete) return std::unexpected(complete.error());
  const bool is_same = before == nullptr || keeps_template(*before, *complete);
  keep_object(world, *complete);
  const std::string ns(json::get_string(*complete, {"metadata", "namespace"})), name(json::get_string(*complete, {"metadata", "name"}));
  const std::int64_t replicas = json::get_int(*complete, {"spec", "replicas"}, 1);
  if (auto done = scale(world, ns + "/" + name, "StatefulSet", replicas); !done) return done;
  if (is_same || json::get_string(*complete, {"spec", "updateStrategy", "type"}) == "OnDelete") return {};
  const std::int64_t first = json::get_int(*complete, {"spec", "ordinals", "start"});
  const std::int64_t partition = json::get_int(*complete, {"spec", "updateStrategy", "rollingUpdate", "partition"});
  for (std::int64_t ordinal = first + replicas; ordinal-- > std::max(first, partition);) {
    const std::string pod = fmt::format("{}-{}", name, ordinal), key = ns + "/" + pod;
    if (world.find(key) == nullptr) continue;
    delete_pods(world, {key}, fmt::format("the rollout of {}/{} replaces it", ns, name));
    if (auto done = make_pod(world, *complete, pod); !done) return done;
    world.settle();
    if (world.find(key) != nullptr && !world.find(key)->node.empty()) continue;
    world.note(fmt::format("the rollout of {}/{} gets stuck: {} does not run with the new template", ns, name, pod));
    return {};
  }
  return {};
}

Result<void> apply_daemon_set(World& world, json::Value document, const json::Value* before) {
  if (before != nullptr) keep_annotations(document, *before);
  auto complete = checked(std::move(document));
  if (!complete) return std::unexpected(complete.error());
  const bool is_same = before == nullptr || keeps_template(*before, *complete);
  const std::string uid(json::get_string(*complete, {"metadata", "uid"}));
  keep_object(world, *complete);
  if (!is_same && json::get_string(*complete, {"spec", "updateStrategy", "type"}) != "OnDelete") {
    for (const std::string& pod : world.pods_of(uid)) {
      const std::string node = world.find(pod)->node;
      delete_pods(world, {pod}, fmt::format("the rollout of {} replaces it", name_of(*complete)));
      keep_daemons(world, {node});
      const std::size_t waiting = world.waiting().size();
      world.settle();
      if (waiting == 0 || world.waiting().size() < waiting) continue;
      world.note(fmt::format("the rollout of {} gets stuck on {}: the new pod does not fit", name_of(*complete), node));
      break;
    }
  }
  keep_daemons(world, world.node_names());
  world.settle();
  return {};
}

Result<void> apply_replicated(World& world, json::Value document, const json::Value* before) {
  const std::string kind(json::get_string(document, {"kind"}));
  const char* field = kind == "Job" ? "parallelism" : "replicas";
  if (before != nullptr && json::find(document, {"spec", field}) == nullptr)
    json::set(document, {"spec", field}, json::Value(json::get_int(*before, {"spec", field}, 1)));
  auto complete = checked(std::move(document));
  if (!complete) return std::unexpected(complete.error());
  std::int64_t wanted = json::get_int(*complete, {"spec", field}, 1);
  if (kind == "Job") wanted = std::min(wanted, json::get_int(*complete, {"spec", "completions"}, wanted));
  if (kind == "Job" && json::get_bool(*complete, {"spec", "suspend"})) wanted = 0;
  keep_object(world, *complete);
  return scale(world, name_of(*complete), kind, wanted);
}

Result<void> apply_pod(World& world, const json::Value& object) {
  auto complete = checked(object);
  if (!complete) return std::unexpected(complete.error());
  const json::Value pod = complete_pod(std::move(*complete), world.cluster(), world.options().default_namespace);
  auto view = std::make_shared<model::PodView>(model::PodView::parse(pod));
  if (auto unknown = unknown_priority(view->priority_class_name, world.cluster()); !unknown.empty()) world.note(std::move(unknown));
  const std::string node = view->node_name;
  view->node_name.clear();
  view->phase = "Pending";
  if (view->meta.uid.empty()) view->meta.uid = "what-if/Pod/" + view->key();
  if (world.find(view->key()) != nullptr) {
    world.note(
        fmt::format("pod {} is there already: what of a pod decides its place cannot be changed, so it stays as it is", view->key()));
    return {};
  }
  const std::string key = view->key();
  const auto info = placement::PodInfo::make(std::move(view), world.cluster().era());
  world.add(info, facts_of_new(pod), world.reason());
  if (!node.empty()) {
    if (world.node(node) == nullptr) return invalid(fmt::format("pod {}: spec.nodeName: there is no node {}", key, node));
    world.hold(key, node);
  }
  world.settle();
  return {};
}

Result<void> apply_node(World& world, const json::Value& object) {
  auto complete = checked(object);
  if (!complete) return std::unexpected(complete.error());
  auto view = std::make_shared<model::NodeView>(model::NodeView::parse(*complete));
  const model::NodeViewPtr before = world.node(view->name());
  if (before != nullptr && view->allocatable.empty()) {
    view->allocatable = before->allocatable;  // A manifest has no status.
    view->capacity = before->capacity;
    view->conditions = before->conditions;
    view->images = before->images;
  }
  if (view->allocatable.empty())
    return invalid(fmt::format("Node {}: status.allocatable is missing: without it nothing fits there", view->name()));
  const std::string name = view->name();
  world.put_node(std::move(view));
  world.node_states[name] = before == nullptr ? "added" : "changed";
  keep_daemons(world, {name});
  world.settle();
  return {};
}

std::string near_kind(std::string_view kind) {
  std::vector<std::string_view> known;
  for (const model::KindInfo& one : model::all_kinds()) known.push_back(one.kind);
  return config::suggestion(kind, known);
}

/// Everybody leaves devices that the DeviceTaintRule taints, unless he tolerates it for ever.
void evict_from_devices(World& world, const json::Value& document) {
  const auto rule = model::DeviceTaintRuleView::parse(document);
  if (rule.taint.effect != "NoExecute") return;
  const controllers::Taint taint{rule.taint.key, rule.taint.value, rule.taint.effect, {}};
  const auto has_to_go = [&](const model::PodView& pod) {
    for (const auto& entry : pod.resource_claims) {
      const std::string& name = entry.claim_name.empty() ? entry.made_name : entry.claim_name;
      const auto claim = name.empty() ? nullptr : world.cluster().find_claim(pod.ns(), name);
      if (claim == nullptr || claim->allocation == nullptr || !claim->is_reserved_for(pod.meta.uid)) continue;
      for (const json::Value& device : json::get_array(claim->allocation->document, {"devices", "results"})) {
        const auto text = [&](const char* key) { return json::get_string(device, {key}); };
        if (rule.matches(text("driver"), text("pool"), text("device")) && controllers::patience(device, taint)) return true;
      }
    }
    return false;
  };
  std::vector<std::string> going;
  for (const auto& [name, record] : world.tables().pods)
    if (!record.node.empty() && has_to_go(record.view())) going.push_back(name);
  std::ranges::sort(going, comes_before);
  for (const std::string& pod : going) world.leave(pod, {.outcome = "evicted", .reason = world.reason(), .comes_back = true});
}

}  // namespace

Result<void> apply(World& world, const json::Value& given) {
  json::Value object = given;
  const std::string kind(json::get_string(object, {"kind"}));
  const std::string name(json::get_string(object, {"metadata", "name"}));
  if (!object.is_object() || kind.empty()) return invalid("apply: an object with a kind is wanted");
  for (const char* field : {"name", "namespace"})
    if (const json::Value* said = json::find(object, {"metadata", field}); said != nullptr && !said->is_string() && !said->is_null())
      return invalid(fmt::format("apply: {}: metadata.{}: {} is no text: in YAML it wants quotes", kind, field, json::serialize(*said)));
  if (name.empty() && json::get_string(object, {"metadata", "generateName"}).empty())
    return invalid(fmt::format("apply: {} has no metadata.name", kind));
  const model::KindInfo* info = nullptr;
  for (const model::KindInfo& one : model::all_kinds())
    if (one.kind == kind) info = &one;
  const bool namespaced = info == nullptr || info->namespaced;
  if (namespaced && json::get_string(object, {"metadata", "namespace"}).empty())
    json::set(object, {"metadata", "namespace"}, json::Value(world.options().default_namespace));
  const std::string ns(json::get_string(object, {"metadata", "namespace"}));
  const json::Value* known = world.tables().find(kind, ns, name);
  const std::optional<json::Value> before = known == nullptr ? std::nullopt : std::optional(*known);
  if (before && json::find(object, {"metadata", "uid"}) == nullptr)
    json::set(object, {"metadata", "uid"}, json::Value(json::get_string(*before, {"metadata", "uid"})));
  if (json::get_string(object, {"metadata", "uid"}).empty())
    json::set(object, {"metadata", "uid"}, json::Value(fmt::format("what-if/{}/{}/{}", kind, ns, name)));
  const json::Value* old = before ? &*before : nullptr;
  if (kind == "Pod") return apply_pod(world, object);
  if (kind == "Node") return apply_node(world, object);
  if (kind == "Deployment") return apply_deployment(world, std::move(object), old);
  if (kind == "StatefulSet") return apply_stateful_set(world, std::move(object), old);
  if (kind == "DaemonSet") return apply_daemon_set(world, std::move(object), old);
  if (kind == "ReplicaSet" || kind == "ReplicationController" || kind == "Job") return apply_replicated(world, std::move(object), old);
  const bool matters = placement::find_cluster_resource(kind) != nullptr || kind == "ResourceQuota" || kind == "HorizontalPodAutoscaler";
  if (!matters) {
    world.note(info == nullptr ? fmt::format("{} {} is of a kind that is not known here{}: it is left out", kind, name, near_kind(kind))
                               : fmt::format("{} {} decides no pod's place: it is left out", kind, name));
    return {};
  }
  auto complete = checked(std::move(object));
  if (!complete) return std::unexpected(complete.error());
  if (kind == "PriorityClass" && old != nullptr && json::get_int(*old, {"value"}) != json::get_int(*complete, {"value"}))
    world.note(fmt::format("pods of PriorityClass {} that are there keep the priority that they got", name));
  const json::Value kept = *complete;
  keep_object(world, std::move(*complete));
  if (kind == "DeviceTaintRule") evict_from_devices(world, kept);
  world.settle();
  return {};
}

Result<void> remove(World& world, const std::string& what) {
  const ObjectName name = parse_object_name(what, world.options().default_namespace);
  if (name.kind.empty()) return invalid(fmt::format("delete: \"{}\": KIND/NAMESPACE/NAME is wanted, such as deployment/shop/web", what));
  if (name.kind == "Node") {
    auto nodes = choose_nodes(world, json::Value(name.name));
    if (!nodes) return std::unexpected(nodes.error());
    remove_nodes(world, *nodes);
    return {};
  }
  const std::string key = name.ns + "/" + name.name;
  if (name.kind == "Pod") {
    if (world.find(key) == nullptr) return invalid(fmt::format("there is no Pod {}", key));
    world.leave(key, {.outcome = "deleted", .reason = world.reason()});
    world.settle();
    return {};
  }
  if (name.kind == "Namespace") {
    std::vector<std::string> pods;
    for (const auto& [pod, record] : world.tables().pods)
      if (record.view().ns() == name.name) pods.push_back(pod);
    std::ranges::sort(pods);
    if (pods.empty() && world.tables().find("Namespace", "", name.name) == nullptr)
      return invalid(fmt::format("there is no Namespace {}", name.name));
    delete_pods(world, pods, world.reason());
    std::erase_if(world.tables().objects, [&](const auto& one) {
      return json::get_string(*one.second, {"metadata", "namespace"}) == name.name;
    });
    world.settle();
    return {};
  }
  const model::KindInfo* info = nullptr;
  for (const model::KindInfo& one : model::all_kinds())
    if (one.kind == name.kind) info = &one;
  const std::string ns = info != nullptr && !info->namespaced ? std::string() : name.ns;
  if (name.kind == "Deployment" || name.kind == "StatefulSet" || name.kind == "ReplicaSet" || name.kind == "ReplicationController" ||
      name.kind == "Job") {
    auto workload = find_workload(world, name);
    if (!workload) return std::unexpected(workload.error());
    delete_pods(world, pods_of(world, *workload), world.reason());
    std::vector<std::string> keys{Tables::key(name.kind, ns, name.name)};
    for (const PodSet& set : workload->sets) keys.push_back(Tables::key(set.kind, ns, set.name));
    for (const std::string& one : keys) world.tables().objects.erase(one);
    for (const PodSet& set : workload->sets) world.cluster().remove(set.kind, ns, set.name);
    world.recount_scales();
    world.settle();
    return {};
  }
  const json::Value* known = world.tables().find(name.kind, ns, name.name);
  if (known == nullptr) return invalid(fmt::format("there is no {} {}", name.kind, ns.empty() ? name.name : ns + "/" + name.name));
  if (name.kind == "DaemonSet")
    delete_pods(world, world.pods_of(std::string(json::get_string(*known, {"metadata", "uid"}))), world.reason());
  if (name.kind == "PodDisruptionBudget") world.tables().budgets.erase(key);
  world.tables().objects.erase(Tables::key(name.kind, ns, name.name));
  world.cluster().remove(name.kind, ns, name.name);
  world.settle();
  return {};
}

}  // namespace berth::whatif
