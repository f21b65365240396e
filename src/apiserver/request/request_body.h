// Request bodies: from bytes to decoded, defaulted documents.
#pragma once
#include "apiserver/request/context.h"
#include "model/decode_error.h"

namespace berth::apiserver {

/// What a body says twice.
struct Repeated {
  std::vector<std::string> fields;  ///< Paths, of JSON.
  std::vector<std::string> lines;   ///< Sentences, of YAML.
};

/// Why a document is not taken.
struct BodyRefusal {
  enum class Is {
    kOther,
    kUnreadable,  ///< It is not of the kind: `reason`, in the answer with words around it.
    kStrict,      ///< It is, but fields are unknown or stand twice: as above.
    kOtherType,   ///< It says to be something else, which is told as it is.
  };
  BodyRefusal(model::ApiStatus whole) : status(std::move(whole)), reason(status.message) {}  // NOLINT: as a refusal of any make.
  BodyRefusal(Is what, const model::KindInfo& kind, std::string why)
      : status(model::unreadable(kind, why)), is(what), reason(std::move(why)) {}
  BodyRefusal(const model::KindInfo& kind, model::DecodeError wrong) : BodyRefusal(Is::kUnreadable, kind, wrong.sentence()) {
    error = std::move(wrong);
  }

  model::ApiStatus status;  ///< The whole answer.
  Is is = Is::kOther;
  std::string reason;  ///< What is wrong, in words alone.
  std::optional<model::DecodeError> error;
};
template <typename T>
using Taken = Expected<T, BodyRefusal>;

/// Parses the body as its Content-Type says. 415, or 400 with Kubernetes' words (`kind`: what the endpoint takes). What it says twice is
/// appended to `repeated` when given.
model::ApiResult<json::Value> parse_body(Request& request, std::string_view kind, Repeated* repeated = nullptr);

/// The object as it is stored, in the request's version; nothing when there is none. Asked only when unknown fields were found.
using StoredDocument = std::function<std::optional<json::Value>()>;

/// Body of a create or update of request.kind: parsed, apiVersion and kind checked (filled in when absent), types checked, unknown and
/// duplicate fields treated as fieldValidation says, defaulted. Unknown fields that the stored object has, too, are not complained about.
model::ApiResult<json::Value> decode_object_body(Request& request, const StoredDocument& stored = {});

/// The same for a document at hand: what follows parsing. Also for the results of patches. `fills`: as in model::decode.
Taken<void> decode_document(Request& request, const model::KindInfo& kind, json::Value& document, const Repeated& repeated,
                            bool fills = true, const StoredDocument& stored = {});

/// A kind that is no resource's, as what is asked of an object is (Scale, Eviction, TokenRequest): enough to decode it. `type`: of the
/// tables, "autoscaling.v1.Scale". The texts are literals; the answer lives for ever. Thread-safe.
const model::KindInfo& unserved_kind(std::string_view group, std::string_view version, std::string_view kind, std::string_view type);

/// A body of such a kind, or of its `older` version if it says so: like decode_object_body, with nothing filled in.
Taken<json::Value> decode_unserved_body(Request& request, const model::KindInfo& kind, const model::KindInfo* older = nullptr);

/// The document with the members of every object in the order of their names: as Go writes maps, and reads YAML.
json::Value by_name(json::Value value);

/// 400 for an object without a name, of another name, or of another namespace than the path says.
model::ApiStatus no_name(std::string_view on_url);
model::ApiStatus other_name(std::string_view name, std::string_view on_url);
model::ApiStatus other_namespace();

/// Name and namespace of the document against those of the path: fills in what is absent, 400 for what differs.
model::ApiResult<void> match_path(const Request& request, json::Value& document, bool name_in_path);

/// A document of another type than the endpoint's, in the words of Kubernetes' decoder; empty when it fits. What is left out fits.
std::optional<BodyRefusal> check_type(const json::Value& document, std::string_view group, std::string_view version, std::string_view kind);

/// The Go type of a kind's internal object, as some messages show it: "core.ConfigMap".
std::string internal_go_type(const model::KindInfo& kind);

struct ParsedPatch {
  json::Value document;
  Repeated repeated;
};
/// What stands before an error in a patch; of a strategic one nothing: Kubernetes' decoders of the languages differ in it.
inline constexpr std::string_view kDecodingPatch = "error decoding patch: ";
/// A body in one of JSON's patch languages. 400, 413.
model::ApiResult<ParsedPatch> parse_patch(const Request& request, std::string_view before = kDecodingPatch);

/// What is wrong with a DeleteOptions document, wherever it came from: 400 for types, 422 for values.
std::optional<model::ApiStatus> check_delete_options(const json::Value& options);

/// DeleteOptions from body and query merged (the body wins), or an error. An empty object when there are none.
model::ApiResult<json::Value> read_delete_options(Request& request);

}  // namespace berth::apiserver
