// One pass as the recordings put it, and whether two such passes decide alike.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autoscaler/actions.h"

namespace berth::autoscaler {

/// What one pass decided.
struct Decision {
  using Names = std::set<std::string>;
  using Reasons = std::map<std::string, std::vector<std::string>>;  ///< By pod or node.

  std::string result;                                                    ///< Successful, NoOptionsAvailable, NotNeeded
  std::map<std::string, std::int64_t> grow;                              ///< By group: nodes.
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> options;  ///< By group: nodes and pods.
  Names best;                                                            ///< Groups of the options that the expanders left.
  Names triggered, awaiting;                                             ///< Pods.
  Reasons not_triggered;
  Names unneeded;
  Reasons staying;  ///< A reason; of BlockedByPod also the pod's reason and the pod.
  Names removed;
};

/// What the rules need to know of the cluster beside the two decisions.
struct PassFacts {
  const Snapshot* snapshot = nullptr;
  const Options* options = nullptr;
  const Actions* actions = nullptr;
  TimePoint now{};
};

/// The differences that no rule of docs/autoscaler.md ("Beside the real one") explains; empty: both decide alike.
std::vector<std::string> compare_decisions(const Decision& recorded, const Decision& got, const PassFacts& facts);

}  // namespace berth::autoscaler
