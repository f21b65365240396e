#include "apiserver/write.h"

#include "apiserver/apply/managed_fields.h"
#include "apiserver/auth/reviews.h"
#include "apiserver/kind_rules.h"
#include "model/kind_hooks.h"
#include "model/schema.h"
#include "model/warnings.h"

namespace berth::apiserver {
namespace {

constexpr int kMaxAttempts = 500;    ///< Of a write against others on the same object; every failed one let another succeed.
constexpr int kMaxNameAttempts = 8;  ///< For generateName.
constexpr std::size_t kMaxBaseLength = 58;

apply::Writer writer_of(const ApiServer::Impl& server, const WriteOperation& operation) {
  return {operation.request->field_manager, operation.subresource, server.loop.now()};
}

void set_admission(WriteOperation& operation, Operation verb, json::Value object, json::Value old_object) {
  auto& admission = operation.admission;
  admission.operation = verb;
  admission.kind = operation.kind;
  admission.subresource = operation.subresource;
  admission.ns = operation.ns;
  admission.name = operation.name;
  admission.user = &operation.request->user;
  admission.dry_run = operation.dry_run;
  admission.kinds = operation.request->kinds;
  admission.warnings = &operation.request->warnings;
  if (const auto trail = operation.request->audit; trail != nullptr)
    admission.annotate = [trail](std::string key, std::string value) { trail->annotate(std::move(key), std::move(value)); };
  const auto& request_verb = operation.request->info.verb;
  json::Object options{{"kind", request_verb == "patch"      ? "PatchOptions"
                                : verb == Operation::kCreate ? "CreateOptions"
                                                             : "UpdateOptions"},
                       {"apiVersion", "meta.k8s.io/v1"}};
  if (operation.request->field_manager_given) options["fieldManager"] = operation.request->field_manager;
  if (operation.dry_run) options["dryRun"] = json::Array{"All"};
  admission.options = std::move(options);
  admission.object = std::move(object);
  admission.old_object = std::move(old_object);
}

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

std::optional<model::ApiStatus> check_finalizers(const model::KindInfo& kind, const json::Value& current, const json::Value& updated) {
  if (json::find(current, {"metadata", "deletionTimestamp"}) == nullptr) return std::nullopt;
  const auto list = finalizers_of(current);
  const std::set<std::string> before(list.begin(), list.end());
  std::string added;
  for (const auto& finalizer : finalizers_of(updated))
    if (!before.contains(finalizer)) added += fmt::format("{}\"{}\"", added.empty() ? "" : ", ", finalizer);
  if (added.empty()) return std::nullopt;
  return model::invalid_object(
      kind.group, kind.kind, json::get_string(current, {"metadata", "name"}),
      {{model::FieldError::Type::kForbidden, "metadata.finalizers", "",
        fmt::format("no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}", added)}});
}

/// Everything that is wrong with what would be stored; `old` is null at creation.
model::FieldErrors find_faults(const ApiServer::Impl& server, const WriteOperation& operation, const json::Value* old,
                               json::Value& object) {
  const auto& kind = *operation.kind;
  const auto& own = rules_of(kind);
  model::FieldErrors errors;
  if (own.check_first) errors = own.check_first(server, operation, old, object);
  auto found = old == nullptr ? model::validate_create(kind, object) : model::validate_update(kind, *old, object, operation.subresource);
  std::ranges::move(found, std::back_inserter(errors));
  if (own.check_last && operation.subresource.empty())
    std::ranges::move(own.check_last(operation, old, object), std::back_inserter(errors));
  return errors;
}

std::optional<model::ApiStatus> refuse_writer(const ApiServer::Impl& server, const WriteOperation& operation, const json::Value* old,
                                              const json::Value& object) {
  const auto& own = rules_of(*operation.kind);
  return own.guard ? own.guard(server, operation, old, object) : std::nullopt;
}

/// The system's own metadata, which a client may leave out but not change (apimachinery: ValidateObjectMetaAccessorUpdate). What is set on
/// an object that is going stays as it is, whatever is sent.
std::optional<model::ApiStatus> check_system_metadata(const model::KindInfo& kind, const json::Value& current, const json::Value& updated) {
  model::FieldErrors errors;
  const auto refuse = [&](std::string_view field, std::string value) {
    errors.push_back({model::FieldError::Type::kInvalid, fmt::format("metadata.{}", field), std::move(value), "field is immutable"});
  };
  const auto uid = json::get_string(updated, {"metadata", "uid"});
  if (!uid.empty() && uid != json::get_string(current, {"metadata", "uid"})) refuse("uid", json::serialize(json::Value(uid)));
  // Another creationTimestamp is passed over in silence.
  const auto* deleted = json::find(updated, {"metadata", "deletionTimestamp"});
  if (deleted != nullptr && !deleted->is_null() && json::find(current, {"metadata", "deletionTimestamp"}) == nullptr)
    refuse("deletionTimestamp", json::serialize(*deleted));
  const auto* grace = json::find(updated, {"metadata", "deletionGracePeriodSeconds"});
  if (grace != nullptr && !grace->is_null() && json::find(current, {"metadata", "deletionGracePeriodSeconds"}) == nullptr)
    refuse("deletionGracePeriodSeconds", json::serialize(*grace));
  if (errors.empty()) return std::nullopt;
  return model::invalid_object(kind.group, kind.kind, json::get_string(current, {"metadata", "name"}), errors);
}

/// Each sentence once, however often the write is tried.
void warn(WriteOperation& operation, const json::Value* old_object, const json::Value& object) {
  auto& warnings = operation.request->warnings;
  std::unordered_set<std::string> seen(warnings.begin(), warnings.end());
  for (auto& sentence : model::write_warnings(*operation.kind, old_object, object))
    if (seen.insert(sentence).second) warnings.push_back(std::move(sentence));
}

bool takes_addresses(const model::KindInfo& kind) { return rules_of(kind).takes_addresses; }

/// What cannot be encrypted now is not stored.
std::optional<model::ApiStatus> refuse_storing(const ApiServer::Impl& server, const model::KindInfo& kind) {
  if (!server.options.cannot_store) return std::nullopt;
  const auto why = server.options.cannot_store(kind.storage_group, kind.plural);
  if (why.empty()) return std::nullopt;
  return model::internal_error(why);
}

}  // namespace

model::ApiStatus precondition_conflict(const model::KindInfo& kind, std::string_view ns, std::string_view name, std::string_view what,
                                       std::string_view asked, std::string_view present) {
  const auto& own = model::hooks_of(kind).life->etcd_prefix;
  const auto prefix = own.empty() ? std::string_view(kind.plural) : own;
  const auto key = ns.empty() ? fmt::format("/registry/{}/{}", prefix, name) : fmt::format("/registry/{}/{}/{}", prefix, ns, name);
  return model::conflict(
      kind.group, kind.plural, name,
      fmt::format("StorageError: invalid object, Code: 4, Key: {0}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
                  "{1} in precondition: {2}, {1} in object meta: {3}",
                  key, what, asked, present));
}

bool has_finalizers(const json::Value& document) { return !json::get_array(document, {"metadata", "finalizers"}).empty(); }

std::optional<model::ApiStatus> ApiServer::Impl::refuse_creation(const Request& request) const {
  Attributes creation;
  creation.verb = "create";
  creation.is_resource = true;
  creation.group = request.info.group;
  creation.version = request.info.version;
  creation.resource = request.info.resource;
  creation.ns = request.info.ns;
  creation.name = request.info.name;
  const auto decision = options.authorizer->authorize(request.user, creation);
  if (decision.allowed) return std::nullopt;
  return auth::forbidden_status(request.user, creation, decision.reason);
}

WritePtr make_write(const RequestPtr& request) {
  auto operation = std::make_shared<WriteOperation>();
  operation->request = request;
  operation->kind = request->kind;
  operation->ns = request->kind->namespaced ? request->info.ns : "";
  operation->name = request->info.name;
  operation->subresource = request->info.subresource;
  operation->dry_run = request->dry_run;
  return operation;
}

Proposal make_proposal(const ApiServer::Impl& server, const model::KindInfo& kind, json::Value document) {
  const auto& stored = storage_kind(kind);
  if (&stored != &kind) model::convert(kind, stored, document);
  Proposal proposal;
  proposal.meta = extract_meta(stored, document);
  proposal.key = object_key(stored, proposal.meta.ns, proposal.meta.name);
  auto encoded = encode_object(document);
  proposal.value = std::move(encoded.value);
  proposal.revision_offset = encoded.revision_offset;
  const model::Life& life = *model::hooks_of(stored).life;
  if (life.expires) proposal.expires_at = server.loop.now() + server.options.event_ttl;
  proposal.relaxed_durability = server.options.relaxed_leases_and_events && life.may_be_lost;
  return proposal;
}

void WriteOperation::propose(ApiServer::Impl& server, json::Value document, std::function<void(Proposal)> then) {
  if (!ApiServer::Impl::asks_converter(*request) || request->kind != kind) return then(make_proposal(server, *kind, std::move(document)));
  server.convert_to_storage(request, std::move(document),
                            [&server, self = shared_from_this(), then = std::move(then)](model::ApiResult<json::Value> stored) {
                              if (!stored) return self->fail(std::move(stored.error()));
                              then(make_proposal(server, storage_kind(*self->kind), std::move(*stored)));
                            });
}

void ApiServer::Impl::run_create(const WritePtr& operation) {
  if (auto refused = refuse_storing(*this, *operation->kind)) return operation->fail(std::move(*refused));
  auto& document = operation->document;
  const auto& kind = *operation->kind;
  auto& metadata = json::ensure_object(document, {"metadata"});
  const auto sent_revision = json::get_string(document, {"metadata", "resourceVersion"});
  if (sent_revision.find_first_not_of('0') != std::string_view::npos &&
      sent_revision.find_first_not_of("0123456789") == std::string_view::npos) {
    model::ApiStatus status;
    status.message = "resourceVersion should not be set on objects to be created";
    return operation->fail(std::move(status));
  }
  operation->name = json::get_string(document, {"metadata", "name"});
  if (operation->request->audit != nullptr) operation->request->audit->set_name(operation->name);
  if (operation->name.empty()) operation->generate_name = json::get_string(document, {"metadata", "generateName"});
  for (const char* field : {"resourceVersion", "selfLink", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"})
    metadata.erase(field);
  if (operation->tracks_fields && options.tracks_every_writer) apply::track_update(kind, nullptr, document, writer_of(*this, *operation));
  set_admission(*operation, Operation::kCreate, std::move(document), json::Value());
  admission->mutate(operation->admission, [this, operation](Admitted admitted) {
    if (!admitted) return operation->fail(std::move(admitted.error()));
    auto& object = operation->admission.object;
    // Who changes an object sees it before it has an identity, who judges it sees the whole.
    if (operation->name.empty()) operation->name = json::get_string(object, {"metadata", "name"});
    if (operation->name.empty() && !operation->generate_name.empty())
      operation->name = operation->generate_name.substr(0, kMaxBaseLength) + names.suffix();
    operation->admission.name = operation->name;
    auto& identity = json::ensure_object(object, {"metadata"});
    if (!operation->name.empty()) identity["name"] = operation->name;
    identity["uid"] = names.uid();
    identity["creationTimestamp"] = now_text();
    if (auto refused = refuse_writer(*this, *operation, nullptr, object)) return operation->fail(std::move(*refused));
    // What plugins added has defaults, too (serviceAccountName has an older twin that follows it).
    model::apply_defaults(*operation->kind, object);
    model::prepare_for_create(*operation->kind, object);
    if (const auto& sign = rules_of(*operation->kind).sign) sign(*operation, object);
    if (const auto errors = find_faults(*this, *operation, nullptr, object); !errors.empty())
      return operation->fail(model::invalid_object(operation->kind->group, operation->kind->kind, operation->name, errors));
    if (options.warns_of_objects) warn(*operation, nullptr, object);
    admission->validate(operation->admission, [this, operation](Admitted valid) {
      if (!valid) return operation->fail(std::move(valid.error()));
      commit_create(operation);
    });
  });
}

void ApiServer::Impl::commit_create(const WritePtr& operation) {
  auto& object = operation->admission.object;
  if (takes_addresses(*operation->kind)) {
    auto allocation = services.allocate(object, nullptr);
    if (!allocation) return operation->fail(std::move(allocation.error()));
    operation->allocation = std::move(*allocation);
  }
  if (operation->dry_run) {
    services.release(operation->allocation);
    if (cache->get(object_key(*operation->kind, operation->ns, operation->name)) != nullptr)
      return operation->fail(model::already_exists(operation->kind->group, operation->kind->plural, operation->name));
    return operation->done(WriteOutcome{nullptr, std::move(object), true});
  }
  // Kept only where the name may have to be chosen again.
  const bool may_repeat = !operation->generate_name.empty();
  const auto finish = [this, operation, may_repeat](ProposeResult result) {
    if (result) return operation->done(WriteOutcome{std::move(*result), {}, true});
    if (result.error() == ProposeError::kExists && may_repeat && ++operation->attempts < kMaxNameAttempts) {
      operation->name = operation->generate_name.substr(0, kMaxBaseLength) + names.suffix();
      json::set(operation->admission.object, {"metadata", "name"}, json::Value(operation->name));
      services.release(std::exchange(operation->allocation, {}));
      return offload([this, operation] { commit_create(operation); });
    }
    services.release(operation->allocation);
    if (result.error() == ProposeError::kExists) {
      if (operation->produce) return offload([this, operation] { run_update(operation); });  // Apply: somebody created it meanwhile.
      return operation->fail(model::already_exists(operation->kind->group, operation->kind->plural, operation->name));
    }
    operation->fail(model::internal_error(cache->storage_failure()));
  };
  operation->propose(*this, may_repeat ? object : std::move(object), [this, finish](Proposal proposal) {
    proposal.expected = 0;
    cache->propose(std::move(proposal), finish);
  });
}

void ApiServer::Impl::run_update(const WritePtr& operation) {
  if (auto refused = refuse_storing(*this, *operation->kind)) return operation->fail(std::move(*refused));
  const auto& kind = *operation->kind;
  operation->base = cache->get(object_key(kind, operation->ns, operation->name));
  if (operation->base == nullptr) {
    if (!operation->produce_new) return operation->fail(model::not_found(kind.group, kind.plural, operation->name));
    auto fresh = operation->produce_new();
    if (!fresh) return operation->fail(std::move(fresh.error()));
    operation->document = std::move(*fresh);
    return run_create(operation);
  }
  if (asks_converter(*operation->request))
    return convert_ahead(operation->request, {operation->base}, [this, operation](model::ApiResult<std::vector<ObjectPtr>> shown) {
      if (!shown) return operation->fail(std::move(shown.error()));
      operation->current = read_document(*operation->request, *shown->front());
      produce_update(operation);
    });
  if (operation->request->custom != nullptr) {
    operation->current = read_document(*operation->request, *operation->base);
  } else {
    operation->current = decode_object(*operation->base);
    if (const auto& stored = storage_kind(kind); &stored != &kind) model::convert(stored, kind, operation->current);
  }
  produce_update(operation);
}

void ApiServer::Impl::produce_update(const WritePtr& operation) {
  const auto& kind = *operation->kind;
  auto updated = operation->produce(operation->current);
  if (!updated) return operation->fail(std::move(updated.error()));

  const auto revision = json::get_string(*updated, {"metadata", "resourceVersion"});
  operation->insists_on_revision = false;
  // Another uid is told first, by the storage (rest.DefaultUpdatedObjectInfo's preconditions).
  const auto sent_uid = json::get_string(*updated, {"metadata", "uid"});
  const bool asks_uid = !sent_uid.empty() && sent_uid != operation->base->meta.uid;
  if (asks_uid && operation->request->info.verb == "update")
    return operation->fail(
        precondition_conflict(kind, operation->request->info.ns, operation->name, "UID", sent_uid, operation->base->meta.uid));
  if (!revision.empty() && revision != "0") {
    // A patch carries the present revision along: only a revision of the client's own is an insistence.
    operation->insists_on_revision = !operation->request->info.verb.starts_with("patch");
    if (revision.find_first_not_of("0123456789") != std::string_view::npos) {
      model::ApiStatus status;
      status.code = 500;
      status.message = fmt::format("strconv.ParseUint: parsing {}: invalid syntax", json::serialize(json::Value(revision)));
      return operation->fail(std::move(status));
    }
    if (revision != std::to_string(operation->base->revision))
      return operation->fail(model::modified_conflict(kind.group, kind.plural, operation->name));
  } else if (operation->request->info.verb == "update" && !asks_uid && model::hooks_of(kind).life->update_needs_revision) {
    return operation->fail(
        model::invalid_object(kind.group, kind.plural, operation->name,
                              {{model::FieldError::Type::kInvalid, "metadata.resourceVersion", "0", "must be specified for an update"}}));
  }
  if (operation->validates) {
    if (auto wrong = check_system_metadata(kind, operation->current, *updated)) return operation->fail(std::move(*wrong));
  }
  carry_metadata(operation->current, *updated);
  json::ensure_object(*updated, {"metadata"})["resourceVersion"] = std::to_string(operation->base->revision);
  if (auto wrong = check_finalizers(kind, operation->current, *updated)) return operation->fail(std::move(*wrong));
  if (operation->tracks_fields) apply::track_update(kind, &operation->current, *updated, writer_of(*this, *operation));

  set_admission(*operation, Operation::kUpdate, std::move(*updated), std::move(operation->current));
  if (!operation->admits) return commit_update(operation);
  admission->mutate(operation->admission, [this, operation](Admitted admitted) {
    if (!admitted) return operation->fail(std::move(admitted.error()));
    commit_update(operation);
  });
}

void ApiServer::Impl::commit_update(const WritePtr& operation) {
  auto& object = operation->admission.object;
  const auto& kind = *operation->kind;
  const bool has_strategy = operation->subresource == "status" || operation->subresource == "approval" ||
                            operation->subresource == "finalize" || operation->subresource == "ephemeralcontainers" ||
                            operation->subresource == "resize";
  const auto strategy = has_strategy ? std::string_view(operation->subresource) : std::string_view();
  if (auto refused = refuse_writer(*this, *operation, &operation->admission.old_object, object))
    return operation->fail(std::move(*refused));
  if (operation->prepares) model::prepare_for_update(kind, operation->admission.old_object, object, strategy, now_text());
  if (operation->validates) {
    const auto errors = find_faults(*this, *operation, &operation->admission.old_object, object);
    if (!errors.empty()) return operation->fail(model::invalid_object(kind.group, kind.kind, operation->name, errors));
    if (options.warns_of_objects && operation->subresource.empty()) warn(*operation, &operation->admission.old_object, object);
  }
  if (!operation->admits) return finish_update(operation);
  admission->validate(operation->admission, [this, operation](Admitted valid) {
    if (!valid) return operation->fail(std::move(valid.error()));
    finish_update(operation);
  });
}

void ApiServer::Impl::finish_update(const WritePtr& operation) {
  auto& object = operation->admission.object;
  const auto& kind = *operation->kind;
  if (takes_addresses(kind) && operation->subresource.empty()) {
    auto allocation = services.allocate(object, &operation->admission.old_object);
    if (!allocation) return operation->fail(std::move(allocation.error()));
    operation->allocation = std::move(*allocation);
  }
  if (operation->dry_run) {
    services.release(operation->allocation);
    return operation->done(WriteOutcome{nullptr, std::move(object), false});
  }
  // The last finalizer of an object that was to be deleted: it goes with this write.
  const bool is_deleted = json::find(object, {"metadata", "deletionTimestamp"}) != nullptr && !has_finalizers(object) &&
                          json::get_int(object, {"metadata", "deletionGracePeriodSeconds"}) == 0 &&
                          (!model::hooks_of(kind).life->is_namespace || json::get_array(object, {"spec", "finalizers"}).empty());
  // What an older version is stored as moves to the stored one with the first write, even of the same.
  const bool is_stale = (options.is_stale && options.is_stale(operation->base->key)) ||
                        (operation->request->custom != nullptr &&
                         !operation->base->value->starts_with(fmt::format(R"({{"apiVersion":"{}",)", storage_kind(kind).api_version())));
  if (!is_deleted && !operation->always_changes && !is_stale && apply::is_same_state(operation->admission.old_object, object))
    return operation->done(WriteOutcome{operation->base, {}, false});

  const bool keeps_addresses = takes_addresses(kind) && operation->subresource.empty();
  auto now = keeps_addresses || is_deleted ? object : json::Value();
  auto finish = [this, operation, keeps_addresses, is_deleted, now = std::move(now)](ProposeResult result) mutable {
    const auto& its_kind = *operation->kind;
    if (result) {
      if (keeps_addresses) services.release_unused(operation->admission.old_object, is_deleted ? nullptr : &now);
      // Who took the last finalizer away sees the object without it.
      if (is_deleted) return operation->done(WriteOutcome{nullptr, std::move(now), false});
      return operation->done(WriteOutcome{std::move(*result), {}, false});
    }
    services.release(std::exchange(operation->allocation, {}));
    if (result.error() == ProposeError::kStorage) return operation->fail(model::internal_error(cache->storage_failure()));
    if (operation->insists_on_revision || ++operation->attempts >= kMaxAttempts)
      return operation->fail(model::modified_conflict(its_kind.group, its_kind.plural, operation->name));
    offload([this, operation] { run_update(operation); });
  };
  operation->propose(*this, std::move(object), [this, operation, is_deleted, finish = std::move(finish)](Proposal proposal) mutable {
    proposal.expected = operation->base->revision;
    proposal.is_delete = is_deleted;
    if (is_deleted) proposal.value.clear();
    cache->propose(std::move(proposal), std::move(finish));
  });
}

}  // namespace berth::apiserver
