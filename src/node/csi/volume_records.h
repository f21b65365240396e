// Where CSI volumes lie below a node's directory, and what is written beside them so that the next process finds them: as the kubelet has
// it (pkg/volume/csi: vol_data.json), so that a driver made for its directories is at home in ours.
//
//   pods/UID/volumes/kubernetes.io~csi/NAME/mount              what a pod has; vol_data.json beside it
//   plugins/kubernetes.io/csi/DRIVER/HASH/globalmount          what is staged; vol_data.json beside it
//   plugins/kubernetes.io/csi/volumeDevices/publish/NAME/UID   a block device of a pod; staging/NAME, NAME/data/vol_data.json
#pragma once
#include <string>
#include <vector>

#include "base/error.h"

namespace berth::node::csi {

/// A volume and its place.
struct VolumePlace {
  std::string driver, handle;
  std::string name;  ///< The PersistentVolume's; of one that lives with its pod, the volume's in the pod.
  bool is_block = false, is_persistent = true;
  [[nodiscard]] std::string key() const { return driver + "^" + handle; }
};

[[nodiscard]] std::string target_path(const std::string& root, const VolumePlace& volume, const std::string& pod);
[[nodiscard]] std::string staging_path(const std::string& root, const VolumePlace& volume);
/// "csi-" and a hash: the VolumeAttachment of a volume to a node.
[[nodiscard]] std::string attachment_name(const std::string& handle, const std::string& driver, const std::string& node);
/// What a volume that lives with its pod is called at its driver.
[[nodiscard]] std::string ephemeral_handle(const std::string& pod, const std::string& name);

/// Written before a driver is asked for anything. Makes the directories that the driver expects.
Result<void> record_staged(const std::string& root, const VolumePlace& volume);
Result<void> record_published(const std::string& root, const VolumePlace& volume, const std::string& pod, const std::string& node);
/// Once the driver has said that it is done: takes record and directories away. kUnavailable: something is mounted there still.
Result<void> forget_staged(const std::string& root, const VolumePlace& volume);
Result<void> forget_published(const std::string& root, const VolumePlace& volume, const std::string& pod);

struct FoundVolume {
  VolumePlace volume;
  std::string pod;  ///< Empty: what is staged.
  bool is_mounted = false;
};
/// What is recorded below a node's directory. A record that cannot be read is left where it is and said in the log.
[[nodiscard]] std::vector<FoundVolume> find_volumes(const std::string& root);

}  // namespace berth::node::csi
