// PrioritySort: the queue's order, priority and then age (pkg/scheduler/framework/plugins/queuesort); scheduler/queue.cpp keeps it.
#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

class PrioritySort final : public PluginOf<PrioritySort> {
 public:
  std::string_view name() const override { return "PrioritySort"; }
  /// The queue's order says nothing of where a pod goes.
  void sign(Signer& /*signer*/, const PodInfo& /*pod*/) const override {}
  [[nodiscard]] bool orders_queue() const override { return true; }
};

}  // namespace

Result<PluginPtr> make_priority_sort(const Profile&) { return std::make_unique<PrioritySort>(); }

}  // namespace berth::placement
