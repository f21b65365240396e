// The three times of leader election, and what they are unless somebody says so.
#pragma once
#include "base/clock.h"

namespace berth::client {

struct ElectionTimes {
  Duration lease_duration, renew_deadline, retry_period;
  bool operator==(const ElectionTimes&) const = default;
  /// Who sets one of them begins from Kubernetes' own, so that what is valid there is valid here.
  void set(Duration ElectionTimes::*which, Duration value);
};

/// client-go's.
inline constexpr ElectionTimes kKubernetesTimes{std::chrono::seconds(15), std::chrono::seconds(10), std::chrono::seconds(2)};
/// The scheduler's and the controllers' here: with a lease of 12 s work goes on within 15 s of its leader's end, whenever that had renewed
/// it last and whatever the next one has to do first.
inline constexpr ElectionTimes kOwnTimes{std::chrono::seconds(12), std::chrono::seconds(8), std::chrono::seconds(1)};

inline void ElectionTimes::set(Duration ElectionTimes::*which, Duration value) {
  if (*this == kOwnTimes) *this = kKubernetesTimes;
  this->*which = value;
}

}  // namespace berth::client
