// Time as a value. Cores never ask for the time, shells hand it to them (DESIGN "Functional core, imperative shell").
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace berth {

using Duration = std::chrono::microseconds;
/// Wall-clock time, UTC, microseconds since 1970.
using TimePoint = std::chrono::sys_time<Duration>;

/// Where a shell gets its time from. Implementations are thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const = 0;
};

/// The machine's clock, kept from going backwards by adding a monotonic difference to the wall time at start.
class SystemClock final : public Clock {
 public:
  SystemClock();
  [[nodiscard]] TimePoint now() const override;

 private:
  TimePoint wall_start_;
  std::chrono::steady_clock::time_point steady_start_;
};

/// `2026-01-02T03:04:05Z`, metav1.Time's format (whole seconds).
std::string format_rfc3339(TimePoint t);
/// `2026-01-02T03:04:05.000006Z`, metav1.MicroTime's format.
std::string format_rfc3339_micro(TimePoint t);
/// Parses RFC 3339 with any fraction and offset; nullopt when it is not one.
std::optional<TimePoint> parse_rfc3339(std::string_view text);
/// Go's duration syntax ("1h30m", "300ms", "0s", "-1.5h"); nullopt when malformed.
std::optional<Duration> parse_go_duration(std::string_view text);
/// Go's Duration.String(): "1h30m0s", "1.5s", "0s".
std::string format_go_duration(Duration d);

}  // namespace berth
