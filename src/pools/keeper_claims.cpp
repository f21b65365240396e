// One claim at a time: from being made to being gone.
#include <fmt/format.h>

#include <algorithm>

#include "pools/keeper.h"

namespace berth::pools {
namespace {

constexpr std::string_view kProvider = "simulated:///pools/";
constexpr Duration kRegistrationTimeout = std::chrono::minutes(15);  ///< Karpenter's.

std::string provider_id(const NodeClaim& claim) { return std::string(kProvider) + claim.name; }

json::Object as_json(const model::ResourceList& list) {
  json::Object out;
  for (const auto& [name, amount] : list) out[name] = amount.to_string();
  return out;
}

/// The class says that it cannot be had.
bool is_short(const json::Value& node_class, const InstanceType& type, const Offering& offering) {
  return std::ranges::any_of(json::get_array(node_class, {"spec", "insufficientCapacity"}), [&](const json::Value& one) {
    const auto is = [&](std::string_view field, std::string_view value) {
      const std::string_view wanted = json::get_string(one, {field});
      return wanted.empty() || wanted == value;
    };
    return is("instanceType", type.name) && is("zone", offering.zone) && is("capacityType", offering.capacity_type);
  });
}

json::Value owner_reference(const NodeClaim& claim) {
  return json::Object{
      {"apiVersion", "karpenter.sh/v1"}, {"kind", "NodeClaim"}, {"name", claim.name}, {"uid", claim.uid}, {"blockOwnerDeletion", true}};
}

bool is_node_ready(const json::Value& node) {
  return std::ranges::any_of(json::get_array(node, {"status", "conditions"}), [](const json::Value& one) {
    return json::get_string(one, {"type"}) == "Ready" && json::get_string(one, {"status"}) == "True";
  });
}

}  // namespace

std::vector<autoscaler::PodPtr> Keeper::pods_on(const std::string& node) {
  std::vector<autoscaler::PodPtr> out;
  const placement::NodeInfo* info = cache_.cluster().cluster().find_node(node);
  if (info == nullptr) return out;
  for (const auto& pod : info->pods)
    if (const auto at = cache_.cluster().pods().find(pod->key); at != cache_.cluster().pods().end()) out.push_back(at->second);
  return out;
}

void Keeper::set_finalizers(const model::Gvr& gvr, const std::string& name, json::Array finalizers) {
  out_.writes.push_back({Write::Kind::kPatch, gvr, "", name,
                         json::Object{{"metadata", json::Object{{"finalizers", std::move(finalizers)}}}}, "", std::nullopt});
}

void Keeper::release_node(const std::string& name, const json::Value& node) {
  json::Array finalizers;
  for (const json::Value& one : json::get_array(node, {"metadata", "finalizers"}))
    if (!one.is_string() || json::as_view(one) != kFinalizer) finalizers.push_back(one);
  if (finalizers.size() < json::get_array(node, {"metadata", "finalizers"}).size()) set_finalizers(kNodes, name, std::move(finalizers));
}

void Keeper::keep_claim(const NodeClaim& claim) {
  if (!claim.node_class.is_simulated() && !claim.node_class.is_of_machines()) return;  // Somebody else's.
  if (claim.deleted) return end_claim(claim);
  if (!claim.has_finalizer) {
    json::Array finalizers = claim.other_finalizers;
    finalizers.emplace_back(kFinalizer);
    return set_finalizers(kNodeClaims, claim.name, std::move(finalizers));
  }
  if (claim.expire_after && claim.created + *claim.expire_after <= now_)
    return give_up(claim, "Expired", fmt::format("it is older than {}", format_go_duration(*claim.expire_after)));
  if (!claim.is("Launched")) return launch(claim);
  if (lost_machine(claim)) return;
  if (const json::Value* node = cache_.node(cache_.node_name_of(claim)); node != nullptr) return follow_node(claim, *node);
  if (claim.is("Registered")) return give_up(claim, "NodeGone", fmt::format("its node {} is not there any more", claim.node_name));
  await_node(claim);
}

void Keeper::give_up(const NodeClaim& claim, std::string_view reason, const std::string& message) {
  tell("NodeClaim", claim.name, claim.uid, reason != "Expired", reason, message);
  out_.writes.push_back({Write::Kind::kDelete, kNodeClaims, "", claim.name, {}, claim.uid, std::nullopt});
}

/// The cheapest of what the claim may be that is to be had.
void Keeper::launch(const NodeClaim& claim) {
  const json::Value* node_class = class_of(claim.node_class);
  json::Array conditions = claim.conditions;
  const auto wait = [&](std::string_view reason, const std::string& message) {
    bool changed = set_condition(conditions, "Launched", "Unknown", reason, message, now_);
    changed |= set_condition(conditions, "Ready", "Unknown", reason, message, now_);
    if (changed) patch_status(kNodeClaims, claim.name, {{"conditions", std::move(conditions)}});
  };
  if (node_class == nullptr)
    return wait("NodeClassNotFound", fmt::format("there is no {} named \"{}\"", claim.node_class.kind, claim.node_class.name));
  struct Found {
    const InstanceType* type = nullptr;
    Offering* offering = nullptr;
    model::Labels labels;
  } best;
  std::set<std::string, std::less<>> own;
  for (const auto& [key, set] : claim.requirements) own.insert(key);
  bool some_fit = false;
  for (InstanceType& type : catalogue_.types)
    for (Offering& offering : type.offerings) {
      if (type.node_class != claim.node_class.types_of()) continue;
      std::map<std::string, std::string, std::less<>> all(type.labels.pairs().begin(), type.labels.pairs().end());
      put_place(all, offering);
      for (const auto& [key, value] : claim.labels.pairs()) all[key] = value;
      model::Labels labels(std::vector<std::pair<std::string, std::string>>(all.begin(), all.end()));
      if (!offering.is_available || !admit(claim.requirements, labels, own)) continue;
      some_fit = true;
      if (offering.supply <= 0 || unavailable_.contains({type.name, offering.zone, offering.capacity_type})) continue;
      if (is_short(*node_class, type, offering)) {
        unavailable_[{type.name, offering.zone, offering.capacity_type}] = now_ + options_.unavailable_for;
        continue;
      }
      if (best.type == nullptr || offering.price < best.offering->price) best = {&type, &offering, std::move(labels)};
    }
  if (best.type == nullptr)
    return give_up(claim, some_fit ? "InsufficientCapacity" : "NoInstanceType",
                   some_fit ? "none of the instance types that it may have can be had now" : "no instance type meets its requirements");
  json::Object labels;
  for (const auto& [key, value] : best.labels.pairs()) labels[key] = value;
  json::Object metadata{{"labels", std::move(labels)}};
  const bool is_machine = claim.node_class.is_of_machines();
  if (is_machine) {
    --best.offering->supply;  // Who is launched next counts on one less.
    metadata["annotations"] = json::Object{{kGroupAnnotation, best.offering->group}};
  }
  out_.writes.push_back(
      {Write::Kind::kPatch, kNodeClaims, "", claim.name, json::Object{{"metadata", std::move(metadata)}}, "", std::nullopt});
  set_condition(conditions, "Launched", "True", "Launched", "", now_);
  set_condition(conditions, "Registered", "Unknown", "AwaitingNode", "the node has not come yet", now_);
  set_condition(conditions, "Initialized", "Unknown", "AwaitingNode", "the node has not come yet", now_);
  set_condition(conditions, "Ready", "Unknown", "AwaitingNode", "the node has not come yet", now_);
  json::Object status{
      {"capacity", as_json(best.type->capacity)}, {"allocatable", as_json(best.type->allocatable)}, {"conditions", std::move(conditions)}};
  if (!is_machine) status["providerID"] = provider_id(claim);
  patch_status(kNodeClaims, claim.name, std::move(status));
  tell("NodeClaim", claim.name, claim.uid, false, "Launched",
       fmt::format("{}{}{}, {}, {} an hour{}{}", best.type->name, best.offering->zone.empty() ? "" : " in ", best.offering->zone,
                   best.offering->capacity_type, catalogue_.money(best.offering->price), is_machine ? ", of " : "", best.offering->group));
}

std::string Keeper::price_words(const NodeClaim& claim) const {
  const double price = price_of(catalogue_, claim.labels);
  return price > 0 ? catalogue_.money(price) : "";
}

/// One that does not come in time is given up. A simulated machine boots; others are somebody else's to start.
void Keeper::await_node(const NodeClaim& claim) {
  const json::Value* node_class = class_of(claim.node_class);
  const TimePoint launched = claim.since("Launched").value_or(claim.created);
  Duration patience = kRegistrationTimeout;
  std::string_view boot = "0s", fleet = "default";
  if (node_class != nullptr) {
    patience = parse_go_duration(json::get_string(*node_class, {"spec", "registrationTimeout"}, "15m")).value_or(patience);
    boot = json::get_string(*node_class, {"spec", "bootDelay"}, "0s");
    fleet = json::get_string(*node_class, {"spec", "fleet"}, "default");
  }
  if (launched + patience <= now_) {
    registration_[claim.pool] = false;
    remember_unavailable(claim);
    return give_up(claim, "RegistrationTimeout", fmt::format("its node has not come within {}", format_go_duration(patience)));
  }
  if (claim.node_class.is_of_machines()) return;
  const auto delay = parse_go_duration(boot);
  if (!delay || launched + *delay > now_) return;
  json::Object labels{{kHostnameLabel, claim.name}};
  for (const auto& [key, value] : claim.labels.pairs()) labels[key] = value;
  json::Array taints;
  for (const auto* list : {&claim.taints, &claim.startup_taints})
    for (const model::Taint& taint : *list)
      taints.push_back(json::Object{{"key", taint.key}, {"value", taint.value}, {"effect", taint.effect}});
  taints.push_back(json::Object{{"key", kUnregisteredTaint}, {"effect", "NoExecute"}});
  json::Object annotations{{"sim.berth.dev/fleet", fleet}};
  if (const std::string price = price_words(claim); !price.empty()) annotations[autoscaler::kPriceAnnotation] = price;
  for (const auto& [key, value] : claim.annotations)
    if (key == kDoNotDisrupt || !key.starts_with("karpenter.sh/")) annotations[key] = value;
  const auto offered = [&](const model::ResourceList& list) {
    model::ResourceList out = list;
    for (auto& [name, amount] : out)
      if (const json::Value* lacks = node_class == nullptr ? nullptr : json::find(*node_class, {"spec", "shortfall", name}))
        if (const auto less =
                model::Quantity::parse(lacks->is_string() ? json::as_view(*lacks) : std::string_view(json::serialize(*lacks))))
          amount -= *less;
    return as_json(out);
  };
  json::Value node =
      json::Object{{"apiVersion", "v1"},
                   {"kind", "Node"},
                   {"metadata", json::Object{{"name", claim.name},
                                             {"labels", std::move(labels)},
                                             {"annotations", std::move(annotations)},
                                             {"finalizers", json::Array{json::Value(kFinalizer)}},
                                             {"ownerReferences", json::Array{owner_reference(claim)}}}},
                   {"spec", json::Object{{"providerID", claim.provider_id}, {"taints", std::move(taints)}}},
                   {"status", json::Object{{"capacity", offered(claim.capacity)}, {"allocatable", offered(claim.allocatable)}}}};
  out_.writes.push_back({Write::Kind::kCreate, kNodes, "", claim.name, std::move(node), "", std::nullopt});
}

namespace {

json::Array with(json::Array list, json::Value more) {
  if (std::ranges::none_of(list, [&](const json::Value& one) { return json::equal(one, more); })) list.push_back(std::move(more));
  return list;
}

/// What a node that somebody else made gets of its claim when it is known: a simulated one is born with it.
void adopt(const NodeClaim& claim, const json::Value& node, json::Object& metadata, json::Array& taints, const std::string& price) {
  json::Object& labels = metadata["labels"].get_object();
  for (const auto& [key, value] : claim.labels.pairs()) labels[key] = value;
  json::Object annotations;
  if (!price.empty()) annotations[autoscaler::kPriceAnnotation] = price;
  for (const auto& [key, value] : claim.annotations)
    if (key == kDoNotDisrupt || (!key.starts_with("karpenter.sh/") && key != kGroupAnnotation)) annotations[key] = value;
  metadata["annotations"] = std::move(annotations);
  metadata["finalizers"] = with(json::get_array(node, {"metadata", "finalizers"}), json::Value(kFinalizer));
  metadata["ownerReferences"] = with(json::get_array(node, {"metadata", "ownerReferences"}), owner_reference(claim));
  for (const auto* list : {&claim.taints, &claim.startup_taints})
    for (const model::Taint& taint : *list)
      if (std::ranges::none_of(taints, [&](const json::Value& one) {
            return json::get_string(one, {"key"}) == taint.key && json::get_string(one, {"effect"}) == taint.effect;
          }))
        taints.push_back(json::Object{{"key", taint.key}, {"value", taint.value}, {"effect", taint.effect}});
}

}  // namespace

void Keeper::follow_node(const NodeClaim& claim, const json::Value& node) {
  const std::string name(json::get_string(node, {"metadata", "name"}));
  if (!claim.node_class.is_of_machines() && json::get_string(node, {"spec", "providerID"}) != claim.provider_id) {
    if (!claim.is("Registered"))
      tell("NodeClaim", claim.name, claim.uid, true, "NameTaken", fmt::format("a node named {} is there, and is not this claim's", name));
    return;
  }
  if (json::find(node, {"metadata", "deletionTimestamp"}) != nullptr)
    return give_up(claim, "NodeDeleted", fmt::format("its node {} was deleted", name));
  if (take_machine(claim, name, node)) return;
  ClaimStatus status{claim.conditions, {}, false};
  if (claim.node_name != name) status.fields["nodeName"] = name;
  follow_start(claim, node, status);
  follow_pods(claim, name, status);
  follow_interruption(claim, node, status);
  follow_health(claim, node, status);
  if (status.is_started && !claim.is("Initialized")) follow_size(claim, node);
  if (status.changed) status.fields["conditions"] = std::move(status.conditions);
  if (!status.fields.empty()) patch_status(kNodeClaims, claim.name, std::move(status.fields));
}

/// Registered: the node is the claim's, and pods may come. Initialized: once it was, it stays so.
void Keeper::follow_start(const NodeClaim& claim, const json::Value& node, ClaimStatus& status) {
  const std::string name(json::get_string(node, {"metadata", "name"}));
  json::Array taints;
  bool is_unregistered = false;
  std::string startup;
  for (const json::Value& taint : json::get_array(node, {"spec", "taints"})) {
    const std::string_view key = json::get_string(taint, {"key"});
    if (key == kUnregisteredTaint) {
      is_unregistered = true;
      continue;
    }
    if (claim.node_class.is_of_machines() && key == "node.cloudprovider.kubernetes.io/uninitialized") startup = key;
    for (const model::Taint& one : claim.startup_taints)
      if (one.key == key) startup = one.key;
    taints.push_back(taint);
  }
  const auto label = [&](std::string_view key) { return json::get_string(node, {"metadata", "labels", key}) == "true"; };
  if (is_unregistered || !label(kRegisteredLabel)) {
    json::Object metadata{{"labels", json::Object{{kRegisteredLabel, "true"}}},
                          {"resourceVersion", json::get_string(node, {"metadata", "resourceVersion"})}};
    if (claim.node_class.is_of_machines()) adopt(claim, node, metadata, taints, price_words(claim));
    out_.writes.push_back({Write::Kind::kPatch, kNodes, "", name,
                           json::Object{{"metadata", std::move(metadata)}, {"spec", json::Object{{"taints", std::move(taints)}}}}, "",
                           std::nullopt});
  }
  if (!claim.is("Registered")) registration_[claim.pool] = true;
  status.set("Registered", "True", "Registered", "", now_);
  std::string missing;
  for (const auto& [resource, amount] : claim.capacity)
    if (!amount.is_zero() && json::find(node, {"status", "allocatable", resource}) == nullptr) missing = resource;
  const bool is_ready = is_node_ready(node);
  status.is_started = claim.is("Initialized") || (!is_unregistered && is_ready && startup.empty() && missing.empty());
  status.set("Ready", status.is_started ? "True" : "Unknown", status.is_started ? "Ready" : "NotInitialized", "", now_);
  if (status.is_started) {
    status.set("Initialized", "True", "Initialized", "", now_);
    if (!label(kInitializedLabel))
      out_.writes.push_back({Write::Kind::kPatch, kNodes, "", name,
                             json::Object{{"metadata", json::Object{{"labels", json::Object{{kInitializedLabel, "true"}}}}}}, "",
                             std::nullopt});
  } else if (!is_ready) {
    status.set("Initialized", "Unknown", "NodeNotReady", "the node is not ready", now_);
  } else if (!startup.empty()) {
    status.set("Initialized", "Unknown", "StartupTaintsExist", fmt::format("the startup taint {} is still there", startup), now_);
  } else {
    status.set("Initialized", "Unknown", "ResourcesNotRegistered", fmt::format("the node does not offer {} yet", missing), now_);
  }
}

/// Pods that came or went start the time of quiet anew; what follows from that, and from the pool's template, is shown.
void Keeper::follow_pods(const NodeClaim& claim, const std::string& node, ClaimStatus& status) {
  std::set<std::string> pods;
  for (const autoscaler::PodPtr& pod : pods_on(node))
    if (!model::goes_with_its_node(pod->view().meta)) pods.insert(pod->view().meta.uid);
  const auto [before, is_new] = pods_before_.try_emplace(node, pods);
  std::optional<TimePoint> quiet = claim.last_pod_event;
  if (!is_new && before->second != pods) {
    before->second = std::move(pods);
    quiet = now_;
    status.fields["lastPodEventTime"] = format_rfc3339(now_);
  }
  const auto pool = cache_.pools().find(claim.pool);
  if (pool == cache_.pools().end()) return;
  const std::string drift = drift_of(claim, pool->second);
  if (!drift.empty() || !claim.condition("Drifted").empty())
    status.set("Drifted", drift.empty() ? "False" : "True", drift.empty() ? "NotDrifted" : drift, "", now_);
  OwnedNode owned;
  owned.is_initialized = status.is_started;
  owned.quiet = quiet ? quiet : claim.since("Initialized");
  const bool may = is_consolidatable(owned, pool->second, now_);
  if (may || !claim.condition("Consolidatable").empty())
    status.set("Consolidatable", may ? "True" : "False", may ? "Consolidatable" : "NotConsolidatable", "", now_);
}

namespace {

/// Whether the pod goes before its node does. Who tolerates the taint of nodes that end would only come back (Karpenter's IsDrainable).
bool is_drained_off(const model::PodView& pod) {
  static const model::Taint kEnding{std::string(kDisruptedTaint), "", "NoSchedule"};
  return !model::goes_with_its_node(pod.meta) && !pod.is_terminal() &&
         std::ranges::none_of(pod.tolerations, [](const model::Toleration& one) { return one.tolerates(kEnding); });
}

}  // namespace

/// Drained, then the node, then the claim.
void Keeper::end_claim(const NodeClaim& claim) {
  const std::string name = cache_.node_name_of(claim);
  const json::Value* node = cache_.node(name);
  const bool is_machine = claim.node_class.is_of_machines();
  if (node != nullptr && !claim.provider_id.empty() &&
      (is_machine || json::get_string(*node, {"spec", "providerID"}) == claim.provider_id)) {
    if (take_machine(claim, name, *node)) return;
    taint(name, true);
    // A machine that is dead confirms nothing.
    const bool is_dead = !is_node_ready(*node);
    bool is_drained = true;
    for (const autoscaler::PodPtr& pod : pods_on(name))
      is_drained &= !is_drained_off(pod->view()) || (is_dead && pod->view().meta.is_deleting);
    if (!is_drained) return drain(claim, name);
    const bool is_deleting = json::find(*node, {"metadata", "deletionTimestamp"}) != nullptr;
    // The machine first, its node after it. Who takes the machine may wait for the node, too.
    if (is_machine && !end_machine(claim, name)) return is_deleting ? release_node(name, *node) : void();
    if (!is_deleting) {
      out_.writes.push_back(
          {Write::Kind::kDelete, kNodes, "", name, {}, std::string(json::get_string(*node, {"metadata", "uid"})), std::nullopt});
      return;
    }
    return release_node(name, *node);
  }
  if (is_machine && !end_machine(claim, "")) return;
  pods_before_.erase(name);
  if (claim.has_finalizer) set_finalizers(kNodeClaims, claim.name, claim.other_finalizers);
}

void Keeper::drain(const NodeClaim& claim, const std::string& node) {
  std::vector<std::string> waits_for;
  const std::optional<TimePoint> deadline = deadline_of(claim);
  for (const autoscaler::PodPtr& pod : pods_on(node)) {
    const model::PodView& view = pod->view();
    if (!is_drained_off(view) || view.meta.is_deleting) continue;
    // In time for its own grace to end with the claim's.
    const auto grace = std::chrono::seconds(view.termination_grace_period_seconds);
    if (deadline && *deadline - grace <= now_) {
      const auto left = std::chrono::duration_cast<std::chrono::seconds>(*deadline - now_).count();
      out_.writes.push_back({Write::Kind::kDelete,
                             kPods,
                             view.meta.ns,
                             view.meta.name,
                             {},
                             view.meta.uid,
                             std::clamp<std::int64_t>(left, 1, std::max<std::int64_t>(1, view.termination_grace_period_seconds))});
      continue;
    }
    if (const std::string* mark = view.meta.annotation(kDoNotDisrupt); mark != nullptr && *mark == "true") {
      waits_for.push_back(view.meta.key());
      continue;
    }
    out_.writes.push_back({Write::Kind::kEvict, kPods, view.meta.ns, view.meta.name, {}, view.meta.uid, std::nullopt});
  }
  if (!waits_for.empty())
    tell("NodeClaim", claim.name, claim.uid, true, "FailedDraining",
         fmt::format("pod {} has the annotation {}", waits_for.front(), kDoNotDisrupt));
}

/// Nodes of claims that are gone without a word.
void Keeper::collect_orphans() {
  for (const auto& [name, node] : cache_.nodes()) {
    const std::string_view id = json::get_string(node, {"spec", "providerID"});
    // A machine's node that its claim left behind is somebody else's to delete, and must not be held.
    const bool is_deleting = json::find(node, {"metadata", "deletionTimestamp"}) != nullptr;
    if (is_deleting && !id.starts_with(kProvider) &&
        std::ranges::none_of(cache_.claims(), [&](const auto& one) { return one.second.node_name == name; }))
      release_node(name, node);
    if (!id.starts_with(kProvider) || cache_.claims().contains(std::string(id.substr(kProvider.size())))) continue;
    const auto created = parse_rfc3339(json::get_string(node, {"metadata", "creationTimestamp"}));
    if (created && *created + std::chrono::seconds(30) > now_) continue;
    if (!is_deleting)
      out_.writes.push_back(
          {Write::Kind::kDelete, kNodes, "", name, {}, std::string(json::get_string(node, {"metadata", "uid"})), std::nullopt});
    else
      release_node(name, node);
  }
}

}  // namespace berth::pools
