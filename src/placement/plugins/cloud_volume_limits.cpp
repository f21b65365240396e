// EBSLimits, GCEPDLimits, AzureDiskLimits, CinderLimits: how many disks of a cloud a node attaches, from its allocatable or the cloud's
// default (pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go; predicates MaxEBSVolumeCount and the like). Gone since 1.33, where
// NodeVolumeLimits counts them through migration; kept for the documents' era.
#include <fmt/format.h>

#include <algorithm>

#include "placement/plugins/factories.h"
#include "placement/plugins/volumes.h"

namespace berth::placement {
namespace {

using Kind = model::VolumeView::Kind;

constexpr std::string_view kCloudLimitReason = "node(s) exceed max volume count";
constexpr std::int64_t kDefaultEbs = 39, kNitroEbs = 25, kDefaultGcePd = 16, kDefaultAzureDisk = 16, kDefaultCinder = 256;

struct Cloud {
  std::string_view plugin_name, limit_key, provisioner;
  Kind kind;
  std::string volumes::Volume::*volume_id;
};
constexpr Cloud kEbs{"EBSLimits", "attachable-volumes-aws-ebs", "kubernetes.io/aws-ebs", Kind::kAwsElasticBlockStore,
                     &volumes::Volume::aws_volume_id};
constexpr Cloud kGcePd{"GCEPDLimits", "attachable-volumes-gce-pd", "kubernetes.io/gce-pd", Kind::kGcePersistentDisk,
                       &volumes::Volume::gce_pd_name};
constexpr Cloud kAzureDisk{"AzureDiskLimits", "attachable-volumes-azure-disk", "kubernetes.io/azure-disk", Kind::kAzureDisk,
                           &volumes::Volume::azure_disk_name};
constexpr Cloud kCinder{"CinderLimits", "attachable-volumes-cinder", "kubernetes.io/cinder", Kind::kCinder,
                        &volumes::Volume::cinder_volume_id};

/// Instances on Nitro share 28 slots among disks and network cards ("^[cmr]5.*|t3|z1d").
std::int64_t ebs_default(const NodeInfo& node) {
  const std::string* type = node.label("node.kubernetes.io/instance-type");
  if (const auto* beta = node.label("beta.kubernetes.io/instance-type")) type = beta;
  if (type == nullptr) return kDefaultEbs;
  const bool is_nitro = (type->size() >= 2 && std::string_view("cmr").find((*type)[0]) != std::string_view::npos && (*type)[1] == '5') ||
                        type->find("t3") != std::string::npos || type->find("z1d") != std::string::npos;
  return is_nitro ? kNitroEbs : kDefaultEbs;
}

class CloudVolumeLimits final : public PluginOf<CloudVolumeLimits> {
 public:
  CloudVolumeLimits(const Cloud& cloud, Era era) : cloud_(cloud), era_(era) {}
  std::string_view name() const override { return cloud_.plugin_name; }
  void sign(Signer& signer, const PodInfo&) const override { signer.volumes(); }
  [[nodiscard]] ColumnKind column_kind() const override { return ColumnKind::kVolumes; }
  /// The pod's own claims fail everywhere alike; what is wrong with other pods' is found on the nodes that are asked.
  [[nodiscard]] bool may_fail(const CycleState&, const PodInfo&) const override { return false; }

  Status filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    if (pod.view().volumes.empty()) return Status::success();
    std::set<std::string> added, attached;
    Status status = collect(state.cluster(), pod.view(), true, added);
    if (!status.is_success() || added.empty()) return status;
    if (volumes::is_counted_as_csi(volumes::find_csi_node(state.cluster(), node.name), cloud_.provisioner, era_)) return Status::success();
    for (const auto& other : node.pods) {
      status = collect(state.cluster(), other->view(), false, attached);
      if (!status.is_success()) return status;
    }
    const auto fresh = std::ranges::count_if(added, [&](const auto& id) { return !attached.contains(id); });
    if (static_cast<std::int64_t>(attached.size()) + fresh > limit(node)) return Status::unschedulable(std::string(kCloudLimitReason));
    return Status::success();
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | EventSet{kNodeAllocatable, kAssignedPodDeleted, kClaim, kPersistentVolume, kStorageClass, kCsiNode};
  }

 private:
  std::int64_t limit(const NodeInfo& node) const {
    const auto& scalars = node.allocatable.scalars;
    const auto at = std::ranges::find(scalars, cloud_.limit_key, [](const auto& one) { return std::string_view(one.first); });
    if (at != scalars.end()) return at->second;
    switch (cloud_.kind) {
      case Kind::kAwsElasticBlockStore:
        return ebs_default(node);
      case Kind::kGcePersistentDisk:
        return kDefaultGcePd;
      case Kind::kAzureDisk:
        return kDefaultAzureDisk;
      default:
        return kDefaultCinder;
    }
  }

  Status collect(const Cluster& cluster, const model::PodView& pod, bool is_new, std::set<std::string>& out) const {
    for (const auto& volume : pod.volumes) {
      if (volume.kind == cloud_.kind) {
        out.insert(volume.id);
        continue;
      }
      const auto use = volumes::claim_use(pod, volume);
      if (!use.uses_claim || (use.is_ephemeral && era_ == Era::k120)) continue;
      if (use.name.empty()) return Status::error("PersistentVolumeClaim had no name");
      const auto* claim = volumes::find_claim(cluster, pod.ns(), use.name);
      if (claim == nullptr) {
        // 1.20 left the complaint about a new pod's missing claim to other plugins.
        if (!is_new || era_ == Era::k120) continue;
        return Status::error(
            fmt::format("looking up PVC {}/{}: {}", pod.ns(), use.name, volumes::not_found("persistentvolumeclaim", use.name)));
      }
      if (use.is_ephemeral)
        if (auto why = volumes::wrong_owner(pod, *claim, era_); !why.empty()) return Status::error(std::move(why));
      const auto* persistent = claim->volume_name.empty() ? nullptr : volumes::find_volume(cluster, claim->volume_name);
      if (persistent == nullptr) {
        // The real disk is not known yet: the claim stands for it when its class makes disks of this cloud.
        const auto* storage_class = claim->storage_class ? volumes::find_class(cluster, *claim->storage_class) : nullptr;
        if (storage_class != nullptr && storage_class->provisioner == cloud_.provisioner)
          out.insert(fmt::format("(claim) {}/{}", pod.ns(), use.name));
      } else if (const auto& id = persistent->*cloud_.volume_id; !id.empty()) {
        out.insert(id);
      }
    }
    return Status::success();
  }

  const Cloud& cloud_;
  Era era_;
};

}  // namespace

Result<PluginPtr> make_ebs_limits(const Profile& profile) { return std::make_unique<CloudVolumeLimits>(kEbs, profile.era); }
Result<PluginPtr> make_gce_pd_limits(const Profile& profile) { return std::make_unique<CloudVolumeLimits>(kGcePd, profile.era); }
Result<PluginPtr> make_azure_disk_limits(const Profile& profile) { return std::make_unique<CloudVolumeLimits>(kAzureDisk, profile.era); }
Result<PluginPtr> make_cinder_limits(const Profile& profile) { return std::make_unique<CloudVolumeLimits>(kCinder, profile.era); }

}  // namespace berth::placement
