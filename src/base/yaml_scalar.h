// What a plain scalar of YAML stands for, asked by reader and writer alike.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace berth::json {

/// The number that a reader makes of it, in YAML 1.1's forms (octal, binary, underscores), as Go's library has them.
std::optional<Value> yaml_number(std::string_view text);
/// Null, a truth value, a number, or the text itself.
Value yaml_value(std::string_view text);
/// A word that is read as something else than text: a null, a truth value, a number that is none (`.inf`).
bool is_yaml_word(std::string_view text);
/// `.inf`, `.nan` and their kin, which JSON does not have: as Go prints them ("+Inf"); empty for everything else.
std::string_view yaml_infinity(std::string_view text);
/// A day or an instant as YAML 1.1 writes them: other readers make a time of it.
bool is_yaml_timestamp(std::string_view text);
/// The key that a scalar becomes in JSON: 0x10 is "16", yes is "true". Nullopt for null.
std::optional<std::string> yaml_key(const Value& value);

}  // namespace berth::json
