// base64 in its two alphabets (RFC 4648).
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace berth {

/// Standard alphabet, padded.
std::string base64_encode(std::string_view bytes);
/// Standard alphabet; padding is required, line ends between the characters are passed over. nullopt when anything else stands there, or
/// when bits that mean nothing are set: a text has one spelling.
std::optional<std::string> base64_decode(std::string_view text);
/// The alphabet for URLs and file names, without padding (RFC 7515).
std::string base64url_encode(std::string_view bytes);
/// As base64_decode, without padding and line ends.
std::optional<std::string> base64url_decode(std::string_view text);

}  // namespace berth
