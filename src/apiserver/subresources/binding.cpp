// pods/binding: the one way in which a pod gets its node (pkg/registry/core/pod/storage/storage.go, BindingREST).
#include "apiserver/request/request_body.h"
#include "apiserver/subresources/conditions.h"
#include "apiserver/subresources/subresources.h"
#include "apiserver/writes/stencil.h"
#include "base/json_quote.h"
#include "base/json_scan.h"

namespace berth::apiserver {

void set_pod_condition(json::Value& pod, std::string_view type, std::string_view status, std::string_view reason, std::string_view message,
                       TimePoint now) {
  auto& holder = json::ensure_object(pod, {"status"})["conditions"];
  if (!holder.is_array()) holder = json::Array();
  json::Object* condition = nullptr;
  for (auto& candidate : holder.get_array())
    if (candidate.is_object() && json::get_string(candidate, {"type"}) == type) condition = &candidate.get_object();
  if (condition == nullptr) {
    holder.get_array().push_back(json::Object{{"type", type}});
    condition = &holder.get_array().back().get_object();
  }
  const auto* before = condition->if_contains("status");
  if (before == nullptr || !before->is_string() || json::as_view(*before) != status || !condition->contains("lastTransitionTime"))
    (*condition)["lastTransitionTime"] = format_rfc3339(now);
  (*condition)["status"] = status;
  if (!condition->contains("lastProbeTime")) (*condition)["lastProbeTime"] = nullptr;
  for (auto [field, text] : {std::pair{"reason", reason}, std::pair{"message", message}}) {
    if (text.empty()) {
      condition->erase(field);
    } else {
      (*condition)[field] = text;
    }
  }
}

namespace {

model::ApiStatus binding_conflict(std::string_view name, std::string_view why) { return model::conflict("", "pods/binding", name, why); }

void mark_scheduled(json::Value& pod, TimePoint now) {
  set_pod_condition(pod, "PodScheduled", "True", "", "", now);
  // The condition is another one than the scheduler's: what that had observed goes with it.
  for (auto& condition : json::ensure_object(pod, {"status"})["conditions"].get_array())
    if (json::get_string(condition, {"type"}) == "PodScheduled") condition.get_object().erase("observedGeneration");
}

/// The pod on its node.
class Bound final : public Change {
 public:
  Bound(const WritePipeline& writes, json::Value binding) : writes_(writes), binding_(std::move(binding)) {}

  [[nodiscard]] model::ApiResult<json::Value> made_of(const json::Value& pod) const override {
    const auto name = json::get_string(pod, {"metadata", "name"});
    const auto& pods = *model::find_resource("", "pods");
    const auto its = [&](std::string_view field) { return json::get_string(pod, {"metadata", field}); };
    if (const auto broken = broken_precondition(json::find(binding_, "metadata"), its("uid"), its("resourceVersion")))
      return std::unexpected(precondition_conflict(pods, its("namespace"), name, *broken));
    if (json::find(pod, {"metadata", "deletionTimestamp"}) != nullptr)
      return std::unexpected(binding_conflict(name, fmt::format("pod {} is being deleted, cannot be assigned to a host", name)));
    if (const auto node = json::get_string(pod, {"spec", "nodeName"}); !node.empty())
      return std::unexpected(binding_conflict(name, fmt::format("pod {} is already assigned to node \"{}\"", name, node)));
    if (!json::get_array(pod, {"spec", "schedulingGates"}).empty())
      return std::unexpected(binding_conflict(name, fmt::format("pod {} has non-empty .spec.schedulingGates", name)));
    auto updated = pod;
    json::ensure_object(updated, {"spec"})["nodeName"] = json::get_string(binding_, {"target", "name"});
    for (const auto& [key, value] : json::get_object(binding_, {"metadata", "annotations"}))
      json::ensure_object(updated, {"metadata", "annotations"})[key] = value;
    for (const auto& [key, value] : json::get_object(binding_, {"metadata", "labels"}))
      json::ensure_object(updated, {"metadata", "labels"})[key] = value;
    mark_scheduled(updated, writes_.ground.loop.now());
    // The promise is kept or not wanted any more (1.35).
    if (!writes_.options.keeps_nominations) json::erase(updated, {"status", "nominatedNodeName"});
    json::erase(updated, {"metadata", "resourceVersion"});
    return updated;
  }

 private:
  const WritePipeline& writes_;
  json::Value binding_;
};

/// What is wrong with the body, before anybody is asked about it.
std::optional<model::ApiStatus> check_binding(const Request& request, const json::Value& binding) {
  if (!request.info.subresource.empty() && json::get_string(binding, {"metadata", "name"}) != request.info.name)
    return model::bad_request("name in URL does not match name in Binding object");
  const auto ns = json::get_string(binding, {"metadata", "namespace"});
  if (!ns.empty() && ns != request.info.ns) return other_namespace();
  model::FieldErrors errors;
  const auto target_kind = json::get_string(binding, {"target", "kind"});
  if (!target_kind.empty() && target_kind != "Node")
    errors.push_back({model::FieldError::Type::kNotSupported, "target.kind", fmt::format("\"{}\"", target_kind),
                      "supported values: \"Node\", \"<empty>\""});
  if (json::get_string(binding, {"target", "name"}).empty()) errors.push_back({model::FieldError::Type::kRequired, "target.name", "", ""});
  if (errors.empty()) return std::nullopt;
  // What the binding's own code finds is no finding about an object: an error of the writes, by its words.
  model::ApiStatus status;
  status.code = 500;
  for (const auto& error : errors) status.message += (status.message.empty() ? "" : ", ") + error.render();
  if (errors.size() > 1) status.message = "[" + status.message + "]";
  return status;
}

/// The pod's bytes with the node in them.
struct BoundBytes {
  EncodedObject bytes;
  std::optional<model::Labels> labels;  ///< Where they are others than before.
};

/// What is written anew of the pod's text.
struct Edits {
  std::vector<Stencil::Place> places;
  std::vector<std::string> texts;

  void put(std::string_view place, std::string text) {
    places.push_back({place, texts.size()});
    texts.push_back(std::move(text));
  }
};

/// The place before the bracket that ends an object.
std::string_view end_of(std::string_view object) { return object.substr(object.size() - 1, 0); }

/// What a Binding adds to the pod's annotations or labels (`field`, `present` as they are), written into its metadata. The members as they
/// are then; nothing where the Binding brings none. False: they are not read that way.
bool bring_along(const json::Value& binding, std::string_view field, std::string_view present, std::string_view metadata, Edits& edits,
                 std::optional<json::Value>& then) {
  const auto& added = json::get_object(binding, {"metadata", field});
  if (added.empty()) return true;
  auto members = present.empty() ? Result<json::Value>(json::Value(json::Object())) : json::parse(present);
  if (!members || !members->is_object()) return false;
  for (const auto& [key, value] : added) members->get_object()[key] = value;
  if (present.empty())
    edits.put(end_of(metadata), fmt::format(R"(,"{}":{})", field, json::serialize(*members)));
  else
    edits.put(present, json::serialize(*members));
  then = std::move(*members);
  return true;
}

/// As Bound makes of the document, where that takes no more than a few places of the bytes to be written anew: a pod that waits, no
/// promise of a node being withdrawn. Nothing otherwise.
std::optional<BoundBytes> bound_bytes(const StoredObject& pod, const json::Value& binding, TimePoint now) {
  enum : std::size_t {
    kMetadata,
    kRevision,
    kDeleted,
    kLink,
    kAnnotations,
    kLabels,
    kSpec,
    kNode,
    kGates,
    kStatus,
    kConditions,
    kNominated,
    kPaths
  };
  static const json::PathScanner scanner({"metadata", "metadata.resourceVersion", "metadata.deletionTimestamp", "metadata.selfLink",
                                          "metadata.annotations", "metadata.labels", "spec", "spec.nodeName", "spec.schedulingGates",
                                          "status", "status.conditions", "status.nominatedNodeName"});
  std::array<std::string_view, kPaths> at;
  const HeldText held = pod.text();
  const std::string& text = *held;
  if (broken_precondition(json::find(binding, "metadata"), pod.meta.uid, std::to_string(pod.revision))) return std::nullopt;
  if (!scanner.scan(text, at)) return std::nullopt;
  for (const auto absent : {kDeleted, kLink, kNode, kGates, kNominated})
    if (!at[absent].empty()) return std::nullopt;
  // Members are added behind others.
  for (const auto object : {kMetadata, kSpec, kStatus})
    if (at[object].size() < 3 || at[object].front() != '{') return std::nullopt;
  if (at[kRevision].size() < 2 || at[kRevision].front() != '"') return std::nullopt;

  BoundBytes out;
  Edits edits;
  edits.places.push_back({at[kRevision].substr(1, at[kRevision].size() - 2), Stencil::kRevision});
  std::optional<json::Value> annotations, labels;
  if (!bring_along(binding, "annotations", at[kAnnotations], at[kMetadata], edits, annotations) ||
      !bring_along(binding, "labels", at[kLabels], at[kMetadata], edits, labels))
    return std::nullopt;
  if (labels) out.labels = model::Labels::from_json(&*labels);
  std::string node = R"(,"nodeName":)";
  json::quote_to(node, json::get_string(binding, {"target", "name"}));
  edits.put(end_of(at[kSpec]), std::move(node));

  json::Value part = json::Object{{"status", json::Object()}};
  if (!at[kConditions].empty()) {
    auto conditions = json::parse(at[kConditions]);
    if (!conditions) return std::nullopt;
    json::set(part, {"status", "conditions"}, std::move(*conditions));
  }
  mark_scheduled(part, now);
  auto conditions = json::serialize(*json::find(part, {"status", "conditions"}));
  if (at[kConditions].empty())
    edits.put(end_of(at[kStatus]), R"(,"conditions":)" + conditions);
  else
    edits.put(at[kConditions], std::move(conditions));

  const auto stencil = Stencil::cut(text, std::move(edits.places));
  if (!stencil) return std::nullopt;
  out.bytes = stencil->fill(std::vector<std::string_view>(edits.texts.begin(), edits.texts.end()));
  return out;
}

/// What selectors see of the pod on its node, with these labels if they are others.
ObjectMeta bound_meta(const StoredObject& pod, const model::KindInfo& kind, std::string_view node, std::optional<model::Labels> labels) {
  auto meta = meta_like(pod, labels ? std::move(*labels) : pod.meta.labels());
  for (const auto& field : kind.field_selectors) {
    if (field.starts_with("metadata.")) continue;
    const auto text = field == "spec.nodeName" ? node : pod.meta.field(field);
    if (!text.empty()) meta.fields.emplace_back(field, text);
  }
  return meta;
}

}  // namespace

namespace steps {

StepResult decode_binding(WritePipeline& writes, const WritePtr& operation) {
  const auto& request = operation->request;
  auto binding = decode_unserved_body(*request, *model::find_kind("", "v1", "Binding"));
  if (!binding) return std::unexpected(std::move(binding.error().status));
  if (auto wrong = check_binding(*request, *binding)) return std::unexpected(std::move(*wrong));
  operation->kind = model::find_resource("", "v1", "pods");
  operation->ns = request->info.ns;
  operation->name = json::get_string(*binding, {"metadata", "name"});
  operation->subresource = "binding";
  operation->decoded.body = {"v1", "Binding"};
  operation->candidate.document = std::move(*binding);
  operation->done = [&writes, request](model::ApiResult<WriteOutcome> outcome) {
    if (!outcome) return writes.respond.status(*request, outcome.error());
    writes.respond.document(*request, 201, created_status());
  };
  return Flow::kNext;
}

StepResult bind_pod(WritePipeline& writes, const WritePtr& operation) {
  const auto& binding = operation->admission.object;
  // Once more: somebody may have changed it since.
  if (auto wrong = check_binding(*operation->request, binding)) return std::unexpected(std::move(*wrong));
  const auto& pods = *operation->kind;
  const auto pod = writes.ground.cache->get(object_key(pods, operation->ns, operation->name));
  if (pod == nullptr) return std::unexpected(model::not_found(pods.group, pods.plural, operation->name));
  auto bytes = operation->dry_run ? std::nullopt : bound_bytes(*pod, binding, writes.ground.loop.now());
  if (!bytes) {
    operation->decoded.change = std::make_unique<Bound>(writes, std::move(operation->admission.object));
    enter(writes, *operation, WriteMode::kMark, Stage::kDecode);
    return Flow::kNext;
  }
  auto meta = bound_meta(*pod, pods, json::get_string(binding, {"target", "name"}), std::move(bytes->labels));
  auto proposal = proposal_of(writes.ground, pods, std::move(meta), std::move(bytes->bytes));
  proposal.expected = pod->revision;
  writes.ground.cache->propose(std::move(proposal), [&writes, operation](ProposeResult result) {
    if (result) return operation->done(WriteOutcome{.object = std::move(*result)});
    if (is_of_storage(result.error())) return operation->fail(not_stored(writes.ground, result.error()));
    if (++operation->attempts >= kMostAttempts)
      return operation->fail(model::modified_conflict(operation->kind->group, operation->kind->plural, operation->name));
    // Somebody else was faster; whoever bound it is told of by the words for that.
    try_again(writes, operation, Stage::kStore);
  });
  return Flow::kWaits;
}

}  // namespace steps
}  // namespace berth::apiserver
