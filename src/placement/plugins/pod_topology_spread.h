// What PodTopologySpread's plain and columnar forms share: the constraints of one pod.
#pragma once
#include <string>
#include <vector>

#include "placement/framework.h"

namespace berth::placement {

inline constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";

/// A constraint ready for counting.
struct SpreadConstraint {
  std::int64_t max_skew = 1;
  std::string topology_key;
  model::Selector selector;
  std::int64_t min_domains = 1;
  bool honor_affinity = true;
  bool honor_taints = false;
};

struct SpreadConstraints {
  std::vector<SpreadConstraint> list;
  std::string error;  ///< Not empty when a selector could not be parsed.
};

/// The pod's hard or soft constraints, or the profile's defaults with the selector of the pod's workloads.
/// `known`: what the workloads select, where that is known already.
SpreadConstraints spread_constraints(const model::PodView& pod, const Cluster& cluster, const PodTopologySpreadArgs& args, Era era,
                                     bool hard, const model::Selector* known = nullptr);
/// Whether the node counts for the constraint: nodeAffinityPolicy and nodeTaintsPolicy.
bool spread_includes_node(const SpreadConstraint& constraint, const model::PodView& pod, const NodeInfo& node, Era era);
/// False: it includes every node. `chooses_nodes`: the pod has a selector or a required affinity of nodes.
bool spread_asks_nodes(const SpreadConstraint& constraint, bool chooses_nodes, Era era);
bool has_all_topology_keys(const NodeInfo& node, const std::vector<SpreadConstraint>& constraints);
/// Pods of the namespace that the selector matches, those in termination left out.
std::int64_t count_matching_pods(const NodeInfo& node, const model::Selector& selector, std::string_view ns);
/// log(domains + 2): big topologies do not water down small ones.
double spread_weight(std::size_t domains);
/// 100 * (max + min - raw) / max; 100 when max is 0.
inline std::int64_t spread_normalized(std::int64_t raw, std::int64_t min, std::int64_t max) {
  return max == 0 ? kMaxNodeScore : kMaxNodeScore * (max + min - raw) / max;
}

/// The columnar form for a class of pods.
TopologyOutcome make_spread_part(const TopologySetup& setup, const PodTopologySpreadArgs& args, Era era);

/// The same for preemption; null where only Filter knows.
std::unique_ptr<RemovableLoad> make_spread_load(const TopologySetup& setup, const PodTopologySpreadArgs& args, Era era);

inline constexpr std::string_view kReasonSpread = "node(s) didn't match pod topology spread constraints";
inline constexpr std::string_view kReasonSpreadLabel = "node(s) didn't match pod topology spread constraints (missing required label)";

}  // namespace berth::placement
