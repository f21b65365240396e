// pods/binding: the one way in which a pod gets its node (pkg/registry/core/pod/storage/storage.go, BindingREST).
#include "apiserver/body.h"
#include "apiserver/impl.h"
#include "apiserver/subresources/conditions.h"
#include "apiserver/write.h"

namespace berth::apiserver {

void set_condition(json::Value& object, std::string_view type, std::string_view status, std::string_view reason, std::string_view message,
                   TimePoint now, bool with_probe_time) {
  auto& holder = json::ensure_object(object, {"status"})["conditions"];
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
  if (with_probe_time && !condition->contains("lastProbeTime")) (*condition)["lastProbeTime"] = nullptr;
  for (auto [field, text] : {std::pair{"reason", reason}, std::pair{"message", message}}) {
    // A metav1.Condition (without a probe's time) always has its message.
    if (text.empty() && (with_probe_time || field != std::string_view("message"))) {
      condition->erase(field);
    } else {
      (*condition)[field] = text;
    }
  }
}

namespace {

model::ApiStatus binding_conflict(std::string_view name, std::string_view why) { return model::conflict("", "pods/binding", name, why); }

model::ApiResult<json::Value> bound(const json::Value& pod, const json::Value& binding, const std::string& name, TimePoint now) {
  const auto& pods = *model::find_resource("", "pods");
  for (const auto& [field, what] : {std::pair("uid", "UID"), std::pair("resourceVersion", "ResourceVersion")}) {
    const auto asked = json::get_string(binding, {"metadata", field}), its = json::get_string(pod, {"metadata", field});
    if (!asked.empty() && asked != its)
      return std::unexpected(precondition_conflict(pods, json::get_string(pod, {"metadata", "namespace"}), name, what, asked, its));
  }
  if (json::find(pod, {"metadata", "deletionTimestamp"}) != nullptr)
    return std::unexpected(binding_conflict(name, fmt::format("pod {} is being deleted, cannot be assigned to a host", name)));
  if (const auto node = json::get_string(pod, {"spec", "nodeName"}); !node.empty())
    return std::unexpected(binding_conflict(name, fmt::format("pod {} is already assigned to node \"{}\"", name, node)));
  if (!json::get_array(pod, {"spec", "schedulingGates"}).empty())
    return std::unexpected(binding_conflict(name, fmt::format("pod {} has non-empty .spec.schedulingGates", name)));
  auto updated = pod;
  json::ensure_object(updated, {"spec"})["nodeName"] = json::get_string(binding, {"target", "name"});
  for (const auto& [key, value] : json::get_object(binding, {"metadata", "annotations"}))
    json::ensure_object(updated, {"metadata", "annotations"})[key] = value;
  for (const auto& [key, value] : json::get_object(binding, {"metadata", "labels"}))
    json::ensure_object(updated, {"metadata", "labels"})[key] = value;
  set_condition(updated, "PodScheduled", "True", "", "", now, true);
  // The condition is another one than the scheduler's: what that had observed goes with it.
  for (auto& condition : json::ensure_object(updated, {"status"})["conditions"].get_array())
    if (json::get_string(condition, {"type"}) == "PodScheduled") condition.get_object().erase("observedGeneration");
  json::erase(updated, {"status", "nominatedNodeName"});  // The promise is kept or not wanted any more (1.35).
  json::erase(updated, {"metadata", "resourceVersion"});
  return updated;
}

}  // namespace

void ApiServer::Impl::bind(const RequestPtr& request) {
  const auto& binding_kind = *model::find_kind("", "v1", "Binding");
  auto binding = parse_body(*request, "Binding");
  if (!binding) return respond_status(*request, binding.error());
  if (auto decoded = decode_document(*request, binding_kind, *binding, {}); !decoded) return respond_status(*request, decoded.error());
  std::string name(json::get_string(*binding, {"metadata", "name"}));
  if (!request->info.subresource.empty()) {
    if (name != request->info.name)
      return respond_status(*request, model::bad_request("name in URL does not match name in Binding object"));
  }
  const auto ns = json::get_string(*binding, {"metadata", "namespace"});
  if (!ns.empty() && ns != request->info.ns)
    return respond_status(*request,
                          model::bad_request("the namespace of the provided object does not match the namespace sent on the request"));
  model::FieldErrors errors;
  const auto target_kind = json::get_string(*binding, {"target", "kind"});
  if (!target_kind.empty() && target_kind != "Node")
    errors.push_back({model::FieldError::Type::kNotSupported, "target.kind", fmt::format("\"{}\"", target_kind),
                      "supported values: \"Node\", \"<empty>\""});
  if (json::get_string(*binding, {"target", "name"}).empty()) errors.push_back({model::FieldError::Type::kRequired, "target.name", "", ""});
  if (!errors.empty()) {
    // What the binding's own code finds is no finding about an object: an error of the server, by its words.
    model::ApiStatus status;
    status.code = 500;
    for (const auto& error : errors) status.message += (status.message.empty() ? "" : ", ") + error.render();
    if (errors.size() > 1) status.message = "[" + status.message + "]";
    return respond_status(*request, status);
  }

  auto operation = make_write(request);
  operation->kind = model::find_resource("", "v1", "pods");
  operation->ns = request->info.ns;
  operation->name = name;
  operation->subresource = "binding";
  operation->tracks_fields = operation->admits = operation->validates = operation->prepares = false;
  operation->always_changes = true;
  operation->done = [this, request](model::ApiResult<WriteOutcome> outcome) {
    if (!outcome) return respond_status(*request, outcome.error());
    respond_json(
        *request, 201,
        json::Object{{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", json::Object()}, {"status", "Success"}, {"code", 201}});
  };
  // Admission judges the Binding, not the pod.
  auto& asked = operation->admission;
  asked.operation = Operation::kCreate;
  asked.kind = operation->kind;
  asked.subresource = "binding";
  asked.ns = request->info.ns;
  asked.name = name;
  asked.user = &request->user;
  asked.dry_run = request->dry_run;
  asked.warnings = &request->warnings;
  asked.object = std::move(*binding);
  asked.object_api_version = "v1";
  asked.object_kind = "Binding";
  admission->mutate(asked, [this, operation, name](Admitted admitted) {
    if (!admitted) return operation->fail(std::move(admitted.error()));
    admission->validate(operation->admission, [this, operation, name](Admitted valid) {
      if (!valid) return operation->fail(std::move(valid.error()));
      const auto shared = std::make_shared<const json::Value>(std::move(operation->admission.object));
      operation->produce = [this, shared, name](const json::Value& pod) { return bound(pod, *shared, name, loop.now()); };
      run_update(operation);
    });
  });
}

}  // namespace berth::apiserver
