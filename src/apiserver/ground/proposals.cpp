#include "apiserver/ground/proposals.h"

#include "model/kind_hooks.h"
#include "model/schema.h"

namespace berth::apiserver {

Proposal make_proposal(const Ground& ground, const model::KindInfo& kind, json::Value document) {
  const auto& stored = storage_kind(kind);
  if (&stored != &kind) model::convert(kind, stored, document);
  return proposal_of(ground, stored, document);
}

Proposal proposal_of(const Ground& ground, const model::KindInfo& stored, const json::Value& document) {
  Proposal proposal;
  proposal.meta = extract_meta(stored, document);
  proposal.key = object_key(stored, proposal.meta.ns, proposal.meta.name);
  auto encoded = encode_object(document);
  proposal.value = std::move(encoded.value);
  proposal.revision_offset = encoded.revision_offset;
  set_terms(ground, stored, proposal);
  return proposal;
}

void set_terms(const Ground& ground, const model::KindInfo& stored, Proposal& proposal) {
  const model::Life& life = *model::hooks_of(stored).life;
  if (life.expires) proposal.expires_at = ground.loop.now() + ground.options.event_ttl;
  proposal.relaxed_durability = ground.options.relaxed_leases_and_events && life.may_be_lost;
}

model::ApiStatus not_stored(const Ground& ground, ProposeError error) {
  return error == ProposeError::kTooLarge ? too_large() : model::internal_error(ground.cache->storage_failure());
}

bool has_finalizers(const json::Value& document) { return !json::get_array(document, {"metadata", "finalizers"}).empty(); }

}  // namespace berth::apiserver
