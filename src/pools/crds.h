// The kinds that pools are written in, as CustomResourceDefinitions.
#pragma once
#include <vector>

#include "base/json.h"
#include "model/kinds.h"

namespace berth::pools {

/// NodePool and NodeClaim (karpenter.sh/v1), SimulatedNodeClass (sim.berth.dev/v1alpha1), MachineNodeClass (berth.dev/v1alpha1): for
/// server-side apply.
const std::vector<json::Value>& definitions();

/// The same, by kind: none of them has a namespace.
struct OwnKind {
  std::string_view kind;
  model::Gvr gvr;
};
const std::vector<OwnKind>& own_kinds();

}  // namespace berth::pools
