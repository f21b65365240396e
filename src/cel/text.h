// Text as the language sees it: code points, escapes, Go's ways of printing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "base/go/float.h"
#include "base/go/strings.h"
#include "base/utf8.h"

namespace berth::cel {

/// Bytes of the (possibly broken) code point at `at`; at least 1.
std::size_t utf8_length(std::string_view text, std::size_t at);
/// The code point at `at`; U+FFFD for what is not UTF-8.
char32_t utf8_at(std::string_view text, std::size_t at);
/// The code points of a text, each as its own bytes.
std::vector<std::string_view> split_points(std::string_view text);
/// A string literal's text (with its quotes), or why it has none.
Expected<std::string, std::string> unescape(std::string_view literal, bool is_bytes);

/// time.Duration's seconds as the language prints a duration: "3725.5s".
std::string duration_text(std::int64_t seconds, std::int32_t nanos);

struct Instant {
  std::int64_t seconds = 0;
  std::int32_t nanos = 0;
};
/// RFC 3339, with any number of fractional digits.
std::optional<Instant> parse_rfc3339(std::string_view text);
/// RFC 3339 in UTC, without trailing zeros of the fraction.
std::string rfc3339_text(std::int64_t seconds, std::int32_t nanos);

struct Civil {
  std::int64_t year = 1970;
  int month = 1, day = 1, hour = 0, minute = 0, second = 0, weekday = 4, yearday = 0;
};
Civil civil_from_seconds(std::int64_t seconds);
/// Seconds that a time zone ("+01:30", "UTC", "Europe/Berlin") is ahead of UTC at an instant; nullopt: unknown zone.
std::optional<std::int64_t> zone_offset(std::string_view zone, std::int64_t at_seconds);

}  // namespace berth::cel
