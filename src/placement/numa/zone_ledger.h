// A node's NUMA nodes in amounts, as its NodeResourceTopology tells them: what a scheduler knows of them. It gives as the node's own
// managers do, as far as amounts can tell: where a request takes several NUMA nodes, how much comes from each may differ.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/views/node_topology_view.h"
#include "placement/numa/holdings.h"
#include "placement/numa/memory_ledger.h"

namespace berth::placement::numa {

/// A value. Owner: whoever asks about one node; single-threaded.
class ZoneLedger final : public Giver {
 public:
  /// As it is when nobody has anything that `present` does not name: pods of these uids have what the topology says of them. Of a topology
  /// that does not tell holders (kTellsHolders) what is available counts, whoever is there.
  ZoneLedger(const model::NodeTopologyView& topology, const std::set<std::string>& present);

  [[nodiscard]] const Machine& machine() const { return machine_; }
  /// Something is given from NUMA nodes at all.
  [[nodiscard]] bool gives(const PodWishes& pod) const;
  /// The same amounts are taken from every NUMA node: where they will come from is not known.
  void set_aside(const PodWishes& pod);
  /// Whole units (of memory: bytes) that nobody has; 0 of a resource that lies near no NUMA node.
  [[nodiscard]] std::int64_t free(NodeSet nodes, const std::string& resource) const;
  /// All that there is, the system's included: what a NUMA node could have at best. Of memory without the system's.
  [[nodiscard]] std::int64_t most(NodeSet nodes, const std::string& resource) const;
  [[nodiscard]] bool knows(const std::string& resource) const;

  void tell(Offer& offer) const;

  void keep_only(const std::set<std::string>& uids) override;
  void release(const std::string& uid) override;
  [[nodiscard]] HintsByResource hints(const PodWishes& pod, const Wish& container) const override;
  [[nodiscard]] HintsByResource pod_hints(const PodWishes& pod) const override;
  std::optional<Refusal> give(const PodWishes& pod, const Wish& container, const Hint& near) override;

 private:
  struct Count {
    std::int64_t capacity = 0, free = 0;
  };
  using Counts = std::map<int, Count>;         ///< By NUMA node.
  using Parts = std::map<int, std::int64_t>;   ///< Likewise.
  using OfPod = std::map<std::string, Parts>;  ///< By resource.

  void read(const model::NodeTopologyView& topology, bool tells_holders);
  void take_over(const model::NodeTopologyView& topology, const std::set<std::string>& present);
  [[nodiscard]] Parts lent(const std::string& uid, const std::string& resource) const;
  [[nodiscard]] std::vector<Hint> possible(const std::string& uid, const std::string& resource, std::int64_t count) const;
  [[nodiscard]] Parts choose(const Counts& counts, const Parts& lent, std::int64_t count, const Hint& near, bool whole_first) const;
  std::optional<Refusal> give_counted(const PodWishes& pod, const Wish& container, const std::string& resource, const Hint& near);

  Machine machine_;
  std::map<std::string, Counts> counts_;  ///< cpu, where it is given, and devices.
  std::optional<MemoryLedger> memory_;    ///< Unset: memory comes from anywhere.
  std::int64_t threads_of_whole_cores_ = 1;
  std::vector<NodeSet> sockets_;       ///< Where processors are as good anywhere in one; empty: they are not.
  std::map<std::string, OfPod> held_;  ///< By uid.
  std::string lender_;
  OfPod lent_;  ///< What ended init containers of the pod that was admitted last leave to those after them.
};

}  // namespace berth::placement::numa
