// VolumeZone: a volume's zone and region labels must agree with the node's (pkg/scheduler/framework/plugins/volumezone; predicate
// NoVolumeZoneConflict).
#include <fmt/format.h>

#include <algorithm>

#include "model/topology_labels.h"
#include "placement/plugins/factories.h"
#include "placement/plugins/volumes.h"

namespace berth::placement {
namespace {

constexpr std::string_view kZoneReason = "node(s) had no available volume zone";
constexpr std::string_view kLabels[] = {"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
                                        "topology.kubernetes.io/zone", "topology.kubernetes.io/region"};

std::string_view stable_label(std::string_view label) {
  if (label == kLabels[0]) return kLabels[2];
  if (label == kLabels[1]) return kLabels[3];
  return label;
}

struct Topology {
  std::string_view key;
  std::set<std::string, std::less<>> values;
};
struct ZoneState : Cloneable<ZoneState> {
  std::vector<Topology> topologies;
};

class VolumeZone final : public PluginOf<VolumeZone> {
 public:
  explicit VolumeZone(Era era) : era_(era) {}
  std::string_view name() const override { return "VolumeZone"; }
  void leave_out(Points& points) const override { points.pre_filter &= era_ != Era::k120; }
  void sign(Signer& signer, const PodInfo&) const override { signer.volumes(); }
  [[nodiscard]] ColumnKind column_kind() const override { return ColumnKind::kVolumes; }
  /// 1.20 looks at the claims on nodes that have such labels only.
  [[nodiscard]] bool may_fail(const CycleState& state, const PodInfo& pod) const override {
    std::vector<Topology> found;
    return era_ == Era::k120 && !collect(state.cluster(), pod.view(), found).is_success();
  }
  [[nodiscard]] bool says_by_labels(const CycleState&, const PodInfo&, std::set<std::string>& keys) const override {
    for (const std::string_view label : kLabels) keys.emplace(label);
    return true;
  }

  PreFilterOutcome pre_filter(CycleState& state, const PodInfo& pod) const override {
    ZoneState found;
    Status status = collect(state.cluster(), pod.view(), found.topologies);
    if (!status.is_success()) return {std::move(status), {}};
    if (found.topologies.empty()) return {Status::skip(), {}};
    state.set(slot(), std::make_unique<ZoneState>(std::move(found)));
    return {};
  }

  Status filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    if (pod.view().volumes.empty()) return Status::success();
    // A cluster of one zone may not label its nodes at all.
    if (std::ranges::none_of(kLabels, [&](auto label) { return node.label(label) != nullptr; })) return Status::success();
    const ZoneState* data = era_ == Era::k120 ? nullptr : state.get<ZoneState>(slot());
    ZoneState own;
    if (data == nullptr) {
      Status status = collect(state.cluster(), pod.view(), own.topologies);
      if (!status.is_success()) return status;
      data = &own;
    }
    for (const auto& [key, values] : data->topologies) {
      const std::string* value = node.label(key);
      if (value == nullptr && era_ != Era::k120) value = node.label(stable_label(key));
      if (value == nullptr || !values.contains(*value)) return Status::unresolvable(std::string(kZoneReason));
    }
    return Status::success();
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | EventSet{kNodeLabels, kPersistentVolume, kClaim, kStorageClass};
  }
  [[nodiscard]] bool queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const override;

 private:
  /// What 1.20 reports as an error is a plain rejection since.
  Status refuse(std::string message) const {
    return era_ == Era::k120 ? Status::error(std::move(message)) : Status::unresolvable(std::move(message));
  }

  Status collect(const Cluster& cluster, const model::PodView& pod, std::vector<Topology>& out) const {
    for (const auto& volume : pod.volumes) {
      if (volume.kind != model::VolumeView::Kind::kPersistentVolumeClaim) continue;
      if (volume.id.empty()) return refuse("PersistentVolumeClaim had no name");
      const auto* claim = volumes::find_claim(cluster, pod.ns(), volume.id);
      if (claim == nullptr) return refuse(volumes::not_found("persistentvolumeclaim", volume.id));
      if (claim->volume_name.empty()) {
        const std::string class_name = claim->class_name();
        if (class_name.empty()) return refuse("PersistentVolumeClaim had no pv name and storageClass name");
        const auto* storage_class = volumes::find_class(cluster, class_name);
        if (storage_class == nullptr)
          return refuse(era_ == Era::k120
                            ? fmt::format("StorageClass \"{}\" claimed by PersistentVolumeClaim \"{}\" not found", class_name, volume.id)
                            : volumes::not_found("storageclass.storage.k8s.io", class_name));
        if (!storage_class->has_binding_mode) return refuse(fmt::format("VolumeBindingMode not set for StorageClass \"{}\"", class_name));
        if (storage_class->wait_for_first_consumer) continue;
        return refuse("PersistentVolume had no name");
      }
      const auto* persistent = volumes::find_volume(cluster, claim->volume_name);
      if (persistent == nullptr) return refuse(volumes::not_found("persistentvolume", claim->volume_name));
      for (const auto label : kLabels) {
        const auto* value = persistent->meta.labels.get(label);
        if (value == nullptr) continue;
        if (auto zones = volumes::label_zones(*value)) out.push_back({label, std::move(*zones)});
      }
    }
    return Status::success();
  }

  Era era_;
};

bool VolumeZone::queueing_hint(const Cluster& /*cluster*/, const PodInfo& pending, const EventChange& change) const {
  switch (change.event) {
    case ClusterEvent::kClaim:
      return volumes::is_own_claim(pending, change, false);
    case ClusterEvent::kStorageClass:
      return !change.is_object_update() && change.object != nullptr &&
             json::get_string(*change.object, {"volumeBindingMode"}) == "WaitForFirstConsumer";
    case ClusterEvent::kPersistentVolume:
      return !change.is_object_update() || std::ranges::any_of(model::kTopologyLabels, [&](const model::LabelGenerations& keys) {
        return volumes::differs(change, {"metadata", "labels", keys.present}) || volumes::differs(change, {"metadata", "labels", keys.old});
      });
    default:
      return true;
  }
}

}  // namespace

Result<PluginPtr> make_volume_zone(const Profile& profile) { return std::make_unique<VolumeZone>(profile.era); }

}  // namespace berth::placement
