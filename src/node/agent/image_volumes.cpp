#include "node/agent/image_volumes.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/log.h"
#include "base/split.h"
#include "node/agent/cgroups.h"
#include "node/agent/mounts.h"

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPlugin = "volumes/kubernetes.io~image";

/// A key that names the place: an agent that starts anew finds its snapshots again.
std::string snapshot_key(const std::string& directory) { return "berth-image-volume:" + directory; }

int mount_overlay_from(const std::string& base, const std::string& data, const std::string& directory) {
  int error = 0;
  // On a thread of its own, whose working directory nobody else shares.
  std::thread([&] {
    const bool well = ::unshare(CLONE_FS) == 0 && ::chdir(base.c_str()) == 0 &&
                      ::mount("overlay", directory.c_str(), "overlay", MS_RDONLY, data.c_str()) == 0;
    error = well ? 0 : errno;
  }).join();
  return error;
}

/// 0, or errno.
int mount_read_only(const cri::SnapshotMount& mount, const std::string& directory) {
  if (mount.type == "overlay") {
    const OverlayOptions options = overlay_options(mount.options);
    return mount_overlay_from(options.base.empty() ? "/" : options.base, options.data, directory);
  }
  if (mount.type != "bind") return ENOTSUP;
  if (::mount(mount.source.c_str(), directory.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) return errno;
  if (::mount(nullptr, directory.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0) return 0;
  const int error = errno;
  ::umount2(directory.c_str(), MNT_DETACH);
  return error;
}

}  // namespace

std::string image_volume_directory(const std::string& pod_directory, const std::string& volume) {
  return fmt::format("{}/{}/{}", pod_directory, kPlugin, volume);
}

OverlayOptions overlay_options(const std::vector<std::string>& options, std::size_t limit) {
  static constexpr std::string_view kLower = "lowerdir=";
  OverlayOptions out;
  std::string lower;
  for (const std::string& option : options) {
    if (option.starts_with(kLower)) lower = option.substr(kLower.size());
    if (option == "ro" || option == "rw" || option.starts_with(kLower)) continue;  // Flags of mount(2), or below.
    out.data += option + ",";
  }
  if (out.data.size() + lower.size() + kLower.size() > limit) {
    std::string base = lower.substr(0, lower.find(':'));
    for (const std::string_view one : split(lower, ':'))
      while (!one.starts_with(base + "/") && !base.empty()) base.resize(base.find('/') == std::string::npos ? 0 : base.rfind('/'));
    out.base = base;
    std::string shorter;
    for (const std::string_view one : split(lower, ':'))
      shorter += fmt::format("{}{}", shorter.empty() ? "" : ":", one.substr(base.size() + 1));
    if (!base.empty()) lower = shorter;
  }
  out.data += std::string(kLower) + lower;
  return out;
}

ImageVolumes::ImageVolumes(cri::Channel& runtime, std::unique_ptr<cri::Snapshots> snapshots)
    : runtime_(runtime), snapshots_(std::move(snapshots)) {}

Result<std::string> ImageVolumes::snapshotter() {
  const auto status = runtime_.call("RuntimeService/Status", json::Object{{"verbose", true}});
  if (!status) return std::unexpected(status.error());
  const auto config = json::parse(json::get_string(*status, {"info", "config"}));
  const std::string name(config ? json::get_string(*config, {"containerd", "snapshotter"}) : "");
  if (name.empty()) return fail(ErrorCode::kInternal, "the container runtime names no snapshotter: image volumes need containerd");
  return name;
}

Result<void> ImageVolumes::mount(const std::string& reference, const std::string& directory) {
  if (is_mounted(directory)) return {};
  const auto name = snapshotter();
  if (!name) return std::unexpected(name.error());
  const auto status =
      runtime_.call("ImageService/ImageStatus", json::Object{{"image", json::Object{{"image", reference}}}, {"verbose", true}});
  if (!status) return std::unexpected(status.error());
  const auto info = json::parse(json::get_string(*status, {"info", "info"}));
  const std::string chain(info ? json::get_string(*info, {"chainID"}) : "");
  if (chain.empty()) return fail(ErrorCode::kInternal, fmt::format("the container runtime does not tell the layers of {}", reference));
  const auto mounts = snapshots_->view(*name, snapshot_key(directory), chain);
  if (!mounts) return std::unexpected(mounts.error());
  std::error_code error;
  fs::create_directories(directory, error);
  if (mounts->size() != 1) return fail(ErrorCode::kInternal, fmt::format("snapshotter {} needs {} mounts", *name, mounts->size()));
  if (const int failed = mount_read_only(mounts->front(), directory); failed != 0)
    return fail(ErrorCode::kInternal, fmt::format("mounting the image as {}: {}", mounts->front().type, std::strerror(failed)));
  return {};
}

bool ImageVolumes::is_mounted(const std::string& directory) const {
  const auto below = mount_points_below(read_small_file("/proc/self/mountinfo").value_or(""), fs::path(directory).parent_path());
  return std::ranges::find(below, directory) != below.end();
}

void ImageVolumes::release(const std::string& pod_directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fmt::format("{}/{}", pod_directory, kPlugin), error)) {
    const std::string directory = entry.path();
    ::umount2(directory.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    const auto name = snapshotter();
    const auto removed = name ? snapshots_->remove(*name, snapshot_key(directory)) : std::unexpected(name.error());
    if (!removed) log::warning("node", "image volume {}: {}", directory, removed.error().message);
  }
}

}  // namespace berth::node::agent
