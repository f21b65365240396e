// Durations as Go writes them: the one parser of them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace berth {

/// time.ParseDuration in nanoseconds ("1h30m", "300ms", "0", "-1.5h"), with its errors as text (`time: unknown unit "d" in duration "1d"`).
Expected<std::int64_t, std::string> parse_duration_ns(std::string_view text);
/// time.Duration.String: "1h0m0s", "1.5s", "100ms".
std::string format_duration_ns(std::int64_t ns);

}  // namespace berth
