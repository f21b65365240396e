#include "pools/keeper.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/conditions.h"

namespace berth::pools {
namespace {

/// Those for whom a node came are on their way to it.
constexpr Duration kSettling = std::chrono::seconds(20);
/// So long a drain may be expected to take.
constexpr Duration kDraining = std::chrono::minutes(2);

}  // namespace

bool set_condition(json::Array& conditions, std::string_view type, std::string_view status, std::string_view reason,
                   const std::string& message, TimePoint now) {
  return model::set_condition(conditions, {std::string(type), std::string(status), std::string(reason), message}, now);
}

Keeper::Keeper(Catalogue catalogue, KeeperOptions options)
    : listed_(std::move(catalogue)), catalogue_(listed_), options_(std::move(options)), random_(options_.seed) {}

PassResult Keeper::step(TimePoint now, std::function<bool()> is_over) {
  now_ = now;
  out_ = {};
  std::erase_if(unavailable_, [&](const auto& one) { return one.second <= now; });
  refresh_catalogue();
  for (const auto& [name, claim] : cache_.claims()) keep_claim(claim);
  keep_machines();
  for (const auto& [name, pool] : cache_.pools()) keep_pool(pool);
  collect_orphans();
  follow_replacements();
  // Whoever has nothing to launch and nothing to give up need not be looked at whole.
  const bool is_waited_for = some_wait(), is_forced = some_are_forced();
  if (!is_waited_for) waiting_.clear(), is_busy_ = false;
  // Who waits in vain is not looked at each second.
  const bool is_no_news = cache_.version() == viewed_ && planned_ >= waiting_changed_ && now_ - planned_ < options_.disruption_pause;
  if ((is_waited_for && !is_no_news) || is_forced ||
      (replacements_.empty() && now_ - disrupted_ >= options_.disruption_pause && !cache_.claims().empty() && moment() != settled_)) {
    PoolsView view = view_of(cache_, catalogue_, options_.profiles, unavailable_, now, false);
    view.provision.is_over = std::move(is_over);
    view.provision.seed = options_.seed;
    viewed_ = cache_.version();
    if (is_forced) replace_forced(view);
    provision(view);
    if (!is_forced) disrupt(view);  // It would count on nodes that are about to go.
  }
  return std::move(out_);
}

bool Keeper::some_wait() {
  return !cache_.pools().empty() && std::ranges::any_of(cache_.cluster().unplaced_pods(), [](const auto& one) {
    return one.second->facts.is_unschedulable && !one.second->view().meta.is_deleting;
  });
}

/// All that a look at what could go depends on: objects, and what changes with the time alone.
std::string Keeper::moment() const {
  std::string out = fmt::format("{}", cache_.version());
  for (const auto& [name, pool] : cache_.pools())
    for (const Reason reason : {Reason::kEmpty, Reason::kUnderutilized, Reason::kDrifted})
      out += fmt::format(",{}", pool.allowed(reason, static_cast<std::int64_t>(cache_.claims().size()), now_));
  for (const auto& [name, claim] : cache_.claims()) {
    const auto since = claim.since("Initialized");
    const auto quiet = claim.last_pod_event ? claim.last_pod_event : since;
    const auto pool = cache_.pools().find(claim.pool);
    const bool is_rested = since && quiet && pool != cache_.pools().end() && pool->second.consolidate_after &&
                           *quiet + *pool->second.consolidate_after <= now_;
    out += is_rested ? '1' : '0';
    out += since && now_ - *since >= kSettling ? 's' : 'n';
  }
  return out;
}

void Keeper::tell(std::string_view kind, const std::string& name, const std::string& uid, bool is_warning, std::string_view reason,
                  const std::string& message, const std::string& ns) {
  constexpr std::size_t kMostTold = 50'000;  // Of objects that are gone, most of them: what is forgotten is told once more.
  if (told_.size() >= kMostTold) told_.clear();
  std::string& last = told_[fmt::format("{}/{}/{}/{}", kind, ns, name, reason)];
  if (last == message) return;
  last = message;
  out_.events.push_back({std::string(kind), ns, name, uid, is_warning, std::string(reason), message});
}

void Keeper::patch_status(const model::Gvr& gvr, const std::string& name, json::Object status) {
  out_.writes.push_back({Write::Kind::kPatchStatus, gvr, "", name, json::Object{{"status", std::move(status)}}, "", std::nullopt});
}

const json::Value* Keeper::class_of(const NodeClassRef& ref) const { return cache_.node_class(ref); }

bool Keeper::is_satisfiable(const NodePool& pool) {
  auto& [requirements, verdict] = satisfiable_[pool.name];
  std::string now = json::serialize(pool.requirement_entries);
  for (const auto& [key, value] : pool.labels.pairs()) now += fmt::format(",{}={}", key, value);
  if (now != requirements) verdict = !make_shapes({pool}, catalogue_, {}, now_).empty();
  requirements = std::move(now);
  return verdict;
}

void Keeper::keep_pool(const NodePool& pool) {
  const json::Value* document = cache_.pool_document(pool.name);
  json::Object status = json::get_object(*document, {"status"});
  json::Array conditions = json::get_array(*document, {"status", "conditions"});
  // What it has.
  std::int64_t nodes = 0;
  model::ResourceList sum;
  for (const auto& [name, claim] : cache_.claims()) {
    if (claim.pool != pool.name || claim.deleted) continue;
    ++nodes;
    for (const auto& [resource, amount] : claim.capacity) {
      const auto at = std::ranges::find(sum, resource, [](const auto& one) { return one.first; });
      if (at == sum.end())
        sum.emplace_back(resource, amount);
      else
        at->second += amount;
    }
  }
  json::Object resources{{"nodes", fmt::format("{}", nodes)}};
  for (const auto& [resource, amount] : sum) resources[resource] = amount.to_string();
  const bool is_ours = pool.node_class.is_simulated() || pool.node_class.is_of_machines();
  const bool has_class = class_of(pool.node_class) != nullptr;
  const std::string why =
      !is_ours     ? fmt::format("nodeClassRef names {} of group {}: here nodes are made by {} of {} and {} of {}", pool.node_class.kind,
                                 pool.node_class.group, kNodeClassKind, kNodeClassGroup, kMachineClassKind, kMachineClassGroup)
      : !has_class ? fmt::format("there is no {} named \"{}\"", pool.node_class.kind, pool.node_class.name)
                   : "";
  std::string invalid;
  if (!pool.is_deleting && !is_satisfiable(pool)) invalid = why_no_types(pool);
  bool changed = set_condition(conditions, "ValidationSucceeded", invalid.empty() ? "True" : "False",
                               invalid.empty() ? "ValidationSucceeded" : "NoInstanceTypes", invalid, now_);
  changed |= set_condition(conditions, "NodeClassReady", why.empty() ? "True" : "False",
                           why.empty() ? "NodeClassReady" : "NodeClassNotFound", why, now_);
  const std::string& not_ready = why.empty() ? invalid : why;
  if (const auto known = registration_.find(pool.name); known != registration_.end())
    changed |= set_condition(conditions, "NodeRegistrationHealthy", known->second ? "True" : "False",
                             known->second ? "NodeRegistered" : "RegistrationTimeout",
                             known->second ? "" : "the last node that was waited for did not come", now_);
  changed |=
      set_condition(conditions, "Ready", not_ready.empty() ? "True" : "False", not_ready.empty() ? "Ready" : "NotReady", not_ready, now_);
  if (!not_ready.empty()) tell("NodePool", pool.name, pool.uid, true, "NotReady", not_ready);
  if (!changed && json::get_int(*document, {"status", "nodes"}, -1) == nodes &&
      json::equal(json::get_object(*document, {"status", "resources"}), resources))
    return;
  // A merge patch keeps what it does not name: a resource that is there no more is named null.
  for (const auto& [resource, amount] : json::get_object(*document, {"status", "resources"}))
    if (!resources.contains(resource)) resources[resource] = nullptr;
  patch_status(kNodePools, pool.name, {{"nodes", nodes}, {"resources", std::move(resources)}, {"conditions", std::move(conditions)}});
}

namespace {

json::Object requirement(std::string_view key, const std::vector<std::string>& values) {
  return {{"key", key}, {"operator", "In"}, {"values", json::Array(values.begin(), values.end())}};
}

json::Array taints_json(const std::vector<model::Taint>& taints) {
  json::Array out;
  for (const model::Taint& taint : taints) {
    json::Object one{{"key", taint.key}, {"effect", taint.effect}};
    if (!taint.value.empty()) one["value"] = taint.value;
    out.push_back(std::move(one));
  }
  return out;
}

json::Object requests_json(const placement::Resource& requests, std::size_t pods) {
  json::Object out{{"pods", fmt::format("{}", pods)}};
  if (requests.cpu_milli > 0) out["cpu"] = model::Quantity::from_milli(requests.cpu_milli).to_string();
  if (requests.memory_bytes > 0)
    out["memory"] = model::Quantity::from_value(requests.memory_bytes, model::Quantity::Format::kBinarySI).to_string();
  for (const auto& [name, amount] : requests.scalars)
    if (amount > 0) out[name] = fmt::format("{}", amount);
  return out;
}

}  // namespace

std::string Keeper::make_claim(const NewClaim& claim, const NodePool& pool) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string name = pool.name + "-";
  for (int i = 0; i < 5; ++i) name += kLetters[random_() % kLetters.size()];
  json::Array requirements;
  static const std::set<std::string_view> kChosen = {kInstanceTypeLabel, kZoneLabel, kCapacityTypeLabel};
  for (const json::Value& entry : pool.requirement_entries)
    if (!kChosen.contains(json::get_string(entry, {"key"}))) requirements.push_back(entry);
  requirements.push_back(requirement(kInstanceTypeLabel, claim.types));
  if (std::ranges::none_of(claim.zones, &std::string::empty)) requirements.push_back(requirement(kZoneLabel, claim.zones));
  requirements.push_back(requirement(kCapacityTypeLabel, claim.capacity_types));
  json::Object labels{{kPoolLabel, pool.name}};
  for (const auto& [key, value] : pool.labels.pairs()) labels[key] = value;
  // A label of the user's own, of which the pods asked for one value.
  for (const auto& [key, set] : pool.requirements)
    if (const std::string* value = claim.labels.get(key);
        value != nullptr && !kChosen.contains(key) && key != kArchLabel && key != kOsLabel)
      labels[key] = *value;
  json::Object annotations{{kHashAnnotation, pool.hash}, {kHashVersionAnnotation, kHashVersion}};
  for (const auto& [key, value] : pool.annotations) annotations[key] = value;
  json::Object spec{
      {"requirements", std::move(requirements)},
      {"nodeClassRef", json::Object{{"group", pool.node_class.group}, {"kind", pool.node_class.kind}, {"name", pool.node_class.name}}},
      {"resources", json::Object{{"requests", requests_json(claim.requests, claim.pods.size())}}},
      {"expireAfter", pool.expire_after ? format_go_duration(*pool.expire_after) : "Never"}};
  if (!pool.taints.empty()) spec["taints"] = taints_json(pool.taints);
  if (!pool.startup_taints.empty()) spec["startupTaints"] = taints_json(pool.startup_taints);
  if (pool.termination_grace_period) spec["terminationGracePeriod"] = format_go_duration(*pool.termination_grace_period);
  json::Value body = json::Object{{"apiVersion", "karpenter.sh/v1"},
                                  {"kind", "NodeClaim"},
                                  {"metadata", json::Object{{"name", name},
                                                            {"labels", std::move(labels)},
                                                            {"annotations", std::move(annotations)},
                                                            {"finalizers", json::Array{json::Value(kFinalizer)}},
                                                            {"ownerReferences", json::Array{json::Object{{"apiVersion", "karpenter.sh/v1"},
                                                                                                         {"kind", "NodePool"},
                                                                                                         {"name", pool.name},
                                                                                                         {"uid", pool.uid},
                                                                                                         {"blockOwnerDeletion", true}}}}}},
                                  {"spec", std::move(spec)}};
  out_.writes.push_back({Write::Kind::kCreate, kNodeClaims, "", name, std::move(body), "", std::nullopt});
  return name;
}

void Keeper::provision(PoolsView& view) {
  // Pools whose class is not there make nothing; they keep their numbers.
  for (NodePool& pool : view.pools)
    if (class_of(pool.node_class) == nullptr) pool.is_deleting = true;
  for (const auto& pod : view.left_to_groups)
    tell("Pod", pod->view().meta.name, pod->view().meta.uid, false, "LeftToNodeGroup",
         "a node group of the ClusterAutoscaler may grow for it: no NodePool buys a node", pod->view().meta.ns);
  std::set<std::string> waiting;
  for (const auto& pod : view.provision.waiting) waiting.insert(pod->view().meta.uid);
  is_busy_ = is_busy_ && !waiting.empty();
  if (waiting.empty()) {
    is_busy_ = !view.left_to_groups.empty();
    waiting_.clear();
    return;
  }
  const std::size_t pods = waiting.size();
  for (const NodePool& pool : view.pools) waiting.insert(fmt::format("{}/{}/{}", pool.name, pool.generation, pool.is_deleting));
  for (const OwnedNode& node : view.owned)
    if (!node.is_leaving) waiting.insert(node.claim);
  if (waiting_.empty()) waiting_since_ = now_;
  if (waiting != waiting_) {
    waiting_ = std::move(waiting);
    waiting_changed_ = now_;
    is_busy_ = true;
  } else if (planned_ >= waiting_changed_ && now_ - planned_ < options_.disruption_pause) {
    return;
  }
  // Pods come in bursts: all of one together are bought for better than one by one.
  if (now_ - waiting_changed_ < options_.batch_idle && now_ - waiting_since_ < options_.batch_most) return;
  waiting_since_ = planned_ = now_;
  const ProvisionPlan plan = plan_provisioning(view.input());
  is_busy_ = plan.refused.size() < pods;
  for (const NewClaim& claim : plan.claims) {
    const std::string name = make_claim(claim, view.pools[claim.pool]);
    for (const auto& pod : claim.pods)
      tell("Pod", pod->view().meta.name, pod->view().meta.uid, false, "Nominated",
           fmt::format("Pod should schedule on: nodeclaim/{}", name), pod->view().meta.ns);
  }
  if (!plan.claims.empty()) {
    const std::string bound = plan.bound_words();
    const NodePool& pool = view.pools[plan.claims.front().pool];
    tell("NodePool", pool.name, pool.uid, false, "Provisioned",
         fmt::format("{} claims for {} pods, {} an hour{}{}", plan.claims.size(), pods - plan.refused.size() - plan.on_existing.size(),
                     catalogue_.money(plan.cost), bound.empty() ? "" : ": ", bound));
  }
  for (const auto& one : plan.refused)
    tell("Pod", one.pod->view().meta.name, one.pod->view().meta.uid, true, "NoNodePool", one.why, one.pod->view().meta.ns);
}

void Keeper::taint(const std::string& node, bool is_wanted) {
  const json::Value* document = cache_.node(node);
  if (document == nullptr) return;
  json::Array taints;
  bool is_there = false;
  for (const json::Value& one : json::get_array(*document, {"spec", "taints"})) {
    const bool own = json::get_string(one, {"key"}) == kDisruptedTaint;
    is_there |= own;
    if (!own) taints.push_back(one);
  }
  if (is_there == is_wanted) return;
  if (is_wanted) taints.push_back(json::Object{{"key", kDisruptedTaint}, {"effect", "NoSchedule"}});
  // The revision keeps a taint that came meanwhile.
  json::Object metadata{{"resourceVersion", json::get_string(*document, {"metadata", "resourceVersion"})}};
  out_.writes.push_back({Write::Kind::kPatch, kNodes, "", node,
                         json::Object{{"metadata", std::move(metadata)}, {"spec", json::Object{{"taints", std::move(taints)}}}}, "",
                         std::nullopt});
}

void Keeper::disrupt(PoolsView& view) {
  // Pods that wait come first: what they get would be looked at as waste.
  // So do moves under way: their pods' room on nodes that come would be looked at as free.
  if (is_busy_ || !replacements_.empty() || now_ - disrupted_ < options_.disruption_pause) return;
  // And drains: who leaves a node takes room that looks free. One that is held up for long holds up nobody else.
  if (std::ranges::any_of(cache_.claims(), [&](const auto& one) { return one.second.deleted && now_ - *one.second.deleted < kDraining; }))
    return;
  disrupted_ = now_;
  for (OwnedNode& node : view.owned) {
    const auto claim = cache_.claims().find(node.claim);
    if (claim == cache_.claims().end()) continue;
    const auto since = claim->second.since("Initialized");
    if (node.is_initialized && since && now_ - *since < kSettling) node.blocked = "pods are on their way to it";
    for (const Replacement& one : replacements_)
      if (one.claims.contains(node.claim) || one.instead.contains(node.claim)) node.blocked = "it is part of a replacement under way";
  }
  const ConsolidationInput input{view.input(), view.owned};
  const std::string moment_now = moment();
  const ConsolidationPlan plan = plan_consolidation(input);
  settled_ = plan.steps.empty() ? moment_now : "";
  for (const Disruption& step : plan.steps) begin(step, view);
  for (const auto& [i, why] : plan.staying) {
    const auto claim = cache_.claims().find(view.owned[i].claim);
    if (claim != cache_.claims().end()) tell("NodeClaim", claim->first, claim->second.uid, false, "Unconsolidatable", why);
  }
}

void Keeper::begin(const Disruption& step, const PoolsView& view, std::optional<TimePoint> no_later) {
  Replacement replacement;
  replacement.since = now_;
  replacement.no_later = no_later;
  std::vector<std::string> nodes;
  for (const std::size_t i : step.nodes) {
    replacement.claims.insert(view.owned[i].claim);
    nodes.push_back(view.owned[i].node);
    taint(view.owned[i].node, true);
  }
  for (const NewClaim& claim : step.replacements) replacement.instead.insert(make_claim(claim, view.pools[claim.pool]));
  replacement.told = fmt::format("{}: {} node{} go{}, {} come, {} pods move, {} an hour {}", to_string(step.reason), nodes.size(),
                                 nodes.size() == 1 ? "" : "s", nodes.size() == 1 ? "es" : "", step.replacements.size(), step.evicted.size(),
                                 catalogue_.money(std::abs(step.savings)), step.savings < 0 ? "more" : "less");
  for (const std::size_t i : step.nodes) {
    const auto claim = cache_.claims().find(view.owned[i].claim);
    if (claim == cache_.claims().end()) continue;
    out_.disrupted.emplace_back(claim->first, step.reason);
    tell("NodeClaim", claim->first, claim->second.uid, false, "Disrupted", replacement.told);
    tell("Node", view.owned[i].node, view.owned[i].node, false, "Disrupted", replacement.told);
    json::Array conditions = claim->second.conditions;
    if (set_condition(conditions, "DisruptionReason", "True", to_string(step.reason), replacement.told, now_))
      patch_status(kNodeClaims, claim->first, {{"conditions", std::move(conditions)}});
  }
  replacements_.push_back(std::move(replacement));
}

/// What comes instead has started: what goes is told to. What does not come in time leaves all as it was.
void Keeper::follow_replacements() {
  std::set<std::string> leaving;
  std::erase_if(replacements_, [&](const Replacement& one) {
    bool all_started = true, some_gone = false;
    for (const std::string& name : one.instead) {
      const auto at = cache_.claims().find(name);
      const bool is_there = at != cache_.claims().end() && !at->second.deleted;
      some_gone |= !is_there && now_ - one.since > std::chrono::seconds(5);
      all_started &= is_there && at->second.is("Initialized");
    }
    if (one.no_later) {
      all_started = (all_started && !some_gone) || now_ >= *one.no_later;
    } else if (some_gone || (!all_started && now_ - one.since > options_.replacement_timeout)) {
      for (const std::string& name : one.claims)
        if (const auto at = cache_.claims().find(name); at != cache_.claims().end())
          tell("NodeClaim", name, at->second.uid, true, "DisruptionGivenUp", "what was to come instead did not: the node stays");
      return true;
    }
    leaving.insert(one.claims.begin(), one.claims.end());
    if (!all_started) return false;
    for (const std::string& name : one.claims)
      if (const auto at = cache_.claims().find(name); at != cache_.claims().end() && !at->second.deleted)
        out_.writes.push_back({Write::Kind::kDelete, kNodeClaims, "", name, {}, at->second.uid, std::nullopt});
    // Known as leaving until the deletion is seen.
    return std::ranges::all_of(one.claims, [&](const std::string& name) {
      const auto at = cache_.claims().find(name);
      return at == cache_.claims().end() || at->second.deleted;
    });
  });
  // A mark that nobody stands for any more, of a replacement given up or of an earlier process.
  for (const auto& [name, claim] : cache_.claims())
    if (!claim.deleted && !leaving.contains(name) && !claim.node_name.empty()) taint(claim.node_name, false);
}

}  // namespace berth::pools
