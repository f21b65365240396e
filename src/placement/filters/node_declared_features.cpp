// NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes where the node declares it (1.36,
// pkg/scheduler/framework/plugins/nodedeclaredfeatures).
#include <algorithm>

#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

class NodeDeclaredFeatures final : public PluginOf<NodeDeclaredFeatures> {
 public:
  std::string_view name() const override { return "NodeDeclaredFeatures"; }
  void sign(Signer& signer, const PodInfo& pod) const override { signer.add(pod.view().required_features); }
  /// Pods that need something have no columns.
  ColumnKind column_kind() const override { return ColumnKind::kNothing; }

  PreFilterOutcome pre_filter(CycleState&, const PodInfo& pod) const override {
    if (pod.view().required_features.empty()) return {Status::skip(), {}};
    return {};
  }

  Status filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    const auto& declared = node.node->declared_features;
    const bool has_all = std::ranges::all_of(
        pod.view().required_features, [&](const std::string& feature) { return std::ranges::find(declared, feature) != declared.end(); });
    return has_all ? Status::success() : Status::unresolvable("node(s) didn't match Pod's required features");
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | kNodeFeatures;
  }
  [[nodiscard]] bool queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const override;
};

bool NodeDeclaredFeatures::queueing_hint(const Cluster& /*cluster*/, const PodInfo& /*pending*/, const EventChange& change) const {
  return change.event == ClusterEvent::kNodeTaints || change.node_before == nullptr || change.node == nullptr ||
         change.node_before->declared_features != change.node->declared_features;
}

}  // namespace

Result<PluginPtr> make_node_declared_features(const Profile&) { return std::make_unique<NodeDeclaredFeatures>(); }

}  // namespace berth::placement
