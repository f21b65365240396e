#include "pools/machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "autoscaler/expander.h"
#include "pools/state.h"

namespace berth::pools {
namespace {

using autoscaler::Instance;

/// Labels of the template that all its nodes have.
std::map<std::string, std::string, std::less<>> lasting_labels(const model::NodeView& node) {
  std::map<std::string, std::string, std::less<>> out{{std::string(kArchLabel), "amd64"}, {std::string(kOsLabel), "linux"}};
  for (const auto& [key, value] : node.labels().pairs()) out[key] = value;
  out.erase(std::string(kHostnameLabel));
  return out;
}

std::string take_label(std::map<std::string, std::string, std::less<>>& labels, std::string_view key, std::string_view otherwise) {
  const auto at = labels.find(key);
  if (at == labels.end()) return std::string(otherwise);
  std::string out = std::move(at->second);
  labels.erase(at);
  return out;
}

double price_of(const autoscaler::NodeGroup& group, const Catalogue& base, const std::string& type, const Offering& offering) {
  if (group.price_per_hour) return *group.price_per_hour;
  if (const InstanceType* known = base.find(type))
    for (const Offering& one : known->offerings)
      if (one.capacity_type == offering.capacity_type && (one.zone == offering.zone || offering.zone.empty())) return one.price;
  return autoscaler::usual_price(placement::Resource::from_list(group.template_node->capacity));
}

}  // namespace

std::string provider_id_of(const Instance& machine) {
  return machine.id.find("://") != std::string::npos ? machine.id : "machine:///" + machine.id;
}

std::int64_t GroupBalance::supply() const {
  if (!of->is_current) return 0;
  const std::int64_t more = of->group.max - of->group.target + coming + std::ssize(taking) - std::ssize(waiting);
  return std::max<std::int64_t>(0, more);
}

std::vector<const NodeClaim*> GroupBalance::left() const {
  std::vector<const NodeClaim*> out;
  for (const NodeClaim* claim : waiting)
    if (std::ranges::find(taking, claim, [](const auto& one) { return one.first; }) == taking.end()) out.push_back(claim);
  return out;
}

std::map<std::string, GroupBalance> balances(PoolsCache& cache) {
  std::map<std::string, GroupBalance> out;
  for (const MachineGroup& group : cache.machine_groups()) out[group.id()].of = &group;
  std::set<std::string> taken;
  for (const auto& [name, claim] : cache.claims()) {
    if (!claim.provider_id.empty()) taken.insert(claim.provider_id);
    const std::string* group = claim.annotation(kGroupAnnotation);
    const auto at = group == nullptr ? out.end() : out.find(*group);
    if (at != out.end() && claim.provider_id.empty() && claim.is("Launched")) at->second.waiting.push_back(&claim);
  }
  for (auto& [id, balance] : out) {
    std::ranges::stable_sort(balance.waiting, {}, [](const NodeClaim* one) { return std::pair(one->deleted.has_value(), one->created); });
    std::vector<const Instance*> free;
    std::int64_t there = 0;
    for (const Instance& one : balance.of->group.instances) {
      if (one.is_leaving) continue;
      ++there;
      if (one.failure.empty() && !taken.contains(provider_id_of(one))) free.push_back(&one);
    }
    balance.coming = std::max<std::int64_t>(0, balance.of->group.target - there);
    const auto may_take = [&](const NodeClaim& claim, const Instance& one) {
      const auto node = cache.cluster().nodes().find(one.node);
      return one.node.empty() || node == cache.cluster().nodes().end() ||
             node->second.created >= claim.since("Launched").value_or(claim.created);
    };
    for (const NodeClaim* claim : balance.waiting) {
      const auto at = std::ranges::find_if(free, [&](const Instance* one) { return may_take(*claim, *one); });
      if (at == free.end()) continue;
      balance.taking.emplace_back(claim, *at);
      free.erase(at);
    }
  }
  return out;
}

Catalogue with_machines(Catalogue base, PoolsCache& cache, std::vector<std::string>* notes) {
  std::vector<InstanceType> more;
  if (notes != nullptr) *notes = cache.machine_problems();
  for (const auto& [id, balance] : balances(cache)) {
    const autoscaler::NodeGroup& group = balance.of->group;
    if (group.template_node == nullptr) {
      if (notes != nullptr)
        notes->push_back(
            fmt::format("{}: nobody says what its machines have (a MachineSet does by annotations such as "
                        "capacity.cluster-autoscaler.kubernetes.io/cpu and …/memory): no NodePool buys from it",
                        id));
      continue;
    }
    auto labels = lasting_labels(*group.template_node);
    Offering offering;
    offering.zone = take_label(labels, kZoneLabel, "");
    offering.capacity_type = take_label(labels, kCapacityTypeLabel, "on-demand");
    offering.group = id;
    offering.supply = balance.supply();
    const std::string own_name = id.substr(id.rfind('/') + 1);
    std::string name = take_label(labels, kInstanceTypeLabel, own_name);
    offering.price = price_of(group, base, name, offering);
    const auto is_taken = [&](const std::string& wanted) {
      return base.find(wanted) != nullptr || std::ranges::find(more, wanted, &InstanceType::name) != more.end();
    };
    if (is_taken(name)) name = own_name;
    for (int again = 2; is_taken(name); ++again) name = fmt::format("{}-{}", own_name, again);
    labels[std::string(kInstanceTypeLabel)] = name;
    InstanceType type{name,
                      group.template_node->capacity,
                      group.template_node->allocatable,
                      model::Labels(std::vector<std::pair<std::string, std::string>>(labels.begin(), labels.end())),
                      {},
                      group.node_class,
                      group.template_node->taints};
    type.offerings.push_back(std::move(offering));
    more.push_back(std::move(type));
  }
  std::ranges::move(more, std::back_inserter(base.types));
  return base;
}

}  // namespace berth::pools
