// How many elements the lists of a request may have.
#pragma once
#include <optional>

#include "base/json.h"
#include "model/api_status.h"

namespace berth::apiserver {

/// Objects in lists, over a whole document of a built-in kind. `{}` is three bytes of a body and by its defaults hundreds of an object; all
/// that Kubernetes stores has fewer, since what says something is longer.
constexpr std::size_t kMostElements = 65'536;

/// 413 for a document that has more, with the list that has most of them. Nulls count: they become what an element is without a word.
std::optional<model::ApiStatus> refuse_many_elements(const json::Value& document);
/// Whether a body of JSON or protobuf is long enough for that many.
constexpr bool may_have_many_elements(std::size_t body_bytes) { return body_bytes > 2 * kMostElements; }

}  // namespace berth::apiserver
