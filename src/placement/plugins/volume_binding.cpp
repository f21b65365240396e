// VolumeBinding: bound claims' volumes must reach the node; unbound ones of WaitForFirstConsumer classes find a free volume there or can be
// provisioned there (pkg/scheduler/framework/plugins/volumebinding; predicate CheckVolumeBinding).
#include <fmt/format.h>

#include <algorithm>

#include "placement/plugins/factories.h"
#include "placement/plugins/volumes.h"

namespace berth::placement {
namespace {

using volumes::Claim;
using volumes::Volume;

constexpr std::string_view kBindConflict = "node(s) didn't find available persistent volumes to bind";
constexpr std::string_view kNodeConflict120 = "node(s) had volume node affinity conflict";
constexpr std::string_view kNodeConflict = "node(s) didn't match PersistentVolume's node affinity";
constexpr std::string_view kNotEnoughSpace = "node(s) did not have enough free storage";
constexpr std::string_view kVolumeMissing = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
constexpr std::string_view kImmediate = "pod has unbound immediate PersistentVolumeClaims";

/// What the pod's unbound claims would get on one node.
struct Bindings {
  struct Static {
    const Claim* claim;
    const Volume* volume;
  };
  std::vector<Static> statics;
  std::vector<const Claim*> provisions;
  std::vector<std::string> reasons;  ///< Not empty: the node is no good.
  bool lacks_volume = false;         ///< Of a claim that is bound to one that is not there; told last.
  std::string error;
};

/// Claims are held by the cluster's tables; a decision is kept by value, since Reserve replaces those objects.
struct BindingState : Cloneable<BindingState> {
  std::vector<const Claim*> bound, unbound;
  struct Reserved {
    std::shared_ptr<const Claim> claim_before;
    std::shared_ptr<const Volume> volume_before;  ///< Null: to be provisioned.
    /// What stands in the table instead of the claim, or of the volume; another one came from elsewhere.
    std::shared_ptr<const void> made;
  };
  std::vector<Reserved> reserved;
};

bool is_bound(const Claim& claim) { return !claim.volume_name.empty() && claim.meta.annotation(volumes::kBindCompleted) != nullptr; }

bool is_bound_to(const Volume& volume, const Claim& claim) {
  return volume.has_claim_ref && volume.claim_name == claim.meta.name && volume.claim_namespace == claim.meta.ns &&
         (volume.claim_uid.empty() || volume.claim_uid == claim.meta.uid);
}

std::string_view mode_of(const std::string& mode) { return mode.empty() ? std::string_view("Filesystem") : std::string_view(mode); }

/// FindMatchingVolume: the volume already given to the claim, or the smallest free one that fits it on the node.
const Volume* find_matching(const Cluster& cluster, const Claim& claim, const NodeInfo& node, const std::vector<Bindings::Static>& taken) {
  const Volume* smallest = nullptr;
  const std::string wanted_class = claim.class_name();
  for (const auto& [name, volume] : cluster.persistent_volumes()) {
    if (volume->class_name() != wanted_class) continue;
    if (std::ranges::any_of(taken, [&](const auto& one) { return one.volume == volume.get(); })) continue;
    const bool is_ours = is_bound_to(*volume, claim);
    if (volume->has_claim_ref && !is_ours) continue;
    if (volume->capacity < claim.request || mode_of(volume->volume_mode) != mode_of(claim.volume_mode) || volume->meta.is_deleting)
      continue;
    if (cluster.era() != Era::k120 && volume->attributes_class != claim.attributes_class) continue;
    const bool reaches = volumes::node_affinity_holds(*volume, node.labels(), "");
    if (is_ours) return reaches ? volume.get() : nullptr;
    if (volume->phase != "Available" || (claim.selector && !claim.selector->matches(volume->meta.labels)) || !reaches) continue;
    const bool has_modes = std::ranges::all_of(
        claim.access_modes, [&](const auto& mode) { return std::ranges::find(volume->access_modes, mode) != volume->access_modes.end(); });
    if (!has_modes) continue;
    if (smallest == nullptr || volume->capacity < smallest->capacity) smallest = volume.get();
  }
  return smallest;
}

class VolumeBinding final : public PluginOf<VolumeBinding> {
 public:
  explicit VolumeBinding(Era era) : era_(era) {}
  std::string_view name() const override { return "VolumeBinding"; }
  void leave_out(Points& points) const override { points.pre_score = points.score = era_ != Era::k120; }
  void sign(Signer& signer, const PodInfo&) const override { signer.volumes(); }
  [[nodiscard]] ColumnKind column_kind() const override { return ColumnKind::kVolumes; }
  /// Of a claim whose selector cannot be read: it is only looked at on nodes that no other claim's provisioning keeps the pod from.
  [[nodiscard]] bool may_fail(const CycleState& state, const PodInfo&) const override {
    const auto* data = state.get<BindingState>(slot());
    return data != nullptr && std::ranges::any_of(data->unbound, [](const Claim* claim) { return !claim->selector_error.empty(); });
  }
  [[nodiscard]] bool says_by_labels(const CycleState& state, const PodInfo& pod, std::set<std::string>& keys) const override;

  PreFilterOutcome pre_filter(CycleState& state, const PodInfo& pod) const override;
  Status filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override;
  /// Scoring by free capacity (StorageCapacityScoring) is off by default in the release.
  Status pre_score(CycleState&, const PodInfo&, std::span<const NodeInfo* const>) const override { return Status::skip(); }
  std::expected<std::int64_t, Status> score(const CycleState&, const PodInfo&, const NodeInfo&) const override { return 0; }
  Status reserve(CycleState& state, const PodInfo& pod, const NodeInfo& node, Cluster& cluster) const override;
  void unreserve(CycleState& state, const PodInfo& pod, const NodeInfo& node, Cluster& cluster) const override;
  std::expected<std::vector<PreBindWrite>, Status> pre_bind(const CycleState& state, const PodInfo& pod,
                                                            const NodeInfo& node) const override;
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | EventSet{kNodeLabels, kPersistentVolume, kClaim, kStorageClass, kCsiNode, kCsiDriver, kCsiStorageCapacity};
  }
  [[nodiscard]] bool queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const override;

 private:
  std::string collect(const Cluster& cluster, const model::PodView& pod, std::vector<const Claim*>& out) const;
  Bindings find(const Cluster& cluster, const BindingState& state, const NodeInfo& node) const;
  void check_bound(const Cluster& cluster, const BindingState& state, const NodeInfo& node, Bindings& out) const;
  bool check_provisions(const Cluster& cluster, const NodeInfo& node, Bindings& out, bool& has_space) const;

  Era era_;
};

/// A size that the capacity offers for one volume, in bytes; -1 for none known.
double volume_limit(const json::Value& capacity) {
  for (const std::string_view field : {"maximumVolumeSize", "capacity"})
    if (const json::Value* found = json::find(capacity, {field}); found != nullptr && found->is_string())
      if (const auto quantity = model::Quantity::parse(std::string_view(found->get_string()))) return quantity->as_double();
  return -1;
}

bool VolumeBinding::queueing_hint(const Cluster& /*cluster*/, const PodInfo& pending, const EventChange& change) const {
  switch (change.event) {
    case ClusterEvent::kClaim:
      return volumes::is_own_claim(pending, change, true);
    case ClusterEvent::kStorageClass:
      return !change.is_object_update() || volumes::differs(change, {"allowedTopologies"});
    case ClusterEvent::kCsiNode:
      return !change.is_object_update() ||
             volumes::differs(change, {"metadata", "annotations", "storage.alpha.kubernetes.io/migrated-plugins"});
    case ClusterEvent::kCsiDriver: {
      const auto tracks = [](const json::Value& driver) {
        const json::Value* found = json::find(driver, {"spec", "storageCapacity"});
        return found != nullptr && found->is_bool() && found->get_bool();
      };
      // kube-scheduler looks for inline volumes alone; claims of the driver's classes gain by it as well.
      return change.object_before != nullptr && tracks(*change.object_before) && (change.object == nullptr || !tracks(*change.object));
    }
    case ClusterEvent::kCsiStorageCapacity:
      return !change.is_object_update() || volume_limit(*change.object) > volume_limit(*change.object_before);
    default:
      return true;
  }
}

/// The pod's claims; the result says what is wrong with one.
std::string VolumeBinding::collect(const Cluster& cluster, const model::PodView& pod, std::vector<const Claim*>& out) const {
  for (const auto& volume : pod.volumes) {
    const auto use = volumes::claim_use(pod, volume);
    // Generic ephemeral volumes were alpha in 1.20.
    if (!use.uses_claim || (use.is_ephemeral && era_ == Era::k120)) continue;
    const Claim* claim = volumes::find_claim(cluster, pod.ns(), use.name);
    if (claim == nullptr) {
      if (use.is_ephemeral)
        return fmt::format("waiting for ephemeral volume controller to create the persistentvolumeclaim \"{}\"", use.name);
      return volumes::not_found("persistentvolumeclaim", use.name);
    }
    if (claim->phase == "Lost" && era_ != Era::k120)
      return fmt::format("persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"", claim->meta.name,
                         claim->volume_name);
    if (claim->meta.is_deleting) return fmt::format("persistentvolumeclaim \"{}\" is being deleted", claim->meta.name);
    if (use.is_ephemeral)
      if (auto why = volumes::wrong_owner(pod, *claim, era_); !why.empty()) return why;
    // Two volumes of a pod may be one claim's.
    if (std::ranges::find(out, claim) == out.end()) out.push_back(claim);
  }
  return {};
}

PreFilterOutcome VolumeBinding::pre_filter(CycleState& state, const PodInfo& pod) const {
  std::vector<const Claim*> claims;
  if (auto why = collect(state.cluster(), pod.view(), claims); !why.empty()) return {Status::unresolvable(std::move(why)), {}};
  if (claims.empty()) return {Status::skip(), {}};
  auto data = std::make_unique<BindingState>();
  bool has_immediate = false;
  for (const Claim* claim : claims) {
    if (is_bound(*claim)) {
      data->bound.push_back(claim);
      continue;
    }
    const auto* storage_class = volumes::find_class(state.cluster(), claim->class_name());
    if (storage_class != nullptr && !storage_class->has_binding_mode)
      return {Status::error(fmt::format("VolumeBindingMode not set for StorageClass \"{}\"", claim->class_name())), {}};
    // A claim that names its volume already waits for the volume controller, whatever its class says.
    if (storage_class != nullptr && storage_class->wait_for_first_consumer && claim->volume_name.empty()) {
      data->unbound.push_back(claim);
    } else {
      has_immediate = true;
    }
  }
  if (has_immediate) return {Status::unresolvable(std::string(kImmediate)), {}};
  std::ranges::stable_sort(data->unbound, {}, [](const Claim* claim) { return claim->request; });
  state.set(slot(), std::move(data));
  return {};
}

/// Of bound claims alone: what is unbound depends on the node's name, and on what is free there. A translated volume asks for other labels
/// on nodes that know its driver.
bool VolumeBinding::says_by_labels(const CycleState& state, const PodInfo&, std::set<std::string>& keys) const {
  const auto* data = state.get<BindingState>(slot());
  if (data == nullptr || !data->unbound.empty()) return data == nullptr;
  for (const Claim* claim : data->bound) {
    const Volume* volume = volumes::find_volume(state.cluster(), claim->volume_name);
    if (volume == nullptr) continue;
    if (!volumes::in_tree_plugin(*volume).empty()) return false;
    if (!volume->node_affinity) continue;
    for (const auto& term : volume->node_affinity->terms)
      for (const auto& expression : term.expressions) keys.insert(expression.key);
  }
  return true;
}

void VolumeBinding::check_bound(const Cluster& cluster, const BindingState& state, const NodeInfo& node, Bindings& out) const {
  const auto* csi_node = volumes::find_csi_node(cluster, node.name);
  for (const Claim* claim : state.bound) {
    const Volume* volume = volumes::find_volume(cluster, claim->volume_name);
    if (volume == nullptr) {
      if (era_ == Era::k120) {
        out.error = fmt::format("could not find v1.PersistentVolume \"{}\"", claim->volume_name);
      } else {
        out.lacks_volume = true;
      }
      return;
    }
    const auto plugin = volumes::in_tree_plugin(*volume);
    const auto migrated = volumes::is_migrated(csi_node, plugin, era_) ? plugin : std::string_view();
    if (volumes::node_affinity_holds(*volume, node.labels(), migrated)) continue;
    out.reasons.emplace_back(era_ == Era::k120 ? kNodeConflict120 : kNodeConflict);
    return;
  }
}

/// False: the class cannot provision on the node. `has_space` false: its driver has not room enough there.
bool VolumeBinding::check_provisions(const Cluster& cluster, const NodeInfo& node, Bindings& out, bool& has_space) const {
  for (const Claim* claim : out.provisions) {
    const std::string class_name = claim->class_name();
    const auto* storage_class = volumes::find_class(cluster, class_name);
    if (class_name.empty() || storage_class == nullptr) {
      out.error = class_name.empty() ? fmt::format("no class for claim \"{}\"", claim->meta.key())
                                     : fmt::format("failed to find storage class \"{}\"", class_name);
      return false;
    }
    if (storage_class->provisioner.empty() || storage_class->provisioner == volumes::kNoProvisioner) return false;
    const auto& topologies = storage_class->allowed_topologies;
    const auto holds = [&](const auto& term) {
      return !term.empty() && std::ranges::all_of(term, [&](const auto& expression) {
        const auto* value = node.label(expression.first);
        return value != nullptr && std::ranges::find(expression.second, *value) != expression.second.end();
      });
    };
    if (!topologies.empty() && std::ranges::none_of(topologies, holds)) return false;
    // Free capacity counts since the release that made CSIStorageCapacity a default.
    if (era_ == Era::k120) continue;
    const auto driver = cluster.csi_drivers().find(storage_class->provisioner);
    if (driver == cluster.csi_drivers().end() || !driver->second->storage_capacity) continue;
    const auto suffices = [&](const auto& entry) {
      const auto& capacity = *entry.second;
      const auto& limit = capacity.maximum_volume_size ? capacity.maximum_volume_size : capacity.capacity;
      return capacity.storage_class == class_name && limit && limit->value() >= claim->request.value() && capacity.node_topology &&
             capacity.node_topology->matches(node.labels());
    };
    if (std::ranges::none_of(cluster.storage_capacities(), suffices)) {
      has_space = false;
      return true;
    }
  }
  return true;
}

Bindings VolumeBinding::find(const Cluster& cluster, const BindingState& state, const NodeInfo& node) const {
  Bindings out;
  check_bound(cluster, state, node, out);
  if (!out.error.empty()) return out;
  bool satisfied = true, has_space = true;
  for (const Claim* claim : state.unbound) {
    if (const auto* selected = claim->meta.annotation(volumes::kSelectedNode)) {
      // Its provisioning was started for another node.
      if (*selected != node.name) satisfied = false;
      out.provisions.push_back(claim);
    }
    if (!satisfied) break;
  }
  if (satisfied) {
    for (const Claim* claim : state.unbound) {
      if (claim->meta.annotation(volumes::kSelectedNode) != nullptr) continue;
      if (!claim->selector_error.empty()) {
        out.error = claim->selector_error;
        return out;
      }
      if (const Volume* volume = find_matching(cluster, *claim, node, out.statics)) {
        out.statics.push_back({claim, volume});
      } else {
        out.provisions.push_back(claim);
      }
    }
    if (!out.provisions.empty()) satisfied = check_provisions(cluster, node, out, has_space);
    if (!out.error.empty()) return out;
  }
  // In the order of the release: affinity of bound volumes, volumes to bind, room, missing volumes.
  if (!satisfied) out.reasons.emplace_back(kBindConflict);
  if (!has_space) out.reasons.emplace_back(kNotEnoughSpace);
  if (out.lacks_volume) out.reasons.emplace_back(kVolumeMissing);
  return out;
}

Status VolumeBinding::filter(const CycleState& state, const PodInfo&, const NodeInfo& node) const {
  const auto* data = state.get<BindingState>(slot());
  if (data == nullptr) return Status::success();
  Bindings found = find(state.cluster(), *data, node);
  if (!found.error.empty()) return Status::error(std::move(found.error));
  if (found.reasons.empty()) return Status::success();
  return {Code::kUnschedulableAndUnresolvable, {}, std::move(found.reasons)};
}

Status VolumeBinding::reserve(CycleState& state, const PodInfo&, const NodeInfo& node, Cluster& cluster) const {
  auto* data = state.get<BindingState>(slot());
  if (data == nullptr || data->unbound.empty()) return Status::success();
  Bindings found = find(cluster, *data, node);
  if (!found.error.empty()) return Status::error(std::move(found.error));
  // Nothing is changed unless all of it can be.
  if (!found.reasons.empty()) return {Code::kUnschedulableAndUnresolvable, {}, std::move(found.reasons)};
  for (const auto& [claim, volume] : found.statics) {
    auto reserved = std::make_shared<Volume>(*volume);
    data->reserved.push_back({std::make_shared<const Claim>(*claim), std::make_shared<const Volume>(*volume), reserved});
    reserved->has_claim_ref = true;
    reserved->claim_namespace = claim->meta.ns;
    reserved->claim_name = claim->meta.name;
    reserved->claim_uid = claim->meta.uid;
    cluster.upsert(std::shared_ptr<const Volume>(std::move(reserved)));
  }
  for (const Claim* claim : found.provisions) {
    auto reserved = std::make_shared<Claim>(*claim);
    data->reserved.push_back({std::make_shared<const Claim>(*claim), nullptr, reserved});
    reserved->meta.annotations.change([&](auto& annotations) {
      std::erase_if(annotations, [](const auto& pair) { return pair.first == volumes::kSelectedNode; });
      annotations.emplace_back(std::string(volumes::kSelectedNode), node.name);
      std::ranges::sort(annotations);
    });
    cluster.upsert(std::shared_ptr<const Claim>(std::move(reserved)));
  }
  // The claims' objects may just have been replaced.
  data->unbound.clear();
  return Status::success();
}

void VolumeBinding::unreserve(CycleState& state, const PodInfo&, const NodeInfo&, Cluster& cluster) const {
  auto* data = state.get<BindingState>(slot());
  if (data == nullptr) return;
  for (const auto& [claim, volume, made] : data->reserved) {
    // What an informer changed meanwhile is newer than what was here before.
    if (volume != nullptr && volumes::find_volume(cluster, volume->meta.name) == made.get()) cluster.upsert(volume);
    if (volume == nullptr && volumes::find_claim(cluster, claim->meta.ns, claim->meta.name) == made.get()) cluster.upsert(claim);
  }
  data->reserved.clear();
}

std::expected<std::vector<PreBindWrite>, Status> VolumeBinding::pre_bind(const CycleState& state, const PodInfo&,
                                                                         const NodeInfo& node) const {
  std::vector<PreBindWrite> out;
  const auto* data = state.get<BindingState>(slot());
  if (data == nullptr) return out;
  for (const auto& [claim, volume, made] : data->reserved) {
    if (volume != nullptr) {
      json::Object reference = {{"apiVersion", "v1"},
                                {"kind", "PersistentVolumeClaim"},
                                {"namespace", claim->meta.ns},
                                {"name", claim->meta.name},
                                {"uid", claim->meta.uid}};
      json::Value patch = {{"spec", json::Object{{"claimRef", std::move(reference)}}}};
      if (!volume->has_claim_ref) json::set(patch, {"metadata", "annotations", volumes::kBoundByController}, "yes");
      out.push_back({"", "persistentvolumes", "", volume->meta.name, std::move(patch), false});
    }
  }
  for (const auto& [claim, volume, made] : data->reserved) {
    json::Value patch = json::Object();
    if (volume == nullptr) json::set(patch, {"metadata", "annotations", volumes::kSelectedNode}, json::Value(node.name));
    out.push_back({"", "persistentvolumeclaims", claim->meta.ns, claim->meta.name, std::move(patch), true});
  }
  return out;
}

}  // namespace

Result<PluginPtr> make_volume_binding(const Profile& profile) { return std::make_unique<VolumeBinding>(profile.era); }

}  // namespace berth::placement
