#include "controllers/cron_schedule.h"

#include <charconv>

namespace berth::controllers {
namespace {

using std::chrono::sys_days;

std::int64_t big_endian(std::string_view data, std::size_t at, std::size_t size) {
  std::int64_t value = static_cast<signed char>(data[at]);
  for (std::size_t i = 1; i < size; ++i) value = value << 8 | static_cast<unsigned char>(data[at + i]);
  return value;
}

std::optional<int> number(std::string_view text, const std::vector<std::string_view>& names, int names_from) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (text.size() == 3 && std::equal(text.begin(), text.end(), names[i].begin(), [](char a, char b) { return (a | 0x20) == b; }))
      return static_cast<int>(i) + names_from;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty() ? std::optional(value) : std::nullopt;
}

struct Field {
  const char* name;
  int low, high;
  std::vector<std::string_view> names;
};

Result<std::bitset<64>> parse_field(std::string_view text, const Field& field, bool& any) {
  std::bitset<64> bits;
  any = false;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const std::size_t slash = item.find('/');
    const std::string_view range = item.substr(0, slash);
    int low = field.low, high = field.high, step = 1;
    if (range == "*" || range == "?") {
      any = true;
    } else {
      const std::size_t dash = range.find('-');
      const auto first = number(range.substr(0, dash), field.names, field.low);
      const auto last = dash == std::string_view::npos ? first : number(range.substr(dash + 1), field.names, field.low);
      if (!first || !last) return invalid(fmt::format("{}: failed to parse \"{}\"", field.name, item));
      low = *first;
      high = dash == std::string_view::npos && slash != std::string_view::npos ? field.high : *last;
    }
    if (slash != std::string_view::npos) {
      const auto parsed = number(item.substr(slash + 1), {}, 0);
      if (!parsed || *parsed <= 0) return invalid(fmt::format("{}: step of range should be a positive number: \"{}\"", field.name, item));
      step = *parsed;
      if (step > 1) any = false;
    }
    if (low < field.low || high > field.high || low > high)
      return invalid(fmt::format("{}: \"{}\" is not within {}-{}", field.name, item, field.low, field.high));
    for (int i = low; i <= high; i += step) bits.set(static_cast<std::size_t>(i));
    if (comma == std::string_view::npos) return bits;
    text = text.substr(comma + 1);
  }
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
  CronSchedule schedule;
  if (text.starts_with("@every ")) {
    const auto every = parse_go_duration(text.substr(7));
    if (!every) return invalid(fmt::format("failed to parse duration {}", text));
    // Less than a second is one, fractions are left out (robfig/cron's Every).
    schedule.every_ = std::max<Duration>(std::chrono::floor<std::chrono::seconds>(*every), std::chrono::seconds(1));
    return schedule;
  }
  if (text == "@hourly")
    text = "0 * * * *";
  else if (text == "@daily" || text == "@midnight")
    text = "0 0 * * *";
  else if (text == "@weekly")
    text = "0 0 * * 0";
  else if (text == "@monthly")
    text = "0 0 1 * *";
  else if (text == "@yearly" || text == "@annually")
    text = "0 0 1 1 *";
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_not_of(" \t", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(text.find_first_of(" \t", begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    at = end;
  }
  if (parts.size() != 5) return invalid(fmt::format("expected exactly 5 fields, found {}: {}", parts.size(), text));
  static const std::vector<std::string_view> months = {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"};
  static const std::vector<std::string_view> days = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
  const std::array<Field, 5> fields = {
      {{"minute", 0, 59, {}}, {"hour", 0, 23, {}}, {"day of month", 1, 31, {}}, {"month", 1, 12, months}, {"day of week", 0, 7, days}}};
  const std::array<std::bitset<64>*, 5> targets = {&schedule.minutes_, &schedule.hours_, &schedule.days_, &schedule.months_,
                                                   &schedule.weekdays_};
  std::array<bool, 5> any{};
  for (std::size_t i = 0; i < 5; ++i) {
    auto bits = parse_field(parts[i], fields[i], any[i]);
    if (!bits) return std::unexpected(bits.error());
    *targets[i] = *bits;
  }
  if (schedule.weekdays_[7]) schedule.weekdays_.set(0);
  schedule.any_day_ = any[2];
  schedule.any_weekday_ = any[4];
  return schedule;
}

std::optional<TimePoint> CronSchedule::next(TimePoint after, const TimeZone& zone) const {
  if (every_.count() > 0) return std::chrono::floor<std::chrono::seconds>(after) + every_;
  using namespace std::chrono;
  TimePoint t = floor<minutes>(after) + minutes(1);
  const TimePoint end = after + hours(24 * 366 * 5);
  while (t < end) {
    const TimePoint local = t + zone.offset_at(t);
    const sys_days day = floor<days>(local);
    const year_month_day date(day);
    const bool day_fits = days_[static_cast<unsigned>(date.day())], weekday_fits = weekdays_[weekday(day).c_encoding()];
    // A star leaves the choice to the other field; with both given either is enough.
    const bool fits =
        months_[static_cast<unsigned>(date.month())] && (any_day_ || any_weekday_ ? day_fits && weekday_fits : day_fits || weekday_fits);
    const auto in_day = floor<minutes>(local - day).count();
    if (!fits) {
      t += minutes(24 * 60 - in_day);  // A day of 23 or 25 hours is met again minute by minute below.
      const TimePoint at = t + zone.offset_at(t);
      if (const auto over = floor<minutes>(at - floor<days>(at)).count(); over != 0 && over < 120) t -= minutes(over);
      continue;
    }
    if (!hours_[static_cast<std::size_t>(in_day / 60)]) {
      t += minutes(60 - in_day % 60);
      continue;
    }
    if (minutes_[static_cast<std::size_t>(in_day % 60)]) return t;
    t += minutes(1);
  }
  return std::nullopt;
}

}  // namespace berth::controllers
