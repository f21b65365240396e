// From which NUMA nodes the memory of a node's containers comes (kubelet's memory manager with the policy "Static"): the core, which talks
// to nobody.
//
//   each NUMA node: all of its memory = what is reserved for the system + what containers of Guaranteed pods have + free
//   a container gets its memory from one NUMA node, or from a group of them that is as small as it can be; a NUMA node of a group serves
//   that group alone, until nobody has anything of it
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "placement/numa/holdings.h"

namespace berth::placement::numa {

using MemoryByNode = std::map<int, Amounts>;  ///< By the NUMA node's number: bytes by type.

struct MemoryBlock {
  NodeSet nodes = 0;
  std::string type;  ///< memory, or hugepages-…
  std::int64_t bytes = 0;
  friend bool operator==(const MemoryBlock&, const MemoryBlock&) = default;
};

/// Single-threaded; the shell's lock is around it.
class MemoryLedger {
 public:
  using Entries = std::map<std::string, std::map<std::string, std::vector<MemoryBlock>>>;  ///< By the pod's uid and the container's name.

  /// `total`: memory (without huge pages) and hugepages-…; `reserved`: what of it is the system's.
  MemoryLedger(const MemoryByNode& total, const MemoryByNode& reserved);

  [[nodiscard]] HintsByResource hints(const PodWishes& pod, const Wish& container) const;
  [[nodiscard]] HintsByResource pod_hints(const PodWishes& pod) const;
  std::optional<Refusal> give(const PodWishes& pod, const Wish& container, const Hint& near);
  void keep_only(const std::set<std::string>& uids);
  void release(const std::string& uid);

  /// What a container has; what an init container lent to those after it is theirs.
  [[nodiscard]] std::vector<MemoryBlock> blocks(const std::string& uid, const std::string& container) const;
  /// From where its memory comes; 0: from anywhere.
  [[nodiscard]] NodeSet nodes_of(const std::string& uid, const std::string& container) const;
  /// What each NUMA node has for pods.
  [[nodiscard]] std::vector<MemoryBlock> allocatable() const;

  /// What is free of a type on a group of NUMA nodes.
  [[nodiscard]] std::int64_t free(NodeSet nodes, const std::string& type) const { return sum(nodes, type, &Table::free); }
  [[nodiscard]] const Entries& entries() const { return entries_; }
  /// Who has what from now on, of NUMA nodes that are there.
  void take_over(Entries entries) { change(std::move(entries)); }

  void tell(Offer& offer) const;

  /// The kubelet's memory_manager_state.
  [[nodiscard]] json::Value checkpoint() const;
  /// The error says why the file does not fit this machine; nothing is taken over then.
  Result<void> restore(const json::Value& checkpoint);

 private:
  struct Table {
    std::int64_t total = 0, reserved = 0, used = 0;
    [[nodiscard]] std::int64_t allocatable() const { return total - reserved; }
    [[nodiscard]] std::int64_t free() const { return allocatable() - used; }
  };
  struct Node {
    std::map<std::string, Table> memory;  ///< By type.
    std::int64_t assignments = 0;         ///< Blocks that have something of it.
    NodeSet group = 0;                    ///< It and those that it serves together with.
  };

  [[nodiscard]] std::int64_t sum(NodeSet nodes, const std::string& type, std::int64_t (Table::*figure)() const) const;
  [[nodiscard]] std::int64_t lent(const std::string& uid, NodeSet nodes, const std::string& type) const;
  [[nodiscard]] bool breaks_groups(NodeSet nodes) const;
  [[nodiscard]] std::vector<Hint> possible(const std::string& uid, const Amounts& amounts) const;
  [[nodiscard]] Result<NodeSet> choose(const std::string& uid, const Amounts& amounts, const Hint& near) const;
  void take_back_lent(const PodWishes& pod, const Wish& container, const std::vector<MemoryBlock>& blocks);
  [[nodiscard]] std::map<int, Node> counted(const Entries& entries) const;
  void change(Entries entries);

  std::map<int, Node> empty_;  ///< The machine when nobody has anything.
  std::map<int, Node> nodes_;
  Entries entries_;
  /// What ended init containers of the pod that was admitted last leave to those after them.
  std::string lender_;
  std::map<std::pair<NodeSet, std::string>, std::int64_t> lent_;
};

}  // namespace berth::placement::numa
