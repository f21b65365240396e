// DELETE: preconditions, grace, finalizers and propagation (apiserver/pkg/registry/rest/delete.go, registry/generic/registry/store.go).
#include "apiserver/body.h"
#include "apiserver/impl.h"
#include "apiserver/kind_rules.h"
#include "apiserver/verbs/reading.h"
#include "apiserver/write.h"
#include "model/kind_hooks.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";
constexpr int kMaxDeletionAttempts = 500;

/// One deletion, through all its attempts.
struct Deletion {
  RequestPtr request;
  const model::KindInfo* kind = nullptr;
  std::string ns, name;
  json::Value options;
  bool admit = true;
  std::function<void(model::ApiResult<ApiServer::Impl::DeleteOutcome>)> done;
  AdmissionRequest admission;
  bool is_admitted = false;
  int attempts = 0;
};
using DeletionPtr = std::shared_ptr<Deletion>;

std::optional<model::ApiStatus> check_preconditions(const Deletion& deletion, const StoredObject& object) {
  const auto& kind = *deletion.kind;
  const auto uid = json::get_string(deletion.options, {"preconditions", "uid"});
  if (!uid.empty() && uid != object.meta.uid)
    return model::conflict(
        kind.group, kind.kind, deletion.name,  // The kind, not the resource: rest.BeforeDelete knows no other word.

        fmt::format(
            "the UID in the precondition ({}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            uid, object.meta.uid));
  const auto revision = json::get_string(deletion.options, {"preconditions", "resourceVersion"});
  if (!revision.empty() && revision != std::to_string(object.revision))
    return model::conflict(kind.group, kind.kind, deletion.name,  // The kind, not the resource: rest.BeforeDelete knows no other word.

                           fmt::format("the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({}). "
                                       "The object might have been modified",
                                       revision, object.revision));
  return std::nullopt;
}

const model::Life& life_of(const model::KindInfo& kind) { return *model::hooks_of(kind).life; }

std::vector<std::string> finalizers_after(const Deletion& deletion, const json::Value& document) {
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
  std::string policy(json::get_string(deletion.options, {"propagationPolicy"}));
  if (const auto* orphan = json::find(deletion.options, "orphanDependents"); policy.empty() && orphan != nullptr && orphan->is_bool())
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
std::optional<std::int64_t> grace_of(const Deletion& deletion, const json::Value& document) {
  const auto& own = life_of(*deletion.kind).grace_seconds;
  return own ? std::optional(own(deletion.options, document)) : std::nullopt;
}

struct Mark {
  bool remove_now = false;
  bool unchanged = false;
  bool remove_next = false;  ///< Written first, then removed.
};

/// Marks the document as being deleted, or finds that it goes at once or that nothing changes.
Mark mark_deleted(const Deletion& deletion, json::Value& document, TimePoint now) {
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
  if (grace.value_or(0) == 0 && finalizers.empty() && !holds_content) return {true, false};
  metadata["deletionTimestamp"] = format_rfc3339(now + std::chrono::seconds(grace.value_or(0)));
  // A namespace ends when it is empty, whatever the time (pkg/registry/core/namespace/storage).
  if (!is_namespace) metadata["deletionGracePeriodSeconds"] = grace.value_or(0);
  if (deletion.kind->generation) metadata["generation"] = json::get_int(document, {"metadata", "generation"}) + 1;
  if (is_namespace) json::set(document, {"status", "phase"}, "Terminating");
  return {};
}

void attempt(ApiServer::Impl& server, const DeletionPtr& deletion);

/// Asks admission about what `admission` was filled with; the attempt goes on afterwards.
void admit(ApiServer::Impl& server, const DeletionPtr& deletion) {
  server.admission->mutate(deletion->admission, [&server, deletion](Admitted admitted) {
    if (!admitted) return deletion->done(std::unexpected(std::move(admitted.error())));
    server.admission->validate(deletion->admission, [&server, deletion](Admitted valid) {
      if (!valid) return deletion->done(std::unexpected(std::move(valid.error())));
      deletion->is_admitted = true;
      attempt(server, deletion);
    });
  });
}

void attempt(ApiServer::Impl& server, const DeletionPtr& deletion) {
  const auto& kind = *deletion->kind;
  const auto fail = [&](model::ApiStatus status) { deletion->done(std::unexpected(std::move(status))); };
  const auto base = server.cache->get(object_key(kind, deletion->ns, deletion->name));
  if (base == nullptr) return fail(model::not_found(kind.group, kind.plural, deletion->name));
  if (auto wrong = check_preconditions(*deletion, *base)) return fail(std::move(*wrong));
  auto document = decode_object(*base);
  const auto& stored = storage_kind(kind);
  if (life_of(kind).is_namespace && json::find(document, {"metadata", "deletionTimestamp"}) != nullptr &&
      !json::get_array(document, {"spec", "finalizers"}).empty())
    return fail(model::conflict(
        kind.group, kind.plural, deletion->name,
        "The system is ensuring all content is removed from this namespace.  Upon completion, this namespace will automatically be "
        "purged by the system."));
  if (const auto& why = life_of(kind).undeletable; why)
    if (const auto sentence = why(deletion->name); !sentence.empty())
      return fail(model::forbidden(kind.group, kind.plural, deletion->name, sentence));
  if (deletion->admit && !deletion->is_admitted) {
    auto& admission = deletion->admission;
    admission.operation = Operation::kDelete;
    admission.kind = &kind;
    admission.ns = deletion->ns;
    admission.name = deletion->name;
    admission.user = &deletion->request->user;
    admission.dry_run = deletion->request->dry_run;
    admission.warnings = &deletion->request->warnings;
    admission.options = deletion->options;
    admission.kinds = deletion->request->kinds;
    if (!ApiServer::Impl::asks_converter(*deletion->request)) {
      admission.old_object = document;
      return admit(server, deletion);
    }
    return server.convert_ahead(deletion->request, {base}, [&server, deletion](model::ApiResult<std::vector<ObjectPtr>> shown) {
      if (!shown) return deletion->done(std::unexpected(std::move(shown.error())));
      deletion->admission.old_object = server.read_document(*deletion->request, *shown->front());
      admit(server, deletion);
    });
  }
  if (&kind == &KindTable::definitions()) server.custom->begin_deletion(document);
  const auto mark = mark_deleted(*deletion, document, server.loop.now());
  const bool takes_addresses = rules_of(kind).takes_addresses;
  if (mark.unchanged) return deletion->done(ApiServer::Impl::DeleteOutcome{base, {}, false});
  if (deletion->request->dry_run)
    return deletion->done(ApiServer::Impl::DeleteOutcome{base, std::move(document), mark.remove_now || mark.remove_next});
  auto before = takes_addresses && mark.remove_now ? document : json::Value();
  auto proposal = make_proposal(server, stored, std::move(document));
  proposal.expected = base->revision;
  proposal.is_delete = mark.remove_now;
  if (mark.remove_now) proposal.value.clear();
  server.cache->propose(std::move(proposal), [&server, deletion, mark, before = std::move(before)](ProposeResult result) {
    if (result && mark.remove_next) {
      // The state that was asked for is the one before this step.
      json::erase(deletion->options, {"preconditions", "resourceVersion"});
      return server.offload([&server, deletion] { attempt(server, deletion); });
    }
    if (result) {
      if (!before.is_null()) server.services.release_unused(before, nullptr);
      return deletion->done(ApiServer::Impl::DeleteOutcome{std::move(*result), {}, mark.remove_now});
    }
    if (result.error() == ProposeError::kStorage)
      return deletion->done(std::unexpected(model::internal_error(server.cache->storage_failure())));
    if (++deletion->attempts >= kMaxDeletionAttempts)
      return deletion->done(std::unexpected(model::modified_conflict(deletion->kind->group, deletion->kind->plural, deletion->name)));
    server.offload([&server, deletion] { attempt(server, deletion); });
  });
}

/// A collection's deletion: a few at a time, the first error ends it.
struct CollectionDeletion {
  RequestPtr request;
  json::Value options;
  ListResult found;
  std::size_t next = 0;
};

void delete_next(ApiServer::Impl& server, const std::shared_ptr<CollectionDeletion>& all) {
  if (all->next == all->found.items.size()) {
    if (!ApiServer::Impl::asks_converter(*all->request)) return answer_list(server, all->request, std::move(all->found), "", std::nullopt);
    return server.convert_ahead(all->request, all->found.items, [&server, all](model::ApiResult<std::vector<ObjectPtr>> shown) {
      if (!shown) return server.respond_status(*all->request, shown.error());
      all->found.items = std::move(*shown);
      answer_list(server, all->request, std::move(all->found), "", std::nullopt);
    });
  }
  const auto& object = *all->found.items[all->next++];
  server.delete_object(all->request, std::string(object.meta.ns), std::string(object.meta.name), all->options, true,
                       [&server, all](model::ApiResult<ApiServer::Impl::DeleteOutcome> outcome) {
                         // Gone meanwhile is what was wanted.
                         if (!outcome && !outcome.error().is("NotFound") && !outcome.error().is("Conflict"))
                           return server.respond_status(*all->request, outcome.error());
                         server.offload([&server, all] { delete_next(server, all); });
                       });
}

}  // namespace

void ApiServer::Impl::delete_object(const RequestPtr& request, std::string ns, std::string name, json::Value delete_options, bool admit,
                                    std::function<void(model::ApiResult<DeleteOutcome>)> done) {
  auto deletion = std::make_shared<Deletion>();
  deletion->request = request;
  deletion->kind = request->kind;
  deletion->ns = std::move(ns);
  deletion->name = std::move(name);
  deletion->options = std::move(delete_options);
  deletion->admit = admit;
  deletion->done = std::move(done);
  attempt(*this, deletion);
}

void ApiServer::Impl::remove(const RequestPtr& request) {
  auto delete_options = read_delete_options(*request);
  if (!delete_options) return respond_status(*request, delete_options.error());
  if (!json::get_array(*delete_options, {"dryRun"}).empty()) request->dry_run = true;
  delete_object(request, request->kind->namespaced ? request->info.ns : "", request->info.name, std::move(*delete_options), true,
                [this, request](model::ApiResult<DeleteOutcome> outcome) {
                  if (!outcome) return respond_status(*request, outcome.error());
                  if (outcome->gone && !life_of(*request->kind).is_answered_when_deleted)
                    return respond_success(*request, 200, request->info.name, outcome->object->meta.uid);
                  if (!outcome->document.is_null()) return respond_document(*request, 200, outcome->document);
                  show(request, 200, outcome->object);
                });
}

void ApiServer::Impl::remove_collection(const RequestPtr& request) {
  auto delete_options = read_delete_options(*request);
  if (!delete_options) return respond_status(*request, delete_options.error());
  if (!json::get_array(*delete_options, {"dryRun"}).empty()) request->dry_run = true;
  auto filter = read_filter(*request);
  if (!filter) return respond_status(*request, filter.error());
  auto all = std::make_shared<CollectionDeletion>();
  all->request = request;
  all->options = std::move(*delete_options);
  all->found = cache->list(*filter, "", 0);
  delete_next(*this, all);
}

}  // namespace berth::apiserver
