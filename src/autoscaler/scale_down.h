// Which nodes nobody needs (SPEC H3, H4; core/scaledown).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "autoscaler/drainability.h"
#include "autoscaler/limits.h"
#include "placement/trial.h"

namespace berth::autoscaler {

/// The larger share of CPU or memory that requests take of allocatable; of GPUs alone on a node that has some.
double utilization_of(const placement::NodeInfo& node, const PodMap& pods, const Options& options, TimePoint now);

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
  std::string detail;  ///< Of BlockedByPod.
};

struct ScaleDownFindings {
  std::vector<Removable> removable;  ///< All of them together.
  std::vector<Unremovable> unremovable;
};

struct ScaleDownInput {
  const Snapshot* snapshot = nullptr;
  /// The cluster without pods that hold no node, and with every waiting pod that fits on a node that is there. It is changed.
  placement::Trial* trial = nullptr;
  std::map<std::string, const NodeGroup*, std::less<>> group_of;  ///< By node, only those of groups.
  std::vector<std::string> candidates;                            ///< In the order to try them.
};
/// Simulates the removal of one candidate after the other; each that can go is gone for those after it.
ScaleDownFindings find_removable(const ScaleDownInput& input, const Options& options, TimePoint now);

}  // namespace berth::autoscaler
