#include "controllers/cron_schedule.h"

namespace berth::controllers {
namespace {

using std::chrono::sys_days;

std::int64_t big_endian(std::string_view data, std::size_t at, std::size_t size) {
  std::int64_t value = static_cast<signed char>(data[at]);
  for (std::size_t i = 1; i < size; ++i) value = value << 8 | static_cast<unsigned char>(data[at + i]);
  return value;
}

}  // namespace

Result<TimeZone> TimeZone::from_tzif(std::string_view data) {
  TimeZone zone;
  // The second block has 64-bit times; the first one's counts say where it starts.
  const auto counts = [&](std::size_t at) {
    std::array<std::size_t, 6> all{};
    for (std::size_t i = 0; i < 6; ++i) all[i] = static_cast<std::size_t>(big_endian(data, at + 20 + 4 * i, 4));
    return all;
  };
  if (data.size() < 44 || !data.starts_with("TZif")) return invalid("not a time zone file");
  std::size_t at = 0, time_size = 4;
  std::array<std::size_t, 6> n = counts(0);
  if (data[4] >= '2') {
    at = 44 + n[3] * 5 + n[4] * 6 + n[5] + n[2] * 8 + n[1] + n[0];
    if (data.size() < at + 44) return invalid("time zone file is cut off");
    n = counts(at);
    time_size = 8;
  }
  const std::size_t times = at + 44, kinds = times + n[3] * time_size, types = kinds + n[3];
  if (data.size() < types + n[4] * 6 || n[4] == 0) return invalid("time zone file is cut off");
  for (std::size_t i = 0; i < n[3]; ++i) {
    const auto type = static_cast<unsigned char>(data[kinds + i]);
    if (type >= n[4]) return invalid("time zone file is damaged");
    zone.transitions_.push_back(
        {big_endian(data, times + i * time_size, time_size), static_cast<std::int32_t>(big_endian(data, types + type * 6U, 4))});
  }
  zone.first_offset_ = static_cast<std::int32_t>(big_endian(data, types, 4));
  return zone;
}

std::chrono::seconds TimeZone::offset_at(TimePoint t) const {
  const std::int64_t seconds = std::chrono::floor<std::chrono::seconds>(t).time_since_epoch().count();
  const auto after = std::upper_bound(transitions_.begin(), transitions_.end(), seconds,
                                      [](std::int64_t value, const Transition& transition) { return value < transition.at; });
  return std::chrono::seconds(after == transitions_.begin() ? first_offset_ : std::prev(after)->offset);
}

Result<CronSchedule> CronSchedule::parse(std::string_view text) {
  const auto fields = go::parse_cron(text);
  if (!fields) return invalid(fields.error());
  CronSchedule schedule;
  schedule.fields_ = *fields;
  return schedule;
}

std::optional<TimePoint> CronSchedule::next(TimePoint after, const TimeZone& zone) const {
  if (fields_.every_ns > 0) return std::chrono::floor<std::chrono::seconds>(after) + Duration(fields_.every_ns / 1000);
  using namespace std::chrono;
  TimePoint t = floor<minutes>(after) + minutes(1);
  const TimePoint end = after + hours(24 * 366 * 5);
  while (t < end) {
    const TimePoint local = t + zone.offset_at(t);
    const sys_days day = floor<days>(local);
    const year_month_day date(day);
    const bool day_fits = fields_.days[static_cast<unsigned>(date.day())], weekday_fits = fields_.weekdays[weekday(day).c_encoding()];
    // A star leaves the choice to the other field; with both given either is enough.
    const bool fits = fields_.months[static_cast<unsigned>(date.month())] &&
                      (fields_.any_day || fields_.any_weekday ? day_fits && weekday_fits : day_fits || weekday_fits);
    const auto in_day = floor<minutes>(local - day).count();
    if (!fits) {
      t += minutes(24 * 60 - in_day);  // A day of 23 or 25 hours is met again minute by minute below.
      const TimePoint at = t + zone.offset_at(t);
      if (const auto over = floor<minutes>(at - floor<days>(at)).count(); over != 0 && over < 120) t -= minutes(over);
      continue;
    }
    if (!fields_.hours[static_cast<std::size_t>(in_day / 60)]) {
      t += minutes(60 - in_day % 60);
      continue;
    }
    if (fields_.minutes[static_cast<std::size_t>(in_day % 60)]) return t;
    t += minutes(1);
  }
  return std::nullopt;
}

std::optional<TimePoint> CronSchedule::latest(TimePoint after, TimePoint until, const TimeZone& zone) const {
  if (fields_.every_ns > 0) {
    // Counted from `after`, a period at a time.
    const std::optional<TimePoint> first = next(after, zone);
    if (!first || *first > until) return std::nullopt;
    const Duration period(fields_.every_ns / 1000);
    return *first + period * ((until - *first) / period);
  }
  for (Duration back = std::chrono::hours(1);; back *= 2) {
    const TimePoint from = std::max(after, until - back);
    std::optional<TimePoint> found;
    for (auto at = next(from, zone); at && *at <= until; at = next(*at, zone)) found = at;
    if (found || from == after) return found;
  }
}

}  // namespace berth::controllers
