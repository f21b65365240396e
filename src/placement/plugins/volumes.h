// What the volume plugins share: looking up claims and volumes, and the migration of in-tree volumes to CSI drivers (csi-translation-lib).
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "placement/events.h"
#include "placement/framework.h"

namespace berth::placement::volumes {

inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
inline constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
inline constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";

using Claim = model::PersistentVolumeClaimView;
using Volume = model::PersistentVolumeView;

/// The claim's name when the pod's volume uses one (a generic ephemeral volume's claim is named after the pod), else empty with
/// `uses_claim` false.
struct ClaimUse {
  bool uses_claim = false;
  bool is_ephemeral = false;
  std::string name;
};
ClaimUse claim_use(const model::PodView& pod, const model::VolumeView& volume);

/// Null when absent.
const Claim* find_claim(const Cluster& cluster, std::string_view ns, std::string_view name);
const Volume* find_volume(const Cluster& cluster, std::string_view name);
const model::StorageClassView* find_class(const Cluster& cluster, std::string_view name);
const model::CsiNodeView* find_csi_node(const Cluster& cluster, std::string_view node_name);

/// `persistentvolumeclaim "x" not found`, the API's words.
std::string not_found(std::string_view resource, std::string_view name);
/// Empty when the ephemeral volume's claim belongs to the pod; else why not.
std::string wrong_owner(const model::PodView& pod, const Claim& claim, Era era);

/// The two may not be used on one node (VolumeRestrictions: disks that only one may mount, or only to read).
bool conflict(const model::VolumeView& a, const model::VolumeView& b);

/// The in-tree plugin of a pod's inline volume or of a volume: "kubernetes.io/aws-ebs"; empty for others.
std::string_view in_tree_plugin(const model::VolumeView& volume);
std::string_view in_tree_plugin(const Volume& volume);
/// The driver that took an in-tree plugin over; empty when the plugin is not migratable.
std::string_view csi_driver_of(std::string_view in_tree_plugin);
/// True when the node's CSINode says that the plugin is migrated there. 1.20: never (the gates are off by default).
bool is_migrated(const model::CsiNodeView* node, std::string_view in_tree_plugin, Era era);
/// Whether attach limits count the in-tree plugin's volumes as its driver's: those whose migration is complete, on nodes that have a
/// CSINode (nodevolumelimits isCSIMigrationOn).
bool is_counted_as_csi(const model::CsiNodeView* node, std::string_view in_tree_plugin, Era era);
/// The handle that the migrated volume has; empty when the in-tree volume's name cannot be translated.
std::string csi_handle(const model::VolumeView& volume);
std::string csi_handle(const Volume& volume);

/// The volume's node affinity holds for these labels; with `migrated_plugin` as the translated volume states it.
bool node_affinity_holds(const Volume& volume, const model::Labels& node_labels, std::string_view migrated_plugin);

/// "a__b" as the set of its zones; nullopt when one is empty.
std::optional<std::set<std::string, std::less<>>> label_zones(std::string_view text);

// -- For queueing hints.

/// The claim that the event is about is one of the pod's; `ephemeral_too`: also those made for the pod.
[[nodiscard]] bool is_own_claim(const PodInfo& pending, const EventChange& change, bool ephemeral_too);
/// The update changed the value at the path.
[[nodiscard]] bool differs(const EventChange& change, std::initializer_list<std::string_view> path);

}  // namespace berth::placement::volumes
