// What lets a plugin that counts volumes on nodes be asked of all nodes at once.
#pragma once
#include <cstdint>

#include "placement/framework.h"

namespace berth::placement {

/// A plugin of kind kVolumes may be this too.
class CountsClaims {
 public:
  virtual ~CountsClaims() = default;
  /// After PreFilter: how many claims the pods of a node may have between them (NodeInfo::claim_volumes, with other_volumes 0) for Filter
  /// to let the pod in there, whatever else is true of the node; -1 where that cannot be said.
  [[nodiscard]] virtual std::int64_t ample_claims(const CycleState& state, const PodInfo& pod) const = 0;
};

}  // namespace berth::placement
