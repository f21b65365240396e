// The pod's own constraints, each as a change that would give it up. Used by explain.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "placement/framework.h"

namespace berth::placement {

struct RelaxableConstraint {
  std::string text;  ///< What the change is: "drop the node selector disk=ssd".
  std::function<void(model::PodView&)> apply;
};

/// All that the pod asks for and could give up. `taints`: what nodes that reject it for taints have.
std::vector<RelaxableConstraint> relaxable_constraints(const PodInfo& pod, const std::vector<model::Taint>& taints,
                                                       const std::vector<std::pair<std::string, std::int64_t>>& largest_free);

}  // namespace berth::placement
