// JSON with lines of its own width of indentation.
#pragma once
#include <string>

#include "base/json.h"

namespace berth::json {

/// Indented by `width` a level; no newline at the end.
[[nodiscard]] std::string serialize_indented(const Value& value, std::size_t width);

}  // namespace berth::json
