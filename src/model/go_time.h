// What Go's time.Parse says of a text that is no time.
#pragma once
#include <string>
#include <string_view>

namespace berth::model {

/// Why Go refuses the text as RFC 3339, with exactly six digits of a second where `is_micro`; empty: it does not. (Go's time package,
/// Parse.)
std::string go_time_error(std::string_view text, bool is_micro);

}  // namespace berth::model
