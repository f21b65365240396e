#include "base/go/strings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace berth::go {
namespace {

/// strconv.IsPrint, for the characters that occur: controls, spaces but the ordinary one, formats and private ones are not.
bool is_printable(char32_t point) {
  struct Range {
    char32_t first, last;
  };
  constexpr Range kNot[] = {{0x7F, 0xA0},     {0xAD, 0xAD},     {0x1680, 0x1680},   {0x180E, 0x180E},   {0x2000, 0x200F},
                            {0x2028, 0x202F}, {0x205F, 0x206F}, {0x3000, 0x3000},   {0xE000, 0xF8FF},   {0xFEFF, 0xFEFF},
                            {0xFFF0, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE0000, 0xE00FF}, {0xF0000, 0x10FFFF}};
  return std::ranges::none_of(kNot, [&](const Range& range) { return point >= range.first && point <= range.last; });
}

}  // namespace

std::string_view trim_space(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\v\f";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string quote(std::string_view text) {
  constexpr std::string_view kNamed = "\a\b\f\n\r\t\v\\\"", kLetters = "abfnrtv\\\"";
  std::string out = "\"";
  while (!text.empty()) {
    const Rune rune = first_rune(text);
    const std::size_t length = std::max<std::size_t>(1, rune.length);
    const auto named = rune.length == 1 ? kNamed.find(text[0]) : std::string_view::npos;
    if (named != std::string_view::npos)
      out.append("\\") += kLetters[named];
    else if (rune.length == 0 || rune.point < 0x20 || rune.point == 0x7F)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else if (is_printable(rune.point))
      out += text.substr(0, length);
    else
      out += rune.point < 0x10000 ? fmt::format("\\u{:04x}", static_cast<unsigned>(rune.point))
                                  : fmt::format("\\U{:08x}", static_cast<unsigned>(rune.point));
    text.remove_prefix(length);
  }
  return out + '"';
}

}  // namespace berth::go
