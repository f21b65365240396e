// The steps of a creation.
#include "apiserver/apply/managed_fields.h"
#include "apiserver/request/typing.h"
#include "apiserver/writes/steps.h"
#include "model/features.h"
#include "model/kind_hooks.h"
#include "model/schema.h"
#include "net/tracing/tracer.h"

namespace berth::apiserver {
namespace {

constexpr int kMaxNameAttempts = 8;  ///< For generateName.

}  // namespace

void tell_way(const WritePipeline& writes, const WriteOperation& operation, std::string_view uid) {
  auto& tracer = writes.options.tracer;
  if (tracer == nullptr || operation.kind->plural != "pods" || !operation.kind->group.empty()) return;
  auto span = tracer->begin_way(fmt::format("Pod {}/{}", operation.ns, operation.name), uid);
  if (!span || !span->context.is_sampled) return;
  span->start_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(operation.request->received.time_since_epoch()).count();
  span->attributes = {{"k8s.namespace.name", operation.ns},
                      {"k8s.pod.name", operation.name},
                      {"k8s.pod.uid", std::string(uid)},
                      {"enduser.id", operation.request->user.name}};
  const auto request = net::tracing::parse_traceparent(operation.request->http.headers.get(net::tracing::kTraceparent));
  if (request && request->is_sampled) span->caused_by = request;
  tracer->end(std::move(*span));
}

namespace {

void created(WritePipeline& writes, const WritePtr& operation, ProposeResult result) {
  if (result) {
    tell_way(writes, *operation, (*result)->meta.uid);
    return operation->done(WriteOutcome{std::move(*result), {}, true});
  }
  const auto& kind = *operation->kind;
  if (result.error() == ProposeError::kExists && !operation->candidate.generate_name.empty() && ++operation->attempts < kMaxNameAttempts) {
    operation->name = generated_name(writes.ground, operation->candidate.generate_name);
    json::set(operation->admission.object, {"metadata", "name"}, json::Value(operation->name));
    writes.services.release(std::exchange(operation->granted.allocation, {}));
    return try_again(writes, operation, Stage::kAllocate);
  }
  if (result.error() != ProposeError::kUncertain) writes.services.release(operation->granted.allocation);
  if (result.error() != ProposeError::kExists) return operation->fail(not_stored(writes.ground, result.error()));
  // Somebody created meanwhile what was to be applied or replaced.
  if (operation->decoded.change == nullptr) return operation->fail(model::already_exists(kind.group, kind.plural, operation->name));
  operation->mode = operation->mode == WriteMode::kCreateApplied ? WriteMode::kApply : WriteMode::kReplace;
  try_again(writes, operation, Stage::kRead);
}

/// What only the system gives.
constexpr std::array<std::string_view, 6> kSystemFields = {"resourceVersion",   "selfLink",          "uid",
                                                           "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"};

bool has_revision(const json::Value& document) {
  const auto revision = json::get_string(document, {"metadata", "resourceVersion"});
  return revision.find_first_not_of('0') != std::string_view::npos && revision.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::string generated_name(Ground& ground, std::string_view base) {
  constexpr std::size_t kMaxBaseLength = 58;
  return std::string(base.substr(0, kMaxBaseLength)) + ground.names.suffix();
}

namespace steps {

/// What cannot be encrypted now is not stored.
StepResult check_storable(WritePipeline& writes, const WritePtr& operation) {
  if (!writes.options.cannot_store) return Flow::kNext;
  const auto why = writes.options.cannot_store(operation->kind->storage_group, operation->kind->plural);
  if (why.empty()) return Flow::kNext;
  return std::unexpected(model::internal_error(why));
}

StepResult take_name(WritePipeline&, const WritePtr& operation) {
  auto& document = operation->candidate.document;
  auto& metadata = json::ensure_object(document, {"metadata"});
  operation->candidate.names_revision = has_revision(document);
  operation->name = json::get_string(document, {"metadata", "name"});
  if (operation->request->audit != nullptr) operation->request->audit->set_name(operation->name);
  if (operation->name.empty()) operation->candidate.generate_name = json::get_string(document, {"metadata", "generateName"});
  for (const auto field : kSystemFields) metadata.erase(field);
  return Flow::kNext;
}

/// A new object may get another name on the way, as in Kubernetes, unless the request names it.
StepResult hold_new_identity(WritePipeline&, const WritePtr& operation) {
  auto& object = operation->admission.object;
  if (auto refused = refuse_exchanged(*operation, object)) return std::unexpected(std::move(*refused));
  operation->candidate.names_revision |= has_revision(object);
  const auto name = json::get_string(object, {"metadata", "name"});
  if (const auto& asked = operation->request->info.name; !asked.empty() && name != asked && operation->subresource.empty())
    return std::unexpected(other_name(name, asked));
  operation->name = name;
  operation->candidate.generate_name = name.empty() ? json::get_string(object, {"metadata", "generateName"}) : std::string_view();
  auto& metadata = json::ensure_object(object, {"metadata"});
  for (const auto field : kSystemFields) metadata.erase(field);
  return Flow::kNext;
}

StepResult own_new_fields(WritePipeline& writes, const WritePtr& operation) {
  if (writes.options.tracks_every_writer)
    apply::track_update(*operation->kind, nullptr, operation->candidate.document,
                        {operation->request->field_manager, operation->subresource, writes.ground.loop.now()});
  return Flow::kNext;
}

StepResult give_identity(WritePipeline& writes, const WritePtr& operation) {
  auto& object = operation->admission.object;
  if (operation->name.empty() && !operation->candidate.generate_name.empty())
    operation->name = generated_name(writes.ground, operation->candidate.generate_name);
  if (operation->name.empty() && model::hooks_of(*operation->kind).life->may_be_nameless) operation->name = writes.ground.names.uid();
  operation->admission.name = operation->name;
  auto& identity = json::ensure_object(object, {"metadata"});
  if (!operation->name.empty()) identity["name"] = operation->name;
  identity["uid"] = writes.ground.names.uid();
  identity["creationTimestamp"] = writes.ground.now_text();
  return Flow::kNext;
}

StepResult prepare_new(WritePipeline& writes, const WritePtr& operation) {
  auto& object = operation->admission.object;
  if (auto refused = refuse_writer(writes.ground, *operation, nullptr, object)) return std::unexpected(std::move(*refused));
  // What plugins added has defaults, too (serviceAccountName has an older twin that follows it).
  model::apply_defaults(*operation->kind, object);
  model::prepare_for_create(*operation->kind, object, writes.ground.options.features);
  if (const auto& sign = rules_of(*operation->kind).sign) sign(ruled(writes.ground, *operation), object);
  return Flow::kNext;
}

StepResult validate_new(WritePipeline& writes, const WritePtr& operation) {
  auto& object = operation->admission.object;
  if (auto refused = Typing::of(*operation->request).refuse_multiplied(object)) return std::unexpected(std::move(*refused));
  if (const auto errors = complete_and_validate(writes.ground, *operation, nullptr, object); !errors.empty())
    return std::unexpected(model::invalid_object(operation->kind->group, operation->kind->kind, operation->name, errors));
  if (writes.options.warns_of_objects) warn(*operation, nullptr, object);
  return Flow::kNext;
}

/// Only the store minds a revision, which a dry run does not ask: whatever else is wrong with the object is said before.
StepResult refuse_revision(WritePipeline&, const WritePtr& operation) {
  if (!operation->candidate.names_revision || operation->request->dry_run) return Flow::kNext;
  model::ApiStatus status;
  status.message = "resourceVersion should not be set on objects to be created";
  return std::unexpected(std::move(status));
}

StepResult allocate_new(WritePipeline& writes, const WritePtr& operation) {
  if (!takes_addresses(*operation->kind)) return Flow::kNext;
  auto allocation = writes.services.allocate(operation->admission.object, nullptr);
  if (!allocation) return std::unexpected(std::move(allocation.error()));
  operation->granted.allocation = std::move(*allocation);
  return Flow::kNext;
}

StepResult store_new(WritePipeline& writes, const WritePtr& operation) {
  settle_draft(writes, *operation);
  auto& object = operation->admission.object;
  const auto& kind = *operation->kind;
  // A dry run is written down and read again, as in the store.
  if (operation->request->empty.has_written) model::forget_empty(kind, object);
  if (operation->dry_run) {
    writes.services.release(operation->granted.allocation);
    if (writes.ground.cache->get(object_key(kind, operation->ns, operation->name)) != nullptr)
      return std::unexpected(model::already_exists(kind.group, kind.plural, operation->name));
    operation->try_out(writes, std::move(object), true);
    return Flow::kWaits;
  }
  const auto store = [&writes, operation](Proposal proposal) {
    proposal.expected = 0;
    leave_pattern(writes, *operation, proposal);
    writes.ground.cache->propose(std::move(proposal),
                                 [&writes, operation](ProposeResult result) { created(writes, operation, std::move(result)); });
  };
  // The document is kept only where the name may have to be chosen again.
  if (operation->candidate.generate_name.empty())
    operation->propose(writes, std::move(object), store);
  else if (&storage_kind(kind) == &kind)
    store(proposal_of(writes.ground, kind, object));
  else
    operation->propose(writes, object, store);
  return Flow::kWaits;
}

}  // namespace steps
}  // namespace berth::apiserver
