// How long a pass may take. Cores have no clock of their own: the caller gives one.
#pragma once
#include <functional>

#include "base/clock.h"

namespace berth::autoscaler {

struct TimeLimit {
  std::function<TimePoint()> clock;  ///< Null: there is no limit.
  TimePoint end{};
  [[nodiscard]] bool is_over() const { return clock != nullptr && clock() >= end; }
};

}  // namespace berth::autoscaler
