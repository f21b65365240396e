// NodeName: a pod that names its node goes there or nowhere (pkg/scheduler/framework/plugins/nodename; predicate HostName).
#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

constexpr std::string_view kReason = "node(s) didn't match the requested node name";
constexpr std::string_view kReason120 = "node(s) didn't match the requested hostname";

class NodeName final : public PluginOf<NodeName> {
 public:
  explicit NodeName(Era era) : reason_(era == Era::k120 ? kReason120 : kReason) {}
  std::string_view name() const override { return "NodeName"; }
  void sign(Signer& signer, const PodInfo&) const override { signer.name_of_node(); }
  ColumnKind column_kind() const override { return ColumnKind::kStatic; }
  [[nodiscard]] NodePart reads(const PodInfo& pod) const override {
    return pod.view().node_name.empty() ? NodePart::kNothing : NodePart::kWhole;
  }
  Status filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    const auto& wanted = pod.view().node_name;
    return wanted.empty() || wanted == node.name ? Status::success() : Status::unresolvable(std::string(reason_));
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode;
  }

 private:
  std::string_view reason_;
};

}  // namespace

Result<PluginPtr> make_node_name(const Profile& profile) { return std::make_unique<NodeName>(profile.era); }

}  // namespace berth::placement
