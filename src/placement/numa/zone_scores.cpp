#include "placement/numa/zone_scores.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace berth::placement::numa {
namespace {

constexpr std::int64_t kMostScore = 100;
constexpr std::int64_t kMostNumaNodes = 8;  ///< By which LeastNUMANodes divides.

std::vector<Amounts> by_container(const model::PodView& pod) {
  std::vector<Amounts> out;
  for (const model::ContainerView& one : pod.init_containers) out.push_back(requests_of(one));
  for (const model::ContainerView& one : pod.containers) out.push_back(requests_of(one));
  return out;
}

/// The sum of its containers, or of an init container what is more.
Amounts of_pod(const model::PodView& pod) {
  model::ResourceList sums;
  Amounts out;
  for (const model::ContainerView& one : pod.containers)
    for (const auto& [name, amount] : one.requests) {
      const auto known = std::ranges::find(sums, name, &model::ResourceList::value_type::first);
      if (known == sums.end())
        sums.emplace_back(name, amount);
      else
        known->second += amount;
    }
  for (const auto& [name, amount] : sums) out[name] = amount.value();
  for (const model::ContainerView& one : pod.init_containers)
    for (const auto& [name, amount] : requests_of(one)) out[name] = std::max(out[name], amount);
  return out;
}

/// By shares that are taken of what a NUMA node has: 0 to 1.
std::int64_t balanced(const Amounts& wanted, const ZoneLedger& ledger, NodeSet zone) {
  std::vector<double> shares;
  for (const auto& [resource, amount] : wanted) {
    const std::int64_t has = ledger.free(zone, resource);
    shares.push_back(has == 0 ? 1 : static_cast<double>(amount) / static_cast<double>(has));
    if (shares.back() > 1) return 0;
  }
  double mean = 0, variance = 0;
  for (const double share : shares) mean += share / static_cast<double>(shares.size());
  for (const double share : shares) variance += (share - mean) * (share - mean);
  // Of one share alone there is nothing to balance.
  if (shares.size() > 1) variance /= static_cast<double>(shares.size() - 1);
  return static_cast<std::int64_t>((1 - variance) * static_cast<double>(kMostScore));
}

std::int64_t allocated(const Amounts& wanted, const ZoneLedger& ledger, NodeSet zone, const ScoringOptions& options) {
  std::int64_t sum = 0, weights = 0;
  for (const auto& [resource, amount] : wanted) {
    const auto own = options.weights.find(resource);
    const std::int64_t weight = own == options.weights.end() || own->second < 1 ? 1 : own->second, has = ledger.free(zone, resource);
    weights += weight;
    if (has == 0 || amount > has) continue;
    const std::int64_t part = options.strategy == ScoringStrategy::kMostAllocated ? amount : has - amount;
    sum += weight * static_cast<std::int64_t>(static_cast<__int128>(part) * kMostScore / has);
  }
  return weights == 0 ? 0 : sum / weights;
}

/// The worst of the NUMA nodes that would do: which one it will be is the node's choice.
std::int64_t least_of_zones(const Amounts& wanted, const ZoneLedger& ledger, const ScoringOptions& options) {
  std::int64_t out = 0;
  for (const int number : numbers_of(ledger.machine().nodes)) {
    const NodeSet zone = NodeSet{1} << number;
    const std::int64_t score = options.strategy == ScoringStrategy::kBalancedAllocation ? balanced(wanted, ledger, zone)
                                                                                        : allocated(wanted, ledger, zone, options);
    if (out == 0 || (score != 0 && score < out)) out = score;
  }
  return out;
}

/// The fewest NUMA nodes that have what is wanted free, and of as many those that are nearest to each other.
struct Narrowest {
  NodeSet nodes = 0;
  bool is_nearest = false;  ///< No set of as many is nearer.
};
std::optional<Narrowest> narrowest(const Amounts& wanted, const ZoneLedger& ledger) {
  const auto has_all = [&](NodeSet nodes) {
    return std::ranges::all_of(wanted,
                               [&](const auto& one) { return !ledger.knows(one.first) || ledger.free(nodes, one.first) >= one.second; });
  };
  const NodeSet all = ledger.machine().nodes;
  std::vector<Hint> hints = hints_where(all, has_all, has_all);
  std::erase_if(hints, [](const Hint& hint) { return !hint.is_preferred; });
  if (hints.empty()) return std::nullopt;
  const auto near = [&](NodeSet nodes) { return std::pair(mean_distance(ledger.machine(), nodes), nodes); };
  const NodeSet best = std::ranges::min(hints, {}, [&](const Hint& hint) { return near(*hint.nodes); }).nodes.value();
  bool is_nearest = true;
  for_each_subset(all, [&](NodeSet nodes) {
    if (std::popcount(nodes) == std::popcount(best)) is_nearest &= near(best).first <= near(nodes).first;
  });
  return Narrowest{best, is_nearest};
}

std::int64_t fewest_zones(const std::vector<Amounts>& all, ZoneLedger ledger) {
  std::size_t most = 0;
  bool are_nearest = true;
  for (const Amounts& wanted : all) {
    if (std::ranges::none_of(wanted, [&](const auto& one) { return ledger.knows(one.first); })) continue;
    const auto found = narrowest(wanted, ledger);
    if (!found) return 0;
    most = std::max(most, static_cast<std::size_t>(std::popcount(found->nodes)));
    are_nearest &= found->is_nearest;
    Wish wish;
    for (const auto& [resource, amount] : wanted) {
      if (resource == "cpu")
        wish.cpus = amount;
      else
        (is_memory(resource) ? wish.memory : wish.devices)[resource] = amount;
    }
    (void)ledger.give({.uid = "", .containers = {}}, wish, {.nodes = found->nodes, .is_preferred = true});
  }
  if (most == 0) return kMostScore;
  const std::int64_t step = kMostScore / kMostNumaNodes;
  return kMostScore - static_cast<std::int64_t>(most) * step + (are_nearest ? step / 2 : 0);
}

}  // namespace

Amounts requests_of(const model::ContainerView& container) {
  Amounts out;
  for (const auto& [name, amount] : container.requests) out[name] = amount.value();
  return out;
}

std::int64_t zone_score(const NodeAlignment& alignment, const model::PodView& pod, const ScoringOptions& options) {
  if (!pod.is_guaranteed) return kMostScore;
  const auto& policy = alignment.policy();
  if (!policy) return 0;
  const std::vector<Amounts> wanted = policy->is_by_pod ? std::vector{of_pod(pod)} : by_container(pod);
  if (options.strategy == ScoringStrategy::kLeastNumaNodes) return fewest_zones(wanted, alignment.ledger());
  if (policy->align != Align::kSingleNumaNode || wanted.empty()) return 0;
  std::int64_t sum = 0;
  for (const Amounts& one : wanted) sum += least_of_zones(one, alignment.ledger(), options);
  return sum / static_cast<std::int64_t>(wanted.size());
}

}  // namespace berth::placement::numa
