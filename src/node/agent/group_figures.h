// What the kernel counts of one control group and of its processes, for who watches containers (the kubelet's cAdvisor).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/agent/cgroups.h"

namespace berth::node::agent {

/// Everything is absent where the kernel does not tell.
struct CpuFigures {
  std::optional<std::uint64_t> usage_ns, user_ns, system_ns;
  std::optional<std::uint64_t> periods, throttled_periods, throttled_ns;
  std::optional<std::uint64_t> shares, period_us;  ///< Shares by version 1's scale.
  std::optional<std::uint64_t> quota_us;           ///< Absent: no limit.
};
struct MemoryFigures {
  std::optional<std::uint64_t> cache_bytes, mapped_bytes, kernel_bytes, most_bytes;
  std::optional<std::uint64_t> swap_bytes, swap_limit_bytes, reservation_bytes;
  std::optional<std::uint64_t> limit_hits;
};
struct ProcessFigures {
  std::uint64_t processes = 0, threads = 0, descriptors = 0, sockets = 0;
  std::optional<std::uint64_t> threads_max;
};
struct DiskFigures {
  std::uint64_t read_bytes = 0, written_bytes = 0, reads = 0, writes = 0;
};
/// Who waited for a processor, for memory, for a disk (version 2).
struct PressureFigures {
  std::optional<Pressure> cpu, memory, io;
};
struct InterfaceFigures {
  std::string name;
  std::uint64_t received_bytes = 0, received_packets = 0, received_errors = 0, received_dropped = 0;
  std::uint64_t sent_bytes = 0, sent_packets = 0, sent_errors = 0, sent_dropped = 0;
};

struct GroupFigures {
  CpuFigures cpu;
  std::optional<CgroupMemory> memory;
  MemoryFigures more_memory;
  ProcessFigures processes;
  PressureFigures pressure;
  std::map<std::string, DiskFigures> disks;  ///< By the device's path, or its numbers where it has none.
  std::optional<std::uint64_t> oom_kills;
};

/// `proc`: procfs, for descriptors and the names of disks; elsewhere in tests.
[[nodiscard]] GroupFigures measure_group(const Cgroups& cgroups, const std::string& group, const std::string& proc);

/// Of a control group's memory alone; what swap is used, and up to what it may be: absent without a limit.
[[nodiscard]] MemoryFigures measure_more_memory(const Cgroups& cgroups, const std::string& group);

[[nodiscard]] PressureFigures measure_pressure(const Cgroups& cgroups, const std::string& group);

/// Interfaces of a process's network (/proc/PID/net/dev), but for the loopback and ends of containers'.
[[nodiscard]] std::vector<InterfaceFigures> measure_interfaces(const std::string& proc, std::int64_t pid);
/// The network that a group's processes are in; empty: none runs.
[[nodiscard]] std::vector<InterfaceFigures> group_interfaces(const Cgroups& cgroups, const std::string& group, const std::string& proc);

}  // namespace berth::node::agent
