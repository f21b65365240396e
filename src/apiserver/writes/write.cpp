#include "apiserver/writes/write.h"

#include "apiserver/auth/reviews.h"
#include "apiserver/request/request_body.h"
#include "apiserver/writes/steps.h"
#include "model/kind_hooks.h"
#include "model/schema.h"
#include "model/warnings.h"

namespace berth::apiserver {

std::optional<BrokenPrecondition> broken_precondition(const json::Value* named, std::string_view uid, std::string_view revision) {
  if (named == nullptr) return std::nullopt;
  for (const auto& [field, what, present] : {std::tuple("uid", "UID", uid), std::tuple("resourceVersion", "ResourceVersion", revision)})
    if (const auto asked = json::get_string(*named, {field}); !asked.empty() && asked != present)
      return BrokenPrecondition{what, std::string(asked), std::string(present)};
  return std::nullopt;
}

std::optional<model::ApiStatus> refuse_deletion(const model::KindInfo& kind, std::string_view name, const json::Value& options,
                                                std::string_view uid, std::string_view revision) {
  const auto broken = broken_precondition(json::find(options, "preconditions"), uid, revision);
  if (!broken) return std::nullopt;
  return model::conflict(
      kind.storage_group, kind.kind, name,
      fmt::format("the {0} in the precondition ({1}) does not match the {0} in record ({2}). The object might have been {3}", broken->what,
                  broken->asked, broken->present, broken->what == "UID" ? "deleted and then recreated" : "modified"));
}

model::ApiStatus precondition_conflict(const model::KindInfo& kind, std::string_view ns, std::string_view name,
                                       const BrokenPrecondition& broken) {
  const auto& own = model::hooks_of(kind).life->etcd_prefix;
  // Servers inside the server (definitions, other servers) keep theirs under their group.
  const auto folder = kind.group == "apiextensions.k8s.io" || kind.group == "apiregistration.k8s.io" ? fmt::format("/{}", kind.group) : "";
  const auto prefix = own.empty() ? std::string_view(kind.plural) : own;
  const auto key = ns.empty() ? fmt::format("{}/{}/{}", folder, prefix, name) : fmt::format("{}/{}/{}/{}", folder, prefix, ns, name);
  return model::conflict(
      kind.group, kind.plural, name,
      fmt::format("StorageError: invalid object, Code: 4, Key: {0}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
                  "{1} in precondition: {2}, {1} in object meta: {3}",
                  key, broken.what, broken.asked, broken.present));
}

std::optional<model::ApiStatus> refuse_creation(const Ground& ground, const Request& request) {
  auto creation = attributes_of(request, "create");
  creation.subresource.clear();
  const auto decision = ground.options.authorizer->authorize(request.user, creation);
  if (decision.allowed) return std::nullopt;
  return auth::forbidden_status(request.user, creation, decision.reason);
}

WritePtr make_write(WritePipeline& writes, const RequestPtr& request, WriteMode mode) {
  auto operation = std::make_shared<WriteOperation>();
  operation->request = request;
  operation->mode = mode;
  operation->kind = request->kind;
  operation->ns = request->kind->namespaced ? request->info.ns : "";
  operation->name = request->info.name;
  operation->subresource = request->info.subresource;
  operation->dry_run = request->dry_run;
  operation->done = [&writes, request](model::ApiResult<WriteOutcome> outcome) {
    if (!outcome) return writes.respond.status(*request, outcome.error());
    const int code = outcome->created ? 201 : 200;
    writes.respond.written(request, code, std::move(*outcome));
  };
  return operation;
}

void WriteOperation::fill_in() {
  if (!candidate.part) return;
  admission.old_object = decode_object(*candidate.base);
  auto whole = *json::parse(candidate.part->encode(admission.object).value);
  if (const auto* revision = json::find(admission.object, {"metadata", "resourceVersion"}))
    json::set(whole, {"metadata", "resourceVersion"}, *revision);
  candidate.part.reset();
  if (candidate.sent_spec && candidate.sent_spec->is_null()) {
    json::erase(whole, {"spec"});
  } else if (candidate.sent_spec) {
    json::set(whole, {"spec"}, *candidate.sent_spec);
  } else if (model::DecodeReport report; model::decode(*kind, whole, report, true)) {
    // What is stored is read and defaulted, as everything that a write gets to see.
    model::apply_defaults(*kind, whole);
  }
  admission.object = std::move(whole);
}

void WriteOperation::propose(WritePipeline& writes, json::Value object, std::function<void(Proposal)> then) {
  if (const auto& part = candidate.part) return then(proposal_of(writes.ground, *kind, part->meta(*kind, object), part->encode(object)));
  writes.versions.convert_to_storage(request, *kind, std::move(object),
                                     [&writes, self = shared_from_this(), then = std::move(then)](model::ApiResult<json::Value> stored) {
                                       if (!stored) return self->fail(std::move(stored.error()));
                                       then(proposal_of(writes.ground, storage_kind(*self->kind), *stored));
                                     });
}

void WriteOperation::try_out(WritePipeline& writes, json::Value object, bool is_created) {
  if (auto refused = refuse_large(object)) return fail(std::move(*refused));
  auto shared = std::make_shared<json::Value>(object);
  writes.versions.convert_to_storage(request, *kind, std::move(object),
                                     [self = shared_from_this(), shared, is_created](const model::ApiResult<json::Value>& stored) {
                                       if (!stored) return self->fail(stored.error());
                                       self->done(WriteOutcome{nullptr, std::move(*shared), is_created});
                                     });
}

json::Value created_status() {
  return json::Object{{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", json::Object()}, {"status", "Success"}, {"code", 201}};
}

RuledWrite ruled(const Ground& ground, const WriteOperation& operation) {
  const auto& request = *operation.request;
  return {*operation.kind, operation.subresource,      operation.ns, operation.name, request.user, request.info.verb,
          *ground.cache,   *ground.options.authorizer, ground.loop};
}

model::FieldErrors complete_and_validate(const Ground& ground, const WriteOperation& operation, const json::Value* old,
                                         json::Value& object) {
  const auto& kind = *operation.kind;
  const auto& own = rules_of(kind);
  model::FieldErrors errors;
  if (own.check_first) errors = own.check_first(ruled(ground, operation), old, object);
  const auto validate = [&] {
    return old == nullptr ? model::validate_create(kind, object) : model::validate_update(kind, *old, object, operation.subresource);
  };
  const auto validate_as_sent = [&] {
    const model::AsSent as_sent(object, operation.request->empty);
    return validate();
  };
  const bool has_left_out = !operation.request->empty.left_out.empty();
  // What is new is looked at as it was sent. Beside what is there, what is empty says nothing, but is shown where it is refused.
  auto found = old == nullptr && has_left_out ? validate_as_sent() : validate();
  if (old != nullptr && !found.empty() && has_left_out) {
    auto shown = validate_as_sent();
    const auto is_alike = [](const model::FieldError& a, const model::FieldError& b) { return a.type == b.type && a.field == b.field; };
    if (std::ranges::equal(found, shown, is_alike)) found = std::move(shown);
  }
  std::ranges::move(found, std::back_inserter(errors));
  if (own.check_last && operation.subresource.empty())
    std::ranges::move(own.check_last(ruled(ground, operation), old, object), std::back_inserter(errors));
  return errors;
}

std::optional<model::ApiStatus> refuse_exchanged(const WriteOperation& operation, json::Value& object) {
  const auto& kind = *operation.kind;
  model::FieldErrors errors;
  for (const auto& [field, own] : {std::pair("apiVersion", kind.api_version()), std::pair("kind", kind.kind)})
    if (const auto now = json::get_string(object, {field}); now != own)
      errors.push_back({model::FieldError::Type::kInvalid, field, json::serialize(json::Value(now)), fmt::format("must be {}", own)});
  if (!errors.empty()) return model::invalid_object(kind.group, kind.kind, operation.name, errors);
  const auto ns = json::get_string(object, {"metadata", "namespace"});
  if (ns == operation.ns) return std::nullopt;
  if (kind.namespaced && !ns.empty()) return other_namespace();
  json::erase(object, {"metadata", "namespace"});
  if (kind.namespaced) json::set(object, {"metadata", "namespace"}, json::Value(operation.ns));
  return std::nullopt;
}

std::optional<model::ApiStatus> refuse_writer(const Ground& ground, const WriteOperation& operation, const json::Value* old,
                                              const json::Value& object) {
  const auto& own = rules_of(*operation.kind);
  return own.guard ? own.guard(ruled(ground, operation), old, object) : std::nullopt;
}

void warn(WriteOperation& operation, const json::Value* old_object, const json::Value& object) {
  auto& warnings = operation.request->warnings;
  std::unordered_set<std::string> seen(warnings.begin(), warnings.end());
  for (auto& sentence : model::write_warnings(*operation.kind, old_object, object))
    if (seen.insert(sentence).second) warnings.push_back(std::move(sentence));
}

Take status_part(std::string_view parent, std::string_view key) {
  if (key == (parent.empty() ? "spec" : "managedFields")) return Take::kNot;
  return parent.empty() && key == "metadata" ? Take::kMembers : Take::kWhole;
}

bool takes_addresses(const model::KindInfo& kind) { return rules_of(kind).takes_addresses; }

}  // namespace berth::apiserver
