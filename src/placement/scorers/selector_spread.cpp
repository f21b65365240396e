// SelectorSpread of 1.20: spreads the pods of a service or workload over nodes and zones (pkg/scheduler/framework/plugins/selectorspread;
// priorities SelectorSpreadPriority and ServiceSpreadingPriority of older releases).
#include <algorithm>
#include <map>

#include "placement/plugins/default_selector.h"
#include "placement/plugins/factories.h"
#include "placement/plugins/normalize.h"
#include "placement/plugins/pod_topology_spread.h"

namespace berth::placement {
namespace {

struct SpreadState : Cloneable<SpreadState> {
  model::Selector selector;
};

class SelectorSpread final : public Plugin {
 public:
  explicit SelectorSpread(bool has_pre_score) : has_pre_score_(has_pre_score) {}
  std::string_view name() const override { return "SelectorSpread"; }
  Points points() const override { return {.pre_score = true, .score = true}; }
  void sign(Signer& signer, const PodInfo& pod) const override {
    if (!signer.counts_scores()) return;
    signer.add(static_cast<std::int64_t>(pod.view().spread_constraints.empty()));
    if (pod.view().spread_constraints.empty()) (void)signer.default_selector();
  }
  ColumnKind column_kind() const override { return has_pre_score_ ? ColumnKind::kSelectorSpread : ColumnKind::kPlainOnly; }

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
