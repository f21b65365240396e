// JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386). Pure.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "model/api_status.h"

namespace berth::apiserver::patch {

struct JsonPatchOperation {
  enum class Op { kAdd, kRemove, kReplace, kMove, kCopy, kTest, kUnknown };  ///< kUnknown never applies.
  Op op = Op::kTest;
  std::vector<std::string> path, from;  ///< Unescaped reference tokens.
  json::Value value;
};

/// What a patch may cost: Kubernetes' own limits of operations and of copied bytes, and two that keep this server from work that nobody
/// asked for.
struct JsonPatchLimits {
  std::size_t operations = 10'000;
  std::size_t copied_bytes = 3 * 1024 * 1024;     ///< Of JSON text, over all `copy` operations.
  std::size_t moved_elements = 64 * 1024 * 1024;  ///< List elements that make room or close a gap, over all operations.
  std::size_t depth = 500;                        ///< Of the document in the end, as parsing has it.
};

/// Reads a patch document: an array of operations. Refused with 413 are too many of them, with 400 wrong types, in the words of Go's
/// decoder; what is missing or makes no sense fails when it is applied.
model::ApiResult<std::vector<JsonPatchOperation>> parse_json_patch(const json::Value& document, const JsonPatchLimits& limits = {});
/// Applies all operations or none (on an error `target` is left in an unspecified state: apply to a copy). The error names operation and
/// path, or the limit; kConflict: a test found another value. Costs no more than document, patch and limits together.
Result<void> apply_json_patch(json::Value& target, const std::vector<JsonPatchOperation>& operations, const JsonPatchLimits& limits = {});

/// Null members remove, objects merge, everything else replaces.
void apply_merge_patch(json::Value& target, const json::Value& patch);

}  // namespace berth::apiserver::patch
