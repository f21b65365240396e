// RequestedToCapacityRatio of 1.20: a score by the shape that the configuration draws over utilization
// (pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go; priority RequestedToCapacityRatioPriority).
#include "placement/plugins/factories.h"
#include "placement/scorers/resource_allocation.h"

namespace berth::placement {
namespace {

class RequestedToCapacityRatio final : public PluginOf<RequestedToCapacityRatio> {
 public:
  explicit RequestedToCapacityRatio(RequestedToCapacityRatioArgs args)
      : resources_(std::move(args.resources)), shape_(scaled_shape(std::move(args.shape))) {
    for (auto& resource : resources_)
      if (resource.weight == 0) resource.weight = 1;
  }
  std::string_view name() const override { return "RequestedToCapacityRatio"; }
  void sign(Signer& signer, const PodInfo&) const override { signer.request(); }
  ColumnKind column_kind() const override { return ColumnKind::kNodeLocal; }
  std::expected<std::int64_t, Status> score(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    return capacity_ratio_score(scored_resources(pod, resources_, Era::k120, false), shape_, node, Era::k120);
  }

 private:
  std::vector<ResourceWeight> resources_;
  std::vector<UtilizationShapePoint> shape_;
};

}  // namespace

Result<PluginPtr> make_requested_to_capacity_ratio(const Profile& profile) {
  return std::make_unique<RequestedToCapacityRatio>(profile.args.ratio);
}

}  // namespace berth::placement
