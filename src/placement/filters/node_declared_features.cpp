// NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes where the node declares it (1.36,
// pkg/scheduler/framework/plugins/nodedeclaredfeatures).
#include <algorithm>

#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

class NodeDeclaredFeatures final : public Plugin {
 public:
  std::string_view name() const override { return "NodeDeclaredFeatures"; }
  Points points() const override { return {.pre_filter = true, .filter = true}; }
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
};

}  // namespace

Result<PluginPtr> make_node_declared_features(const Profile&) { return std::make_unique<NodeDeclaredFeatures>(); }

}  // namespace berth::placement
