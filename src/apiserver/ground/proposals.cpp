#include "apiserver/ground/proposals.h"

#include "model/kind_hooks.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

void propose(const Ground& ground, Proposal proposal, std::function<void(ProposeResult)> done) {
  ground.cache->propose(
      std::move(proposal), done ? std::move(done) : [](const ProposeResult&) {});
}

/// Where nodes say that they live. Nobody competes for a Lease there; any other is a lock, and who was told that he holds it acts: after a
/// power failure nobody else may find that he does.
constexpr std::string_view kHeartbeats = "kube-node-lease";

}  // namespace

Proposal make_proposal(const Ground& ground, const model::KindInfo& kind, json::Value document) {
  const auto& stored = storage_kind(kind);
  if (&stored != &kind) model::convert(kind, stored, document);
  model::fill_always_written(stored, document);
  return proposal_of(ground, stored, document);
}

Proposal proposal_of(const Ground& ground, const model::KindInfo& stored, const json::Value& document) {
  return proposal_of(ground, stored, extract_meta(stored, document), encode_object(document));
}

Proposal proposal_of(const Ground& ground, const model::KindInfo& stored, ObjectMeta meta, EncodedObject encoded) {
  const model::Life& life = *model::hooks_of(stored).life;
  const bool may_be_lost = life.may_be_lost && (life.expires || meta.ns == kHeartbeats);
  auto proposal = proposal_of(stored, std::move(meta), std::move(encoded));
  if (life.expires) proposal.expires_at = ground.loop.now() + ground.options.event_ttl;
  proposal.relaxed_durability = ground.options.relaxed_heartbeats_and_events && may_be_lost;
  return proposal;
}

void put(const Ground& ground, const model::KindInfo& kind, json::Value document, Revision expected,
         std::function<void(ProposeResult)> done) {
  auto proposal = make_proposal(ground, kind, std::move(document));
  proposal.expected = expected;
  propose(ground, std::move(proposal), std::move(done));
}

ProposeResult put_and_wait(const Ground& ground, const model::KindInfo& kind, json::Value document, Revision expected) {
  auto proposal = make_proposal(ground, kind, std::move(document));
  proposal.expected = expected;
  return propose_and_wait(*ground.cache, std::move(proposal));
}

void take_away(const Ground& ground, std::string key, Revision expected, std::function<void(ProposeResult)> done) {
  Proposal gone;
  gone.key = std::move(key);
  gone.is_delete = true;
  gone.expected = expected;
  propose(ground, std::move(gone), std::move(done));
}

json::Value newborn(const Ground& ground, NameSource& names, const model::KindInfo& kind, json::Value document) {
  document.get_object()["apiVersion"] = kind.api_version();
  document.get_object()["kind"] = kind.kind;
  auto& metadata = json::ensure_object(document, {"metadata"});
  metadata["uid"] = names.uid();
  metadata["creationTimestamp"] = ground.now_text();
  return document;
}

model::ApiStatus not_stored(const Ground& ground, ProposeError error) {
  return error == ProposeError::kTooLarge ? too_large() : model::internal_error(ground.cache->storage_failure());
}

bool has_finalizers(const json::Value& document) { return !json::get_array(document, {"metadata", "finalizers"}).empty(); }

}  // namespace berth::apiserver
