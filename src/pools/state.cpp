#include "pools/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "autoscaler/node_template.h"
#include "autoscaler/provider.h"

namespace berth::pools {
namespace {

using placement::PodInfoPtr;

template <typename Map>
const typename Map::mapped_type* look_up(const Map& map, const std::string& name) {
  const auto at = map.find(name);
  return at == map.end() ? nullptr : &at->second;
}

}  // namespace

void PoolsCache::upsert(const json::Value& object) {
  ++version_;
  const std::string_view kind = json::get_string(object, {"kind"});
  const std::string name(json::get_string(object, {"metadata", "name"}));
  const bool is_karpenters = json::get_string(object, {"apiVersion"}).starts_with("karpenter.sh/");
  if (kind == "NodePool" && is_karpenters) {
    pools_[name] = NodePool::parse(object);
    pool_documents_[name] = object;
  } else if (kind == "NodeClaim" && is_karpenters) {
    claims_[name] = NodeClaim::parse(object);
  } else if (kind == kNodeClassKind || kind == kMachineClassKind) {
    node_classes_[fmt::format("{}/{}", kind, name)] = object;
  } else {
    if (kind == "Node") nodes_[name] = object;
    cache_.upsert(object);
  }
}

void PoolsCache::remove(std::string_view kind, std::string_view ns, std::string_view name) {
  ++version_;
  const std::string key(name);
  if (kind == "NodePool") {
    pools_.erase(key);
    pool_documents_.erase(key);
  } else if (kind == "NodeClaim") {
    claims_.erase(key);
  } else if (kind == kNodeClassKind || kind == kMachineClassKind) {
    node_classes_.erase(fmt::format("{}/{}", kind, name));
  } else {
    if (kind == "Node") nodes_.erase(key);
    cache_.remove(kind, ns, name);
  }
}

const json::Value* PoolsCache::node_class(const NodeClassRef& ref) const {
  return ref.is_simulated() || ref.is_of_machines() ? look_up(node_classes_, fmt::format("{}/{}", ref.kind, ref.name)) : nullptr;
}

const std::vector<MachineGroup>& PoolsCache::machine_groups() {
  if (groups_version_ == version_) return groups_;
  groups_version_ = version_;
  groups_.clear();
  group_problems_.clear();
  const auto first = node_classes_.lower_bound(fmt::format("{}/", kMachineClassKind));
  if (first == node_classes_.end() || !first->first.starts_with(kMachineClassKind)) return groups_;
  for (autoscaler::NodeGroup& group : cache_.groups_of_pools(group_problems_)) groups_.push_back({std::move(group), false, true});
  for (const autoscaler::NodeGroup& group : provider_groups_)
    if (!group.node_class.empty()) groups_.push_back({group, true, is_provider_current_});
  return groups_;
}

void PoolsCache::see_provider(autoscaler::ProviderState state) {
  ++version_;
  is_provider_current_ = state.is_usable;
  if (state.is_usable) provider_groups_ = std::move(state.groups);
}
void PoolsCache::outdate_provider() {
  ++version_;
  is_provider_current_ = false;
}

std::string PoolsCache::node_name_of(const NodeClaim& claim) {
  if (!claim.node_name.empty() || !claim.node_class.is_of_machines()) return claim.node_name.empty() ? claim.name : claim.node_name;
  for (const MachineGroup& group : machine_groups())
    for (const autoscaler::Instance& one : group.group.instances)
      if (!one.node.empty() && provider_id_of(one) == claim.provider_id) return one.node;
  return "";
}

const json::Value* PoolsCache::node(const std::string& name) const { return look_up(nodes_, name); }
const json::Value* PoolsCache::pool_document(const std::string& name) const { return look_up(pool_documents_, name); }

std::string drift_of(const NodeClaim& claim, const NodePool& pool) {
  const std::string* hash = claim.annotation(kHashAnnotation);
  const std::string* version = claim.annotation(kHashVersionAnnotation);
  if (hash != nullptr && version != nullptr && *version == kHashVersion && *hash != pool.hash) return "NodePoolDrifted";
  if (!claim.is("Launched")) return "";
  std::set<std::string, std::less<>> unknown;
  for (const auto& [key, set] : pool.requirements)
    if (!set.named()) unknown.insert(key);
  return admit(pool.requirements, claim.labels, unknown) ? "" : "RequirementsDrifted";
}

namespace {

/// The node as it will be once it has started: without what is taken off it then. Null where it is not to be counted on.
model::NodeViewPtr coming(const model::NodeView& node, const NodeClaim& claim) {
  auto out = std::make_shared<model::NodeView>(node);
  std::erase_if(out->taints, [&](const model::Taint& taint) {
    return taint.key == kUnregisteredTaint || taint.key == "node.kubernetes.io/not-ready" ||
           taint.key == "node.kubernetes.io/unreachable" || taint.key == "node.cloudprovider.kubernetes.io/uninitialized" ||
           std::ranges::any_of(claim.startup_taints,
                               [&](const model::Taint& one) { return one.key == taint.key && one.effect == taint.effect; });
  });
  if (claim.node_class.is_of_machines() && !claim.is("Registered")) {  // A machine's node does not know yet whose it is.
    auto labels = std::map<std::string, std::string>(out->meta.labels.pairs().begin(), out->meta.labels.pairs().end());
    for (const auto& [key, value] : claim.labels.pairs()) labels[key] = value;
    out->meta.labels = model::Labels(std::vector<std::pair<std::string, std::string>>(labels.begin(), labels.end()));
    out->taints.insert(out->taints.end(), claim.taints.begin(), claim.taints.end());
  }
  if (out->allocatable.empty()) out->allocatable = claim.allocatable, out->capacity = claim.capacity;
  return out;
}

/// What the claim's own labels say comes first.
model::Labels labels_with(const InstanceType& type, const Offering& offering, const model::Labels& of_claim) {
  std::map<std::string, std::string, std::less<>> all(type.labels.pairs().begin(), type.labels.pairs().end());
  put_place(all, offering);
  for (const auto& [key, value] : of_claim.pairs()) all[key] = value;
  return model::Labels(std::vector<std::pair<std::string, std::string>>(all.begin(), all.end()));
}

/// A claim that has no node yet, as the node that comes: by the type that it got, or the cheapest that it may get.
model::NodeViewPtr node_before_it_is(const NodeClaim& claim, const NodePool* pool, const Catalogue& catalogue, std::string* type_name,
                                     const Offering** offering) {
  const InstanceType* best = nullptr;
  for (const InstanceType& type : catalogue.types)
    for (const Offering& one : type.offerings) {
      if (type.node_class != claim.node_class.types_of()) continue;
      const std::string* chosen = claim.labels.get(kInstanceTypeLabel);
      if (chosen != nullptr && *chosen != type.name) continue;
      const model::Labels labels = labels_with(type, one, claim.labels);
      if (const std::string* zone = labels.get(kZoneLabel); zone != nullptr && *zone != one.zone) continue;
      if (const std::string* kind = labels.get(kCapacityTypeLabel); *kind != one.capacity_type) continue;
      std::set<std::string, std::less<>> unknown;
      for (const auto& [key, set] : claim.requirements) unknown.insert(key);
      if (!one.is_available || !admit(claim.requirements, labels, unknown)) continue;
      if (*offering == nullptr || one.price < (*offering)->price) *offering = &one, best = &type;
    }
  if (best == nullptr) return nullptr;
  *type_name = best->name;
  auto pairs = *labels_with(*best, **offering, claim.labels).pairs();
  std::erase_if(pairs, [](const auto& one) { return one.first == kHostnameLabel; });
  pairs.emplace_back(kHostnameLabel, claim.name);
  std::ranges::sort(pairs);
  auto out = std::make_shared<model::NodeView>();
  out->meta.name = claim.name;
  out->meta.labels = model::Labels(std::move(pairs));
  out->taints = pool == nullptr ? claim.taints : pool->taints;
  out->taints.insert(out->taints.end(), best->taints.begin(), best->taints.end());
  out->capacity = best->capacity;
  out->allocatable = best->allocatable;
  out->conditions.push_back({"Ready", "True", ""});
  return out;
}

std::int64_t counted(const model::ResourceList& list, std::string_view name) {
  const model::Quantity* found = model::find_resource(list, name);
  if (found == nullptr) return 0;
  return name == "cpu" ? found->milli_value() : found->value();
}

class Viewing {
 public:
  Viewing(PoolsCache& cache, const Catalogue& catalogue, PoolsView& out) : cache_(cache), catalogue_(catalogue), out_(out) {}

  void add_pools() {
    for (const auto& [name, pool] : cache_.pools()) {
      if (!pool.node_class.is_simulated() && !pool.node_class.is_of_machines()) {
        out_.notes.push_back(fmt::format("NodePool \"{}\": its node class is of kind \"{}\"; only {} and {} make nodes here", name,
                                         pool.node_class.kind, kNodeClassKind, kMachineClassKind));
        continue;
      }
      number_of_[name] = out_.pools.size();
      out_.pools.push_back(pool);
    }
  }
  void add_claim(const NodeClaim& claim) {
    const auto pool = number_of_.find(claim.pool);
    std::string type;
    const Offering* offering = nullptr;
    const model::NodeViewPtr planned =
        node_before_it_is(claim, pool == number_of_.end() ? nullptr : &out_.pools[pool->second], catalogue_, &type, &offering);
    if (planned != nullptr && pool != number_of_.end()) {
      auto& used = out_.provision.in_use[claim.pool];
      ++used["nodes"];
      const model::ResourceList& capacity = claim.capacity.empty() ? *planned->capacity : claim.capacity;
      for (const auto& [name, amount] : capacity) used[name] += counted(capacity, name);
    }
    const std::string node = claim.node_name.empty() && !claim.node_class.is_of_machines() ? "" : cache_.node_name_of(claim);
    const placement::NodeInfo* info = node.empty() ? nullptr : out_.trial->cluster().find_node(node);
    if (claim.deleted) {
      if (info != nullptr && info->node != nullptr) close(*info->node);
    } else if (info != nullptr && info->node != nullptr) {
      if (!claim.is("Initialized")) (void)out_.trial->cluster().upsert_node(coming(*info->node, claim));
    } else if (planned != nullptr) {
      (void)out_.trial->cluster().upsert_node(planned);
    }
    if (pool == number_of_.end()) return;
    OwnedNode owned{claim.name,
                    claim.node_name,
                    pool->second,
                    type,
                    offering == nullptr ? "" : offering->zone,
                    offering == nullptr ? "" : offering->capacity_type,
                    offering == nullptr ? 0 : offering->price,
                    claim.is("Initialized"),
                    claim.deleted.has_value(),
                    "",
                    "",
                    std::nullopt};
    owned.blocked = blocked_by(claim, info == nullptr ? nullptr : info->node.get());
    owned.drifted = drift_of(claim, out_.pools[pool->second]);
    owned.quiet = claim.last_pod_event ? claim.last_pod_event : claim.since("Initialized");
    if (info != nullptr && info->node != nullptr)
      owned.is_leaving |= std::ranges::any_of(info->node->taints, [](const model::Taint& taint) { return taint.key == kDisruptedTaint; });
    out_.owned.push_back(std::move(owned));
  }

 private:
  static std::string blocked_by(const NodeClaim& claim, const model::NodeView* node) {
    if (const std::string* mark = claim.annotation(kDoNotDisrupt); mark != nullptr && *mark == "true")
      return fmt::format("NodeClaim {} has the annotation {}", claim.name, kDoNotDisrupt);
    const std::string* mark_of_node = node == nullptr ? nullptr : node->meta.annotation(kDoNotDisrupt);
    if (mark_of_node != nullptr && *mark_of_node == "true") return fmt::format("its node has the annotation {}", kDoNotDisrupt);
    return "";
  }
  /// Nothing new goes to a node that leaves.
  void close(const model::NodeView& node) {
    auto view = std::make_shared<model::NodeView>(node);
    view->unschedulable = true;
    view->taints.push_back({std::string(kDisruptedTaint), "", "NoSchedule"});
    (void)out_.trial->cluster().upsert_node(std::move(view));
  }

  PoolsCache& cache_;
  const Catalogue& catalogue_;
  PoolsView& out_;
  std::map<std::string, std::size_t> number_of_;
};

}  // namespace

namespace {

/// So long a group may take for a machine (the autoscaler's maxNodeProvisionTime): then its pods are the pools' as well.
constexpr Duration kGroupPatience = std::chrono::minutes(15);

/// Groups that somebody sized come first, as far as they may grow, so that nobody buys twice for one pod: what the autoscaler grows by is
/// not bought, and what it cannot grow by is.
class LeavingToGroups {
 public:
  LeavingToGroups(PoolsView& view, const autoscaler::Snapshot& snapshot, TimePoint now)
      : view_(view), snapshot_(snapshot), now_(now), soon_(view.trial->fork()) {}

  void run() {
    add_machines();
    if (names_.empty()) return;
    std::vector<PodInfoPtr> left, rest;
    for (const PodInfoPtr& pod : view_.provision.waiting) (waits_for_group(pod) ? left : rest).push_back(pod);
    // Of a gang all or nobody.
    std::set<std::string> split;
    for (const PodInfoPtr& pod : rest) split.insert(gang_of(*pod));
    split.erase("");
    view_.provision.waiting.clear();
    std::set<const placement::PodInfo*> leaves;
    for (const PodInfoPtr& pod : left)
      if (!split.contains(gang_of(*pod))) leaves.insert(pod.get());
    for (const PodInfoPtr& pod : left) (leaves.contains(pod.get()) ? view_.left_to_groups : rest).push_back(pod);
    view_.provision.waiting = std::move(rest);
  }

 private:
  [[nodiscard]] const std::string& gang_of(const placement::PodInfo& pod) const {
    return snapshot_.pod_sets->groups.group_of(pod.view().meta.uid);
  }
  /// Machines that are on their way, and those by which groups may still grow.
  void add_machines() {
    for (const autoscaler::NodeGroup& group : snapshot_.groups) {
      const autoscaler::NodeTemplate like = autoscaler::make_template(
          group, snapshot_, [this]() -> placement::Trial& { return soon_; }, nullptr, now_);
      if (like.node == nullptr) continue;
      std::int64_t there = 0;
      for (const autoscaler::Instance& one : group.instances) there += one.node.empty() ? 0 : 1;
      const std::int64_t more = std::min(std::max(group.max, group.target) - there, std::ssize(view_.provision.waiting));
      for (std::int64_t i = 0; i < more; ++i) {
        const std::string name = fmt::format("of-group-{}-{}", group.id, i);
        (void)autoscaler::add_node(soon_, like, name);
        names_.insert(name);
      }
    }
  }
  bool waits_for_group(const PodInfoPtr& pod) {
    const auto at = snapshot_.pod_sets->unplaced.find(pod->key);
    if (at == snapshot_.pod_sets->unplaced.end() || at->second->facts.created.value_or(TimePoint{}) + kGroupPatience < now_) return false;
    const placement::Placement placed = soon_.place(pod);
    return placed.is_placed() && names_.contains(soon_.cluster().node(placed.node)->name);
  }

  PoolsView& view_;
  const autoscaler::Snapshot& snapshot_;
  TimePoint now_;
  placement::Trial soon_;
  std::set<std::string> names_;
};

}  // namespace

PoolsView view_of(PoolsCache& cache, const Catalogue& catalogue, const placement::Profiles& profiles, const Unavailable& unavailable,
                  TimePoint now, bool every_pod) {
  PoolsView out;
  const autoscaler::Snapshot snapshot = cache.cluster().snapshot();
  out.trial = std::make_unique<placement::Trial>(placement::Trial::on_fork(*snapshot.cluster, profiles));
  Viewing viewing(cache, catalogue, out);
  viewing.add_pools();
  for (const auto& [name, claim] : cache.claims()) viewing.add_claim(claim);
  out.provision.trial = out.trial.get();
  out.provision.catalogue = &catalogue;
  out.provision.daemons = snapshot.daemons;
  out.provision.groups = &snapshot.pod_sets->groups;
  out.provision.unavailable = unavailable;
  out.provision.now = now;
  for (const auto& [key, pod] : snapshot.pod_sets->unplaced) {
    if (pod->facts.is_finished || pod->view().is_terminal() || pod->view().meta.is_deleting || model::counts_as_daemon(pod->view().meta))
      continue;
    if (!every_pod && !pod->facts.is_unschedulable) continue;
    out.provision.waiting.push_back(pod->info);
  }
  const bool some_grow = cache.cluster().cluster_autoscaler() != nullptr && !snapshot.groups.empty();
  if (some_grow && !out.provision.waiting.empty()) LeavingToGroups(out, snapshot, now).run();
  return out;
}

}  // namespace berth::pools
