// Strategic merge patch (apimachinery/pkg/util/strategicpatch): merges by the schema's patch strategies and the patch's directives. Pure.
#pragma once
#include "apiserver/kinds/shape.h"
#include "model/api_status.h"

namespace berth::apiserver::patch {

/// Applies `patch` to `target`, a document of the kind that `shape` is the root of. Directives: $patch (replace, delete, merge),
/// $retainKeys, $setElementOrder/LIST, $deleteFromPrimitiveList/LIST. An error names the directive or the missing merge key, with
/// the code that Kubernetes has for it; `target` is then half-changed.
model::ApiResult<void> apply_strategic_merge(const Shape& shape, json::Value& target, const json::Value& patch);

}  // namespace berth::apiserver::patch
