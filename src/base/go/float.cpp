#include "base/go/float.h"

#include <charconv>
#include <cmath>
#include <string_view>

namespace berth::go {
namespace {

/// The fewest digits that read back the same, with an exponent below 1e-4 and from 1e6 on.
template <typename Number>
std::string shortest(Number value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == 0) return std::signbit(value) ? "-0" : "0";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view scientific(buffer, static_cast<std::size_t>(end.ptr - buffer));
  const auto at = scientific.find('e') + 1;
  int exponent = 0;
  std::from_chars(scientific.data() + at + (scientific[at] == '+' ? 1 : 0), scientific.data() + scientific.size(), exponent);
  if (exponent < -4 || exponent >= 6) return std::string(scientific);
  const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  return {buffer, fixed.ptr};
}

}  // namespace

std::string format_json_number(double value) {
  if (value == 0) return std::signbit(value) ? "-0" : "0";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<std::size_t>(end.ptr - buffer));
  const auto e = text.find('e');
  const std::string_view digits = text.substr(0, e);
  int exponent = 0;
  std::from_chars(text.data() + e + 2, text.data() + text.size(), exponent);
  const bool is_small = text[e + 1] == '-';
  if (is_small ? exponent > 6 : exponent >= 21) return std::string(digits) + (is_small ? "e-" : "e+") + std::to_string(exponent);
  if (is_small) {
    const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
    return {buffer, fixed.ptr};
  }
  std::string out(digits);
  const auto dot = out.find('.');
  if (dot != std::string::npos) out.erase(dot, 1);
  const auto whole = (dot == std::string::npos ? out.size() : dot) + static_cast<std::size_t>(exponent);
  if (out.size() <= whole) return out.append(whole - out.size(), '0');
  return out.insert(whole, ".");
}

std::string format_float(float value) { return shortest(value); }
std::string format_float(double value) { return shortest(value); }

}  // namespace berth::go
