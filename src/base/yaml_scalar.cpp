#include "base/yaml_scalar.h"

#include <charconv>
#include <chrono>

#include "base/go/float.h"

namespace berth::json {
namespace {

bool any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

/// Every underscore stands between two digits.
bool separates_digits(std::string_view text) {
  const auto is_digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  for (auto at = text.find('_'); at != std::string_view::npos; at = text.find('_', at + 1))
    if (at == 0 || !is_digit(at - 1) || !is_digit(at + 1)) return false;
  return true;
}

/// The character in front, when it is one of these.
bool take(std::string_view& text, std::string_view any) {
  if (text.empty() || !any.contains(text[0])) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<int> take_number(std::string_view& text, std::size_t least, std::size_t most) {
  std::size_t n = 0;
  int out = 0;
  while (n < text.size() && n < most && text[n] >= '0' && text[n] <= '9') out = out * 10 + (text[n++] - '0');
  if (n < least) return std::nullopt;
  text.remove_prefix(n);
  return out;
}

/// Hours, minutes and seconds, with a fraction or without.
bool take_clock(std::string_view& text) {
  const auto hour = take_number(text, 1, 2);
  if (!hour || *hour > 23 || !take(text, ":")) return false;
  const auto minute = take_number(text, 1, 2);
  if (!minute || *minute > 59 || !take(text, ":")) return false;
  const auto second = take_number(text, 1, 2);
  if (!second || *second > 59) return false;
  return !take(text, ".,") || take_number(text, 1, 9).has_value();
}

bool take_zone(std::string_view& text) {
  if (take(text, "Z")) return true;
  return take(text, "+-") && take_number(text, 2, 2) && take(text, ":") && take_number(text, 2, 2);
}

bool is_null(std::string_view text) { return any_of(text, {"", "~", "null", "Null", "NULL"}); }
bool is_true(std::string_view text) { return any_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"}); }
bool is_false(std::string_view text) { return any_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"}); }

}  // namespace

std::optional<Value> yaml_number(std::string_view text) {
  if (text.empty() || text[0] == '_' || (text[0] == '.' && !separates_digits(text))) return std::nullopt;
  std::string digits;
  for (const char c : text)
    if (c != '_') digits += c;
  const bool negative = digits.starts_with('-');
  std::string_view body = digits;
  if (negative || body.starts_with('+')) body.remove_prefix(1);
  if (body.empty() || !((body[0] >= '0' && body[0] <= '9') || body[0] == '.')) return std::nullopt;
  int base = 10;
  std::string_view number = body;
  if (body.starts_with("0x") || body.starts_with("0X"))
    base = 16, number.remove_prefix(2);
  else if (body.starts_with("0o"))
    base = 8, number.remove_prefix(2);
  else if (body.starts_with("0b"))
    base = 2, number.remove_prefix(2);
  else if (body.size() > 1 && body[0] == '0' && body.find_first_not_of("01234567") == std::string_view::npos)
    base = 8, number.remove_prefix(1);
  std::uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), magnitude, base);
  if (error == std::errc() && end == number.data() + number.size()) {
    if (!negative) return magnitude <= INT64_MAX ? Value(static_cast<std::int64_t>(magnitude)) : Value(magnitude);
    if (magnitude <= static_cast<std::uint64_t>(INT64_MAX) + 1) return Value(static_cast<std::int64_t>(~magnitude + 1));
  }
  if (base != 10) return std::nullopt;
  double real = 0;
  const auto [real_end, real_error] = std::from_chars(body.data(), body.data() + body.size(), real);
  if (real_error == std::errc() && real_end == body.data() + body.size()) return Value(negative ? -real : real);
  return std::nullopt;
}

bool is_yaml_word(std::string_view text) { return is_null(text) || is_true(text) || is_false(text) || !yaml_infinity(text).empty(); }

std::string_view yaml_infinity(std::string_view text) {
  if (any_of(text, {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"})) return "+Inf";
  if (any_of(text, {"-.inf", "-.Inf", "-.INF"})) return "-Inf";
  return any_of(text, {".nan", ".NaN", ".NAN"}) ? "NaN" : "";
}

bool is_yaml_timestamp(std::string_view text) {
  const auto year = take_number(text, 4, 4);
  if (!year || !take(text, "-")) return false;
  const auto month = take_number(text, 1, 2);
  if (!month || !take(text, "-")) return false;
  const auto day = take_number(text, 1, 2);
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(day.value_or(0)))};
  if (!date.ok() || text.empty()) return date.ok();
  const bool has_zone = take(text, "Tt");
  if (!has_zone && !take(text, " ")) return false;
  return take_clock(text) && (!has_zone || take_zone(text)) && text.empty();
}

std::optional<std::string> yaml_key(const Value& value) {
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return std::string(as_view(value));
  if (value.is_double()) return go::format_float(static_cast<float>(value.get_double()));
  return json::serialize(value);
}

Value yaml_value(std::string_view text) {
  if (is_null(text)) return nullptr;
  if (is_true(text)) return true;
  if (is_false(text)) return false;
  if (auto number = yaml_number(text)) return std::move(*number);
  return Value(text);
}

}  // namespace berth::json
