// How many elements the lists of a request may have.
#pragma once
#include <optional>

#include "base/json.h"
#include "model/api_status.h"

namespace berth::apiserver {

/// Objects in lists, over a whole document of a built-in kind. `{}` is three bytes of a body and by its defaults hundreds of an object; all
/// that Kubernetes stores has fewer, since what says something is longer.
constexpr std::size_t kMostElements = 65'536;
/// Words, numbers and the like in lists of such a document: each is judged by itself, and an empty one is two bytes. An EndpointSlice that
/// is as full as it may be has 100,000.
constexpr std::size_t kMostWords = 131'072;
/// Finalizers and other words in the lists of a kind's metadata, labels and annotations, custom kinds' as well.
constexpr std::size_t kMostMetadata = 65'536;

/// 413 for a document that has more, with the list that has most of them. Nulls count as objects: they become what an element is without a
/// word. `is_custom`: of the metadata alone, since the definition of a kind says what may stand in the rest.
std::optional<model::ApiStatus> refuse_many_elements(const json::Value& document, bool is_custom);
/// Whether a body of JSON or protobuf is long enough for that many.
constexpr bool may_have_many_elements(std::size_t body_bytes) { return body_bytes > 2 * kMostElements; }

}  // namespace berth::apiserver
