// DELETE: preconditions, grace, finalizers and propagation (apiserver/pkg/registry/rest/delete.go, registry/generic/registry/store.go).
#include "apiserver/reads/reading.h"
#include "apiserver/request/request_body.h"
#include "apiserver/verbs/verbs.h"
#include "model/kind_hooks.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";
constexpr int kMaxDeletionAttempts = 500;

const model::Life& life_of(const model::KindInfo& kind) { return *model::hooks_of(kind).life; }

std::vector<std::string> finalizers_after(const WriteOperation& deletion, const json::Value& document) {
  std::vector<std::string> finalizers;
  bool has_policy_finalizer = false;
  for (const auto& finalizer : json::get_array(document, {"metadata", "finalizers"})) {
    if (!finalizer.is_string()) continue;
    const auto text = json::as_view(finalizer);
    if (text == kOrphan || text == kForeground) {
      has_policy_finalizer = true;
      continue;
    }
    finalizers.emplace_back(text);
  }
  std::string policy(json::get_string(deletion.decoded.options, {"propagationPolicy"}));
  if (const auto* orphan = json::find(deletion.decoded.options, "orphanDependents");
      policy.empty() && orphan != nullptr && orphan->is_bool())
    policy = orphan->get_bool() ? "Orphan" : "Background";
  if (policy.empty() && has_policy_finalizer) {
    // What an earlier deletion asked for stays.
    finalizers.clear();
    for (const auto& finalizer : json::get_array(document, {"metadata", "finalizers"}))
      if (finalizer.is_string()) finalizers.emplace_back(json::as_view(finalizer));
    return finalizers;
  }
  if (policy == "Orphan" || (policy.empty() && life_of(*deletion.kind).orphans_by_default)) finalizers.emplace_back(kOrphan);
  if (policy == "Foreground") finalizers.emplace_back(kForeground);
  return finalizers;
}

/// Seconds between being told to end and going; nullopt for kinds without grace.
std::optional<std::int64_t> grace_of(const WriteOperation& deletion, const json::Value& document) {
  const auto& own = life_of(*deletion.kind).grace_seconds;
  return own ? std::optional(own(deletion.decoded.options, document)) : std::nullopt;
}

struct Mark {
  bool remove_now = false;
  bool unchanged = false;
  bool remove_next = false;  ///< Written first, then removed.
};

/// Marks the document as being deleted, or finds that it goes at once or that nothing changes.
Mark mark_deleted(const WriteOperation& deletion, json::Value& document, TimePoint now) {
  auto& metadata = json::ensure_object(document, {"metadata"});
  const auto finalizers = finalizers_after(deletion, document);
  const auto set_finalizers = [&] {
    if (finalizers.empty()) {
      metadata.erase("finalizers");
    } else {
      metadata["finalizers"] = json::Array(finalizers.begin(), finalizers.end());
    }
  };
  const bool finalizers_change =
      finalizers.size() != json::get_array(document, {"metadata", "finalizers"}).size() ||
      !std::equal(finalizers.begin(), finalizers.end(), json::get_array(document, {"metadata", "finalizers"}).begin(),
                  [](const std::string& a, const json::Value& b) { return b.is_string() && json::as_view(b) == a; });
  const auto grace = grace_of(deletion, document);
  if (const auto* timestamp = json::find(document, {"metadata", "deletionTimestamp"})) {
    const auto present = json::get_int(document, {"metadata", "deletionGracePeriodSeconds"});
    set_finalizers();
    if (grace && *grace < present) {
      // Grace only ever gets shorter; the time stamp moves with it.
      const auto was = parse_rfc3339(json::as_view(*timestamp)).value_or(now);
      metadata["deletionTimestamp"] = format_rfc3339(was - std::chrono::seconds(present) + std::chrono::seconds(*grace));
      metadata["deletionGracePeriodSeconds"] = *grace;
      // Down to nothing: watchers see that before they see it go.
      return {false, false, finalizers.empty() && *grace == 0};
    }
    if (finalizers.empty() && present == 0) return {true, false};
    return {false, !finalizers_change};
  }
  set_finalizers();
  const bool is_namespace = life_of(*deletion.kind).is_namespace;
  const bool holds_content = is_namespace && !json::get_array(document, {"spec", "finalizers"}).empty();
  const bool goes_now = grace.value_or(0) == 0 && finalizers.empty() && !holds_content;
  if (goes_now && !grace) return {.remove_now = true};
  metadata["deletionTimestamp"] = format_rfc3339(now + std::chrono::seconds(grace.value_or(0)));
  // A namespace ends when it is empty, a definition when its objects are gone, whatever the time (their registries mark them themselves).
  const bool is_definition = deletion.kind == &KindTable::definitions();
  if (!is_namespace && !is_definition) metadata["deletionGracePeriodSeconds"] = grace.value_or(0);
  if (deletion.kind->generation && !is_definition) metadata["generation"] = json::get_int(document, {"metadata", "generation"}) + 1;
  if (is_namespace) json::set(document, {"status", "phase"}, "Terminating");
  return {.remove_next = goes_now};  // Watchers see that it ends before they see it go.
}

/// What a dry run would have stored: no revision is given for that.
ObjectPtr as_if_stored(const StoredObject& base, Proposal proposal) {
  auto text = with_revision(std::move(proposal.value), proposal.revision_offset, base.revision);
  return std::make_shared<const StoredObject>(proposal.key, make_bytes(std::move(text)), base.revision, base.create_revision,
                                              proposal.meta);
}

/// A namespace that goes once nothing is left in it.
bool is_being_emptied(const json::Value& document) {
  return json::find(document, {"metadata", "deletionTimestamp"}) != nullptr && !json::get_array(document, {"spec", "finalizers"}).empty();
}

/// What a deletion has to do with; of a definition more is told when it goes.
Take deleted_part(std::string_view parent, std::string_view key) {
  constexpr std::array<std::string_view, 5> kRead = {"nodeName", "terminationGracePeriodSeconds", "finalizers", "phase", "conditions"};
  if (parent.empty()) return key == "metadata" || key == "spec" || key == "status" ? Take::kMembers : Take::kNot;
  const bool is_taken = parent == "metadata" ? key != "managedFields" : std::ranges::find(kRead, key) != kRead.end();
  return is_taken ? Take::kWhole : Take::kNot;
}

void deleted(WritePipeline& writes, const WritePtr& deletion, const Mark& mark, const json::Value& before, ProposeResult result) {
  if (result && mark.remove_next) {
    deletion->granted.marked = std::move(*result);
    // The state that was asked for is the one before this step.
    json::erase(deletion->decoded.options, {"preconditions", "resourceVersion"});
    return try_again(writes, deletion, Stage::kRead);
  }
  if (result) {
    if (!before.is_null()) writes.services.release_unused(before, nullptr);
    return deletion->done(WriteOutcome{.object = std::move(*result), .gone = mark.remove_now});
  }
  if (is_of_storage(result.error())) return deletion->fail(not_stored(writes.ground, result.error()));
  if (++deletion->attempts >= kMaxDeletionAttempts)
    return deletion->fail(model::modified_conflict(deletion->kind->group, deletion->kind->plural, deletion->name));
  try_again(writes, deletion, Stage::kRead);
}

/// A collection's deletion: a few at a time, the first error ends it.
struct CollectionDeletion {
  RequestPtr request;
  Reads& reads;
  json::Value options;
  ListResult found;
  Rest rest;  ///< What a limit leaves for the next request.
  std::size_t next = 0;
};

void delete_next(WritePipeline& writes, const std::shared_ptr<CollectionDeletion>& all) {
  if (all->next == all->found.items.size()) return all->reads.answer_list(all->request, std::move(all->found), std::move(all->rest));
  const auto& object = *all->found.items[all->next++];
  auto deletion = make_write(writes, all->request, WriteMode::kDeleteMember);
  deletion->ns = object.meta.ns;
  deletion->name = object.meta.name;
  deletion->decoded.options = all->options;
  deletion->done = [&writes, all](model::ApiResult<WriteOutcome> outcome) {
    // Gone meanwhile is what was wanted.
    if (!outcome && !outcome.error().is("NotFound") && !outcome.error().is("Conflict"))
      return writes.respond.status(*all->request, outcome.error());
    writes.ground.offload([&writes, all] { delete_next(writes, all); });
  };
  run_steps(writes, std::move(deletion));
}

/// DeleteOptions of the request, which may make it a dry run.
model::ApiResult<json::Value> take_delete_options(Request& request) {
  auto delete_options = read_delete_options(request);
  if (!delete_options) return delete_options;
  if (!json::get_array(*delete_options, {"dryRun"}).empty()) request.dry_run = true;
  const auto warning = life_of(*request.kind).orphans_warning;
  const bool says_what_becomes =
      json::find(*delete_options, {"propagationPolicy"}) != nullptr || json::find(*delete_options, {"orphanDependents"}) != nullptr;
  if (!warning.empty() && !says_what_becomes) request.warnings.emplace_back(warning);
  return delete_options;
}

}  // namespace

namespace steps {

StepResult decode_deletion(WritePipeline& writes, const WritePtr& deletion) {
  const auto& request = deletion->request;
  auto delete_options = take_delete_options(*request);
  if (!delete_options) return std::unexpected(std::move(delete_options.error()));
  deletion->decoded.options = std::move(*delete_options);
  deletion->dry_run = request->dry_run;
  deletion->done = [&writes, request](model::ApiResult<WriteOutcome> outcome) {
    if (!outcome) return writes.respond.status(*request, outcome.error());
    if (outcome->gone && !life_of(*request->kind).is_answered_when_deleted)
      return writes.respond.success(*request, 200, request->info.name, outcome->object->meta.uid);
    writes.respond.written(request, 200, std::move(*outcome));
  };
  return Flow::kNext;
}

StepResult find_victim(WritePipeline& writes, const WritePtr& deletion) {
  const auto& kind = *deletion->kind;
  deletion->candidate.base = writes.ground.cache->get(object_key(kind, deletion->ns, deletion->name));
  // Marked to go at once, it may be gone already: its node was faster. One of the same name that came since is another.
  if (const auto& marked = deletion->granted.marked;
      marked != nullptr && (deletion->candidate.base == nullptr || deletion->candidate.base->meta.uid != marked->meta.uid)) {
    deletion->done(WriteOutcome{.object = marked, .gone = true});
    return Flow::kWaits;
  }
  if (deletion->candidate.base == nullptr) return std::unexpected(model::not_found(kind.group, kind.plural, deletion->name));
  if (auto wrong = refuse_deletion(kind, deletion->name, deletion->decoded.options, deletion->candidate.base->meta.uid,
                                   std::to_string(deletion->candidate.base->revision)))
    return std::unexpected(std::move(*wrong));
  if (life_of(kind).is_namespace && is_being_emptied(decode_object(*deletion->candidate.base)))
    return std::unexpected(model::conflict(
        kind.group, kind.plural, deletion->name,
        "The system is ensuring all content is removed from this namespace.  Upon completion, this namespace will automatically be "
        "purged by the system."));
  if (const auto& why = life_of(kind).undeletable; why)
    if (const auto sentence = why(deletion->name); !sentence.empty())
      return std::unexpected(model::forbidden(kind.group, kind.plural, deletion->name, sentence));
  return Flow::kNext;
}

StepResult show_victim(WritePipeline& writes, const WritePtr& deletion) {
  if (deletion->granted.is_admitted) return Flow::kNext;
  if (!asks_converter(*deletion->request)) {
    deletion->candidate.current = ObjectPart(deletion->candidate.base, deleted_part).document();
    return Flow::kNext;
  }
  writes.versions.read_converted(deletion->request, deletion->candidate.base, [&writes, deletion](model::ApiResult<json::Value> shown) {
    if (!shown) return deletion->fail(std::move(shown.error()));
    deletion->candidate.current = std::move(*shown);
    run_steps(writes, deletion);
  });
  return Flow::kWaits;
}

StepResult store_deletion(WritePipeline& writes, const WritePtr& deletion) {
  const auto& kind = *deletion->kind;
  // Who is asked of the deletion may take his time: what is marked is what is there by then.
  if (auto found = find_victim(writes, deletion); !found || *found == Flow::kWaits) return found;
  const auto& base = deletion->candidate.base;
  const auto& marked = deletion->granted.marked;
  std::optional<ObjectPart> part;
  json::Value document;
  // As this deletion has marked it, it goes.
  Mark mark{.remove_now = marked != nullptr && marked->revision == base->revision};
  if (!mark.remove_now) {
    document = part.emplace(base, deleted_part).document();
    if (&kind == &KindTable::definitions()) writes.custom.begin_deletion(document);
    mark = mark_deleted(*deletion, document, writes.ground.loop.now());
  }
  if (mark.unchanged) {
    deletion->done(WriteOutcome{.object = base});
    return Flow::kWaits;
  }
  const auto& stored_kind = storage_kind(kind);
  const auto proposal_of_marked = [&] {
    return proposal_of(writes.ground, stored_kind, part->meta(stored_kind, document), part->encode(document));
  };
  if (deletion->dry_run) {
    auto stored = as_if_stored(*base, proposal_of_marked());
    deletion->done(WriteOutcome{.object = std::move(stored), .gone = mark.remove_now || mark.remove_next});
    return Flow::kWaits;
  }
  auto proposal = mark.remove_now ? proposal_of(writes.ground, stored_kind, meta_like(*base, {}), EncodedObject()) : proposal_of_marked();
  auto before = takes_addresses(kind) && mark.remove_now ? decode_object(*base) : json::Value();
  proposal.expected = base->revision;
  proposal.is_delete = mark.remove_now;
  writes.ground.cache->propose(std::move(proposal), [&writes, deletion, mark, before = std::move(before)](ProposeResult result) {
    deleted(writes, deletion, mark, before, std::move(result));
  });
  return Flow::kWaits;
}

}  // namespace steps

void remove_collection(WritePipeline& writes, Reads& reads, const RequestPtr& request) {
  auto delete_options = take_delete_options(*request);
  if (!delete_options) return writes.respond.status(*request, delete_options.error());
  auto selection = read_selection(*request);
  if (!selection) return writes.respond.status(*request, selection.error());
  const auto limit = read_limit(*request);
  if (!limit) return writes.respond.status(*request, limit.error());
  auto all = std::make_shared<CollectionDeletion>(request, reads);
  all->options = std::move(*delete_options);
  all->found = writes.ground.cache->list(selection->filter, "", *limit);
  all->rest = rest_after(all->found, selection->filter);
  const auto& selects = selection->of_converted;
  if (!selects) return delete_next(writes, all);
  writes.versions.convert_ahead(request, all->found.items, [&writes, all, selects](const model::ApiResult<std::vector<ObjectPtr>>& shown) {
    if (!shown) return writes.respond.status(*all->request, shown.error());
    std::vector<ObjectPtr> selected;
    for (std::size_t i = 0; i < shown->size(); ++i)
      if (selects(*(*shown)[i])) selected.push_back(all->found.items[i]);
    all->found.items = std::move(selected);
    delete_next(writes, all);
  });
}

}  // namespace berth::apiserver
