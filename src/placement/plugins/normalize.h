// Bringing raw scores to 0–100 (pkg/scheduler/framework/plugins/helper/normalize_score.go).
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

namespace berth::placement {

/// One raw score by the largest of all: 100 * raw / max; `reverse`: 100 minus that. Max 0: unchanged, or 100 when reversed.
inline std::int64_t normalized_by_max(std::int64_t raw, std::int64_t max, bool reverse) {
  if (max == 0) return reverse ? 100 : raw;
  const std::int64_t score = 100 * raw / max;
  return reverse ? 100 - score : score;
}

/// 1.20's SelectorSpread: fewer selected pods are better, by node and, with two thirds of the weight where nodes have zones, by zone
/// (pkg/scheduler/framework/plugins/selectorspread).
inline std::int64_t selector_spread_score(std::int64_t on_node, std::int64_t max_node, bool has_zone, std::int64_t in_zone,
                                          std::int64_t max_zone) {
  constexpr double kMax = 100;
  constexpr double kZoneWeight = 2.0 / 3.0;
  const auto share = [](std::int64_t count, std::int64_t max) {
    return max > 0 ? kMax * (static_cast<double>(max - count) / static_cast<double>(max)) : kMax;
  };
  const double node_score = share(on_node, max_node);
  if (!has_zone) return static_cast<std::int64_t>(node_score);
  return static_cast<std::int64_t>(node_score * (1.0 - kZoneWeight) + kZoneWeight * share(in_zone, max_zone));
}

inline void normalize_by_max(std::span<std::int64_t> scores, bool reverse) {
  std::int64_t max = 0;
  for (const auto score : scores) max = std::max(max, score);
  for (auto& score : scores) score = normalized_by_max(score, max, reverse);
}

}  // namespace berth::placement
