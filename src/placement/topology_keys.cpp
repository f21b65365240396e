#include "placement/topology_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace berth::placement {
namespace {

constexpr std::size_t kMostKeysShown = 12;

/// Each required key with the field of the pod that names it; a preferred rule with a key that is nowhere keeps no pod pending.
std::map<std::string, std::string> required_keys(const model::PodView& pod) {
  std::map<std::string, std::string> out;
  for (const auto& term : pod.required_affinity) out.emplace(term.topology_key, "podAffinity");
  for (const auto& constraint : pod.spread_constraints)
    if (constraint.is_hard) out.emplace(constraint.topology_key, "topologySpreadConstraints");
  return out;
}

/// The label keys of all nodes, those that more nodes share first: what divides a cluster is on many of them.
std::string known_keys(const std::vector<const NodeInfo*>& nodes) {
  std::map<std::string, std::size_t> counts;
  for (const NodeInfo* node : nodes)
    for (const auto& [key, value] : node->labels().pairs()) ++counts[key];
  std::vector<std::pair<std::size_t, std::string>> order;
  for (const auto& [key, count] : counts) order.emplace_back(nodes.size() - count, key);
  std::ranges::sort(order);
  std::vector<std::string> shown;
  for (const auto& [rest, key] : order)
    if (shown.size() < kMostKeysShown) shown.push_back(key);
  std::ranges::sort(shown);
  const std::size_t more = order.size() - shown.size();
  return fmt::format("{}{}", fmt::join(shown, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

std::vector<std::string> missing_topology_keys(const Cluster& cluster, const model::PodView& pod) {
  std::vector<std::string> out;
  const auto keys = required_keys(pod);
  if (keys.empty()) return out;
  const std::vector<const NodeInfo*> nodes = cluster.nodes();
  std::string known;
  for (const auto& [key, field] : keys) {
    if (nodes.empty() || std::ranges::any_of(nodes, [&key](const NodeInfo* node) { return node->label(key) != nullptr; })) continue;
    if (known.empty()) known = known_keys(nodes);
    out.push_back(fmt::format("No node has the label {}, which the pod's {} names as topologyKey; nodes have {}", key, field, known));
  }
  return out;
}

}  // namespace berth::placement
