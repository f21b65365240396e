// pods/binding: the one way in which a pod gets its node (pkg/registry/core/pod/storage/storage.go, BindingREST).
#include <algorithm>
#include <array>

#include "apiserver/request/request_body.h"
#include "apiserver/subresources/conditions.h"
#include "apiserver/subresources/subresources.h"

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

Take marked_part(std::string_view parent, std::string_view key) {
  constexpr std::array<std::string_view, 11> kRead = {"name",
                                                      "namespace",
                                                      "uid",
                                                      "resourceVersion",
                                                      "labels",
                                                      "annotations",
                                                      "finalizers",
                                                      "deletionTimestamp",
                                                      "deletionGracePeriodSeconds",
                                                      "nodeName",
                                                      "schedulingGates"};
  if (parent.empty()) return key == "metadata" || key == "spec" ? Take::kMembers : key == "status" ? Take::kWhole : Take::kNot;
  return std::ranges::find(kRead, key) != kRead.end() ? Take::kWhole : Take::kNot;
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
  [[nodiscard]] Choice part() const override { return marked_part; }

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
  operation->decoded.change = std::make_unique<Bound>(writes, std::move(operation->admission.object));
  enter(writes, *operation, WriteMode::kMark, Stage::kDecode);
  return Flow::kNext;
}

}  // namespace steps
}  // namespace berth::apiserver
