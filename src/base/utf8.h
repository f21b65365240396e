// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing beyond U+10FFFF.
#pragma once
#include <string>
#include <string_view>

namespace berth {

[[nodiscard]] bool is_utf8(std::string_view text);
/// The text with every byte that begins no character as U+FFFD, as Go's JSON encoder writes it.
[[nodiscard]] std::string to_utf8(std::string_view text);

}  // namespace berth
