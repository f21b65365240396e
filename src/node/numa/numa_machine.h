// The NUMA nodes of a machine and their memory (Linux' /sys/devices/system/node).
#pragma once
#include <map>
#include <string>

#include "base/error.h"
#include "node/numa/shared.h"
#include "placement/numa/memory_ledger.h"

namespace berth::node::numa {

struct NumaMachine {
  Machine layout;
  MemoryByNode memory;  ///< memory (without huge pages) and hugepages-…
};

/// `root`: /sys/devices/system, or a copy of it. Where the kernel knows of no NUMA nodes it is one, with `memory_bytes`.
[[nodiscard]] Result<NumaMachine> read_numa_machine(const std::string& root, std::int64_t memory_bytes);

}  // namespace berth::node::numa
