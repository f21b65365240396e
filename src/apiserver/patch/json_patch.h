// JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386). Pure.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::apiserver::patch {

struct JsonPatchOperation {
  enum class Op { kAdd, kRemove, kReplace, kMove, kCopy, kTest, kUnknown };  ///< kUnknown never applies.
  Op op = Op::kTest;
  std::vector<std::string> path, from;  ///< Unescaped reference tokens.
  json::Value value;
};

/// Reads a patch document: an array of operations. Refused are wrong types alone, in the words of Go's decoder; what is missing or makes no
/// sense fails when it is applied.
Result<std::vector<JsonPatchOperation>> parse_json_patch(const json::Value& document);
/// Applies all operations or none (on an error `target` is left in an unspecified state: apply to a copy). The error names operation and
/// path.
Result<void> apply_json_patch(json::Value& target, const std::vector<JsonPatchOperation>& operations);

/// Null members remove, objects merge, everything else replaces.
void apply_merge_patch(json::Value& target, const json::Value& patch);

}  // namespace berth::apiserver::patch
