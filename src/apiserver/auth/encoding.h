// base64 in the two alphabets, and random UUIDs.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace berth::apiserver::auth {

/// base64url without padding (RFC 7515).
std::string base64url_encode(std::string_view bytes);
/// nullopt when a character is foreign or the length impossible. Trailing bits that mean nothing must be zero, or one token would have
/// several spellings.
std::optional<std::string> base64url_decode(std::string_view text);
/// Standard alphabet, padding required (Secret data).
std::optional<std::string> base64_decode(std::string_view text);
/// RFC 4122 version 4, from the machine's cryptographic random source.
std::string random_uuid();

}  // namespace berth::apiserver::auth
