#include "apiserver/flow/allocation.h"

#include <algorithm>
#include <cmath>

namespace berth::apiserver::flow {
namespace {

constexpr double kEpsilon = 1e-7, kLeastTarget = 0.001;
constexpr double kSmoothing = 0.977;

double target_of(const Demand& demand) { return std::max(demand.target, kLeastTarget); }

double given(const std::vector<Demand>& demands, double fraction) {
  double sum = 0;
  for (const Demand& one : demands) sum += std::clamp(fraction * target_of(one), one.lower, one.upper);
  return sum;
}

}  // namespace

std::optional<Allocation> allocate(double sum, const std::vector<Demand>& demands) {
  double lowest = 0, highest = 0;
  std::vector<double> bends;  // Where what is given begins or ceases to grow for a level.
  for (const Demand& one : demands) {
    if (one.lower < 0 || one.upper < one.lower || one.target < one.lower) return std::nullopt;
    lowest += one.lower;
    highest += one.upper;
    bends.push_back(one.lower / target_of(one));
    bends.push_back(one.upper / target_of(one));
  }
  if (lowest - sum > kEpsilon || sum - highest > kEpsilon) return std::nullopt;
  // What is given grows with the fraction, in straight pieces between the bends: the piece that reaches the sum has the answer.
  std::ranges::sort(bends);
  double from = 0, to = 0;
  for (const double bend : bends) {
    from = to;
    to = bend;
    if (given(demands, to) >= sum - kEpsilon) break;
  }
  const double at_from = given(demands, from), at_to = given(demands, to);
  Allocation out;
  out.fair_fraction = at_to - at_from > kEpsilon ? from + (sum - at_from) / (at_to - at_from) * (to - from) : to;
  for (const Demand& one : demands) out.seats.push_back(std::clamp(out.fair_fraction * target_of(one), one.lower, one.upper));
  return out;
}

void DemandMeter::advance(double now) {
  if (!has_begun_) begin_ = since_ = now;
  has_begun_ = true;
  const double span = std::max(0.0, now - since_);
  sum_ += seats_ * span;
  squares_ += seats_ * seats_ * span;
  since_ = now;
}

void DemandMeter::set(double now, double seats) {
  advance(now);
  seats_ = seats;
  highest_ = std::max(highest_, seats);
}

const DemandMeter::Period& DemandMeter::close(double now) {
  advance(now);
  last_.highest = highest_;
  if (const double span = now - begin_; span > 0) {
    last_.average = sum_ / span;
    last_.deviation = std::sqrt(std::max(0.0, squares_ / span - last_.average * last_.average));
    const double envelope = last_.average + last_.deviation;
    last_.smoothed = std::max(envelope, kSmoothing * last_.smoothed + (1 - kSmoothing) * envelope);
  }
  begin_ = now;
  sum_ = squares_ = 0;
  highest_ = seats_;
  return last_;
}

int RetryAfter::refuse(std::int64_t second) {
  constexpr int kMost = 32;
  if (second == second_) {
    ++refused_;
    return seconds_;
  }
  history_.push_back({second_, refused_});
  std::erase_if(history_, [&](const Second& one) { return second - one.second > std::min(2 * seconds_, kMost); });
  second_ = second;
  refused_ = 1;
  std::int64_t lately = 0;
  for (const Second& one : history_)
    if (second - one.second <= seconds_) lately += one.refused;
  if (second - changed_ >= seconds_ && lately >= 3 * seconds_) {
    seconds_ = std::min(2 * seconds_, kMost);
    changed_ = second;
  } else if (lately < seconds_ && seconds_ > 1) {
    --seconds_;
  }
  return seconds_;
}

}  // namespace berth::apiserver::flow
