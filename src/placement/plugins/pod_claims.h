// The resource claims of a pod.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/expected.h"
#include "placement/cluster.h"

namespace berth::placement {

/// In the order of the spec; entries that turned out to need no claim are left out. Or, in Kubernetes' words, what is wrong with one of
/// them.
[[nodiscard]] Expected<std::vector<std::shared_ptr<const model::ResourceClaimView>>, std::string> claims_of(const model::PodView& pod,
                                                                                                            const Cluster& cluster);

/// Whether one of them leaves a choice between alternatives (firstAvailable).
[[nodiscard]] bool has_alternatives(const model::PodView& pod, const Cluster& cluster);

}  // namespace berth::placement
