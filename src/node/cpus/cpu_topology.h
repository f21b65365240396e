// The processors of a machine, and which of them share a core, a socket, a NUMA node (Linux' /sys/devices/system/cpu).
#pragma once
#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace berth::node::cpus {

using CpuSet = std::set<int>;  ///< By number.

struct Cpu {
  int id = 0;
  int core = 0;  ///< The lowest processor of its core.
  int socket = 0, numa_node = 0;
  int cache = 0;  ///< The lowest processor of those that share its last cache.
};

struct CpuTopology {
  std::vector<Cpu> cpus;  ///< Those that are online, by number.
  [[nodiscard]] CpuSet all() const;
  /// How many different cores, sockets, NUMA nodes, … there are.
  [[nodiscard]] std::size_t count(int Cpu::*level) const;
  /// How many threads the first core has.
  [[nodiscard]] int threads_per_core() const;
};

/// `root`: /sys/devices/system, or a copy of it. The error says what cannot be read.
[[nodiscard]] Result<CpuTopology> read_cpu_topology(const std::string& root = "/sys/devices/system");

}  // namespace berth::node::cpus
