// NodeVolumeLimits: how many volumes of each CSI driver a node attaches, from its CSINode (pkg/scheduler/framework/plugins/
// nodevolumelimits/csi.go; predicate MaxCSIVolumeCountPred).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "placement/columns/ample_claims.h"
#include "placement/plugins/factories.h"
#include "placement/plugins/volumes.h"

namespace berth::placement {
namespace {

constexpr std::string_view kVolumeLimitReason = "node(s) exceed max volume count";
constexpr std::string_view kLimitPrefix = "attachable-volumes-csi-";

/// Unique volume ("driver/handle") to its driver.
using Attached = std::map<std::string, std::string>;

/// What the pod would attach, where that is the same on every node.
struct LimitState : Cloneable<LimitState> {
  Attached added;
};

class NodeVolumeLimits final : public PluginOf<NodeVolumeLimits>, public CountsClaims {
 public:
  explicit NodeVolumeLimits(Era era) : era_(era) {}
  std::string_view name() const override { return "NodeVolumeLimits"; }
  void leave_out(Points& points) const override { points.pre_filter &= era_ != Era::k120; }
  void sign(Signer& signer, const PodInfo&) const override { signer.volumes(); }
  [[nodiscard]] ColumnKind column_kind() const override { return ColumnKind::kVolumes; }
  /// A disk that its cloud's driver cannot name counts on the nodes that know the driver. What is wrong with other pods' volumes is found
  /// on the nodes that are asked.
  [[nodiscard]] bool may_fail(const CycleState&, const PodInfo& pod) const override {
    return std::ranges::any_of(pod.view().volumes, [](const model::VolumeView& volume) {
      return volume.kind == model::VolumeView::Kind::kAwsElasticBlockStore && volumes::csi_handle(volume).empty();
    });
  }
  /// What nobody attaches anywhere needs no room. Attachments are counted node by node.
  [[nodiscard]] std::int64_t ample_claims(const CycleState& state, const PodInfo&) const override {
    const auto* data = era_ == Era::k120 ? nullptr : state.get<LimitState>(slot());
    if (data == nullptr || !state.cluster().volume_attachments().empty()) return -1;
    return state.cluster().least_volume_limit() - static_cast<std::int64_t>(data->added.size());
  }

  PreFilterOutcome pre_filter(CycleState& state, const PodInfo& pod) const override {
    const bool counts = std::ranges::any_of(pod.view().volumes, [&](const auto& volume) {
      return volumes::claim_use(pod.view(), volume).uses_claim || !volumes::in_tree_plugin(volume).empty();
    });
    if (counts && attaches_alike(state.cluster(), pod.view())) {
      auto data = std::make_unique<LimitState>();
      if (collect(state.cluster(), nullptr, pod.view(), true, data->added).is_success()) state.set(slot(), std::move(data));
    }
    return {counts ? Status::success() : Status::skip(), {}};
  }

  Status filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    if (pod.view().volumes.empty()) return Status::success();
    const Cluster& cluster = state.cluster();
    if (const auto* data = era_ == Era::k120 ? nullptr : state.get<LimitState>(slot()); data != nullptr)
      if (data->added.empty() || has_room_anywhere(cluster, node, data->added.size())) return Status::success();
    const auto* csi_node = volumes::find_csi_node(cluster, node.name);
    Attached added, attached;
    Status status = collect(cluster, csi_node, pod.view(), true, added);
    if (!status.is_success() || added.empty()) return status;
    const auto limits = limits_of(csi_node, node);
    if (limits.empty() || has_ample_room(cluster, limits, node, added)) return Status::success();
    for (const auto& other : node.pods) {
      status = collect(cluster, csi_node, other->view(), false, attached);
      if (!status.is_success()) return status;
    }
    std::map<std::string_view, std::int64_t> present, wanted;
    for (const auto& [volume, driver] : attached) {
      added.erase(volume);
      ++present[driver];
    }
    // What is attached still, or already, without a pod that uses it.
    Attached alone;
    if (era_ != Era::k120) collect_attachments(cluster, node.name, alone);
    for (const auto& [volume, driver] : alone)
      if (!attached.contains(volume)) ++present[driver];
    for (const auto& [volume, driver] : added) ++wanted[driver];
    for (const auto& [driver, count] : wanted) {
      const auto limit = limits.find(driver);
      if (limit != limits.end() && present[driver] + count > limit->second) return Status::unschedulable(std::string(kVolumeLimitReason));
    }
    return Status::success();
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    const EventSet today{kAssignedPodDeleted, kClaim, kCsiNode, kVolumeAttachmentDeleted};
    return era_ == Era::k120 ? today | kNodeAllocatable : today;  // Where allocatable names limits, too.
  }
  [[nodiscard]] bool queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const override;

 private:
  std::map<std::string, std::int64_t, std::less<>> limits_of(const model::CsiNodeView* csi_node, const NodeInfo& node) const {
    std::map<std::string, std::int64_t, std::less<>> out;
    if (era_ == Era::k120) {
      for (const auto& [name, amount] : node.allocatable.scalars)
        if (name.starts_with(kLimitPrefix)) out[name.substr(kLimitPrefix.size())] = amount;
    }
    if (csi_node != nullptr)
      for (const auto& driver : csi_node->drivers)
        if (driver.count) out[driver.name] = *driver.count;
    return out;
  }

  /// Whether the pod's volumes are claims of its own whose drivers are known without the node.
  static bool attaches_alike(const Cluster& cluster, const model::PodView& pod) {
    return std::ranges::all_of(pod.volumes, [&](const model::VolumeView& one) {
      const auto use = volumes::claim_use(pod, one);
      if (!use.uses_claim) return volumes::in_tree_plugin(one).empty();
      const auto* claim = volumes::find_claim(cluster, pod.ns(), use.name);
      if (claim == nullptr) return false;
      const auto* volume = claim->volume_name.empty() ? nullptr : volumes::find_volume(cluster, claim->volume_name);
      if (volume != nullptr) return volumes::in_tree_plugin(*volume).empty();
      const auto* storage_class = volumes::find_class(cluster, claim->class_name());
      return storage_class == nullptr || volumes::csi_driver_of(storage_class->provisioner).empty();
    });
  }

  /// The same as has_ample_room, by the smallest limit of any node and what the node counts itself.
  static bool has_room_anywhere(const Cluster& cluster, const NodeInfo& node, std::size_t added) {
    if (node.other_volumes != 0) return false;
    auto most = static_cast<std::int64_t>(added + node.claim_volumes);
    const std::int64_t limit = cluster.least_volume_limit();
    return most <= limit && most + attachment_count(cluster, node.name) <= limit;
  }

  /// Even if each claim of each pod there were another volume of the same driver. Says nothing of what would have to be looked at closer.
  bool has_ample_room(const Cluster& cluster, const std::map<std::string, std::int64_t, std::less<>>& limits, const NodeInfo& node,
                      const Attached& added) const {
    auto most = static_cast<std::int64_t>(added.size());
    for (const auto& other : node.pods) {
      for (const auto& volume : other->view().volumes) {
        if (volume.kind == model::VolumeView::Kind::kEphemeral || !volumes::in_tree_plugin(volume).empty()) return false;
        if (volume.kind != model::VolumeView::Kind::kPersistentVolumeClaim) continue;
        if (volume.id.empty()) return false;
        ++most;
      }
    }
    if (era_ != Era::k120) most += attachment_count(cluster, node.name);
    return std::ranges::all_of(limits, [&](const auto& limit) { return most <= limit.second; });
  }

  Status collect(const Cluster& cluster, const model::CsiNodeView* csi_node, const model::PodView& pod, bool is_new, Attached& out) const {
    for (const auto& volume : pod.volumes) {
      const auto use = volumes::claim_use(pod, volume);
      if (!use.uses_claim) {
        const auto plugin = volumes::in_tree_plugin(volume);
        if (!volumes::is_counted_as_csi(csi_node, plugin, era_)) continue;
        const auto handle = volumes::csi_handle(volume);
        if (handle.empty() && volume.kind == model::VolumeView::Kind::kAwsElasticBlockStore && !volume.id.empty())
          return Status::error(
              fmt::format("converting volume({}) from inline to csi: failed to translate Kubernetes ID to EBS Volume ID "
                          "Invalid format for AWS volume ({})",
                          volume.name, volume.id));
        add(std::string(volumes::csi_driver_of(plugin)), handle, out);
        continue;
      }
      if (use.is_ephemeral && era_ == Era::k120) continue;
      if (use.name.empty()) return Status::error("PersistentVolumeClaim had no name");
      const auto* claim = volumes::find_claim(cluster, pod.ns(), use.name);
      if (claim == nullptr) {
        // A bound pod's claim may be gone; only a new pod cannot do without.
        if (!is_new || era_ == Era::k120) continue;
        return Status::unresolvable(
            fmt::format("looking up PVC {}/{}: {}", pod.ns(), use.name, volumes::not_found("persistentvolumeclaim", use.name)));
      }
      if (use.is_ephemeral)
        if (auto why = volumes::wrong_owner(pod, *claim, era_); !why.empty()) return Status::error(std::move(why));
      add_claimed(cluster, csi_node, *claim, out);
    }
    return Status::success();
  }

  void add_claimed(const Cluster& cluster, const model::CsiNodeView* csi_node, const volumes::Claim& claim, Attached& out) const {
    const auto* volume = claim.volume_name.empty() ? nullptr : volumes::find_volume(cluster, claim.volume_name);
    if (volume == nullptr) return add_unbound(cluster, csi_node, claim, out);
    if (!volume->csi_driver.empty()) return add(volume->csi_driver, volume->csi_handle, out);
    const auto plugin = volumes::in_tree_plugin(*volume);
    if (volumes::is_counted_as_csi(csi_node, plugin, era_))
      add(std::string(volumes::csi_driver_of(plugin)), volumes::csi_handle(*volume), out);
  }

  template <typename Visit>
  static void for_attachments(const Cluster& cluster, const std::string& node_name, Visit&& visit) {
    const auto& all = cluster.volume_attachments();
    if (all.empty()) return;
    const std::string prefix = node_name + "/";
    for (auto at = all.lower_bound(prefix); at != all.end() && at->first.starts_with(prefix); ++at) visit(*at->second);
  }
  static std::int64_t attachment_count(const Cluster& cluster, const std::string& node_name) {
    std::int64_t out = 0;
    for_attachments(cluster, node_name, [&](const auto&) { ++out; });
    return out;
  }
  static void collect_attachments(const Cluster& cluster, const std::string& node_name, Attached& out) {
    for_attachments(cluster, node_name, [&](const model::VolumeAttachmentView& one) {
      const auto* volume = volumes::find_volume(cluster, one.volume_name);
      if (volume != nullptr && !volume->csi_driver.empty()) add(one.attacher, volume->csi_handle, out);
    });
  }

  /// Without a volume yet the class tells the driver, and the claim stands for the volume.
  void add_unbound(const Cluster& cluster, const model::CsiNodeView* csi_node, const volumes::Claim& claim, Attached& out) const {
    const std::string class_name = claim.class_name();
    const auto* storage_class = class_name.empty() ? nullptr : volumes::find_class(cluster, class_name);
    if (storage_class == nullptr) return;
    std::string driver = storage_class->provisioner;
    if (const auto migrated_to = volumes::csi_driver_of(driver); !migrated_to.empty()) {
      if (!volumes::is_counted_as_csi(csi_node, driver, era_)) return;
      driver = std::string(migrated_to);
    }
    add(driver, fmt::format("(claim) {}/{}", claim.meta.ns, claim.meta.name), out);
  }

  static void add(const std::string& driver, const std::string& handle, Attached& out) {
    if (!driver.empty() && !handle.empty()) out.insert_or_assign(driver + "/" + handle, driver);
  }

  Era era_;
};

bool NodeVolumeLimits::queueing_hint(const Cluster& /*cluster*/, const PodInfo& pending, const EventChange& change) const {
  const auto uses_limited = [](const PodInfo& pod) {
    return std::ranges::any_of(pod.view().volumes, [&](const model::VolumeView& volume) {
      return volumes::claim_use(pod.view(), volume).uses_claim || !volumes::in_tree_plugin(volume).empty();
    });
  };
  switch (change.event) {
    case ClusterEvent::kClaim:
      return !change.is_object_update() && volumes::is_own_claim(pending, change, true);
    case ClusterEvent::kCsiNode: {
      if (!change.is_object_update()) return true;
      // A limit has risen or ended; kube-scheduler's hint forgets those that ended.
      const auto now = model::CsiNodeView::parse(*change.object);
      return std::ranges::any_of(model::CsiNodeView::parse(*change.object_before).drivers, [&](const model::CsiNodeDriver& then) {
        const auto same = std::ranges::find(now.drivers, then.name, &model::CsiNodeDriver::name);
        return then.count && (same == now.drivers.end() || !same->count || *same->count > *then.count);
      });
    }
    case ClusterEvent::kAssignedPodDeleted:
      return change.pod_before == nullptr || uses_limited(*change.pod_before);
    case ClusterEvent::kVolumeAttachmentDeleted:
      return uses_limited(pending);
    default:
      return true;
  }
}

}  // namespace

Result<PluginPtr> make_node_volume_limits(const Profile& profile) { return std::make_unique<NodeVolumeLimits>(profile.era); }

}  // namespace berth::placement
