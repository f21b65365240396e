// Plugins whose work is done by the shell around the engine; here they have their name and points, so that a configuration can place them.
#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

class Marker final : public Plugin {
 public:
  Marker(std::string_view name, Points points) : name_(name), points_(points) {}
  std::string_view name() const override { return name_; }
  Points points() const override { return points_; }
  /// The queue's order and the binding say nothing of where a pod goes; who may preempt is a matter of preemption.
  void sign(Signer& signer, const PodInfo& pod) const override {
    if (points_.post_filter) signer.add(static_cast<std::int64_t>(pod.view().preemption_never));
  }

 private:
  std::string_view name_;
  Points points_;
};

}  // namespace

/// The queue's order: priority, then age (pkg/scheduler/framework/plugins/queuesort).
Result<PluginPtr> make_priority_sort(const Profile&) { return std::make_unique<Marker>("PrioritySort", Points{.queue_sort = true}); }
/// Preemption (pkg/scheduler/framework/plugins/defaultpreemption).
Result<PluginPtr> make_default_preemption(const Profile&) {
  return std::make_unique<Marker>("DefaultPreemption", Points{.pre_enqueue = true, .post_filter = true});
}

}  // namespace berth::placement
