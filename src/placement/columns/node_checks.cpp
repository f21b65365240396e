#include "placement/columns/node_checks.h"

#include <algorithm>
#include <set>
#include <string>

#include "placement/columns/ample_claims.h"

namespace berth::placement {
namespace {

/// All nodes have one value of the label, or none has any.
bool tells_nothing_apart(const TopologyColumn& column, std::size_t nodes) {
  return column.population.empty() || (column.population.size() == 1 && column.population[0] == nodes);
}

}  // namespace

NodeChecks::NodeChecks(const Framework& framework, const CycleState& state, const PodInfo& pod, ClusterIndex& index, bool of_many)
    : framework_(framework), state_(state), pod_(pod), index_(index) {
  for (const Plugin* plugin : framework.filters()) {
    if (plugin->column_kind() != ColumnKind::kVolumes || state.filter_skipped(plugin->slot())) continue;
    Check& check = checks_.emplace_back(plugin);
    if (!of_many) continue;
    if (const auto* counts = dynamic_cast<const CountsClaims*>(plugin); counts != nullptr)
      check.ample_claims = counts->ample_claims(state, pod);
    std::set<std::string> keys;
    if (!plugin->says_by_labels(state, pod, keys)) continue;
    std::size_t combinations = 1;
    for (const std::string& key : keys) {
      const std::size_t topology = index.topology(key);
      const TopologyColumn& column = index.topology_column(topology);
      if (tells_nothing_apart(column, index.cluster().node_count())) continue;
      check.topologies.push_back(topology);
      combinations *= column.population.size() + 1;
      if (combinations > kMostVerdicts) break;
    }
    if (combinations <= kMostVerdicts) check.verdicts.resize(combinations);
  }
}

bool NodeChecks::may_fail() const {
  return std::ranges::any_of(checks_, [&](const Check& check) { return check.plugin->may_fail(state_, pod_); });
}

bool NodeChecks::refuse_for_good() const {
  return std::ranges::all_of(checks_, [](const Check& check) { return check.plugin->refuses_for_good(); });
}

std::size_t NodeChecks::place_of(const Check& check, std::uint32_t node) const {
  std::size_t out = 0;
  for (const std::size_t topology : check.topologies) {
    const TopologyColumn& column = index_.topology_column(topology);
    out = out * (column.population.size() + 1) + static_cast<std::size_t>(column.value_of(node) + 1);
  }
  return out;
}

/// Of a check that has verdicts.
const Status& NodeChecks::verdict(Check& check, const NodeInfo& node) {
  std::optional<Status>& known = check.verdicts[place_of(check, node.index.value)];
  if (!known) known = check.plugin->filter(state_, pod_, node);
  return *known;
}

Status NodeChecks::of(const NodeInfo& node) {
  for (Check& check : checks_) {
    Status status = check.verdicts.empty() ? check.plugin->filter(state_, pod_, node) : verdict(check, node);
    if (!status.is_success()) return status;
  }
  return Status::success();
}

void NodeChecks::ask(std::uint32_t node) {
  const Cluster& cluster = index_.cluster();
  const NodeInfo& info = *cluster.node(NodeIndex{node});
  const Status status = cluster.nominated(info.index).empty() ? of(info) : framework_.run_filter_with_nominated(state_, pod_, info);
  has_failed_ |= status.is_error();
  words_[node] = status.is_success() ? Word::kYes : status.code == Code::kUnschedulableAndUnresolvable ? Word::kNever : Word::kNo;
}

void NodeChecks::foretell() {
  const Cluster& cluster = index_.cluster();
  words_.resize(cluster.slot_count());
  for (std::uint32_t node = 0; node < words_.size(); ++node) {
    if (words_[node] != Word::kNotAsked || index_.taint_kind(node) == ClusterIndex::kNoNode) continue;
    if (cluster.has_nominations() && !cluster.nominated(NodeIndex{node}).empty()) continue;
    words_[node] = foretold(node);
  }
}

/// An error is for whoever asks for this node: others may never do.
NodeChecks::Word NodeChecks::foretold(std::uint32_t node) {
  for (Check& check : checks_) {
    if (check.verdicts.empty()) {
      const std::uint16_t claims = index_.amounts(node).claims;
      if (claims == NodeAmounts::kManyClaims || claims > check.ample_claims) return Word::kNotAsked;
      continue;
    }
    const std::optional<Status>& known = check.verdicts[place_of(check, node)];
    const Status& status = known ? *known : verdict(check, *index_.cluster().node(NodeIndex{node}));
    if (!status.is_success())
      return status.is_error() ? Word::kNotAsked : status.code == Code::kUnschedulableAndUnresolvable ? Word::kNever : Word::kNo;
  }
  return Word::kYes;
}

}  // namespace berth::placement
