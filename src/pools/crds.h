// The three kinds that pools are written in, as CustomResourceDefinitions.
#pragma once
#include <vector>

#include "base/json.h"

namespace berth::pools {

/// NodePool and NodeClaim (karpenter.sh/v1), SimulatedNodeClass (sim.berth.dev/v1alpha1): for server-side apply.
const std::vector<json::Value>& definitions();

}  // namespace berth::pools
