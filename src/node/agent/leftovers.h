// What a node leaves on its machine, and how it is taken away: processes, bridge, mounts, cgroups, directories.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/owned_fd.h"
#include "node/cri/channel.h"

namespace berth::node::agent {

/// The containerd processes whose configuration is that of OwnRuntime in `directory`.
[[nodiscard]] std::vector<pid_t> containerds_of(const std::string& directory);
/// The shims of its containers: each is the parent of a container's processes.
[[nodiscard]] std::vector<pid_t> shims_of(const std::string& directory);
/// Asks a process to end, kills it when it has not after ten seconds, and waits until it is gone. A child of ours is reaped.
void stop_process(pid_t process);
/// Deletes a bridge on which nothing hangs; true when it was there and is gone.
bool remove_unused_bridge(const std::string& bridge);

/// One agent at a time works in a directory. Held until it is destroyed, or the process ends.
class DirectoryLock {
 public:
  /// kConflict when another process holds it. Makes the directory.
  static Result<DirectoryLock> take(const std::string& directory);

 private:
  explicit DirectoryLock(OwnedFd fd) : fd_(std::move(fd)) {}
  OwnedFd fd_;
};

/// Where an agent writes the cgroup that it made for its pods, below its root directory.
inline constexpr const char* kCgroupMarker = "pods-cgroup";

struct ResetOptions {
  std::string root;             ///< AgentOptions::root.
  cri::ChannelOptions runtime;  ///< Of the machine; used when the node has none of its own.
};
/// Ends a node: its pods' containers, its own containerd, its bridge, mounts and cgroups, its directory. What was done, a line each.
/// kConflict while an agent works there. What could not be done is an error that names it, after everything else was tried.
[[nodiscard]] Result<std::vector<std::string>> reset_node(const ResetOptions& options);

}  // namespace berth::node::agent
