// Request bodies: from bytes to decoded, defaulted documents.
#pragma once
#include "apiserver/context.h"
#include "apiserver/schema_bridge.h"

namespace berth::apiserver {

/// Parses the body as its Content-Type says. 415, or 400 with Kubernetes' words (`kind`: what the endpoint takes). Duplicate fields are
/// appended to `duplicates` when given.
model::ApiResult<json::Value> parse_body(const Request& request, std::string_view kind, std::vector<std::string>* duplicates = nullptr);

/// Body of a create or update of request.kind: parsed, apiVersion and kind checked (filled in when absent), types checked, unknown and
/// duplicate fields treated as fieldValidation says, defaulted.
model::ApiResult<json::Value> decode_object_body(Request& request);

/// The same for a document at hand: what follows parsing. Also for the results of patches.
model::ApiResult<void> decode_document(Request& request, const model::KindInfo& kind, json::Value& document,
                                       const std::vector<std::string>& duplicates);

/// Name and namespace of the document against those of the path: fills in what is absent, 400 for what differs.
model::ApiResult<void> match_path(const Request& request, json::Value& document, bool name_in_path);

/// DeleteOptions from body and query merged (the body wins), or an error. An empty object when there are none.
model::ApiResult<json::Value> read_delete_options(const Request& request);

}  // namespace berth::apiserver
