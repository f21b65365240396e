// From which NUMA nodes a pod's containers get what they ask for (kubelet's topology manager): the core, which talks to nobody. A node
// admits pods by it, and a scheduler that knows the node's NUMA nodes finds out beforehand what the node will say.
//
//   who gives something (processors, memory, devices) says from which sets of NUMA nodes it could: hints; preferred are those of the fewest
//   --> one hint of each, so that they agree as well as they can --> the policy refuses the pod (TopologyAffinityError), or each gives from
//   there
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "placement/numa/refusal.h"
#include "placement/numa/wishes.h"

namespace berth::placement::numa {

using NodeSet = std::uint64_t;  ///< A bit for each NUMA node, by its number.
inline constexpr int kMostNodes = 64;

[[nodiscard]] std::vector<int> numbers_of(NodeSet nodes);
/// Those that are not empty, each once.
void for_each_subset(NodeSet nodes, const std::function<void(NodeSet)>& take);

/// One set of NUMA nodes from which a wish can be granted.
struct Hint {
  std::optional<NodeSet> nodes;  ///< Unset: any.
  bool is_preferred = true;
  friend bool operator==(const Hint&, const Hint&) = default;
};
/// Of one resource. Unset: it does not matter from where. Empty: nothing can be had.
using Hints = std::optional<std::vector<Hint>>;
using HintsByResource = std::map<std::string, Hints>;
/// As many NUMA nodes as it takes on a machine where nobody has anything, of which these sets could grant it; all where none could.
[[nodiscard]] int fewest_nodes(NodeSet machine, const std::function<bool(NodeSet)>& could);
/// The sets that grant a wish now (`can`); preferred are those of as few nodes as it takes on a machine where nobody has anything
/// (`could`).
[[nodiscard]] std::vector<Hint> hints_where(NodeSet machine, const std::function<bool(NodeSet)>& could,
                                            const std::function<bool(NodeSet)>& can);
/// With the CPU manager's option align-by-socket: preferred are, too, those that lie in as few of the sockets as it takes.
void prefer_sockets(std::vector<Hint>& hints, NodeSet machine, int fewest_nodes, const std::vector<NodeSet>& sockets);

struct Machine {
  NodeSet nodes = 1;
  std::map<int, std::vector<std::int64_t>> distances;  ///< From each node to all, in the order of their numbers (ACPI's SLIT: 10 is near).
};

/// Between these, each with each and with itself.
[[nodiscard]] double mean_distance(const Machine& machine, NodeSet nodes);

enum class Align { kNone, kBestEffort, kRestricted, kSingleNumaNode };

struct AlignmentPolicy {
  Align align = Align::kNone;
  bool is_by_pod = false;        ///< All containers of a pod from the same nodes (topologyManagerScope: pod).
  bool prefers_closest = false;  ///< Among sets of as many nodes those that are nearer to each other.
};
/// From topologyManagerPolicy, -Scope and -PolicyOptions. The error names the field and what is wanted.
[[nodiscard]] Result<AlignmentPolicy> alignment_policy(const std::string& policy, const std::string& scope,
                                                       const std::map<std::string, std::string>& options, const Machine& machine);

/// What all that is given agrees on best (topologymanager, HintMerger).
[[nodiscard]] Hint merge(const AlignmentPolicy& policy, const Machine& machine, const std::vector<HintsByResource>& hints);
[[nodiscard]] bool is_admitted(const AlignmentPolicy& policy, const Hint& merged);

/// Who gives something that lies near NUMA nodes. Called by one thread, one pod after the other.
class Giver {
 public:
  virtual ~Giver() = default;
  /// What pods that are not among these had is free again.
  virtual void keep_only(const std::set<std::string>& uids) = 0;
  virtual void release(const std::string& uid) = 0;
  /// What it has for a container, beside what those before it in the pod were given.
  [[nodiscard]] virtual HintsByResource hints(const PodWishes& pod, const Wish& container) const = 0;
  /// The same for the most that the pod's containers have at a time.
  [[nodiscard]] virtual HintsByResource pod_hints(const PodWishes& pod) const = 0;
  /// Gives a container its own, from near these nodes where it can. A container that has its own keeps it.
  virtual std::optional<Refusal> give(const PodWishes& pod, const Wish& container, const Hint& near) = 0;
};

/// Containers in the order of their start; all get what they ask for or none.
std::optional<Refusal> admit(const AlignmentPolicy& policy, const Machine& machine, const PodWishes& pod,
                             const std::vector<Giver*>& givers);

// The kubelet's words for what is not there.
[[nodiscard]] Refusal unexpected(const std::string& why);
[[nodiscard]] Refusal too_few_cpus(std::int64_t wanted, std::int64_t available);
[[nodiscard]] Refusal too_few_devices(const std::string& resource, std::int64_t wanted, std::int64_t available);
/// With the CPU manager's option full-pcpus-only, where cores have so many threads.
[[nodiscard]] std::optional<Refusal> refuse_half_cores(std::int64_t cpus, std::int64_t threads_per_core);

}  // namespace berth::placement::numa
