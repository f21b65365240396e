// NodeUnschedulable: cordoned nodes take only pods that tolerate it (pkg/scheduler/framework/plugins/nodeunschedulable).
#include <algorithm>

#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

constexpr std::string_view kReasonUnschedulable = "node(s) were unschedulable";

class NodeUnschedulable final : public Plugin {
 public:
  std::string_view name() const override { return "NodeUnschedulable"; }
  Points points() const override { return {.filter = true}; }
  void sign(Signer& signer, const PodInfo&) const override { signer.tolerations(); }
  ColumnKind column_kind() const override { return ColumnKind::kStatic; }
  Status filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    if (!node.node->unschedulable) return Status::success();
    const model::Taint taint{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
    if (std::ranges::any_of(pod.view().tolerations, [&](const auto& toleration) { return toleration.tolerates(taint); }))
      return Status::success();
    return Status::unresolvable(std::string(kReasonUnschedulable));
  }
};

}  // namespace

Result<PluginPtr> make_node_unschedulable(const Profile&) { return std::make_unique<NodeUnschedulable>(); }

}  // namespace berth::placement
