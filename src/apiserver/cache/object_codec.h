// Between documents and stored bytes: what is written, where the revision goes, and what selectors see of an object.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "apiserver/cache/object_cache.h"
#include "base/json.h"
#include "model/api_status.h"
#include "model/kinds.h"

namespace berth::apiserver {

struct EncodedObject {
  std::string value;                ///< JSON with "resourceVersion":"".
  std::size_t revision_offset = 0;  ///< Between those quotes.
};

/// Writes a document with apiVersion, kind and the identifying metadata first (name, generateName, namespace, uid, resourceVersion), the
/// rest in its own order. A resourceVersion in the document is left out.
EncodedObject encode_object(const json::Value& document);

/// 413: what is told of an object of more than kMostObjectBytes.
model::ApiStatus too_large();
/// The same where the document surely is one.
std::optional<model::ApiStatus> refuse_large(const json::Value& document);

/// What selectors and indexes need of a document of `kind` (storage version). `rest_at`, of a document that is a part of an object: the
/// object whose value counts at a path; null: the document's does.
ObjectMeta extract_meta(const model::KindInfo& kind, const json::Value& document,
                        const std::function<const StoredObject*(std::string_view path)>& rest_at = {});
/// The same from a stored record, without building a document. Unknown kinds give names and labels only.
ObjectMeta extract_meta(std::string_view key, const std::string& value, Duration event_ttl);

/// A write of the text, with what selectors see of it, or of a document; both of the stored version.
Proposal proposal_of(const model::KindInfo& stored, ObjectMeta meta, EncodedObject encoded);
Proposal proposal_of(const model::KindInfo& stored, const json::Value& document);

/// Of the same object with these labels: no fields yet.
ObjectMeta meta_like(const StoredObject& object, model::Labels labels);

/// The kind in whose form objects of `kind` are stored (itself for most).
const model::KindInfo& storage_kind(const model::KindInfo& kind);
/// Key of an object of `kind`.
std::string object_key(const model::KindInfo& kind, std::string_view ns, std::string_view name);

/// Parses a stored object. Stored bytes are always well-formed JSON objects.
json::Value decode_object(const StoredObject& object);

/// A selectable field's name in the stored form ("regarding.name" of events.k8s.io is "involvedObject.name"); empty when `kind` does not
/// support it. metadata.name and metadata.namespace (of namespaced kinds) always are.
std::string stored_field(const model::KindInfo& kind, std::string_view field);

}  // namespace berth::apiserver
