// Go's text rules where Kubernetes' answers depend on them (package strings).
#pragma once
#include <string>
#include <string_view>

namespace berth::go {

/// strings.TrimSpace, for ASCII.
std::string_view trim_space(std::string_view text);
/// strings.ToLower, for ASCII.
std::string to_lower(std::string_view text);
/// strconv.Quote: "a\tb"; what cannot be printed is escaped, bytes that are no UTF-8 too.
std::string quote(std::string_view text);

}  // namespace berth::go
