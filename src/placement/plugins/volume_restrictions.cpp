// VolumeRestrictions: disks that only one pod (or only readers) may mount on a node, and claims that only one pod may use anywhere
// (pkg/scheduler/framework/plugins/volumerestrictions; predicate NoDiskConflict).
#include <algorithm>

#include "placement/plugins/factories.h"
#include "placement/plugins/volumes.h"

namespace berth::placement {
namespace {

using Kind = model::VolumeView::Kind;

constexpr std::string_view kDiskConflict = "node(s) had no available disk";
constexpr std::string_view kInUse =
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";

bool is_restricted(const model::VolumeView& volume) {
  return volume.kind == Kind::kGcePersistentDisk || volume.kind == Kind::kAwsElasticBlockStore || volume.kind == Kind::kRbd ||
         volume.kind == Kind::kIscsi;
}

struct RestrictionState : Cloneable<RestrictionState> {
  std::set<std::string, std::less<>> once_claims;  ///< The pod's claims of mode ReadWriteOncePod.
  int conflicting_references = 0;                  ///< Uses of them by scheduled pods.
};

class VolumeRestrictions final : public PluginOf<VolumeRestrictions> {
 public:
  explicit VolumeRestrictions(Era era) : era_(era) {}
  std::string_view name() const override { return "VolumeRestrictions"; }
  void leave_out(Points& points) const override { points.pre_filter &= era_ != Era::k120; }
  void sign(Signer& signer, const PodInfo&) const override { signer.volumes(); }
  [[nodiscard]] ColumnKind column_kind() const override { return ColumnKind::kVolumes; }
  [[nodiscard]] bool may_fail(const CycleState&, const PodInfo&) const override { return false; }

  PreFilterOutcome pre_filter(CycleState& state, const PodInfo& pod) const override {
    auto data = std::make_unique<RestrictionState>();
    for (const auto& volume : pod.view().volumes) {
      if (volume.kind != Kind::kPersistentVolumeClaim) continue;
      const auto* claim = volumes::find_claim(state.cluster(), pod.view().ns(), volume.id);
      if (claim == nullptr) return {Status::unresolvable(volumes::not_found("persistentvolumeclaim", volume.id)), {}};
      if (std::ranges::find(claim->access_modes, "ReadWriteOncePod") != claim->access_modes.end()) data->once_claims.insert(volume.id);
    }
    for (const auto& claim : data->once_claims) data->conflicting_references += is_used(state.cluster(), pod.view().ns() + "/" + claim);
    if (data->conflicting_references == 0 && std::ranges::none_of(pod.view().volumes, is_restricted)) return {Status::skip(), {}};
    state.set(slot(), std::move(data));
    return {};
  }

  Status add_pod(CycleState& state, const PodInfo&, const PodInfo& added, const NodeInfo&) const override {
    count(state, added, 1);
    return Status::success();
  }
  Status remove_pod(CycleState& state, const PodInfo&, const PodInfo& removed, const NodeInfo&) const override {
    count(state, removed, -1);
    return Status::success();
  }

  Status filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    for (const auto& volume : pod.view().volumes) {
      if (!is_restricted(volume)) continue;
      for (const auto& other : node.pods)
        for (const auto& existing : other->view().volumes)
          if (volumes::conflict(volume, existing)) return Status::unschedulable(std::string(kDiskConflict));
    }
    const auto* data = era_ == Era::k120 ? nullptr : state.get<RestrictionState>(slot());
    if (data != nullptr && data->conflicting_references > 0) return Status::unschedulable(std::string(kInUse));
    return Status::success();
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | EventSet{kAssignedPodDeleted, kClaim};
  }
  [[nodiscard]] bool queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const override;

 private:
  /// By a pod on a node that is there: what ran on a deleted one uses nothing.
  static bool is_used(const Cluster& cluster, const std::string& claim) {
    for (std::uint32_t i = 0; i < cluster.slot_count(); ++i) {
      const auto* node = cluster.node(NodeIndex{i});
      if (node != nullptr && node->node != nullptr && node->claim_references.contains(claim)) return true;
    }
    return false;
  }

  void count(CycleState& state, const PodInfo& other, int sign) const {
    auto* data = state.get<RestrictionState>(slot());
    if (data == nullptr) return;
    for (const auto& volume : other.view().volumes)
      if (volume.kind == Kind::kPersistentVolumeClaim && data->once_claims.contains(volume.id)) data->conflicting_references += sign;
  }

  Era era_;
};

bool VolumeRestrictions::queueing_hint(const Cluster& /*cluster*/, const PodInfo& pending, const EventChange& change) const {
  if (change.event == ClusterEvent::kClaim) return !change.is_object_update() && volumes::is_own_claim(pending, change, false);
  if (change.pod_before == nullptr) return true;
  const PodInfo& gone = *change.pod_before;
  const bool is_near = gone.view().ns() == pending.view().ns();
  return std::ranges::any_of(gone.view().volumes, [&](const model::VolumeView& used) {
    return std::ranges::any_of(pending.view().volumes, [&](const model::VolumeView& wanted) {
      if (used.kind != wanted.kind) return false;
      const bool is_claim = used.kind == model::VolumeView::Kind::kPersistentVolumeClaim;
      // Claims are of a namespace, disks of none: kube-scheduler's hint asks for the same namespace either way.
      return is_claim ? is_near && used.id == wanted.id : volumes::conflict(wanted, used);
    });
  });
}

}  // namespace

Result<PluginPtr> make_volume_restrictions(const Profile& profile) { return std::make_unique<VolumeRestrictions>(profile.era); }

}  // namespace berth::placement
