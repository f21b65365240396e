// OpenAPI documents from the field tables: what kubectl explain, apply and validation read.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace berth::model {

/// /openapi/v2: swagger 2.0 with Kubernetes' extensions. Made once, at the first call; thread-safe.
Bytes openapi_v2();
/// /openapi/v3: the index of group-versions with a content hash each.
Bytes openapi_v3_index();
/// /openapi/v3/api/v1 or /openapi/v3/apis/GROUP/VERSION; null when there is none.
Bytes openapi_v3(std::string_view group, std::string_view version);

}  // namespace berth::model
