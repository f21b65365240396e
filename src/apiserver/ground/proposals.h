// From documents to what the cache's writer is handed, and what the server hands to it by itself.
#pragma once
#include "apiserver/cache/object_codec.h"
#include "apiserver/ground/ground.h"
#include "model/api_status.h"

namespace berth::apiserver {

/// Encodes a document of `kind` for its key, converted to the stored version, with what is always written: as it is read from etcd.
Proposal make_proposal(const Ground& ground, const model::KindInfo& kind, json::Value document);
/// The same of a document of the stored version.
Proposal proposal_of(const Ground& ground, const model::KindInfo& stored, const json::Value& document);
/// The same of its bytes, with what selectors see of them.
Proposal proposal_of(const Ground& ground, const model::KindInfo& stored, ObjectMeta meta, EncodedObject encoded);

/// The one door for what the server writes of its own accord: nobody is asked, and no field gets an owner. `expected`: the revision that
/// the document was made of, 0 for the first of its name; whoever was faster has won, and what he wrote is seen again. `done` may be empty.
void put(const Ground& ground, const model::KindInfo& kind, json::Value document, Revision expected,
         std::function<void(ProposeResult)> done = {});
/// The same, waited for.
ProposeResult put_and_wait(const Ground& ground, const model::KindInfo& kind, json::Value document, Revision expected);
void take_away(const Ground& ground, std::string key, Revision expected, std::function<void(ProposeResult)> done = {});
/// The document as the first of its name: what it is, a uid of `names`, its time.
json::Value newborn(const Ground& ground, NameSource& names, const model::KindInfo& kind, json::Value document);

/// What the client is told of a write that is_of_storage.
model::ApiStatus not_stored(const Ground& ground, ProposeError error);

bool has_finalizers(const json::Value& document);

}  // namespace berth::apiserver
