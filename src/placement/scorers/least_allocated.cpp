// NodeResourcesLeastAllocated of 1.20 (pkg/scheduler/framework/plugins/noderesources/least_allocated.go; priority LeastRequestedPriority).
#include "placement/plugins/factories.h"
#include "placement/scorers/resource_allocation.h"

namespace berth::placement {
namespace {

class LeastAllocated final : public PluginOf<LeastAllocated> {
 public:
  explicit LeastAllocated(std::vector<ResourceWeight> resources) : resources_(std::move(resources)) {}
  std::string_view name() const override { return "NodeResourcesLeastAllocated"; }
  void sign(Signer& signer, const PodInfo&) const override { signer.request(); }
  ColumnKind column_kind() const override { return ColumnKind::kNodeLocal; }
  std::expected<std::int64_t, Status> score(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    return least_allocated_score(scored_resources(pod, resources_, Era::k120, false), node, Era::k120);
  }

 private:
  std::vector<ResourceWeight> resources_;
};

}  // namespace

Result<PluginPtr> make_least_allocated(const Profile& profile) {
  return std::make_unique<LeastAllocated>(profile.args.least_allocated.resources);
}

}  // namespace berth::placement
