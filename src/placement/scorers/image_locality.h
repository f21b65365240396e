// What ImageLocality's plain and columnar forms share.
#pragma once
#include <string>
#include <vector>

#include "placement/framework.h"

namespace berth::placement {

/// The pod's images by the names that nodes report, ":latest" added where there is no tag.
std::vector<std::string> image_references(const model::PodView& pod, Era era);
std::int64_t image_locality_score(const std::vector<std::string>& images, const Cluster& cluster, const NodeInfo& node);

}  // namespace berth::placement
