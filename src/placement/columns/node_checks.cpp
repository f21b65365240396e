#include "placement/columns/node_checks.h"

#include <set>
#include <string>

namespace berth::placement {

NodeChecks::NodeChecks(const Framework& framework, const CycleState& state, const PodInfo& pod, ClusterIndex& index, bool of_many)
    : state_(state), pod_(pod), index_(index) {
  for (const Plugin* plugin : framework.filters()) {
    if (plugin->column_kind() != ColumnKind::kVolumes || state.filter_skipped(plugin->slot())) continue;
    Check& check = checks_.emplace_back(plugin);
    std::set<std::string> keys;
    if (!of_many || !plugin->says_by_labels(state, pod, keys)) continue;
    std::size_t combinations = 1;
    for (const std::string& key : keys) {
      check.topologies.push_back(index.topology(key));
      combinations *= index.topology_column(check.topologies.back()).population.size() + 1;
      if (combinations > kMostVerdicts) break;
    }
    if (combinations <= kMostVerdicts) check.verdicts.resize(combinations);
  }
}

std::size_t NodeChecks::place_of(const Check& check, std::uint32_t node) const {
  std::size_t out = 0;
  for (const std::size_t topology : check.topologies) {
    const TopologyColumn& column = index_.topology_column(topology);
    out = out * (column.population.size() + 1) + static_cast<std::size_t>(column.value_of(node) + 1);
  }
  return out;
}

Status NodeChecks::of(const NodeInfo& node) {
  for (Check& check : checks_) {
    if (check.verdicts.empty()) {
      Status status = check.plugin->filter(state_, pod_, node);
      if (!status.is_success()) return status;
      continue;
    }
    std::optional<Status>& known = check.verdicts[place_of(check, node.index.value)];
    if (!known) known = check.plugin->filter(state_, pod_, node);
    if (!known->is_success()) return *known;
  }
  return Status::success();
}

}  // namespace berth::placement
