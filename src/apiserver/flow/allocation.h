// How the seats are shared out, and shared out again as levels need more or less than their part
// (apiserver/pkg/util/flowcontrol: conc_alloc.go, apf_controller.go; KEP-1040 "Dispatching"). Pure: times are given.
#pragma once
#include <optional>
#include <vector>

namespace berth::apiserver::flow {

struct Demand {
  double lower = 0, upper = 0;  ///< Seats: at least, at most.
  double target = 0;            ///< Wanted; not below `lower`.
};
struct Allocation {
  std::vector<double> seats;  ///< In the order of the demands; their sum is what was to be shared out.
  double fair_fraction = 0;   ///< Of its target, what every level gets that no bound holds.
};
/// nullopt when the bounds do not allow the sum.
std::optional<Allocation> allocate(double sum, const std::vector<Demand>& demands);

/// How many seats a level would have used, over a period: highest, mean, deviation, and a mean that falls slowly.
class DemandMeter {
 public:
  /// From `now`, in seconds, on it is `seats`.
  void set(double now, double seats);
  struct Period {
    double highest = 0, average = 0, deviation = 0, smoothed = 0;
  };
  /// Ends the period at `now` and begins the next.
  const Period& close(double now);
  [[nodiscard]] const Period& last() const { return last_; }

 private:
  void advance(double now);
  double seats_ = 0, since_ = 0, begin_ = 0, sum_ = 0, squares_ = 0, highest_ = 0;
  bool has_begun_ = false;
  Period last_;
};

/// What Retry-After says: more while much is refused, less when that ends (dropped_requests_tracker.go).
class RetryAfter {
 public:
  /// A request was refused in this second; how many seconds its sender is told to stay away.
  int refuse(std::int64_t second);

 private:
  struct Second {
    std::int64_t second = 0, refused = 0;
  };
  std::vector<Second> history_;
  std::int64_t second_ = 0, refused_ = 0, changed_ = 0;
  int seconds_ = 1;
};

}  // namespace berth::apiserver::flow
