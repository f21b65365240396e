#include "apiserver/ground/proposals.h"

#include "model/kind_hooks.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

void propose(const Ground& ground, Proposal proposal, std::function<void(ProposeResult)> done) {
  ground.cache->propose(
      std::move(proposal), done ? std::move(done) : [](const ProposeResult&) {});
}

/// What stands behind `mark`, which ends with a member's colon, up to `end`. In a text within the text quotes would be escaped.
std::string_view member_in(std::string_view lease, std::string_view mark, char end) {
  const auto at = lease.find(mark);
  if (at == std::string_view::npos) return {};
  lease.remove_prefix(at + mark.size());
  return lease.substr(0, lease.find(end));
}
std::string_view holder_in(std::string_view lease) { return member_in(lease, R"("holderIdentity":")", '"'); }
std::optional<TimePoint> renewed_in(std::string_view lease) { return parse_rfc3339(member_in(lease, R"("renewTime":")", '"')); }

/// Whoever looks at the Lease as it was before may take it once that has run out, and by then the renewal's holder has stopped: he stops
/// well before his own runs out. Not so where it comes late, or to a Lease that had run out already.
bool is_in_time(std::string_view before, std::string_view now) {
  const auto was = renewed_in(before), is = renewed_in(now);
  if (!was || !is) return true;  // No lock of a leader's.
  const std::string_view said = member_in(now, R"("leaseDurationSeconds":)", ',');
  std::int64_t lasts = 0;
  std::from_chars(said.data(), said.data() + said.size(), lasts);
  return *is - *was <= std::chrono::seconds(lasts) / 3;
}

/// Of what does not go by itself a power failure may take what says again, in time, who holds it. Who came to hold it was told so, and
/// acts: after a failure nobody else may find that he does.
bool is_renewal(const Ground& ground, const Proposal& proposal, const StoredObject* present) {
  const ObjectPtr found = present == nullptr ? ground.cache->get(proposal.key) : nullptr;
  if (present == nullptr) present = found.get();
  if (present == nullptr) return false;
  const HeldText text = present->text();
  return text && holder_in(*text) == holder_in(proposal.value) && is_in_time(*text, proposal.value);
}

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

Proposal proposal_of(const Ground& ground, const model::KindInfo& stored, ObjectMeta meta, EncodedObject encoded,
                     const StoredObject* present) {
  auto proposal = proposal_of(stored, std::move(meta), std::move(encoded));
  const model::Life& life = *model::hooks_of(stored).life;
  if (life.expires) proposal.expires_at = ground.loop.now() + ground.options.event_ttl;
  proposal.relaxed_durability =
      ground.options.relaxed_leases_and_events && life.may_be_lost && (life.expires || is_renewal(ground, proposal, present));
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
