// A containerd of berth's own, for machines where none runs (or whose own one must be left alone): configuration, network and pause image
// made here.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace berth::node::agent {

struct OwnRuntimeOptions {
  std::string directory;           ///< Everything is kept below it; a real filesystem (overlayfs).
  std::string pod_subnet, bridge;  ///< Empty: by the directory, so that several on one machine do not meet.
};

/// The container runtime's process. The destructor stops it, and takes its bridge away when no container hangs on it; containers run on,
/// and the next one takes them over. When this process is killed, it stops as well.
class OwnRuntime {
 public:
  virtual ~OwnRuntime() = default;
  /// Starts it, in place of one of this directory that still runs, and waits until it answers. Errors say what is missing. On a thread that
  /// lives as long as the process: the runtime ends with it.
  static Result<std::unique_ptr<OwnRuntime>> start(const OwnRuntimeOptions& options);
  [[nodiscard]] virtual const std::string& socket() const = 0;
  [[nodiscard]] virtual const std::string& binary() const = 0;
};

/// Of this block every runtime's pods have a part of 256 addresses, unless another subnet is named.
inline constexpr const char* kPodBlock = "10.88.0.0/16";

/// The bridge of the runtime in this directory, unless another is named.
[[nodiscard]] std::string bridge_of(const std::string& directory);
/// What this machine lacks for OwnRuntime, as words for people ("containerd (package containerd)"); empty: nothing.
[[nodiscard]] std::vector<std::string> missing_for_own_runtime();

/// A machine's abilities, as far as the configuration depends on them.
struct RuntimeAbilities {
  std::string cni_directory = "/usr/lib/cni";
  bool can_lower_oom_scores = true;  ///< CAP_SYS_RESOURCE
  bool has_apparmor = false;
  bool has_iptables = false;
  std::string snapshotter = "overlayfs";  ///< "native" (copies) where overlays cannot lie on the directory's filesystem.
};
[[nodiscard]] std::string containerd_config(const OwnRuntimeOptions& options, const RuntimeAbilities& abilities);
[[nodiscard]] std::string cni_config(const OwnRuntimeOptions& options, const RuntimeAbilities& abilities);

/// An OCI image as a tar file for `ctr images import`: one program that sleeps and lets the kernel collect its children. Empty where the
/// program is not known for this processor.
[[nodiscard]] std::string pause_image_tar();
inline constexpr const char* kPauseImage = "berth.local/pause:1";

}  // namespace berth::node::agent
