// What this machine has and uses.
#pragma once
#include <string>

#include "node/agent/cgroups.h"
#include "node/eviction/allocatable.h"
#include "node/eviction/summary.h"

namespace berth::node::agent {

struct MachinePaths {
  std::string node_fs = "/";   ///< Any path on the node's filesystem: volumes and logs.
  std::string image_fs = "/";  ///< Any path on the runtime's filesystem.
  /// The cgroup that stands for the machine; empty: the machine itself. With a memory limit, that is the capacity.
  std::string node_cgroup;
  std::string pods_cgroup = "/kubepods";
};

[[nodiscard]] eviction::Machine read_machine(const Cgroups& cgroups, const MachinePaths& paths);
/// Figures of now for the eviction manager and the Summary API.
[[nodiscard]] eviction::NodeUsage observe_machine(const Cgroups& cgroups, const MachinePaths& paths, TimePoint now);
/// Bytes of memory left, by the same rule as observe_machine: cheap enough to be asked several times a second.
[[nodiscard]] std::optional<std::uint64_t> memory_available(const Cgroups& cgroups, const MachinePaths& paths);
/// Whether the two paths are on different filesystems.
[[nodiscard]] bool is_separate_filesystem(const std::string& a, const std::string& b);
/// True when any swap is in use by the system's configuration.
[[nodiscard]] bool is_swap_on();

}  // namespace berth::node::agent
