// What ImageLocality's plain and columnar forms share.
#pragma once

#include "placement/framework.h"

namespace berth::placement {

/// Of the images of the pod's containers and image volumes.
std::int64_t image_locality_score(const PodInfo& pod, const Cluster& cluster, const NodeInfo& node);

}  // namespace berth::placement
