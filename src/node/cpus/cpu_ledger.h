// Which containers have processors of their own (kubelet's CPU manager with the policy "static"): the core, which talks to nobody.
//
//   all processors = shared (all containers run there; the reserved ones are never anybody's own)
//                  + those of containers of Guaranteed pods that ask for whole processors
//   a pod comes --> its containers get theirs, as close together as they can be --> the shared ones are fewer, for all that run
//   it is over  --> they are shared again
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/json.h"
#include "node/cpus/cpu_topology.h"
#include "node/numa/shared.h"
#include "placement/numa/holdings.h"

namespace berth::node::cpus {

struct CpuPolicy {
  CpuSet reserved;               ///< For the system: never given away.
  bool full_cores_only = false;  ///< The option full-pcpus-only: who asks for half a core is refused.
  bool is_strict = false;        ///< strict-cpu-reservation: what is reserved is not shared either.
  bool is_spread = false;        ///< distribute-cpus-across-numa: who needs several NUMA nodes gets as many of each.
  bool by_core = false;          ///< distribute-cpus-across-cores: a thread of each core, as far as there are cores.
  bool by_socket = false;        ///< align-by-socket: any NUMA node of a socket is as good.
  bool by_cache = false;         ///< prefer-align-cpus-by-uncorecache: of one cache, where one has as many.
};

/// The `count` of these that lie closest together: whole NUMA nodes and sockets first, then whole cores, then threads of cores that are in
/// use already; among equals those that leave the fewest holes, then the lowest (cpumanager, takeByTopologyNUMAPacked). Empty: there are
/// not as many.
[[nodiscard]] CpuSet take_close(const CpuTopology& topology, const CpuSet& available, std::size_t count, const CpuPolicy& policy = {});
/// The same, but as many of each of the fewest NUMA nodes that have them, in steps of `step` (takeByTopologyNUMADistributed). Where that
/// cannot be done: as close together as they can be.
[[nodiscard]] CpuSet take_spread(const CpuTopology& topology, const CpuSet& available, std::size_t count, std::size_t step);

/// Single-threaded; the shell's lock is around it.
class CpuLedger {
 public:
  CpuLedger(CpuTopology topology, CpuPolicy policy) : topology_(std::move(topology)), policy_(std::move(policy)) {}

  [[nodiscard]] numa::HintsByResource hints(const numa::PodWishes& pod, const numa::Wish& container) const;
  [[nodiscard]] numa::HintsByResource pod_hints(const numa::PodWishes& pod) const;
  /// Gives a container what it is to have alone; what init containers had is had by those after them.
  [[nodiscard]] std::optional<Refusal> give(const numa::PodWishes& pod, const numa::Wish& container, const numa::Hint& near);
  /// What pods that are not among these had is shared again. True: something is.
  bool keep_only(const std::set<std::string>& uids);
  void release(const std::string& uid) { own_.erase(uid); }
  /// Where a container runs: on its own, or with all others.
  [[nodiscard]] CpuSet cpus_of(const std::string& uid, const std::string& container) const;
  [[nodiscard]] bool has_own(const std::string& uid, const std::string& container) const;
  [[nodiscard]] CpuSet shared() const;
  /// Those that may be somebody's own.
  [[nodiscard]] CpuSet allocatable() const;

  void tell(numa::Offer& offer) const;
  /// The NUMA nodes of each socket, where they are as good as each other.
  [[nodiscard]] std::vector<numa::NodeSet> sockets() const;
  [[nodiscard]] int threads_of_whole_cores() const { return policy_.full_cores_only ? topology_.threads_per_core() : 1; }

  /// The kubelet's cpu_manager_state.
  [[nodiscard]] json::Value checkpoint() const;
  /// The error says why the file does not fit this machine; nothing is taken over then.
  Result<void> restore(const json::Value& checkpoint);

 private:
  [[nodiscard]] CpuSet free() const;
  [[nodiscard]] CpuSet lent(const std::string& uid) const { return uid == lender_ ? lent_ : CpuSet{}; }
  [[nodiscard]] CpuSet take(const CpuSet& available, std::size_t count) const;
  [[nodiscard]] std::vector<numa::Hint> possible(const CpuSet& available, const CpuSet& lent, std::size_t count) const;
  const CpuTopology topology_;
  const CpuPolicy policy_;
  std::map<std::string, std::map<std::string, CpuSet>> own_;  ///< By the pod's uid, and the container's name.
  std::string lender_;
  CpuSet lent_;  ///< What ended init containers of the pod that was admitted last leave to those after them.
};

}  // namespace berth::node::cpus
