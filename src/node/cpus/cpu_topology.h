// The processors of a machine, and which of them share a core, a socket, a NUMA node (Linux' /sys/devices/system/cpu).
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace berth::node::cpus {

using CpuSet = std::set<int>;  ///< By number.

/// "0-3,8": as the kernel writes it, and reads it.
[[nodiscard]] Result<CpuSet> parse_cpu_list(std::string_view text);
[[nodiscard]] std::string cpu_list(const CpuSet& cpus);

struct Cpu {
  int id = 0;
  int core = 0;  ///< The lowest processor of its core.
  int socket = 0, numa_node = 0;
};

struct CpuTopology {
  std::vector<Cpu> cpus;  ///< Those that are online, by number.
  [[nodiscard]] CpuSet all() const;
  /// How many threads the first core has.
  [[nodiscard]] int threads_per_core() const;
};

/// `root`: /sys/devices/system, or a copy of it. The error says what cannot be read.
[[nodiscard]] Result<CpuTopology> read_cpu_topology(const std::string& root = "/sys/devices/system");

}  // namespace berth::node::cpus
