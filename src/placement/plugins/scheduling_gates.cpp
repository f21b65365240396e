// SchedulingGates: a pod with gates waits outside the queue (pkg/scheduler/framework/plugins/schedulinggates).
#include <fmt/format.h>

#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

class SchedulingGates final : public PluginOf<SchedulingGates> {
 public:
  std::string_view name() const override { return "SchedulingGates"; }
  /// Gates are the pod's own: they open when it changes.
  [[nodiscard]] EventSet gate_events() const override { return {}; }
  void sign(Signer& signer, const PodInfo& pod) const override { signer.add(pod.view().scheduling_gates); }
  Status pre_enqueue(const model::PodView& pod) const override {
    if (pod.scheduling_gates.empty()) return Status::success();
    return Status::unresolvable(fmt::format("waiting for scheduling gates: [{}]", fmt::join(pod.scheduling_gates, " ")));
  }
};

}  // namespace

Result<PluginPtr> make_scheduling_gates(const Profile&) { return std::make_unique<SchedulingGates>(); }

}  // namespace berth::placement
