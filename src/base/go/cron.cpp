#include "base/go/cron.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <vector>

#include "base/go/duration.h"
#include "base/go/strings.h"
#include "base/split.h"

namespace berth::go {
namespace {

template <typename T>
using Parsed = Expected<T, std::string>;

struct Field {
  int low, high;
  std::span<const std::string_view> names;  ///< The first stands for `low`.
};

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

struct Word {
  std::string_view name, fields;
};
constexpr Word kWords[] = {{"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
                           {"@daily", "0 0 * * *"},  {"@midnight", "0 0 * * *"}, {"@hourly", "0 * * * *"}};

Parsed<int> read_number(std::string_view text) {
  int value = 0;
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range)
    return std::unexpected(fmt::format("failed to parse int from {}: strconv.Atoi: parsing {}: value out of range", text, quote(text)));
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    return std::unexpected(fmt::format("failed to parse int from {}: strconv.Atoi: parsing {}: invalid syntax", text, quote(text)));
  if (value < 0) return std::unexpected(fmt::format("negative number ({}) not allowed: {}", value, text));
  return value;
}

Parsed<int> read_value(std::string_view text, const Field& field) {
  const auto name = std::ranges::find(field.names, to_lower(text));
  return name == field.names.end() ? read_number(text) : static_cast<int>(name - field.names.begin()) + field.low;
}

/// One range ("5", "1-5", "*/2") into `bits`. True: it stands for every value.
Parsed<bool> add_range(std::string_view text, const Field& field, std::bitset<64>& bits) {
  const auto parts = split(text, '/').list();
  const auto ends = split(parts[0], '-').list();
  bool any = ends[0] == "*" || ends[0] == "?";
  int low = field.low, high = field.high, step = 1;
  if (!any) {
    if (ends.size() > 2) return std::unexpected(fmt::format("too many hyphens: {}", text));
    const auto first = read_value(ends[0], field);
    if (!first) return std::unexpected(first.error());
    const auto last = read_value(ends.back(), field);
    if (!last) return std::unexpected(last.error());
    low = *first;
    high = *last;
  }
  if (parts.size() > 2) return std::unexpected(fmt::format("too many slashes: {}", text));
  if (parts.size() == 2) {
    const auto given = read_number(parts[1]);
    if (!given) return std::unexpected(given.error());
    step = *given;
    if (ends.size() == 1) high = field.high;
    any = any && step <= 1;
  }
  if (low < field.low) return std::unexpected(fmt::format("beginning of range ({}) below minimum ({}): {}", low, field.low, text));
  if (high > field.high) return std::unexpected(fmt::format("end of range ({}) above maximum ({}): {}", high, field.high, text));
  if (low > high) return std::unexpected(fmt::format("beginning of range ({}) beyond end of range ({}): {}", low, high, text));
  if (step == 0) return std::unexpected(fmt::format("step of range should be a positive number: {}", text));
  for (int i = low; i <= high; i += step) bits.set(static_cast<std::size_t>(i));
  return any;
}

/// True: one of its ranges stands for every value.
Parsed<bool> read_field(std::string_view text, const Field& field, std::bitset<64>& bits) {
  bool any = false;
  for (const std::string_view range : words(text, ',')) {
    const auto added = add_range(range, field, bits);
    if (!added) return added;
    any = any || *added;
  }
  return any;
}

Parsed<CronFields> read_fields(std::string_view text) {
  const std::vector<std::string_view> parts = words(text).list();
  if (parts.size() != 5)
    return std::unexpected(fmt::format("expected exactly 5 fields, found {}: [{}]", parts.size(), fmt::join(parts, " ")));
  CronFields out;
  const std::array<Field, 5> fields = {{{0, 59, {}}, {0, 23, {}}, {1, 31, {}}, {1, 12, kMonths}, {0, 6, kWeekdays}}};
  const std::array<std::bitset<64>*, 5> targets = {&out.minutes, &out.hours, &out.days, &out.months, &out.weekdays};
  std::array<bool, 5> any{};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto read = read_field(parts[i], fields[i], *targets[i]);
    if (!read) return std::unexpected(read.error());
    any[i] = *read;
  }
  out.any_day = any[2];
  out.any_weekday = any[4];
  return out;
}

}  // namespace

Expected<CronFields, std::string> parse_cron(std::string_view text) {
  if (text.empty()) return std::unexpected("empty spec string");
  if (!text.starts_with('@')) {
    std::string spaced(text);
    std::ranges::replace_if(
        spaced, [](char c) { return c == '\t' || c == '\n' || c == '\v' || c == '\f' || c == '\r'; }, ' ');
    return read_fields(spaced);
  }
  if (const auto word = std::ranges::find(kWords, text, &Word::name); word != std::end(kWords)) return read_fields(word->fields);
  constexpr std::string_view kEvery = "@every ";
  if (!text.starts_with(kEvery)) return std::unexpected(fmt::format("unrecognized descriptor: {}", text));
  const auto every = parse_duration_ns(text.substr(kEvery.size()));
  if (!every) return std::unexpected(fmt::format("failed to parse duration {}: {}", text, every.error()));
  CronFields out;
  // Less than a second is one, fractions are left out.
  constexpr std::int64_t kSecond = 1'000'000'000;
  out.every_ns = std::max(*every - *every % kSecond, kSecond);
  return out;
}

}  // namespace berth::go
