// One text for every JSON value: what sets and maps of values are made by.
#pragma once
#include <string>

#include "base/json.h"

namespace berth::json {

/// Two values are equal (as json::equal has it, but for integers beyond 2^53 against doubles) when their texts are: members by name, whole
/// doubles as integers. n log n in the value.
[[nodiscard]] std::string canonical_text(const Value& value);

}  // namespace berth::json
