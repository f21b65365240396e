// TaintToleration: untolerated NoSchedule and NoExecute taints reject, PreferNoSchedule ones cost score
// (pkg/scheduler/framework/plugins/tainttoleration; predicate PodToleratesNodeTaints, priority TaintTolerationPriority).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "placement/node_match.h"
#include "placement/plugins/factories.h"
#include "placement/plugins/normalize.h"

namespace berth::placement {
namespace {

bool tolerated(const std::vector<model::Toleration>& tolerations, const model::Taint& taint) {
  return std::ranges::any_of(tolerations, [&](const auto& toleration) { return toleration.tolerates(taint); });
}

class TaintToleration final : public PluginOf<TaintToleration> {
 public:
  explicit TaintToleration(Era era) : era_(era) {}
  std::string_view name() const override { return "TaintToleration"; }
  void sign(Signer& signer, const PodInfo&) const override { signer.tolerations(); }
  ColumnKind column_kind() const override { return ColumnKind::kStatic; }
  [[nodiscard]] NodePart reads(const PodInfo&) const override { return NodePart::kTaints; }
  Normalization normalization() const override { return Normalization::kByMaxReversed; }

  Status filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    constexpr std::array<std::string_view, 2> kKeepAway = {"NoSchedule", "NoExecute"};
    const model::Taint* taint = find_untolerated_taint(node.node->taints, pod.view().tolerations, kKeepAway);
    if (taint == nullptr) return Status::success();
    if (era_ != Era::k120) return Status::unresolvable("node(s) had untolerated taint(s)");
    return Status::unresolvable(fmt::format("node(s) had taint {{{}: {}}}, that the pod didn't tolerate", taint->key, taint->value));
  }

  /// Nothing to prepare: Score reads the node.
  Status pre_score(CycleState&, const PodInfo&, std::span<const NodeInfo* const>) const override { return Status::success(); }
  std::expected<std::int64_t, Status> score(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    return std::ranges::count_if(node.node->taints, [&](const auto& taint) {
      return taint.effect == "PreferNoSchedule" && !tolerated(pod.view().tolerations, taint);
    });
  }

  Status normalize(const CycleState&, const PodInfo&, std::span<const NodeInfo* const>, std::span<std::int64_t> scores) const override {
    normalize_by_max(scores, true);
    return Status::success();
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | kOwnTolerations;
  }
  [[nodiscard]] bool queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const override;

 private:
  Era era_;
};

bool TaintToleration::queueing_hint(const Cluster& /*cluster*/, const PodInfo& pending, const EventChange& change) const {
  constexpr std::array<std::string_view, 2> kKeepAway = {"NoSchedule", "NoExecute"};
  if (change.node == nullptr) return true;
  const auto is_kept_away = [&](const model::NodeView& node) {
    return find_untolerated_taint(node.taints, pending.view().tolerations, kKeepAway) != nullptr;
  };
  return (change.node_before == nullptr || is_kept_away(*change.node_before)) && !is_kept_away(*change.node);
}

}  // namespace

Result<PluginPtr> make_taint_toleration(const Profile& profile) { return std::make_unique<TaintToleration>(profile.era); }

}  // namespace berth::placement
