// OpenAPI v2 as the protobuf message that kubectl asks for (gnostic's openapi.v2.Document).
#pragma once
#include <string>

#include "base/json.h"

namespace berth::apiserver {

/// Encodes a swagger 2.0 document: info, paths with their operations, parameters and responses, definitions, and the x- extensions of each.
std::string encode_openapi_protobuf(const json::Value& document);

}  // namespace berth::apiserver
