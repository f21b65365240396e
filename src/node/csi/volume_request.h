// From a pod's volume and the objects that it stands on to what a CSI driver is asked (kubelet's pkg/volume/csi). Pure.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/json.h"
#include "node/csi/volume_ledger.h"
#include "node/csi/volume_records.h"

namespace berth::node::csi {

/// A pod's volume, with the documents that it stands on. Null: there is none.
struct PodVolume {
  const json::Value& pod;
  std::string name;                                                  ///< In the pod.
  const json::Value* source = nullptr;                               ///< spec.volumes[].csi: it lives with its pod.
  const json::Value *persistent_volume = nullptr, *claim = nullptr;  ///< Or these.
  bool is_read_only = false;
  std::optional<std::int64_t> fs_group;
};

/// What a driver can do besides (NodeGetCapabilities): "STAGE_UNSTAGE_VOLUME", …
using Capabilities = std::set<std::string, std::less<>>;
using Texts = std::map<std::string, std::string>;

/// What else a request is made of.
struct Surroundings {
  std::string root, node;
  const json::Value* driver = nullptr;      ///< The CSIDriver object; null: there is none.
  const json::Value* attachment = nullptr;  ///< The VolumeAttachment; null: there is none.
  Capabilities capabilities;
  Texts stage_secrets, publish_secrets, expand_secrets;
  Texts tokens;  ///< JSON of each token by audience, where the driver asks for them.
};

struct VolumeRequest {
  VolumePlace place;
  Want want;
  json::Value stage, publish, expand;  ///< The messages.
  bool can_expand = false;             ///< Otherwise there is nothing to do for it on a node.
  /// The group that the files are given to after the first publication; nullopt: none.
  std::optional<std::int64_t> owner_group;
  bool is_owner_kept_where_root_has_it = false;  ///< fsGroupChangePolicy OnRootMismatch.
};

/// The volume of a pod, as its driver names it. The error: it is no volume of a CSI driver.
[[nodiscard]] Result<VolumePlace> place_of(const PodVolume& volume);
/// CSIDriver.spec.attachRequired, which is on where nobody says.
[[nodiscard]] bool needs_attachment(const json::Value* driver, const VolumePlace& place);
/// Namespace and name of the secret of one kind ("nodeStageSecretRef", …); nullopt: none.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> secret_of(const PodVolume& volume, std::string_view field);
/// The bytes that a claim's volume grew to and the claim does not show yet; 0: none.
[[nodiscard]] std::int64_t pending_expansion(const PodVolume& volume);
/// The claim's status once it has its volume's size: a merge patch.
[[nodiscard]] json::Value expanded_claim_patch(const json::Value& claim, const json::Value& persistent_volume);

/// The error, for the pod's events: the volume is not attached, or its driver does not do this.
[[nodiscard]] Result<VolumeRequest> make_request(const PodVolume& volume, const Surroundings& around);

}  // namespace berth::node::csi
