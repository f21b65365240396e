// What ServiceAffinity's plain and columnar forms share.
#pragma once
#include <string_view>
#include <vector>

#include "placement/framework.h"

namespace berth::placement {

inline constexpr std::string_view kReasonServiceAffinity = "node(s) didn't match service affinity";

/// 1.20's node tree: nodes grouped by (region, zone) in order of first appearance, then one of each group in turn.
std::vector<const NodeInfo*> zone_interleaved(const std::vector<const NodeInfo*>& nodes);
/// `other` has every label of `pod`, with its value.
bool has_labels_of(const model::PodView& other, const model::PodView& pod);

}  // namespace berth::placement
