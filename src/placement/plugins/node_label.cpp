// NodeLabel of 1.20: labels that must (not) be there, labels that are (not) liked (pkg/scheduler/framework/plugins/nodelabel; predicate
// CheckNodeLabelPresence with the labelsPresence argument, priorities with the labelPreference argument).
#include <algorithm>

#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

constexpr std::string_view kLabelReason = "node(s) didn't have the requested labels";

class NodeLabel final : public PluginOf<NodeLabel> {
 public:
  explicit NodeLabel(NodeLabelArgs args) : args_(std::move(args)) {}
  std::string_view name() const override { return "NodeLabel"; }
  void sign(Signer&, const PodInfo&) const override {}
  ColumnKind column_kind() const override { return ColumnKind::kStatic; }

  Status filter(const CycleState&, const PodInfo&, const NodeInfo& node) const override {
    const auto has = [&](const std::string& label) { return node.label(label) != nullptr; };
    if (std::ranges::all_of(args_.present_labels, has) && std::ranges::none_of(args_.absent_labels, has)) return Status::success();
    return Status::unresolvable(std::string(kLabelReason));
  }

  std::expected<std::int64_t, Status> score(const CycleState&, const PodInfo&, const NodeInfo& node) const override {
    const auto count = static_cast<std::int64_t>(args_.present_labels_preference.size() + args_.absent_labels_preference.size());
    if (count == 0) return 0;
    std::int64_t sum = 0;
    for (const auto& label : args_.present_labels_preference) sum += node.label(label) != nullptr ? kMaxNodeScore : 0;
    for (const auto& label : args_.absent_labels_preference) {
      const bool is_absent = label.empty() ? is_unlabelled(node) : node.label(label) == nullptr;
      sum += is_absent ? kMaxNodeScore : 0;
    }
    return sum / count;
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | kNodeLabels;
  }

 private:
  /// What a labelPreference without a label likes (document 002 §16.2.6.2): nobody gave the node a label, all are of Kubernetes' own
  /// domains.
  static bool is_unlabelled(const NodeInfo& node) {
    return std::ranges::all_of(node.labels().pairs(), [](const auto& pair) {
      const std::string_view key(pair.first);
      const std::string_view domain = key.substr(0, std::min(key.find('/'), key.size()));
      return domain.size() < key.size() && (domain.ends_with("kubernetes.io") || domain.ends_with("k8s.io"));
    });
  }

  NodeLabelArgs args_;
};

}  // namespace

Result<PluginPtr> make_node_label(const Profile& profile) { return std::make_unique<NodeLabel>(profile.args.node_label); }

}  // namespace berth::placement
