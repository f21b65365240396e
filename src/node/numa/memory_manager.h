// The memory of NUMA nodes that containers of a node have, kept over restarts (kubelet's memory manager with the policy "Static"). What
// follows from it is decided in memory_ledger.h.
#pragma once
#include <memory>
#include <string>

#include "node/numa/numa_machine.h"
#include "placement/numa/memory_ledger.h"

namespace berth::node::numa {

struct MemoryManagerOptions {
  std::string policy = "None";
  MemoryByNode reserved;                           ///< reservedMemory.
  std::map<std::string, std::int64_t> node_total;  ///< What Node Allocatable reserves of each type, which reservedMemory has to come to.
  std::string checkpoint;                          ///< A file: who has what, for the next process.
};

/// Thread-safe.
class MemoryManager : public Giver {
 public:
  /// Null for the policy "None". The error says what in the configuration, the machine or the checkpoint is in the way, and what to do.
  static Result<std::unique_ptr<MemoryManager>> start(const NumaMachine& machine, MemoryManagerOptions options);
  /// The NUMA nodes from which a container's memory comes, as the kernel's lists have them; empty: any.
  [[nodiscard]] virtual std::string nodes_of(const std::string& uid, const std::string& container) const = 0;
  [[nodiscard]] virtual std::vector<MemoryBlock> blocks(const std::string& uid, const std::string& container) const = 0;
  [[nodiscard]] virtual std::vector<MemoryBlock> allocatable() const = 0;
  virtual void tell(Offer& offer) const = 0;
};

}  // namespace berth::node::numa
