// From which NUMA nodes a pod's containers get what they ask for (kubelet's topology manager): the core, which talks to nobody.
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
#include "base/json.h"
#include "node/admission.h"

namespace berth::node::numa {

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
/// Marks those with as few nodes as `fewest` as preferred.
void prefer_narrow(std::vector<Hint>& hints, int fewest);

struct Machine {
  NodeSet nodes = 1;
  std::map<int, std::vector<std::int64_t>> distances;  ///< From each node to all, in the order of their numbers (ACPI's SLIT: 10 is near).
};

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
  [[nodiscard]] virtual HintsByResource hints(const json::Value& pod, const json::Value& container) const = 0;
  /// The same for the most that the pod's containers have at a time.
  [[nodiscard]] virtual HintsByResource pod_hints(const json::Value& pod) const = 0;
  /// Gives a container its own, from near these nodes where it can. A container that has its own keeps it.
  virtual std::optional<Refusal> give(const json::Value& pod, const json::Value& container, const Hint& near) = 0;
};

/// Containers in the order of their start; all get what they ask for or none.
std::optional<Refusal> admit(const AlignmentPolicy& policy, const Machine& machine, const json::Value& pod,
                             const std::vector<Giver*>& givers);

/// The kubelet's words for what a giver has not.
[[nodiscard]] Refusal unexpected(const std::string& why);

/// Whether what a container is given is free again when it ends: of init containers, those that are no sidecars.
[[nodiscard]] bool is_lender(const json::Value& pod, const json::Value& container);
/// The most that a pod's containers have at a time, of what `amount` counts.
template <typename Amount>
[[nodiscard]] std::int64_t most_at_a_time(const json::Value& pod, const Amount& amount) {
  std::int64_t sidecars = 0, starting = 0, running = 0;
  for (const json::Value& container : json::get_array(pod, {"spec", "initContainers"})) {
    const std::int64_t own = amount(container);
    if (json::get_string(container, {"restartPolicy"}) == "Always")
      sidecars += own;
    else
      starting = std::max(starting, sidecars + own);
  }
  for (const json::Value& container : json::get_array(pod, {"spec", "containers"})) running += amount(container);
  return std::max(starting, sidecars + running);
}

}  // namespace berth::node::numa
