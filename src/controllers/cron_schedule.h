// Cron schedules as CronJobs write them (robfig/cron's standard parser), in a time zone.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/go/cron.h"

namespace berth::controllers {

/// Offsets from UTC over time, from a compiled time zone file's text (TZif). Without transitions: UTC.
class TimeZone {
 public:
  static Result<TimeZone> from_tzif(std::string_view data);
  [[nodiscard]] std::chrono::seconds offset_at(TimePoint t) const;

 private:
  struct Transition {
    std::int64_t at;
    std::int32_t offset;
  };
  std::vector<Transition> transitions_;
  std::int32_t first_offset_ = 0;
};

class CronSchedule {
 public:
  /// As `go::parse_cron`.
  static Result<CronSchedule> parse(std::string_view text);
  /// The first time after `after`; nullopt when there is none within five years.
  [[nodiscard]] std::optional<TimePoint> next(TimePoint after, const TimeZone& zone) const;
  /// The last time after `after` and not after `until`; nullopt when there is none. It costs no more for having been away for long.
  [[nodiscard]] std::optional<TimePoint> latest(TimePoint after, TimePoint until, const TimeZone& zone) const;

 private:
  go::CronFields fields_;
};

}  // namespace berth::controllers
