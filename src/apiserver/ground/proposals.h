// From documents to what the cache's writer is handed.
#pragma once
#include "apiserver/cache/object_codec.h"
#include "apiserver/ground/ground.h"
#include "model/api_status.h"

namespace berth::apiserver {

/// Encodes a document of `kind` for its key, converted to the stored version.
Proposal make_proposal(const Ground& ground, const model::KindInfo& kind, json::Value document);
/// The same of a document of the stored version.
Proposal proposal_of(const Ground& ground, const model::KindInfo& stored, const json::Value& document);
/// How long what is proposed lives, and how durable it is.
void set_terms(const Ground& ground, const model::KindInfo& stored, Proposal& proposal);

/// What the client is told of a write that is_of_storage.
model::ApiStatus not_stored(const Ground& ground, ProposeError error);

bool has_finalizers(const json::Value& document);

}  // namespace berth::apiserver
