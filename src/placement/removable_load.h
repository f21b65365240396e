// What a plugin's Filter says of one pod in numbers: what preemption asks instead of Filter, so that trying a node without some of its pods
// is a few subtractions.
//
//   limits(node)    what there is now, and how much may be left       load_of(pod)   what a pod on the node adds to that
//                         there - loads of those that go  <=  most    (or  >=  least)
//
// A plugin states its Filter as conditions. Each has one number, of the node or of the domains that the node is in, and holds while that
// number is small enough (room, skew, nobody who minds) or large enough (company). Pods count alike on the node that they are on, whoever
// else is there; so who must go is found by adding and subtracting, and the answer is the one that Filter, AddPod and RemovePod would give.
//
// Conditions of a node alone are settled when the node changes. Those of domains are not: when a pod comes or goes anywhere, all nodes of
// its domains are concerned. So they are asked anew with every decision (limits: a few look-ups a node), and a node is gone over again
// only where what they allow crosses what is on it.
//
// Whoever follows (preemptor_class.h) calls reset, then update for every node, then update for each node that changed.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "placement/columns/cluster_index.h"
#include "placement/status.h"

namespace berth::placement {

/// One condition on one node.
struct LoadLimit {
  std::int64_t there = 0;          ///< With all pods of the node; nominated ones are added by whoever asks.
  std::int64_t most = INT64_MAX;   ///< Holds while no more than this is left,
  std::int64_t least = INT64_MAX;  ///< or no less than this.
  /// Where it fails: what Filter says, by its place in RemovableLoad::words; and whether evicting may help at all (of a plugin that says
  /// all at once, one such failure is enough for not).
  std::uint8_t said = 0;
  bool is_hopeless = false;

  [[nodiscard]] bool holds(std::int64_t left) const { return left <= most || (left >= least && least != INT64_MAX); }
  /// Whatever is left: of a node that the condition does not look at, or rejects for good.
  static LoadLimit always() { return {}; }
  static LoadLimit never(std::uint8_t said, bool is_hopeless) { return {0, INT64_MIN, INT64_MAX, said, is_hopeless}; }
};

/// Owner: a PreemptorClass. Single-threaded; copies of the class own copies. Stands for all pods of one signature
/// (Framework::sign_filters).
class RemovableLoad {
 public:
  virtual ~RemovableLoad() = default;
  [[nodiscard]] virtual std::unique_ptr<RemovableLoad> clone() const = 0;
  /// The index is another one from now on: the same, or a copy in which nothing has changed. Before every use.
  virtual void bind(ClusterIndex& /*index*/) {}

  /// A condition's number.
  enum class Amount : std::uint8_t { kCpu, kMemory, kStorage, kPods, kOwn };
  struct Condition {
    /// What pods take of cpu, memory, ephemeral storage and places is known of all of them; kOwn: load_of says it. Those come first, and
    /// each once.
    Amount amount = Amount::kOwn;
    bool is_of_domain = false;  ///< There is more to it than this node.
    bool is_summed = false;     ///< What is there is what load_of says of the node's pods together; limits need not say it.
  };
  /// In Filter's order. The number and nature may change by adopt_terms alone.
  [[nodiscard]] virtual std::vector<Condition> conditions() const = 0;
  /// What Filter says where a condition fails, in Filter's words.
  [[nodiscard]] virtual std::vector<Status> words() const = 0;
  /// Filter says all that is wrong at once; otherwise the first.
  [[nodiscard]] virtual bool says_all() const { return false; }

  /// What the pod, on a node that counts, adds to each own condition's number. Alike for pods of equal traits (same_traits), host ports and
  /// extended resources. `out` is zero.
  virtual void load_of(const PodInfo& /*other*/, std::span<std::int64_t> /*out*/) const {}
  /// What the conditions are on the node: one each, in order.
  virtual void limits(const NodeInfo& node, std::span<LoadLimit> out) const = 0;

  /// What load_of looks at of a pod, as far as most pods do without: they are not even asked about.
  enum Reads : std::uint8_t { kExtendedResources = 1, kHostPorts = 2, kRequiredAntiAffinity = 4, kAnything = 8 };
  [[nodiscard]] virtual std::uint8_t reads() const { return kAnything; }

  // What follows the cluster; only of use where more counts than the node.
  /// Forgets all nodes.
  virtual void reset() {}
  /// Counts the node as it is now; `info` is null once it is gone.
  virtual void update(std::uint32_t /*node*/, const NodeInfo* /*info*/) {}
  /// What holds for all nodes until the next change is worked out. Before limits are asked for again.
  virtual void begin_decision() {}
  /// Affinity terms that pods brought, and that match the class's (ids of the index). True: there are more conditions than before.
  virtual bool adopt_terms(std::span<const std::uint32_t> /*terms*/) { return false; }
  /// Another number than before: what was said of conditions of nodes alone is void.
  [[nodiscard]] virtual std::uint32_t phase() const { return 0; }
  /// What it was made from has changed, or domains have changed their nature: it must be made anew.
  [[nodiscard]] virtual bool is_outdated() const { return false; }
  /// Nominated pods may count for this one in a way that its signature does not tell.
  [[nodiscard]] virtual bool is_blind_to(const PodInfo& /*nominated*/, const PodInfo& /*pod*/) const { return false; }
  /// The pods that Filter counts at first are others than those that it counts as they come and go: with this victim, only the whole
  /// cycle run without it tells whether the pod fits.
  [[nodiscard]] virtual bool miscounts(const PodInfo& /*victim*/) const { return false; }
  [[nodiscard]] virtual std::size_t memory_bytes() const { return 0; }
};

}  // namespace berth::placement
