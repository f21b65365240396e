// An engine's decision against the plain form.
#pragma once
#include <string>

#include "placement/engine.h"

namespace berth::placement::testing {

/// Nothing when the decision is one that the plain form allows, in every number it gives.
std::string difference(const Cluster& cluster, const Framework& framework, const PodInfo& pod, const Decision& decision,
                       bool first_by_name);

}  // namespace berth::placement::testing
