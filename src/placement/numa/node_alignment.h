// Whether a node would refuse a pod for what lies near its NUMA nodes, asked before the pod is there. By the node's NodeResourceTopology,
// and by the same steps with which a node admits (alignment.h).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "placement/cluster.h"
#include "placement/numa/zone_ledger.h"

namespace berth::placement::numa {

/// Pods that are bound to the node, and of which it has not told yet what they have.
enum class Untold : std::uint8_t {
  kAsTheNode,   ///< They are given theirs in the order in which they came: what the node does next.
  kEverywhere,  ///< They have it of every NUMA node (the scheduler plugin's "overreserve"): right in whatever order the node takes them.
  kNobodyElse   ///< While there is one, the node takes nobody else who wants something of its NUMA nodes.
};

/// Of one node with the pods on it. Immutable: questions are for any thread.
class NodeAlignment {
 public:
  NodeAlignment(const model::NodeTopologyView& topology, std::span<const PodInfoPtr> pods, Untold how);

  /// Nothing of the pod's comes from NUMA nodes here, as far as is known.
  [[nodiscard]] bool is_no_matter(const PodWishes& pod) const { return !policy_ || !ledger_.gives(pod); }
  /// kNobodyElse, and somebody is there.
  [[nodiscard]] bool is_closed() const { return is_closed_; }
  /// What the node would say.
  [[nodiscard]] std::optional<Refusal> refuse(const PodWishes& pod) const;
  /// The same for people: "no NUMA node has 8 exclusive CPUs free"; and what it would take: "a NUMA node with 8 exclusive CPUs free".
  [[nodiscard]] std::string words_of(const Refusal& refusal, const PodWishes& pod) const;
  [[nodiscard]] std::vector<std::string> lacks_of(const Refusal& refusal, const PodWishes& pod) const;

  [[nodiscard]] const ZoneLedger& ledger() const { return ledger_; }
  /// Unset: the topology makes no sense, or has more NUMA nodes than are looked at.
  [[nodiscard]] const std::optional<AlignmentPolicy>& policy() const { return policy_; }

 private:
  struct Shortage {
    int width = 1;  ///< So many NUMA nodes together have not
    std::string what;
  };
  [[nodiscard]] std::vector<Shortage> shortages(const Refusal& refusal, const PodWishes& pod) const;
  [[nodiscard]] std::vector<Shortage> shortages(const Amounts& amounts, const ZoneLedger& ledger) const;
  std::optional<AlignmentPolicy> policy_;
  ZoneLedger ledger_;
  bool is_closed_ = false;
};

/// What the node lacks for the pod, each a noun phrase; empty: nothing, or nothing is known.
[[nodiscard]] std::vector<std::string> lacks_beforehand(const NodeInfo& node, const PodInfo& pod);
/// "node-3 would refuse it: no NUMA node has 8 exclusive CPUs free (TopologyAffinityError)"; empty: it would not, or nothing is known.
[[nodiscard]] std::string refusal_beforehand(const NodeInfo& node, const PodInfo& pod);

}  // namespace berth::placement::numa
