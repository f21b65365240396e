// Digests as text.
#pragma once
#include <string>
#include <string_view>

namespace berth::security {

/// SHA-256 in lower-case hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace berth::security
