// Image volumes: the root filesystem of an image as a read-only directory of a pod's (`spec.volumes[*].image`).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "node/cri/channel.h"
#include "node/cri/snapshots.h"

namespace berth::node::agent {

/// Where a pod's image volume lies on the machine.
[[nodiscard]] std::string image_volume_directory(const std::string& pod_directory, const std::string& volume);

/// Thread-safe; calls block. What is mounted outlives this object and the agent.
class ImageVolumes {
 public:
  ImageVolumes(cri::Channel& runtime, std::unique_ptr<cri::Snapshots> snapshots);
  /// Shows an image that the runtime has (`reference`: its id or name) at `directory`. One that shows there already stays.
  Result<void> mount(const std::string& reference, const std::string& directory);
  [[nodiscard]] bool is_mounted(const std::string& directory) const;
  /// Unmounts all image volumes of a pod and lets their snapshots go. What fails is logged: an image that stays does no harm.
  void release(const std::string& pod_directory);

 private:
  /// Whose snapshots the runtime's CRI uses ("overlayfs").
  [[nodiscard]] Result<std::string> snapshotter();
  cri::Channel& runtime_;
  std::unique_ptr<cri::Snapshots> snapshots_;
};

/// The data of an overlay mount that fits a page: many lower directories are named from `base`, which becomes their common parent ("": they
/// are named in full).
struct OverlayOptions {
  std::string base, data;
};
[[nodiscard]] OverlayOptions overlay_options(const std::vector<std::string>& options, std::size_t limit = 4000);

}  // namespace berth::node::agent
