// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing beyond U+10FFFF.
#pragma once
#include <string>
#include <string_view>

namespace berth {

[[nodiscard]] bool is_utf8(std::string_view text);
/// The text with every byte that begins no character as U+FFFD, as Go's JSON encoder writes it.
[[nodiscard]] std::string to_utf8(std::string_view text);

/// A character and how many bytes it has; U+FFFD with length 0 where none begins.
struct Rune {
  std::size_t length = 0;
  char32_t point = 0xFFFD;
};
/// The one that `text` begins with; length 0 for an empty text too.
[[nodiscard]] Rune first_rune(std::string_view text);
void append_rune(std::string& out, char32_t point);
/// Characters, each byte that begins none counted as one (utf8.RuneCountInString).
[[nodiscard]] std::size_t rune_count(std::string_view text);
/// The first `count` of them.
[[nodiscard]] std::string_view first_runes(std::string_view text, std::size_t count);

}  // namespace berth
