// NodeResourcesBalancedAllocation: prefers nodes whose resources are used evenly
// (pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go; priority BalancedResourceAllocation).
#include <algorithm>

#include "placement/columns/node_amounts.h"
#include "placement/plugins/factories.h"
#include "placement/scorers/resource_allocation.h"

namespace berth::placement {
namespace {

struct BalancedState : Cloneable<BalancedState> {
  std::vector<ScoredResource> resources;
};

class BalancedAllocation final : public PluginOf<BalancedAllocation> {
 public:
  BalancedAllocation(Era era, std::vector<ResourceWeight> resources) : era_(era), resources_(std::move(resources)) {}
  std::string_view name() const override { return "NodeResourcesBalancedAllocation"; }
  void leave_out(Points& points) const override { points.pre_score &= era_ != Era::k120; }
  void sign(Signer& signer, const PodInfo&) const override { signer.request(); }
  ColumnKind column_kind() const override { return ColumnKind::kNodeLocal; }

  bool join_score(ResourceColumns& columns, const PodInfo& pod, std::int64_t weight) const override {
    if (era_ == Era::k120) return false;
    const auto resources = scored_resources(pod, resources_, era_, true);
    if (resources.size() != 2 || resources[0].kind != ScoredResource::Kind::kCpu || resources[1].kind != ScoredResource::Kind::kMemory)
      return false;
    columns.balanced_weight = weight;
    return true;
  }

  [[nodiscard]] bool scores_by_devices(const PodInfo& pod, const Cluster& cluster) const override {
    return era_ != Era::k120 && scores_devices(pod, resources_, cluster);
  }

  Status pre_score(CycleState& state, const PodInfo& pod, std::span<const NodeInfo* const> feasible) const override {
    auto data = std::make_unique<BalancedState>();
    data->resources = scored_resources(pod, resources_, era_, true);
    // A pod that asks for nothing balances nothing: scoring it would pile such pods on one node.
    if (std::ranges::all_of(data->resources, [](const auto& resource) { return resource.pod_request == 0; })) return Status::skip();
    if (era_ != Era::k120 && !feasible.empty()) add_devices(data->resources, state.cluster());  // Columns name no nodes.
    state.set(slot(), std::move(data));
    return Status::success();
  }

  std::expected<std::int64_t, Status> score(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    if (era_ == Era::k120) return balanced_score_120(scored_resources(pod, resources_, era_, false), node);
    if (const auto* data = state.get<BalancedState>(slot())) return balanced_score_136(data->resources, node);
    const auto resources = scored_resources(pod, resources_, era_, true);
    if (std::ranges::all_of(resources, [](const auto& resource) { return resource.pod_request == 0; })) return 0;
    return balanced_score_136(resources, node);
  }

 private:
  Era era_;
  std::vector<ResourceWeight> resources_;
};

}  // namespace

Result<PluginPtr> make_balanced_allocation(const Profile& profile) {
  // 1.20's takes no arguments.
  auto resources = profile.era == Era::k120 ? ResourceWeightsArgs{}.resources : profile.args.balanced.resources;
  return std::make_unique<BalancedAllocation>(profile.era, std::move(resources));
}

}  // namespace berth::placement
