#include "base/clock.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "base/go/duration.h"

namespace berth {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::hh_mm_ss;
using std::chrono::sys_days;
using std::chrono::year_month_day;

std::string format_date_time(TimePoint t) {
  const sys_days day = floor<days>(t);
  const year_month_day date(day);
  const hh_mm_ss<Duration> time(t - day);
  if (const int year = static_cast<int>(date.year()); year >= 0 && year <= 9999) {
    // By hand: every write asks for it several times.
    std::string out = "0000-00-00T00:00:00";
    const auto put = [&](std::size_t at, unsigned value) {
      out[at] = static_cast<char>('0' + value / 10);
      out[at + 1] = static_cast<char>('0' + value % 10);
    };
    put(0, static_cast<unsigned>(year) / 100);
    put(2, static_cast<unsigned>(year) % 100);
    put(5, static_cast<unsigned>(date.month()));
    put(8, static_cast<unsigned>(date.day()));
    put(11, static_cast<unsigned>(time.hours().count()));
    put(14, static_cast<unsigned>(time.minutes().count()));
    put(17, static_cast<unsigned>(time.seconds().count()));
    return out;
  }
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()), time.hours().count(), time.minutes().count(), time.seconds().count());
}

/// Reads exactly `digits` decimal digits at `pos`, moving it on; -1 when there are fewer.
int read_digits(std::string_view text, std::size_t& pos, int digits) {
  int value = 0;
  for (int i = 0; i < digits; ++i, ++pos) {
    if (pos >= text.size() || text[pos] < '0' || text[pos] > '9') return -1;
    value = value * 10 + (text[pos] - '0');
  }
  return value;
}

bool read_char(std::string_view text, std::size_t& pos, char wanted) {
  if (pos >= text.size() || text[pos] != wanted) return false;
  ++pos;
  return true;
}

}  // namespace

SystemClock::SystemClock()
    : wall_start_(std::chrono::floor<Duration>(std::chrono::system_clock::now())), steady_start_(std::chrono::steady_clock::now()) {}

TimePoint SystemClock::now() const {
  return wall_start_ + std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - steady_start_);
}

std::string format_rfc3339(TimePoint t) { return format_date_time(t) + "Z"; }

std::string format_rfc3339_micro(TimePoint t) {
  const auto micros = (t - floor<std::chrono::seconds>(t)).count();
  return fmt::format("{}.{:06}Z", format_date_time(t), micros);
}

std::optional<TimePoint> parse_rfc3339(std::string_view text) {
  std::size_t pos = 0;
  const int year = read_digits(text, pos, 4);
  if (year < 0 || !read_char(text, pos, '-')) return std::nullopt;
  const int month = read_digits(text, pos, 2);
  if (month < 0 || !read_char(text, pos, '-')) return std::nullopt;
  const int day = read_digits(text, pos, 2);
  if (day < 0 || !(read_char(text, pos, 'T') || read_char(text, pos, 't'))) return std::nullopt;
  const int hour = read_digits(text, pos, 2);
  if (hour < 0 || hour > 23 || !read_char(text, pos, ':')) return std::nullopt;
  const int minute = read_digits(text, pos, 2);
  if (minute < 0 || minute > 59 || !read_char(text, pos, ':')) return std::nullopt;
  const int second = read_digits(text, pos, 2);
  if (second < 0 || second > 60) return std::nullopt;
  std::int64_t micros = 0;
  if (read_char(text, pos, '.')) {
    std::int64_t scale = 100'000;
    const std::size_t first = pos;
    for (; pos < text.size() && text[pos] >= '0' && text[pos] <= '9'; ++pos, scale /= 10) micros += (text[pos] - '0') * scale;
    if (pos == first) return std::nullopt;
  }
  int offset_minutes = 0;
  if (!read_char(text, pos, 'Z') && !read_char(text, pos, 'z')) {
    if (pos >= text.size() || (text[pos] != '+' && text[pos] != '-')) return std::nullopt;
    const int sign = text[pos++] == '-' ? -1 : 1;
    const int h = read_digits(text, pos, 2);
    if (h < 0 || h > 23 || !read_char(text, pos, ':')) return std::nullopt;
    const int m = read_digits(text, pos, 2);
    if (m < 0 || m > 59) return std::nullopt;
    offset_minutes = sign * (h * 60 + m);
  }
  if (pos != text.size()) return std::nullopt;
  const year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                            std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return TimePoint(sys_days(date)) + std::chrono::hours(hour) + std::chrono::minutes(minute - offset_minutes) +
         std::chrono::seconds(second) + Duration(micros);
}

std::optional<Duration> parse_go_duration(std::string_view text) {
  const auto ns = parse_duration_ns(text);
  if (!ns) return std::nullopt;
  return Duration((*ns + (*ns < 0 ? -500 : 500)) / 1000);
}

std::string format_go_duration(Duration d) { return format_duration_ns(d.count() * 1000); }

}  // namespace berth
