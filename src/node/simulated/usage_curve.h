// A resource's use over a container's life, as text: "100Mi" (always), or points "0s=100Mi,5m=2Gi" joined by straight lines; before the
// first point its value holds, after the last one its value, or with ",loop" at the end the curve starts again.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace berth::node::simulated {

class UsageCurve {
 public:
  /// The error says which part is wrong. Values are Kubernetes quantities, times Go durations, in rising order.
  static Result<UsageCurve> parse(std::string_view text);
  /// The use after `age`, in the quantity's unit (bytes, cores, processes).
  [[nodiscard]] double at(Duration age) const;
  [[nodiscard]] bool is_constant() const { return points_.size() == 1; }
  friend bool operator==(const UsageCurve&, const UsageCurve&) = default;
  [[nodiscard]] auto parts() const { return std::tie(points_, is_loop_); }

 private:
  struct Point {
    Duration at;
    double value;
    friend bool operator==(const Point&, const Point&) = default;
    [[nodiscard]] auto parts() const { return std::tie(at, value); }
  };
  std::vector<Point> points_;
  bool is_loop_ = false;
};

}  // namespace berth::node::simulated
