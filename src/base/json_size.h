// How large a document is, without writing it.
#pragma once
#include "base/json.h"

namespace berth::json {

/// A lower bound of the length of serialize(value), close to it (numbers and escapes count as one character): for limits. Counting ends
/// above `enough`.
[[nodiscard]] std::size_t text_size(const Value& value, std::size_t enough = std::size_t(-1));

}  // namespace berth::json
