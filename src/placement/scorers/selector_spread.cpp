// SelectorSpread of 1.20: spreads the pods of a service or workload over nodes and zones (pkg/scheduler/framework/plugins/selectorspread;
// priorities SelectorSpreadPriority and ServiceSpreadingPriority of older releases).
#include <algorithm>
#include <map>
#include <unordered_map>

#include "placement/columns/topology_part.h"
#include "placement/plugins/default_selector.h"
#include "placement/plugins/factories.h"
#include "placement/plugins/normalize.h"
#include "placement/plugins/pod_topology_spread.h"

namespace berth::placement {
namespace {

struct SpreadState : Cloneable<SpreadState> {
  model::Selector selector;
};

/// Its columnar form (columns/topology_part.h). Slots: the node's zone, and how many selected pods it has.
class SelectorPart final : public TopologyPart {
 public:
  explicit SelectorPart(const TopologySetup& setup)
      : index_(&setup.index),
        weight_(setup.weight),
        count_(index_->matcher({own_namespace_term(setup.pod.view(), setup.default_selector)}, true)) {}
  [[nodiscard]] std::unique_ptr<TopologyPart> clone() const override { return std::make_unique<SelectorPart>(*this); }
  void bind(ClusterIndex& index) override { index_ = &index; }

  void reset() override {
    zones_.clear();
    zone_of_.renew(index_->cluster().slot_count());
  }
  [[nodiscard]] std::size_t slot_count() const override { return 2; }
  void place(const PodInfo&, const NodeInfo& node, bool is_new, std::vector<std::int64_t>& key) override {
    const std::uint32_t at = node.index.value;
    if (at >= zone_of_.size()) zone_of_.resize(std::max<std::size_t>(at + 1, index_->cluster().slot_count()));
    if (is_new) {
      const std::string zone = zone_key(node.labels());
      zone_of_.edit(at).value = zone.empty() ? -1 : zones_.try_emplace(zone, static_cast<std::int32_t>(zones_.size())).first->second;
    }
    key.push_back(zone_of_[at].value);
    key.push_back(index_->counts(count_)[at]);
  }
  void remove(std::uint32_t) override {}

  /// Over the nodes that fit: a node is the better the fewer selected pods it has, its zone likewise.
  void score(std::span<TopologyCandidate> candidates, std::size_t first) override {
    std::vector<std::int64_t> by_zone(zones_.size());
    std::int64_t max_node = 0;
    for (const auto& candidate : candidates) {
      const std::int64_t zone = candidate.key[first], count = candidate.key[first + 1];
      max_node = std::max(max_node, count);
      if (zone >= 0) by_zone[static_cast<std::size_t>(zone)] += count * static_cast<std::int64_t>(candidate.nodes);
    }
    const std::int64_t max_zone = by_zone.empty() ? 0 : *std::ranges::max_element(by_zone);
    for (auto& candidate : candidates) {
      const std::int64_t zone = candidate.key[first], count = candidate.key[first + 1];
      candidate.bonus +=
          weight_ * selector_spread_score(count, max_node, zone >= 0, zone >= 0 ? by_zone[static_cast<std::size_t>(zone)] : 0, max_zone);
    }
  }
  [[nodiscard]] bool counts_nodes() const override { return true; }
  [[nodiscard]] std::size_t memory_bytes() const override { return zone_of_.memory_bytes(); }

 private:
  struct Zone {
    std::int32_t value = -1;  ///< -1: in no zone.
  };
  ClusterIndex* index_;  ///< As of the last bind().
  std::int64_t weight_;
  CountId count_;  ///< Pods on the node that the pod's selectors pick.
  Pages<Zone> zone_of_;
  std::unordered_map<std::string, std::int32_t> zones_;
};

TopologyOutcome make_selector_spread_part(const TopologySetup& setup) {
  if (setup.weight == 0 || !setup.pod.view().spread_constraints.empty()) return {};  // Own constraints switch it off.
  // Nothing selects it: all nodes are as good.
  if (setup.default_selector.is_everything()) return {.constant_score = setup.weight * kMaxNodeScore};
  return {.part = std::make_unique<SelectorPart>(setup)};
}

class SelectorSpread final : public PluginOf<SelectorSpread> {
 public:
  explicit SelectorSpread(bool has_pre_score) : has_pre_score_(has_pre_score) {}
  std::string_view name() const override { return "SelectorSpread"; }
  void sign(Signer& signer, const PodInfo& pod) const override {
    if (!signer.counts_scores()) return;
    signer.add(static_cast<std::int64_t>(pod.view().spread_constraints.empty()));
    if (pod.view().spread_constraints.empty()) (void)signer.default_selector();
  }
  ColumnKind column_kind() const override { return has_pre_score_ ? ColumnKind::kTopology : ColumnKind::kPlainOnly; }
  TopologyOutcome topology_part(const TopologySetup& setup) const override { return make_selector_spread_part(setup); }

  Status pre_score(CycleState& state, const PodInfo& pod, std::span<const NodeInfo* const>) const override {
    if (!pod.view().spread_constraints.empty()) return Status::success();
    auto data = std::make_unique<SpreadState>();
    data->selector = default_selector(pod.view(), state.cluster(), Era::k120);
    state.set(slot(), std::move(data));
    return Status::success();
  }

  std::expected<std::int64_t, Status> score(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    if (!pod.view().spread_constraints.empty()) return 0;
    const auto* data = state.get<SpreadState>(slot());
    // A configuration that enables the plugin at Score alone has pods wait for its correction.
    if (data == nullptr) return std::unexpected(Status::error("reading \"PreScoreSelectorSpread\" from cycleState: not found"));
    if (data->selector.is_everything()) return 0;
    return count_matching_pods(node, data->selector, pod.view().ns());
  }

  Status normalize(const CycleState&, const PodInfo& pod, std::span<const NodeInfo* const> feasible,
                   std::span<std::int64_t> scores) const override {
    if (!pod.view().spread_constraints.empty()) return Status::success();
    std::map<std::string, std::int64_t> by_zone;
    std::vector<std::string> zones(scores.size());
    std::int64_t max_node = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      max_node = std::max(max_node, scores[i]);
      zones[i] = zone_key(feasible[i]->labels());
      if (!zones[i].empty()) by_zone[zones[i]] += scores[i];
    }
    std::int64_t max_zone = 0;
    for (const auto& [zone, count] : by_zone) max_zone = std::max(max_zone, count);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const bool has_zone = !zones[i].empty();
      scores[i] = selector_spread_score(scores[i], max_node, has_zone, has_zone ? by_zone[zones[i]] : 0, max_zone);
    }
    return Status::success();
  }

 private:
  bool has_pre_score_;
};

}  // namespace

Result<PluginPtr> make_selector_spread(const Profile& profile) {
  return std::make_unique<SelectorSpread>(profile.has(profile.pre_score, "SelectorSpread"));
}

}  // namespace berth::placement
