#include "simulator/arrivals.h"

#include <algorithm>

namespace berth::simulator {
namespace {

constexpr Duration kDay = std::chrono::hours(24), kHour = std::chrono::hours(1);
/// Of the normal distribution: where 95% lie below.
constexpr double kQuantile95 = 1.6448536269514722;
/// A hundred years: nothing is longer.
constexpr double kLongest = 3.15e15;

Duration microseconds_of(double count) { return Duration(static_cast<std::int64_t>(std::clamp(count, 0.0, kLongest))); }

}  // namespace

double curve_at(const std::vector<std::pair<Duration, double>>& curve, Duration time_of_day) {
  auto after = std::ranges::upper_bound(curve, time_of_day, {}, [](const auto& point) { return point.first; });
  // Around midnight the last point is followed by the first.
  const auto& [from, low] = after == curve.begin() ? curve.back() : *(after - 1);
  const auto& [to, high] = after == curve.end() ? curve.front() : *after;
  const Duration length = to > from ? to - from : to - from + kDay;
  const Duration along = time_of_day >= from ? time_of_day - from : time_of_day - from + kDay;
  return low + (high - low) * static_cast<double>(along.count()) / static_cast<double>(length.count());
}

ArrivalStream::ArrivalStream(const Arrivals& arrivals, Random random, Duration day_offset, Duration end)
    : arrivals_(arrivals),
      random_(random),
      day_offset_(day_offset),
      end_(std::min(end, arrivals.until.value_or(end))),
      at_(arrivals.from) {}

std::optional<Duration> ArrivalStream::next() {
  if (arrivals_.most > 0 && count_ >= arrivals_.most) return std::nullopt;
  const auto at = draw();
  if (!at || *at >= end_) return std::nullopt;
  ++count_;
  return at;
}

std::optional<Duration> ArrivalStream::draw() {
  switch (arrivals_.kind) {
    case Arrivals::Kind::kTimes:
      if (static_cast<std::size_t>(count_) >= arrivals_.times.size()) return std::nullopt;
      return arrivals_.times[static_cast<std::size_t>(count_)];
    case Arrivals::Kind::kConstant:
      return arrivals_.from + arrivals_.period * count_;
    case Arrivals::Kind::kPoisson:
      if (arrivals_.per_hour <= 0) return std::nullopt;
      return at_ += microseconds_of(random_.exponential() / arrivals_.per_hour * static_cast<double>(kHour.count()));
    case Arrivals::Kind::kDaily: {
      double peak = 0;
      for (const auto& [at, rate] : arrivals_.curve) peak = std::max(peak, rate);
      if (peak <= 0) return std::nullopt;
      // Thinning (Lewis, Shedler 1979): as if the peak lasted, and each arrival kept with the share of its moment.
      while (at_ < end_) {
        at_ += microseconds_of(random_.exponential() / peak * static_cast<double>(kHour.count()));
        if (random_.uniform() * peak < curve_at(arrivals_.curve, (at_ + day_offset_) % kDay)) return at_;
      }
      return std::nullopt;
    }
  }
  return std::nullopt;
}

Duration Lengths::draw(Random& random) const {
  const auto scale = static_cast<double>(first.count());
  double length = scale;
  switch (kind) {
    case Kind::kFixed:
      break;
    case Kind::kUniform:
      length = scale + random.uniform() * static_cast<double>((second - first).count());
      break;
    case Kind::kExponential:
      length = scale * random.exponential();
      break;
    case Kind::kLogNormal: {
      const double sigma = logarithm(static_cast<double>(second.count()) / scale) / kQuantile95;
      length = scale * exponential_of(sigma * random.normal());
      break;
    }
  }
  const std::int64_t milliseconds = microseconds_of(length).count() / 1000;
  return std::chrono::milliseconds(std::max<std::int64_t>(milliseconds, 1));
}

}  // namespace berth::simulator
