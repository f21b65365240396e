// What a plain scalar of YAML stands for, asked by reader and writer alike.
#pragma once
#include <optional>
#include <string_view>

#include "base/json.h"

namespace berth::json {

/// The number that a reader makes of it, in YAML 1.1's forms (octal, binary, underscores), as Go's library has them.
std::optional<Value> yaml_number(std::string_view text);
/// Null, a truth value, a number, or the text itself.
Value yaml_value(std::string_view text);
/// A word that is read as something else than text: a null, a truth value.
bool is_yaml_word(std::string_view text);

}  // namespace berth::json
