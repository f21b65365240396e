// Schedules of CronJobs, as the library of Kubernetes reads them (robfig/cron, ParseStandard).
#pragma once
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace berth::go {

/// When a schedule is due: at all times that every field has, or at a fixed distance.
struct CronFields {
  std::bitset<64> minutes, hours, days, months, weekdays;
  bool any_day = false, any_weekday = false;  ///< `*` or `?` without a step: the other one of the two decides.
  std::int64_t every_ns = 0;                  ///< Of `@every DURATION`; then the fields mean nothing.
};

/// Five fields (minute, hour, day of month, month, day of week; lists, ranges, steps, names), @hourly, @daily, @midnight, @weekly,
/// @monthly,
/// @yearly, @annually or @every DURATION. Errors in the library's words.
[[nodiscard]] Expected<CronFields, std::string> parse_cron(std::string_view text);

}  // namespace berth::go
