// Metrics that are measured while they are told: of what comes and goes by itself. What is counted over time: metrics.h.
#pragma once
#include <optional>

#include "base/clock.h"
#include "base/metrics.h"

namespace berth::metrics {

/// The text exposition format 0.0.4. One family after the other; one without a sample is left out.
class Exposition {
 public:
  /// What follows is of this family. `type`: "counter", "gauge".
  void family(std::string name, std::string help, const char* type);
  /// `at`: when it was measured; nullopt: when it is read.
  void sample(const Labels& labels, double value, std::optional<TimePoint> at = std::nullopt);
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_, name_, head_;  ///< `head_` until the family's first sample.
};

}  // namespace berth::metrics
