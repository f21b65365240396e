// A creation that is like one before, and what it takes to have one before it: stencil.h.
#include "apiserver/representation/representation.h"
#include "apiserver/writes/alike_update.h"
#include "apiserver/writes/steps.h"

namespace berth::apiserver {
namespace {

constexpr int kMostNames = 8;  ///< Tried of those that are made up.

/// What is of this creation alone. Made up in the order in which the long way does: a server with the same seed gives the same names.
Stencil::Values values_for(Ground& ground, const CreationPattern& pattern, const CutCreation& cut, std::string& name) {
  Stencil::Values values;
  values.texts = cut.texts;
  for (const auto& head : pattern.made_up) values.made_up.push_back(head + ground.names.suffix());
  if (pattern.name) {
    values.name = cut.texts[*pattern.name];
    name = values.name.substr(1, values.name.size() - 2);
  } else {
    name = generated_name(ground, pattern.generate_name);
    values.name = Stencil::quoted(name);
  }
  values.uid = Stencil::quoted(ground.names.uid());
  values.now = Stencil::quoted(ground.now_text());
  return values;
}

Proposal proposal_like(const Ground& ground, const model::KindInfo& stored, const CreationPattern& pattern, const Stencil::Values& values,
                       const WriteOperation& operation) {
  auto meta = pattern.meta;
  meta.name = operation.name;
  meta.uid = values.uid.substr(1, values.uid.size() - 2);
  for (const auto& [field, text] : pattern.selected)
    meta.fields[field].second = values.texts[text].substr(1, values.texts[text].size() - 2);
  auto proposal = proposal_of(ground, stored, std::move(meta), pattern.stored.fill(values));
  proposal.expected = 0;
  return proposal;
}

/// A creation of which the long way need not ask more than admission does.
bool follows_from_admission(const WritePipeline& writes, const WriteOperation& operation) {
  const auto& own = rules_of(*operation.kind);
  return !own.guard && !own.sign && !own.check_first && !own.check_last && !own.takes_addresses && writes.admission != nullptr;
}

}  // namespace

void begin_draft(const WritePipeline& writes, WriteOperation& operation) {
  const auto begin = [&](const auto& draft) {
    if (draft != nullptr) draft->circumstances = writes.admission->circumstances(operation.admission);
  };
  begin(operation.draft);
  begin(operation.update_draft);
}

void settle_draft(const WritePipeline& writes, WriteOperation& operation) {
  const auto settle = [&](auto& draft) {
    if (draft == nullptr) return;
    const auto& before = draft->circumstances;
    const bool is_known = before && operation.request->warnings.empty() && writes.admission->circumstances(operation.admission);
    if (!is_known || !before->hold()) draft.reset();
  };
  settle(operation.draft);
  settle(operation.update_draft);
}

void leave_pattern(WritePipeline& writes, const WriteOperation& operation, const Proposal& proposal) {
  if (operation.draft == nullptr) return;
  const auto& request = *operation.request;
  std::string shown;
  if (&storage_kind(*operation.kind) != operation.kind) {
    const Representation form(writes.ground.loop, request);
    if (!form.is_plain_json()) return;
    auto text = with_revision(proposal.value, proposal.revision_offset, 0);
    shown = form.of(StoredObject(proposal.key, make_bytes(std::move(text)), 0, 0, proposal.meta)).text;
  }
  auto pattern = pattern_of(*operation.draft, {.request = request,
                                               .kind = *operation.kind,
                                               .generate_name = operation.generate_name,
                                               .made_up = operation.admission.made_up,
                                               .proposal = proposal,
                                               .shown = shown,
                                               .has_writer = writes.options.tracks_every_writer});
  if (pattern != nullptr) writes.patterns->put(operation.draft->rest, std::move(pattern));
}

namespace steps {

StepResult create_alike(WritePipeline& writes, const WritePtr& operation) {
  const auto& request = *operation->request;
  if (!follows_from_admission(writes, *operation)) return Flow::kNext;
  auto cut = cut_creation(request);
  if (!cut) return Flow::kNext;
  bool is_second = false;
  const auto pattern = writes.patterns->find(cut->rest, is_second);
  if (pattern == nullptr) {
    if (is_second)
      operation->draft = std::make_shared<CreationDraft>(CreationDraft{cut->rest, {cut->texts.begin(), cut->texts.end()}, std::nullopt});
    return Flow::kNext;
  }
  if (auto storable = check_storable(writes, operation); !storable) return storable;
  const auto& kind = *operation->kind;
  writes.patterns->count_followed();
  auto values = values_for(writes.ground, *pattern, *cut, operation->name);
  auto proposal = proposal_like(writes.ground, storage_kind(kind), *pattern, values, *operation);
  const bool shows_other = pattern->shown && Representation(writes.ground.loop, request).is_plain_json();
  if (!shows_other) values = {};
  writes.ground.cache->propose(std::move(proposal), [&writes, operation, pattern, shows_other, values = std::move(values),
                                                     cut = std::move(*cut)](ProposeResult result) mutable {
    const auto& kind = *operation->kind;
    if (result) {
      tell_way(writes, *operation, (*result)->meta.uid);
      WriteOutcome outcome{std::move(*result), {}, true};
      if (shows_other) {
        values.texts = cut.texts;
        values.revision = std::to_string(outcome.object->revision);
        outcome.shown = pattern->shown->fill(values).value;
      }
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
