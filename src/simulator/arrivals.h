// When things come, and how long they last. Pure: a process and a stream of chance in, times out.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "simulator/random.h"

namespace berth::simulator {

/// A process of arrivals; times count from the scenario's start.
struct Arrivals {
  enum class Kind {
    kTimes,     ///< At the times listed.
    kConstant,  ///< Every `period`.
    kPoisson,   ///< At random, `per_hour` on average.
    kDaily      ///< At random, at a rate that follows the time of the day.
  };
  Kind kind = Kind::kTimes;
  std::vector<Duration> times;  ///< kTimes, in order.
  Duration period{};            ///< kConstant: > 0.
  double per_hour = 0;          ///< kPoisson.
  /// kDaily: time of the day and arrivals an hour, in order of time, straight lines between, around midnight too. Not empty.
  std::vector<std::pair<Duration, double>> curve;
  Duration from{};
  std::optional<Duration> until;  ///< Absent: the scenario's end.
  std::int64_t most = 0;          ///< No more than so many; 0: no limit.
};

/// The value of a daily curve at a time of the day in [0, 24h).
double curve_at(const std::vector<std::pair<Duration, double>>& curve, Duration time_of_day);

/// Goes through a process's arrivals one by one.
class ArrivalStream {
 public:
  /// `day_offset`: the time of the day at which the scenario starts. Nothing comes at or after `end`.
  ArrivalStream(const Arrivals& arrivals, Random random, Duration day_offset, Duration end);
  /// The next arrival; nullopt: there are no more.
  std::optional<Duration> next();

 private:
  std::optional<Duration> draw();
  Arrivals arrivals_;
  Random random_;
  Duration day_offset_, end_, at_;
  std::int64_t count_ = 0;
};

/// How long something lasts.
struct Lengths {
  enum class Kind { kFixed, kUniform, kExponential, kLogNormal };
  Kind kind = Kind::kFixed;
  Duration first{}, second{};  ///< Fixed: first. Uniform: between both. Exponential: mean first. Log-normal: median first, p95 second.
  /// At least a millisecond, whole milliseconds.
  [[nodiscard]] Duration draw(Random& random) const;
};

}  // namespace berth::simulator
