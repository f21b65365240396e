// Members of a document that its kind does not know of. Pure.
#pragma once
#include <string>
#include <vector>

#include "model/schema.h"

namespace berth::model {

/// What is told of one document at most: as many as sigs.k8s.io/json tells, and no more text than a log line can bear. Paths repeat what is
/// above them, so that all of them together would be the square of a document.
constexpr std::size_t kMaxStrictFindings = 100;
constexpr std::size_t kMaxStrictFindingBytes = 256 * 1024;

/// Their paths ("spec.containers[0].foo") in the document's order, up to the limits above. What `kept` (null: nothing) has at the same
/// place does not count: a stored object's own unknown fields. Linear in both documents.
std::vector<std::string> unknown_fields(const KindInfo& kind, const json::Value& doc, const json::Value* kept);
/// Takes all of them away.
void drop_unknown_fields(const KindInfo& kind, json::Value& doc, const json::Value* kept);

}  // namespace berth::model
