#include "base/base64.h"

#include <cstdint>

namespace berth {
namespace {

constexpr std::string_view kStandard = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrl = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encode(std::string_view bytes, std::string_view alphabet) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (count += 8; count >= 6;) {
      count -= 6;
      out += alphabet[bits >> count & 63];
    }
  }
  if (count > 0) out += alphabet[bits << (6 - count) & 63];
  return out;
}

int digit_of(char c, std::string_view alphabet) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == alphabet[62] ? 62 : c == alphabet[63] ? 63 : -1;
}

/// Without padding.
std::optional<std::string> decode(std::string_view text, std::string_view alphabet) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  out.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int digit = digit_of(c, alphabet);
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 255);
  }
  if ((bits & ((1U << count) - 1)) != 0) return std::nullopt;
  return out;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out = encode(bytes, kStandard);
  while (out.size() % 4 != 0) out += '=';
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string joined;
  if (text.find_first_of("\r\n") != std::string_view::npos) {
    for (const char c : text)
      if (c != '\r' && c != '\n') joined += c;
    text = joined;
  }
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  return decode(text, kStandard);
}

std::string base64url_encode(std::string_view bytes) { return encode(bytes, kUrl); }
std::optional<std::string> base64url_decode(std::string_view text) { return decode(text, kUrl); }

}  // namespace berth
