// Which groups grow, by how much, for which pods (SPEC H2, H4, H7; core/scaleup).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "autoscaler/expander.h"
#include "autoscaler/limits.h"
#include "placement/trial.h"

namespace berth::autoscaler {

/// One group's new size.
struct Resize {
  std::string group;
  std::int64_t from = 0, to = 0, max = 0;
};
/// "[{MachineSet/ns/name 1->3 (max: 5)}]", as events show it.
std::string to_string(const std::vector<Resize>& plan);

struct ScaleUpInput {
  /// The cluster with the nodes that are on their way; every pod of `pending` was found not to fit anywhere in it.
  placement::Trial* trial = nullptr;
  std::vector<PodPtr> pending;
  const std::vector<NodeGroup>* groups = nullptr;
  const std::map<std::string, NodeTemplate, std::less<>>* templates = nullptr;
  /// Groups that may not grow now, and why ("in backoff after failed scale-up").
  std::map<std::string, std::string, std::less<>> not_ready;
  const ClusterLimits* limits = nullptr;
  std::int64_t node_count = 0;  ///< Of the cluster, with those on their way.
  std::optional<std::string> priorities;
  std::uint64_t seed = 0;
};

struct ScaleUpPlan {
  enum class Result { kNotNeeded, kNoOptions, kLimitedByMaxNodesTotal, kSuccessful };
  Result result = Result::kNotNeeded;
  std::vector<Resize> resizes;
  std::vector<PodPtr> helped;
  /// Pods that no group can help, each with the reasons over all groups: "1 Insufficient cpu, 2 max node group size reached".
  std::vector<std::pair<PodPtr, std::string>> not_helped;
  std::vector<std::string> warnings;
};
/// Every node of the plan takes at least one of the pods when the scheduler places them in its own order.
ScaleUpPlan plan_scale_up(const ScaleUpInput& input, const Options& options);

/// Pods that are alike: of one controller and of one signature.
struct PodGroup {
  std::vector<PodPtr> pods;
  std::map<std::string, std::vector<std::string>, std::less<>> refusals;  ///< By group id: why its template does not fit.
  std::vector<std::string> fits;                                          ///< Group ids.
};
std::vector<PodGroup> group_alike(const std::vector<PodPtr>& pods, placement::Trial& trial);

/// First-fit decreasing on copies of the template added to a fork, at most `most` of them.
ExpansionOption estimate(placement::Trial& base, const std::string& group, const NodeTemplate& node_template,
                         std::vector<const PodGroup*> pods, std::int64_t most);

/// Spreads new nodes over groups, the smallest first, each up to its maximum (processors/nodegroupset).
std::vector<Resize> balance(std::vector<Resize> groups, std::int64_t new_nodes);

}  // namespace berth::autoscaler
