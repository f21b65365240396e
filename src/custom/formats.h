// Formats of strings in schemas (kube-openapi/pkg/validation/strfmt), by their names without dashes. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace berth::custom {

/// `format`: one that known_format() gives for strings.
bool has_format(std::string_view format, std::string_view text);

struct Instant {
  std::int64_t seconds = 0;  ///< Since 1970 in UTC.
  std::int32_t nanos = 0;
};
/// RFC 3339, also without a zone; nullopt for what is none.
std::optional<Instant> parse_date_time(std::string_view text);
std::optional<Instant> parse_date(std::string_view text);
/// Go's form ("1h30m") or Scala's ("2 days"), in nanoseconds.
std::optional<std::int64_t> parse_any_duration(std::string_view text);

}  // namespace berth::custom
