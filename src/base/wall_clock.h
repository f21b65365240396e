// The machine's wall clock as it is now, set and slept through as it may be: what the end of a credential is judged by. Everything else
// runs by SystemClock, which nobody can set and which stands still in a suspended machine.
#pragma once
#include "base/clock.h"

namespace berth {

class WallClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return std::chrono::floor<Duration>(std::chrono::system_clock::now()); }
};

}  // namespace berth
