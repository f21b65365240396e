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
  std::string container_fs;    ///< The same for writable layers, where the runtime keeps them apart from images; empty: with the images.
  /// The cgroup that stands for the machine; empty: the machine itself. With a memory limit, that is the capacity.
  std::string node_cgroup;
  std::string pods_cgroup = "/kubepods";
  std::string proc = "/proc";    ///< Elsewhere in tests.
  std::int64_t runtime_pid = 0;  ///< The container runtime; 0: not known.
};

/// What the machine is, as the Node object says it.
struct MachineIdentity {
  std::string machine_id, system_uuid, boot_id, kernel_version, os_image;
};
[[nodiscard]] MachineIdentity read_machine_identity();
/// PRETTY_NAME of an os-release file's text; "Linux" without one.
[[nodiscard]] std::string os_image_name(std::string_view os_release);

[[nodiscard]] eviction::Machine read_machine(const Cgroups& cgroups, const MachinePaths& paths);
/// Figures of now for the eviction manager and the Summary API.
[[nodiscard]] eviction::NodeUsage observe_machine(const Cgroups& cgroups, const MachinePaths& paths, TimePoint now);
/// One filesystem, by any path on it; all absent when it cannot be asked.
[[nodiscard]] eviction::FsUsage observe_filesystem(const std::string& path, TimePoint now);
/// The memory of the cgroup that stands for the machine, or of one below it, by the same rule as observe_machine: available is the limit,
/// or what the machine has, less the working set, as the kubelet's memory.available is. Cheap enough to be asked several times a second.
[[nodiscard]] eviction::MemoryUsage observe_group_memory(const Cgroups& cgroups, const MachinePaths& paths, const std::string& group,
                                                         TimePoint now);
/// Whether the two paths are on different filesystems.
[[nodiscard]] bool is_separate_filesystem(const std::string& a, const std::string& b);
/// The process that listens at a socket of this machine; 0: not known.
[[nodiscard]] std::int64_t pid_behind(const std::string& socket);
/// True when any swap is in use by the system's configuration.
[[nodiscard]] bool is_swap_on(const std::string& proc = "/proc");
/// All swap that the machine has, and what of it nobody uses.
struct SwapSpace {
  std::int64_t capacity_bytes = 0, free_bytes = 0;
};
[[nodiscard]] SwapSpace swap_space(const std::string& proc = "/proc");
/// When the kernel started; nullopt where it does not tell.
[[nodiscard]] std::optional<TimePoint> boot_time(const std::string& proc);

/// Of a small file; empty when it cannot be read.
[[nodiscard]] std::string first_line(const char* path);

}  // namespace berth::node::agent
