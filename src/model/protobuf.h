// Kubernetes' protobuf bodies, read only: some of kubectl's commands and client-go based controllers send them.
#pragma once
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace berth::model {

/// From "k8s\0" + runtime.Unknown to the JSON document, apiVersion and kind included. Fields that the tables have no number for are left
/// out. The error says what is malformed; hostile input costs no more than its size.
Result<json::Value> decode_protobuf(std::string_view body);

}  // namespace berth::model
