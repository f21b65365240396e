// The steps of a change to what is there.
#include "apiserver/apply/managed_fields.h"
#include "apiserver/request/typing.h"
#include "apiserver/writes/steps.h"
#include "model/features.h"
#include "model/kind_hooks.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

/// What the system keeps of an object's metadata, whatever a client sends.
void carry_metadata(const json::Value& current, json::Value& updated) {
  auto& metadata = json::ensure_object(updated, {"metadata"});
  for (std::string_view field :
       {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"}) {
    const auto* value = json::find(current, {"metadata", field});
    if (value != nullptr) {
      metadata[field] = *value;
    } else {
      metadata.erase(field);
    }
  }
  metadata.erase("selfLink");
}

std::vector<std::string> finalizers_of(const json::Value& document) {
  std::vector<std::string> out;
  for (const auto& finalizer : json::get_array(document, {"metadata", "finalizers"}))
    if (finalizer.is_string()) out.emplace_back(json::as_view(finalizer));
  return out;
}

model::FieldErrors check_finalizers(const model::KindInfo& kind, const json::Value& current, const json::Value& updated) {
  if (json::find(current, {"metadata", "deletionTimestamp"}) == nullptr) return {};
  const auto list = finalizers_of(current);
  const std::set<std::string> before(list.begin(), list.end());
  std::string added;
  for (const auto& finalizer : finalizers_of(updated))
    if (!before.contains(finalizer)) added += fmt::format("{}\"{}\"", added.empty() ? "" : ", ", finalizer);
  if (added.empty()) return {};
  const model::FieldError refused{
      model::FieldError::Type::kForbidden, "metadata.finalizers", "",
      fmt::format("no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}", added)};
  const auto looks = static_cast<std::size_t>(model::hooks_of(kind).rules->metadata_looks.changes);
  return model::FieldErrors(looks, refused);
}

/// The system's own metadata, which a client may leave out but not change (apimachinery: ValidateObjectMetaAccessorUpdate). What is set on
/// an object that is going stays as it is, whatever is sent.
model::FieldErrors check_system_metadata(const model::KindInfo& kind, const json::Value& current, const json::Value& updated) {
  model::FieldErrors errors;
  const auto refuse = [&](std::string_view field, const std::string& value) {
    for (int i = 0; i < model::hooks_of(kind).rules->metadata_looks.changes; ++i)
      errors.push_back({model::FieldError::Type::kInvalid, fmt::format("metadata.{}", field), value, "field is immutable"});
  };
  // A request's own name is held against its URL before; here it is what somebody on the way made of it.
  const auto name = json::get_string(updated, {"metadata", "name"});
  if (name != json::get_string(current, {"metadata", "name"})) refuse("name", json::serialize(json::Value(name)));
  const auto uid = json::get_string(updated, {"metadata", "uid"});
  if (!uid.empty() && uid != json::get_string(current, {"metadata", "uid"})) refuse("uid", json::serialize(json::Value(uid)));
  // Another creationTimestamp is passed over in silence.
  const auto* deleted = json::find(updated, {"metadata", "deletionTimestamp"});
  if (deleted != nullptr && !deleted->is_null() && json::find(current, {"metadata", "deletionTimestamp"}) == nullptr)
    refuse("deletionTimestamp", json::serialize(*deleted));
  const auto* grace = json::find(updated, {"metadata", "deletionGracePeriodSeconds"});
  if (grace != nullptr && !grace->is_null() && json::find(current, {"metadata", "deletionGracePeriodSeconds"}) == nullptr)
    refuse("deletionGracePeriodSeconds", json::serialize(*grace));
  return errors;
}

/// The revision that the client names, and the uid: what is not the stored object's is refused. Notes whether the client insists.
std::optional<model::ApiStatus> check_preconditions(WriteOperation& operation, const json::Value& updated) {
  const auto& kind = *operation.kind;
  const auto revision = json::get_string(updated, {"metadata", "resourceVersion"});
  operation.candidate.insists_on_revision = false;
  // Another uid is told first, by the storage (rest.DefaultUpdatedObjectInfo's preconditions).
  const auto sent_uid = json::get_string(updated, {"metadata", "uid"});
  const bool asks_uid = !sent_uid.empty() && sent_uid != operation.candidate.base->meta.uid;
  if (asks_uid && operation.request->info.verb == "update")
    return precondition_conflict(kind, operation.request->info.ns, operation.name,
                                 {"UID", std::string(sent_uid), std::string(operation.candidate.base->meta.uid)});
  if (!revision.empty() && revision != "0") {
    // A patch carries the present revision along: only a revision of the client's own is an insistence.
    operation.candidate.insists_on_revision = !operation.request->info.verb.starts_with("patch");
    if (revision.find_first_not_of("0123456789") != std::string_view::npos) {
      model::ApiStatus status;
      status.code = 500;
      status.message = fmt::format("strconv.ParseUint: parsing {}: invalid syntax", json::serialize(json::Value(revision)));
      return status;
    }
    if (revision != std::to_string(operation.candidate.base->revision))
      return model::modified_conflict(kind.group, kind.plural, operation.name);
  } else if (operation.request->info.verb == "update" && !asks_uid && operation.request->info.subresource != "scale" &&
             model::hooks_of(kind).life->update_needs_revision) {
    return model::invalid_object(kind.group, kind.plural, operation.name,
                                 {{model::FieldError::Type::kInvalid, "metadata.resourceVersion", "0", "must be specified for an update"}});
  }
  return std::nullopt;
}

/// The last finalizer of an object that was to be deleted: it goes with this write.
bool goes_with_write(const model::KindInfo& kind, const json::Value& object) {
  return json::find(object, {"metadata", "deletionTimestamp"}) != nullptr && !has_finalizers(object) &&
         json::get_int(object, {"metadata", "deletionGracePeriodSeconds"}) == 0 &&
         (!model::hooks_of(kind).life->is_namespace || json::get_array(object, {"spec", "finalizers"}).empty());
}

/// What is stored becomes the present document, in the version that is asked for.
StepResult read_as_asked(WritePipeline& writes, const WritePtr& operation) {
  writes.versions.read_converted(operation->request, operation->candidate.base,
                                 [&writes, operation](model::ApiResult<json::Value> current) {
                                   if (!current) return operation->fail(std::move(current.error()));
                                   operation->candidate.current = std::move(*current);
                                   run_steps(writes, operation);
                                 });
  return Flow::kWaits;
}

/// What the write can do with where nobody asks for more on the way; null: it takes the whole.
Choice part_of(const WriteOperation& operation) {
  const auto& kind = *operation.kind;
  const auto& own = rules_of(kind);
  const bool is_judged = operation.mode != WriteMode::kMark;
  const bool may_be_part = !is_judged || (operation.subresource == "status" && model::hooks_of(kind).rules->status_reads_rest);
  return may_be_part && &storage_kind(kind) == &kind && !own.guard && !own.check_first ? operation.decoded.change->part() : nullptr;
}

bool changes_addresses(const WriteOperation& operation) { return takes_addresses(*operation.kind) && operation.subresource.empty(); }

bool has_same_owners(const WriteOperation& operation) {
  const auto& part = operation.candidate.part;
  return !part || apply::are_same_owners(part->rest("metadata", "managedFields"), part->owners());
}

/// What was decided, as the store sees it.
struct Stored {
  bool is_deleted = false;
  json::Value now;  ///< Kept where it is needed afterwards.
};

void changed(WritePipeline& writes, const WritePtr& operation, Stored stored, ProposeResult result) {
  const auto& kind = *operation->kind;
  if (result) {
    if (changes_addresses(*operation))
      writes.services.release_unused(operation->admission.old_object, stored.is_deleted ? nullptr : &stored.now);
    // Who took the last finalizer away sees the object without it.
    if (stored.is_deleted) return operation->done(WriteOutcome{nullptr, std::move(stored.now), false});
    return operation->done(WriteOutcome{std::move(*result), {}, false});
  }
  const auto taken = std::exchange(operation->granted.allocation, {});
  if (result.error() != ProposeError::kUncertain) writes.services.release(taken);
  if (is_of_storage(result.error())) return operation->fail(not_stored(writes.ground, result.error()));
  if (operation->candidate.insists_on_revision || ++operation->attempts >= kMostAttempts)
    return operation->fail(model::modified_conflict(kind.group, kind.plural, operation->name));
  try_again(writes, operation, Stage::kRead);
}

}  // namespace

namespace steps {

StepResult read_current(WritePipeline& writes, const WritePtr& operation) {
  const auto& kind = *operation->kind;
  operation->candidate = {.base = writes.ground.cache->get(object_key(kind, operation->ns, operation->name))};
  if (operation->candidate.base == nullptr) {
    auto fresh = operation->decoded.change->made_anew();
    if (!fresh) return std::unexpected(model::not_found(kind.group, kind.plural, operation->name));
    if (!*fresh) return std::unexpected(std::move(fresh->error()));
    operation->candidate.document = std::move(**fresh);
    enter(writes, *operation, operation->mode == WriteMode::kApply ? WriteMode::kCreateApplied : WriteMode::kCreate, Stage::kDecode);
    return Flow::kNext;
  }
  const auto choice = part_of(*operation);
  if (choice == nullptr) return read_as_asked(writes, operation);
  operation->candidate.current = operation->candidate.part.emplace(operation->candidate.base, choice).document();
  return Flow::kNext;
}

StepResult produce_next(WritePipeline&, const WritePtr& operation) {
  const auto told = operation->request->warnings.size();
  auto updated = operation->decoded.change->made_of(operation->candidate.current);
  if (!updated && operation->candidate.part) {
    // Errors show the whole.
    operation->candidate.part.reset();
    operation->request->warnings.resize(told);
    operation->candidate.current = decode_object(*operation->candidate.base);
    updated = operation->decoded.change->made_of(operation->candidate.current);
  }
  if (!updated) return std::unexpected(std::move(updated.error()));
  if (const auto& part = operation->candidate.part) {
    if (operation->mode == WriteMode::kReplace) {
      auto* spec = json::find(*updated, "spec");
      operation->candidate.sent_spec = spec != nullptr ? std::move(*spec) : json::Value();
    }
    part->leave(*updated);
  }
  if (auto wrong = check_preconditions(*operation, *updated)) return std::unexpected(std::move(*wrong));
  operation->candidate.document = std::move(*updated);
  return Flow::kNext;
}

StepResult check_system_fields(WritePipeline&, const WritePtr& operation) {
  operation->candidate.findings = check_system_metadata(*operation->kind, operation->candidate.current, operation->candidate.document);
  return Flow::kNext;
}

StepResult carry_system_fields(WritePipeline&, const WritePtr& operation) {
  carry_metadata(operation->candidate.current, operation->candidate.document);
  json::ensure_object(operation->candidate.document, {"metadata"})["resourceVersion"] = std::to_string(operation->candidate.base->revision);
  if (const auto refused = check_finalizers(*operation->kind, operation->candidate.current, operation->candidate.document);
      !refused.empty())
    return std::unexpected(model::invalid_object(operation->kind->group, operation->kind->kind, operation->name, refused));
  return Flow::kNext;
}

StepResult own_changed_fields(WritePipeline& writes, const WritePtr& operation) {
  const apply::Writer writer{operation->request->field_manager, operation->subresource, writes.ground.loop.now()};
  if (auto& part = operation->candidate.part)
    part->set_owners(
        apply::track_status(*operation->kind, operation->candidate.current, operation->candidate.document, writer, part->owners()));
  else
    apply::track_update(*operation->kind, &operation->candidate.current, operation->candidate.document, writer);
  return Flow::kNext;
}

StepResult hold_identity(WritePipeline&, const WritePtr& operation) {
  if (operation->candidate.part) return Flow::kNext;  // Nobody has asked for the whole: what is there of it is the write's own.
  const auto& kind = *operation->kind;
  auto& object = operation->admission.object;
  const auto& before = operation->admission.old_object;
  if (auto refused = refuse_exchanged(*operation, object)) return std::unexpected(std::move(*refused));
  const auto present = std::to_string(operation->candidate.base->revision);
  if (const auto revision = json::get_string(object, {"metadata", "resourceVersion"}); !revision.empty() && revision != present)
    return std::unexpected(model::modified_conflict(kind.group, kind.plural, operation->name));
  std::ranges::move(check_system_metadata(kind, before, object), std::back_inserter(operation->candidate.findings));
  carry_metadata(before, object);
  json::ensure_object(object, {"metadata"})["resourceVersion"] = present;
  if (const auto refused = check_finalizers(kind, before, object); !refused.empty())
    return std::unexpected(model::invalid_object(kind.group, kind.kind, operation->name, refused));
  return Flow::kNext;
}

StepResult guard_change(WritePipeline& writes, const WritePtr& operation) {
  if (auto refused = refuse_writer(writes.ground, *operation, &operation->admission.old_object, operation->admission.object))
    return std::unexpected(std::move(*refused));
  return Flow::kNext;
}

StepResult prepare_change(WritePipeline& writes, const WritePtr& operation) {
  constexpr std::array<std::string_view, 5> kWithStrategy = {"status", "approval", "finalize", "ephemeralcontainers", "resize"};
  const auto& reads_rest = model::hooks_of(*operation->kind).rules->status_reads_rest;
  if (operation->candidate.part && reads_rest(operation->admission.old_object, operation->admission.object)) operation->fill_in();
  const bool has_strategy = std::ranges::find(kWithStrategy, operation->subresource) != kWithStrategy.end();
  model::prepare_for_update(*operation->kind, operation->admission.old_object, operation->admission.object,
                            has_strategy ? std::string_view(operation->subresource) : std::string_view(), writes.ground.now_text(),
                            writes.ground.options.features);
  operation->candidate.sent_spec.reset();  // From here on it is as stored, whatever was sent.
  return Flow::kNext;
}

StepResult validate_change(WritePipeline& writes, const WritePtr& operation) {
  const auto& kind = *operation->kind;
  auto& object = operation->admission.object;
  if (auto refused = Typing::of(*operation->request).refuse_multiplied(object)) return std::unexpected(std::move(*refused));
  auto errors = std::exchange(operation->candidate.findings, {});
  std::ranges::move(complete_and_validate(writes.ground, *operation, &operation->admission.old_object, object), std::back_inserter(errors));
  if (!errors.empty()) return std::unexpected(model::invalid_object(kind.group, kind.kind, operation->name, errors));
  if (writes.options.warns_of_objects && operation->subresource.empty()) warn(*operation, &operation->admission.old_object, object);
  return Flow::kNext;
}

StepResult allocate_change(WritePipeline& writes, const WritePtr& operation) {
  if (!changes_addresses(*operation)) return Flow::kNext;
  auto allocation = writes.services.allocate(operation->admission.object, &operation->admission.old_object);
  if (!allocation) return std::unexpected(std::move(allocation.error()));
  operation->granted.allocation = std::move(*allocation);
  return Flow::kNext;
}

StepResult store_if_changed(WritePipeline& writes, const WritePtr& operation) {
  settle_draft(writes, *operation);
  auto& object = operation->admission.object;
  const auto& kind = *operation->kind;
  if (operation->request->empty.has_written) model::forget_empty(kind, object);
  Stored stored{.is_deleted = goes_with_write(kind, object)};
  if (operation->dry_run || stored.is_deleted) operation->fill_in();  // The answer is the document.
  if (operation->dry_run) {
    writes.services.release(operation->granted.allocation);
    operation->try_out(writes, std::move(object), false);
    return Flow::kWaits;
  }
  // What is stored in another version than the stored one moves there with the first write, even of the same.
  const bool is_stale = (writes.options.is_stale && writes.options.is_stale(operation->candidate.base->key)) ||
                        Typing::of(*operation->request).is_stale(storage_kind(kind), *operation->candidate.base);
  if (!stored.is_deleted && !is_stale && apply::is_same_state(operation->admission.old_object, object) && has_same_owners(*operation)) {
    operation->done(WriteOutcome{operation->candidate.base, {}, false});
    return Flow::kWaits;
  }
  if (changes_addresses(*operation) || stored.is_deleted) stored.now = object;
  operation->propose(writes, std::move(object), [&writes, operation, stored = std::move(stored)](Proposal proposal) {
    proposal.expected = operation->candidate.base->revision;
    proposal.is_delete = stored.is_deleted;
    if (stored.is_deleted)
      proposal.value.clear();
    else
      leave_update_pattern(writes, *operation, proposal);
    writes.ground.cache->propose(
        std::move(proposal), [&writes, operation, stored](ProposeResult result) { changed(writes, operation, stored, std::move(result)); });
  });
  return Flow::kWaits;
}

}  // namespace steps
}  // namespace berth::apiserver
