// DynamicResources (pkg/scheduler/framework/plugins/dynamicresources), as far as pods without claims see it: no filter, score 0. A pod
// with resource claims is refused in words: claims of devices are not allocated here.
#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

class DynamicResources final : public Plugin {
 public:
  std::string_view name() const override { return "DynamicResources"; }
  Points points() const override {
    return {.pre_enqueue = true, .pre_filter = true, .filter = true, .post_filter = true, .score = true, .reserve = true, .pre_bind = true};
  }
  ColumnKind column_kind() const override { return ColumnKind::kNothing; }
  PreFilterOutcome pre_filter(CycleState&, const PodInfo& pod) const override {
    if (pod.view().resource_claims.empty()) return {Status::skip(), {}};
    return {Status::unresolvable("resource claims of devices are not supported"), {}};
  }
};

}  // namespace

Result<PluginPtr> make_dynamic_resources(const Profile&) { return std::make_unique<DynamicResources>(); }

}  // namespace berth::placement
