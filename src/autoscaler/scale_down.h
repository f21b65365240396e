// Which nodes nobody needs (SPEC H3, H4; core/scaledown).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autoscaler/drainability.h"
#include "autoscaler/limits.h"
#include "autoscaler/time_limit.h"
#include "placement/trial.h"

namespace berth::autoscaler {

/// The GPU resource that a node has or, by its label, is to have; empty: none.
std::string gpu_resource_of(const model::NodeView& node, std::string_view accelerator_label);
/// The larger share of CPU or memory that requests take of allocatable; of GPUs alone on a node that has some.
/// `counts_all`: none of its pods is to be left out (being ignored, or ending for too long), so that the node's own sums do.
double utilization_of(const placement::NodeInfo& node, const PodMap& pods, const Options& options, TimePoint now, bool counts_all = false);

/// A node that could go: its pods have places elsewhere.
struct Removable {
  std::string node, group;
  double utilization = 0;
  std::vector<PodPtr> moved;
  bool waits = false;     ///< For a pod that is to end by itself.
  bool is_risky = false;  ///< Not all its pods could be evicted at once.
};

/// A node that stays, and why, in the cluster autoscaler's words ("NotUnderutilized", "BlockedByPod", …).
struct Unremovable {
  std::string node;
  std::string_view reason;
  std::string_view blocking_reason;  ///< Of BlockedByPod: "NotReplicated", "NotEnoughPdb", …
  PodPtr blocking_pod;
  std::string detail;      ///< For people: what holds it.
  double utilization = 0;  ///< Of NotUnderutilized.
};

/// "BlockedByPod: NotReplicated: default/p is not replicated"
std::string to_string(const Unremovable& node);

struct ScaleDownFindings {
  std::vector<Removable> removable;  ///< All of them together.
  std::vector<Unremovable> unremovable;
  std::vector<std::string> left;  ///< Candidates that were not looked at: the time was over.
};

struct ScaleDownInput {
  const Snapshot* snapshot = nullptr;
  /// The cluster without pods that hold no node, and with every waiting pod that fits on a node that is there.
  const placement::Cluster* cluster = nullptr;
  /// A trial on the same, made when it is first asked for: not at all where no node is worth it. It is changed.
  std::function<placement::Trial&()> trial;
  const Memberships* memberships = nullptr;
  struct Candidate {
    std::string node;
    std::size_t turn = 0;       ///< The lower the earlier.
    bool was_unneeded = false;  ///< Then before others of its turn, as empty ones are after that.
  };
  std::vector<Candidate> candidates;
  /// Pods in `cluster` that nobody has made yet: they need a place, and hold nothing else. May be null.
  const PodMap* imagined = nullptr;
  TimeLimit limit;
};
/// Simulates the removal of one candidate after the other; each that can go is gone for those after it.
ScaleDownFindings find_removable(const ScaleDownInput& input, const Options& options, TimePoint now);

}  // namespace berth::autoscaler
