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

inline void normalize_by_max(std::span<std::int64_t> scores, bool reverse) {
  std::int64_t max = 0;
  for (const auto score : scores) max = std::max(max, score);
  for (auto& score : scores) score = normalized_by_max(score, max, reverse);
}

}  // namespace berth::placement
