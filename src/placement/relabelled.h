// Whether somebody gave a pod other labels: news to whoever moves pods (moves.h).
#pragma once
#include "model/selector.h"

namespace berth::placement {

using LabelPairs = model::Labels::Pairs;

/// In order of their keys. What binding copies from the node to the pod (topology.kubernetes.io/…, admission's PodTopologyLabels) is
/// nobody's doing.
[[nodiscard]] bool is_relabelled(const LabelPairs& before, const LabelPairs& after);

}  // namespace berth::placement
