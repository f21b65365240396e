// NodePreferAvoidPods of 1.20: the node's annotation keeps a controller's pods away (pkg/scheduler/framework/plugins/nodepreferavoidpods;
// priority NodePreferAvoidPodsPriority, weight 10000 by default).
#include <algorithm>

#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

/// Nodes can avoid the pods of these controllers alone.
bool is_avoidable(const model::OwnerReference* controller) {
  return controller != nullptr && (controller->kind == "ReplicationController" || controller->kind == "ReplicaSet");
}

class NodePreferAvoidPods final : public PluginOf<NodePreferAvoidPods> {
 public:
  std::string_view name() const override { return "NodePreferAvoidPods"; }
  void sign(Signer& signer, const PodInfo& pod) const override {
    if (is_avoidable(pod.view().meta.controller())) signer.controller();
  }
  ColumnKind column_kind() const override { return ColumnKind::kStatic; }
  std::expected<std::int64_t, Status> score(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    const auto* controller = pod.view().meta.controller();
    if (!is_avoidable(controller)) return kMaxNodeScore;
    const bool avoided = std::ranges::any_of(
        node.node->avoided_controllers, [&](const auto& avoid) { return avoid.kind == controller->kind && avoid.uid == controller->uid; });
    return avoided ? 0 : kMaxNodeScore;
  }
};

}  // namespace

Result<PluginPtr> make_node_prefer_avoid_pods(const Profile&) { return std::make_unique<NodePreferAvoidPods>(); }

}  // namespace berth::placement
