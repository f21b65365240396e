#include "base/yaml_scalar.h"

#include <charconv>

namespace berth::json {
namespace {

bool any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_null(std::string_view text) { return any_of(text, {"", "~", "null", "Null", "NULL"}); }
bool is_true(std::string_view text) { return any_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"}); }
bool is_false(std::string_view text) { return any_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"}); }

}  // namespace

std::optional<Value> yaml_number(std::string_view text) {
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

bool is_yaml_word(std::string_view text) { return is_null(text) || is_true(text) || is_false(text); }

Value yaml_value(std::string_view text) {
  if (is_null(text)) return nullptr;
  if (is_true(text)) return true;
  if (is_false(text)) return false;
  if (auto number = yaml_number(text)) return std::move(*number);
  return Value(text);
}

}  // namespace berth::json
