// Kubernetes' protobuf bodies: what Go's clients send and prefer to get. The numbers are those of the schema tables.
//
// Of a whole answer the form is "k8s\0", then runtime.Unknown: {1: TypeMeta {1: apiVersion, 2: kind}, 2: the object's message}
// (k8s.io/apimachinery pkg/runtime/serializer/protobuf). A zero that Go's struct holds by value is left out where JSON leaves it out: every
// reader takes both for the same.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/wire.h"
#include "model/schema.h"

namespace berth::model {

/// From "k8s\0" + runtime.Unknown to the JSON document, apiVersion and kind included. Fields that the tables have no number for are left
/// out, and `has_unknown` says whether there were any. The error says what is malformed; hostile input costs no more than its size.
Result<json::Value> decode_protobuf(std::string_view body, bool* has_unknown = nullptr);
/// The body `now` with those fields of `before` (of one object, in one version) that the tables have no number for, each where it was: in
/// lists with the item of the same keys, in maps under the same key. nullopt: one of them is malformed.
std::optional<std::string> keep_unknown_fields(std::string_view before, std::string_view now);
/// A message's field of bytes; empty: it is not there, or the message is malformed.
std::string_view bytes_field(std::string_view message, int number);

/// Whether objects of the kind travel as protobuf: all but those that are custom resources elsewhere, which have no numbers.
bool has_protobuf(const KindInfo& kind);
/// The type that sees only an object's metadata: PartialObjectMetadata's.
const TypeDef& partial_metadata_type();
/// What `apiVersion` and `kind` name, if it travels as protobuf; null otherwise. Status, PartialObjectMetadata,
/// discovery's and the subresources' kinds too, but no lists of objects.
const TypeDef* protobuf_type(std::string_view api_version, std::string_view kind);

/// Appends the message of a JSON object's text, which must be one that this program serialised or has parsed before. Fields that the tables
/// do not know or have no number for, and values of another type than theirs, are left out. In ascending field numbers, maps by key, as
/// Go's encoder writes. False: malformed, `out` is then unspecified.
bool encode_message(const TypeDef& type, std::string_view text, std::string& out);
/// The whole body of one object, its apiVersion and kind as given. nullopt: malformed.
std::optional<std::string> encode_protobuf(const TypeDef& type, std::string_view api_version, std::string_view kind, std::string_view text);
/// The whole body of a document; nullopt when it has no protobuf form.
std::optional<std::string> encode_protobuf(const json::Value& document);

/// What stands before a list's message of `size` bytes in its body, and after it.
std::string protobuf_head(std::string_view api_version, std::string_view kind, std::size_t size);
std::string_view protobuf_tail();
/// metav1.ListMeta's message.
std::string encode_list_meta(std::string_view revision, std::string_view continue_token, std::optional<std::int64_t> remaining);
/// One event of a watch, framed: its length as four bytes, the highest first, then metav1.WatchEvent with the object's whole body in it.
void append_watch_frame(std::string& out, std::string_view type, std::string_view body);

}  // namespace berth::model
