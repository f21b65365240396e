// A creation that is like one before, and what it takes to have one before it: alike.h.
#include "apiserver/representation/representation.h"
#include "apiserver/writes/steps.h"
#include "base/json_scan.h"
#include "model/kind_hooks.h"

namespace berth::apiserver {
namespace {

constexpr int kMostNames = 8;  ///< Tried of those that are made up.
constexpr std::size_t kMostTextBytes = 1024;
constexpr std::size_t kSuffix = 5;  ///< Of what is made up.
constexpr std::string_view kNamePath = "metadata.name";

using Found = TextCutter::Found;

/// The kind's free texts are the first places, in their order. `has_given`: and what the server gives.
FreeUpdateTexts places_of(const std::vector<model::FreeText>& texts, bool is_stored, bool has_given) {
  using enum TextClass;
  FreeUpdateTexts out;
  for (const auto& [path, stored_at, fits] : texts) out.places.push_back({is_stored && !stored_at.empty() ? stored_at : path, kFree, fits});
  if (has_given)
    out.add({{"metadata.uid", kUid},
             {"metadata.creationTimestamp", kCreated},
             {"metadata.managedFields.*.time", kOwnerTime},
             {"metadata.resourceVersion", kRevision}});
  return out;
}

struct KindPlan {
  const std::vector<model::FreeText>& texts;
  TextCutter sent, shown, stored;
  explicit KindPlan(const std::vector<model::FreeText>& of)
      : texts(of), sent(places_of(of, false, false)), shown(places_of(of, false, true)), stored(places_of(of, true, true)) {}
};

/// Null: the kind has no free texts.
const KindPlan* plan_of(const model::KindInfo& kind) {
  static const auto kPlans = [] {
    std::map<const model::KindInfo*, KindPlan> plans;
    for (const auto& one : model::all_kinds())
      if (const auto& texts = model::hooks_of(one).form->free_texts; !texts.empty()) plans.try_emplace(&one, texts);
    return plans;
  }();
  const auto found = kPlans.find(&kind);
  return found == kPlans.end() ? nullptr : &found->second;
}

/// Nothing: creations of this kind, or asked for like this one, always go the long way.
std::optional<CutWrite> cut_creation(WriteOperation& operation) {
  const auto& request = *operation.request;
  const auto* plan = plan_of(*request.kind);
  const auto body = plan == nullptr ? std::string_view() : text_to_cut(operation, {"application/json"});
  if (body.empty()) return std::nullopt;
  CutWrite out;
  out.rest = begin_rest(request, body.size());
  add_part(out.rest, request.http.headers.get("Accept"));
  add_user(out.rest, request.user, request.user.name);
  std::vector<Found> found;
  if (!plan->sent.cut(body, found, &out.rest)) return std::nullopt;
  out.texts.resize(plan->texts.size());
  for (const auto& one : found)
    if (!std::exchange(out.texts[one.place], one).text.empty()) return std::nullopt;  // It is there twice.
  return out;
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

/// What the long way made of a creation.
struct Made {
  const WriteOperation& operation;
  const Proposal& proposal;
  bool has_writer = true;  ///< Its field owners, if any, are who wrote it now.
};

/// Cuts one form of what was made. Nothing where anything in it cannot be told from something else.
std::optional<Stencil> stencil_of(std::string_view text, const TextCutter& cutter, const Made& made) {
  const auto& texts = made.operation.draft->texts;
  const auto& free = plan_of(*made.operation.kind)->texts;
  const auto& meta = made.proposal.meta;
  std::vector<Found> found;
  if (!cutter.cut(text, found, nullptr)) return std::nullopt;
  std::vector<Stencil::Place> places, given;  // Given by the server.
  std::string_view name, uid, created, owner;
  std::size_t owners = 0, revisions = 0;
  for (const auto& [is, said, place] : found) {
    if (is == TextClass::kFree && free[place].path == kNamePath) name = said;
    if (is == TextClass::kUid) uid = said;
    if (is == TextClass::kCreated) created = said;
    if (is == TextClass::kRevision) {
      places.push_back({said, Stencil::kRevision});
      ++revisions;
    } else if (is == TextClass::kOwnerTime) {
      owner = said;
      ++owners;
    } else if (is != TextClass::kFree) {
      given.push_back({said, texts.size() + (is == TextClass::kUid ? Pattern::kUid : Pattern::kNow)});
    } else if (!texts[place].text.empty()) {
      if (said != texts[place].text) return std::nullopt;
      places.push_back({said, place});
    } else if (free[place].path == kNamePath) {
      if (made.operation.candidate.generate_name.empty()) return std::nullopt;
      given.push_back({said, texts.size() + Pattern::kName});
    }
  }
  if (owners > 0) given.push_back({owner, texts.size() + Pattern::kNow});
  const auto sent = static_cast<std::size_t>(std::ranges::count_if(texts, [](const auto& one) { return !one.text.empty(); }));
  // Field owners, if any, are one: who wrote it now.
  if (uid.empty() || uid != meta.uid || name.empty() || name != meta.name || created.empty()) return std::nullopt;
  if (places.size() != sent + 1 || revisions != 1 || owners > 1 || (owners == 1 && (!made.has_writer || owner != created)))
    return std::nullopt;

  // What stands anywhere else as well was taken there by somebody.
  const auto body = text_of(made.operation);
  const auto is_explained = [&](std::string_view said) {
    const std::string_view raw(said.data() - 1, said.size() + 2);
    return count(text, raw) == count(body, raw) + static_cast<std::size_t>(std::ranges::count(given, said, &Stencil::Place::was));
  };
  const auto is_told = [&](const Stencil::Place& place) { return place.text == Stencil::kRevision || is_explained(place.was); };
  if (!std::ranges::all_of(places, is_told) || !std::ranges::all_of(given, is_explained, &Stencil::Place::was)) return std::nullopt;
  places.insert(places.end(), given.begin(), given.end());
  const auto& made_up = made.operation.admission.notes.made_up;
  for (std::size_t i = 0; i < made_up.size(); ++i) {
    const std::string_view own = made_up[i];
    if (own.empty() || count(body, own) > 0) return std::nullopt;
    for (auto found = text.find(own); found != std::string_view::npos; found = text.find(own, found + own.size()))
      places.push_back({text.substr(found, own.size()), texts.size() + Pattern::kMadeUp + i});
  }
  return Stencil::cut(text, std::move(places));
}

/// Nothing: it cannot be told what of it is whose. `shown`: the answer, where it is not what is stored; of revision 0.
std::optional<Pattern> pattern_of(const Made& made, std::string_view shown) {
  const auto& plan = *plan_of(*made.operation.kind);
  const auto& draft = *made.operation.draft;
  auto stored = stencil_of(made.proposal.value, plan.stored, made);
  if (!stored) return std::nullopt;
  Pattern out{.stored = std::move(*stored),
              .labels = made.proposal.meta.labels,
              .annotations = draft.annotations,
              .circumstances = *draft.circumstances};
  if (!shown.empty() && !(out.shown = stencil_of(shown, plan.shown, made))) return std::nullopt;
  for (const auto& [path, text] : made.proposal.meta.fields) out.fields.push_back({path, text, std::nullopt});
  for (std::size_t i = 0; i < draft.texts.size(); ++i) {
    if (draft.texts[i].text.empty()) continue;
    if (plan.texts[i].path == kNamePath) out.name = i;
    const auto& path = plan.texts[i].stored_at.empty() ? plan.texts[i].path : plan.texts[i].stored_at;
    const auto field = std::ranges::find(out.fields, path, &Pattern::Field::path);
    if (field == out.fields.end()) continue;
    if (field->text != draft.texts[i].text) return std::nullopt;
    field->free = i;
  }
  out.generate_name = made.operation.candidate.generate_name;
  for (const auto& text : made.operation.admission.notes.made_up)
    out.made_up.push_back(text.substr(0, text.size() - std::min(text.size(), kSuffix)));
  return out;
}

/// A creation of which the long way need not ask more than admission does.
bool follows_from_admission(const WritePipeline& writes, const WriteOperation& operation) {
  const auto& own = rules_of(*operation.kind);
  return !own.guard && !own.sign && !own.check_first && !own.check_last && !own.takes_addresses && writes.admission != nullptr;
}

/// What a creation is given: Pattern::Given. Made up in the order in which the long way does: a server with the same seed gives the same
/// names.
std::vector<std::string> given_to(Ground& ground, const Pattern& pattern, const CutWrite& cut) {
  std::vector<std::string> out(Pattern::kMadeUp);
  for (const auto& head : pattern.made_up) out.push_back(head + ground.names.suffix());
  out[Pattern::kName] = pattern.name ? std::string(cut.texts[*pattern.name].text) : generated_name(ground, pattern.generate_name);
  out[Pattern::kUid] = ground.names.uid();
  out[Pattern::kNow] = ground.now_text();
  return out;
}

std::vector<std::string_view> texts_of(const CutWrite& cut, const std::vector<std::string>& given) {
  std::vector<std::string_view> out;
  out.reserve(cut.texts.size() + given.size());
  for (const auto& one : cut.texts) out.push_back(one.text);
  out.insert(out.end(), given.begin(), given.end());
  return out;
}

}  // namespace

void leave_pattern(WritePipeline& writes, const WriteOperation& operation, const Proposal& proposal) {
  if (operation.draft == nullptr || operation.draft->base != nullptr || plan_of(*operation.kind) == nullptr) return;
  std::string shown;
  if (&storage_kind(*operation.kind) != operation.kind) {
    const Representation form(writes.ground.loop, *operation.request);
    if (form.is_plain_json())
      shown =
          form.of(StoredObject(proposal.key, make_bytes(with_revision(proposal.value, proposal.revision_offset, 0)), 0, 0, proposal.meta))
              .text;
  }
  if (auto pattern = pattern_of({operation, proposal, writes.options.tracks_every_writer}, shown))
    writes.patterns->put(operation.draft->rest, std::move(*pattern));
}

namespace steps {

StepResult create_alike(WritePipeline& writes, const WritePtr& operation) {
  const auto& request = *operation->request;
  if (!follows_from_admission(writes, *operation)) return Flow::kNext;
  auto cut = cut_creation(*operation);
  if (!cut) return Flow::kNext;
  const auto pattern = follow(writes, *operation, *cut, nullptr);
  if (pattern == nullptr) return Flow::kNext;
  if (auto storable = check_storable(writes, operation); !storable) return storable;
  writes.patterns->creations.add();
  auto given = given_to(writes.ground, *pattern, *cut);
  const auto texts = texts_of(*cut, given);
  if (request.audit != nullptr) request.audit->set_name(pattern->name ? given[Pattern::kName] : std::string());
  operation->name = given[Pattern::kName];
  ObjectMeta meta{operation->ns, operation->name, given[Pattern::kUid], {}, {}, {}};
  pattern->select(texts, nullptr, meta);
  auto proposal = proposal_of(writes.ground, storage_kind(*operation->kind), std::move(meta), pattern->stored.fill(texts));
  proposal.expected = 0;
  const bool shows_other = pattern->shown && Representation(writes.ground.loop, request).is_plain_json();
  if (!shows_other) given = {};
  writes.ground.cache->propose(std::move(proposal), [&writes, operation, pattern, shows_other, given = std::move(given),
                                                     cut = std::move(*cut)](ProposeResult result) mutable {
    const auto& kind = *operation->kind;
    if (result) {
      tell_way(writes, *operation, (*result)->meta.uid);
      WriteOutcome outcome{std::move(*result), {}, true};
      if (shows_other) outcome.shown = pattern->shown->fill(texts_of(cut, given), std::to_string(outcome.object->revision)).value;
      return operation->done(std::move(outcome));
    }
    if (result.error() != ProposeError::kExists) return operation->fail(not_stored(writes.ground, result.error()));
    if (pattern->name || ++operation->attempts >= kMostNames)
      return operation->fail(model::already_exists(kind.group, kind.plural, operation->name));
    // The name that was made up is somebody's: the long way makes up others.
    operation->name = operation->request->info.name;
    writes.ground.offload([&writes, operation] { run_steps(writes, operation); });
  });
  return Flow::kWaits;
}

}  // namespace steps
}  // namespace berth::apiserver
