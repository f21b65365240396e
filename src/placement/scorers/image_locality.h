// What ImageLocality's plain and columnar forms share.
#pragma once
#include <string>
#include <vector>

#include "placement/framework.h"

namespace berth::placement {

/// `images`: PodInfo::images.
std::int64_t image_locality_score(const std::vector<std::string>& images, const Cluster& cluster, const NodeInfo& node);

}  // namespace berth::placement
