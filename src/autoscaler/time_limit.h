// How long a pass may take. Cores have no clock of their own: the caller gives one.
#pragma once
#include <functional>

#include "base/clock.h"

namespace berth::autoscaler {

struct TimeLimit {
  std::function<TimePoint()> clock;  ///< Null: there is no limit.
  TimePoint end{};
  std::function<TimePoint()> stopwatch{};  ///< By which the parts of a pass are measured; null: they are not.
  [[nodiscard]] bool is_over() const { return clock != nullptr && clock() >= end; }
};

}  // namespace berth::autoscaler
