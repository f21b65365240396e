// Hexadecimal digits.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace berth {

/// -1: it is none.
constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Two lower-case digits a byte.
inline std::string hex(std::span<const std::uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const auto byte : bytes) out.append({kDigits[byte >> 4], kDigits[byte & 15]});
  return out;
}

}  // namespace berth
