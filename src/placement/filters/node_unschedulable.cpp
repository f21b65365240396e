// NodeUnschedulable: cordoned nodes take only pods that tolerate it (pkg/scheduler/framework/plugins/nodeunschedulable).
#include <algorithm>

#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

constexpr std::string_view kReasonUnschedulable = "node(s) were unschedulable";

class NodeUnschedulable final : public PluginOf<NodeUnschedulable> {
 public:
  std::string_view name() const override { return "NodeUnschedulable"; }
  void sign(Signer& signer, const PodInfo&) const override { signer.tolerations(); }
  ColumnKind column_kind() const override { return ColumnKind::kStatic; }
  [[nodiscard]] NodePart reads(const PodInfo&) const override { return NodePart::kTaints; }
  Status filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    if (!node.node->unschedulable) return Status::success();
    const model::Taint taint{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
    if (std::ranges::any_of(pod.view().tolerations, [&](const auto& toleration) { return toleration.tolerates(taint); }))
      return Status::success();
    return Status::unresolvable(std::string(kReasonUnschedulable));
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | kOwnTolerations;
  }
  [[nodiscard]] bool queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const override;
};

bool NodeUnschedulable::queueing_hint(const Cluster& /*cluster*/, const PodInfo& pending, const EventChange& change) const {
  if (change.node != nullptr) return !change.node->unschedulable && (change.node_before == nullptr || change.node_before->unschedulable);
  const model::Taint cordon{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
  return std::ranges::any_of(pending.view().tolerations, [&](const auto& one) { return one.tolerates(cordon); });
}

}  // namespace

Result<PluginPtr> make_node_unschedulable(const Profile&) { return std::make_unique<NodeUnschedulable>(); }

}  // namespace berth::placement
