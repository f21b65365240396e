#include "pools/gang_domains.h"

#include <algorithm>
#include <set>

#include "placement/groups/group_placement.h"

namespace berth::pools {
namespace {

using placement::PodInfoPtr;

/// Values of all keys together; a node that lacks one of them is in no domain.
using Domain = std::vector<std::string>;

std::optional<Domain> domain_of(const model::Labels& labels, const std::vector<std::string>& keys) {
  Domain out;
  for (const std::string& key : keys) {
    const std::string* value = labels.get(key);
    if (value == nullptr) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

std::vector<std::string> required_keys(const placement::PodGroup& group) {
  std::vector<std::string> out;
  for (const placement::TopologyLevel& level : group.all_levels())
    if (level.is_required && level.key != kHostnameLabel) out.push_back(level.key);
  return out;
}

PodInfoPtr bound_to(const placement::PodInfo& pod, const std::vector<std::string>& keys, const Domain& domain, placement::Era era) {
  auto view = std::make_shared<model::PodView>(pod.view());
  for (std::size_t i = 0; i < keys.size(); ++i) view->node_selector.emplace_back(keys[i], domain[i]);
  view->node_selector.sort();
  return placement::PodInfo::make(std::move(view), era);
}

class Choosing {
 public:
  Choosing(const ProvisionInput& input, const Planner& plan)
      : input_(input), plan_(plan), shapes_(make_shapes(*input.pools, *input.catalogue, input.unavailable, input.now)) {}

  /// Nullopt: there is no domain to choose.
  std::optional<Domain> choose(const placement::PodGroup& group, const std::vector<std::string>& keys,
                               const std::vector<PodInfoPtr>& members) const {
    const placement::Cluster& cluster = input_.trial->cluster();
    const auto standing = placement::standing_of(*input_.groups, cluster, group.key());
    for (const placement::NodeIndex node : standing)
      if (auto own = domain_of(cluster.node(node)->labels(), keys)) return own;
    const std::int64_t needed = group.min_count - std::ssize(standing);
    std::optional<Domain> best;
    std::tuple<bool, std::int64_t, double> best_rank;
    for (const Domain& domain : domains(keys)) {
      ProvisionInput asked = input_;
      asked.groups = nullptr;
      asked.rounds = 20;
      asked.waiting.clear();
      for (const PodInfoPtr& pod : members) asked.waiting.push_back(bound_to(*pod, keys, domain, cluster.era()));
      const ProvisionPlan plan = plan_(asked);
      const std::int64_t placed = std::ssize(members) - std::ssize(plan.refused);
      // Enough of them first, then as many as possible, then the least cost.
      const std::tuple rank(placed < needed, -placed, plan.cost);
      if (!best || rank < best_rank) best = domain, best_rank = rank;
    }
    return best;
  }

 private:
  [[nodiscard]] std::set<Domain> domains(const std::vector<std::string>& keys) const {
    std::set<Domain> out;
    for (const NodeShape& shape : shapes_)
      if (auto domain = domain_of(shape.labels, keys)) out.insert(std::move(*domain));
    for (const placement::NodeInfo* node : input_.trial->cluster().nodes())
      if (auto domain = domain_of(node->labels(), keys)) out.insert(std::move(*domain));
    return out;
  }

  const ProvisionInput& input_;
  const Planner& plan_;
  std::vector<NodeShape> shapes_;
};

}  // namespace

ProvisionInput in_domains(const ProvisionInput& input, const Planner& plan) {
  std::map<std::string, std::vector<std::size_t>> gangs;
  for (std::size_t i = 0; i < input.waiting.size(); ++i)
    if (const std::string& key = input.groups->group_of(input.waiting[i]->view().meta.uid); !key.empty()) gangs[key].push_back(i);
  std::optional<Choosing> choosing;
  ProvisionInput out = input;
  for (const auto& [key, places] : gangs) {
    const placement::PodGroupPtr group = input.groups->find(key);
    const std::vector<std::string> keys = group == nullptr || !group->is_gang ? std::vector<std::string>() : required_keys(*group);
    if (keys.empty()) continue;
    if (!choosing) choosing.emplace(input, plan);
    std::vector<PodInfoPtr> members;
    for (const std::size_t i : places) members.push_back(input.waiting[i]);
    const auto domain = choosing->choose(*group, keys, members);
    if (!domain) continue;
    for (const std::size_t i : places) out.waiting[i] = bound_to(*input.waiting[i], keys, *domain, input.trial->cluster().era());
  }
  return out;
}

}  // namespace berth::pools
