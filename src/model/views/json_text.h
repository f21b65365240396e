// Text out of a document, for the typed views.
#pragma once
#include <string>

#include "base/json.h"

namespace berth::model {

/// The text at `path`; empty where there is none.
inline std::string string_at(const json::Value& value, json::Path path) { return std::string(json::get_string(value, path)); }

}  // namespace berth::model
