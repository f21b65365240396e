// Whether somebody gave a pod other labels: news to whoever moves pods (moves.h).
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace berth::placement {

using LabelPairs = std::vector<std::pair<std::string, std::string>>;

/// In order of their keys. What binding copies from the node to the pod (topology.kubernetes.io/…, admission's PodTopologyLabels) is
/// nobody's doing.
[[nodiscard]] bool is_relabelled(const LabelPairs& before, const LabelPairs& after);

}  // namespace berth::placement
