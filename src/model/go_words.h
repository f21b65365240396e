// Texts that Go's standard library puts into Kubernetes' error messages: clients and scripts match on them.
#pragma once
#include <string>
#include <string_view>

#include "base/go/strings.h"
#include "base/json.h"

namespace berth::model {

/// fmt's %v of a decoded document: `map[a:1 b:[x y]]`, keys sorted, strings bare, null as <nil>.
std::string go_value(const json::Value& value);

inline std::string go_quote(std::string_view text) { return go::quote(text); }

/// What encoding/json finds wrong with the syntax of `text` ("invalid character 'x' after top-level value", "unexpected end of JSON
/// input"); empty when it is well-formed.
std::string go_json_error(std::string_view text);

/// What encoding/json calls a value of this kind: "object", "array", "string", "number", "bool", "null".
std::string_view go_json_kind(const json::Value& value);

/// The start of a body as apiserver shows it behind a decoding error: text when it looks like JSON, hexadecimal otherwise.
std::string body_summary(std::string_view body);

}  // namespace berth::model
