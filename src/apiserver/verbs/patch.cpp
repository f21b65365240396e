// PATCH in its four languages. Which documents a patch sees and what its errors are called: apiserver/pkg/endpoints/handlers/patch.go.
#include "apiserver/apply/managed_fields.h"
#include "apiserver/auth/reviews.h"
#include "apiserver/body.h"
#include "apiserver/impl.h"
#include "apiserver/patch/json_patch.h"
#include "apiserver/patch/strategic_merge.h"
#include "apiserver/write.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kMaxJsonPatchOperations = 10'000;

model::ApiStatus unprocessable() {
  model::ApiStatus status;
  status.code = 422;
  status.reason = "Invalid";
  status.message = "the server rejected our request due to an error in our request";
  return status;
}

/// 422 with what went wrong as a finding on the patch.
model::ApiStatus invalid_patch(std::string_view value, std::string detail) {
  return model::invalid_object("", "", "", {{model::FieldError::Type::kInvalid, "patch", json::serialize(json::Value(value.substr(0, 256))), std::move(detail)}});
}

/// What every patched document goes through before it is an update like any other.
model::ApiResult<json::Value> finish_patched(const RequestPtr& request, const model::KindInfo& kind, const json::Value& current, json::Value patched) {
  if (!patched.is_object()) return std::unexpected(invalid_patch(json::serialize(patched), "the patched document is not an object"));
  if (auto decoded = decode_document(*request, kind, patched, {}); !decoded) {
    auto& status = decoded.error();
    const auto strict = status.message.find("strict decoding error");
    if (strict != std::string::npos) {
      status.message = status.message.substr(strict);
      return std::unexpected(std::move(status));
    }
    return std::unexpected(invalid_patch(request->http.body, status.message));
  }
  model::apply_defaults(kind, patched);
  for (auto [field, word] : {std::pair{"name", "name"}, std::pair{"namespace", "namespace"}}) {
    const auto before = json::get_string(current, {"metadata", field});
    const auto after = json::get_string(patched, {"metadata", field});
    if (before == after) continue;
    if (std::string_view(word) == "namespace") return std::unexpected(model::bad_request("the namespace of the provided object does not match the namespace sent on the request"));
    return std::unexpected(model::bad_request(fmt::format("the name of the object ({}) does not match the name on the URL ({})", after, before)));
  }
  return patched;
}

using Produce = std::function<model::ApiResult<json::Value>(const json::Value&)>;

model::ApiResult<json::Value> parse_patch(const Request& request) {
  auto patch = json::parse(request.http.body);
  if (!patch) return std::unexpected(model::bad_request(fmt::format("error decoding patch: {}", patch.error().message)));
  return std::move(*patch);
}

model::ApiResult<Produce> json_patch(const RequestPtr& request, const model::KindInfo& kind) {
  auto document = parse_patch(*request);
  if (!document) return std::unexpected(document.error());
  auto operations = patch::parse_json_patch(*document);
  if (!operations) return std::unexpected(model::bad_request("error decoding patch: " + operations.error().message));
  if (operations->size() > kMaxJsonPatchOperations) {
    model::ApiStatus status;
    status.code = 413;
    status.reason = "RequestEntityTooLarge";
    status.message = fmt::format("The allowed maximum operations in a JSON patch is {}, got {}", kMaxJsonPatchOperations, operations->size());
    return std::unexpected(std::move(status));
  }
  return [request, &kind, operations = std::move(*operations)](const json::Value& current) -> model::ApiResult<json::Value> {
    auto patched = current;
    if (auto applied = patch::apply_json_patch(patched, operations); !applied) {
      auto status = unprocessable();
      status.causes.push_back({"UnexpectedServerResponse", applied.error().message, ""});
      return std::unexpected(std::move(status));
    }
    return finish_patched(request, kind, current, std::move(patched));
  };
}

model::ApiResult<Produce> merge_patch(const RequestPtr& request, const model::KindInfo& kind) {
  auto document = parse_patch(*request);
  if (!document) return std::unexpected(document.error());
  return [request, &kind, document = std::move(*document)](const json::Value& current) -> model::ApiResult<json::Value> {
    auto patched = current;
    patch::apply_merge_patch(patched, document);
    return finish_patched(request, kind, current, std::move(patched));
  };
}

model::ApiResult<Produce> strategic_patch(const RequestPtr& request, const model::KindInfo& kind) {
  auto document = parse_patch(*request);
  if (!document) return std::unexpected(document.error());
  if (!document->is_object()) return std::unexpected(model::bad_request("error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"));
  return [request, &kind, document = std::move(*document)](const json::Value& current) -> model::ApiResult<json::Value> {
    auto patched = current;
    if (auto applied = patch::apply_strategic_merge(Shape::of(kind), patched, document); !applied) {
      auto status = unprocessable();
      status.message = applied.error().message;
      return std::unexpected(std::move(status));
    }
    return finish_patched(request, kind, current, std::move(patched));
  };
}

/// The configuration of an apply: parsed and checked, with the names of the path filled in.
model::ApiResult<json::Value> read_configuration(Request& request, const model::KindInfo& kind) {
  auto config = json::parse_yaml(request.http.body);
  if (!config) return std::unexpected(model::bad_request(fmt::format("error decoding YAML: {}", config.error().message)));
  if (!config->is_object()) return std::unexpected(model::bad_request("error decoding YAML: an apply configuration must be an object"));
  if (json::get_string(*config, {"apiVersion"}).empty() || json::get_string(*config, {"kind"}).empty())
    return std::unexpected(model::bad_request("Object 'Kind' and 'apiVersion' must be set in an apply configuration"));
  if (!json::get_array(*config, {"metadata", "managedFields"}).empty()) return std::unexpected(model::bad_request("metadata.managedFields must be nil"));
  if (auto decoded = decode_document(request, kind, *config, {}); !decoded) return std::unexpected(decoded.error());
  const auto name = json::get_string(*config, {"metadata", "name"});
  if (!name.empty() && name != request.info.name)
    return std::unexpected(model::bad_request(fmt::format("the name of the object ({}) does not match the name on the URL ({})", name, request.info.name)));
  auto& metadata = json::ensure_object(*config, {"metadata"});
  metadata["name"] = request.info.name;
  if (kind.namespaced) {
    const auto ns = json::get_string(*config, {"metadata", "namespace"});
    if (!ns.empty() && ns != request.info.ns)
      return std::unexpected(model::bad_request("the namespace of the provided object does not match the namespace sent on the request"));
    metadata["namespace"] = request.info.ns;
  }
  return config.value();
}

void set_apply(ApiServer::Impl& server, const RequestPtr& request, WriteOperation& operation, json::Value config) {
  operation.tracks_fields = false;
  operation.is_apply = true;
  const auto shared = std::make_shared<const json::Value>(std::move(config));
  const auto& kind = *operation.kind;
  const auto run = [&server, request, &kind, shared, subresource = operation.subresource](const json::Value& live) -> model::ApiResult<json::Value> {
    const apply::Writer writer{request->field_manager, subresource, server.loop.now()};
    auto merged = apply::apply(kind, live, *shared, writer, request->force);
    if (!merged) return merged;
    // Defaults come back where the prune took a field away.
    model::apply_defaults(kind, *merged);
    return merged;
  };
  operation.produce = run;
  if (!operation.subresource.empty()) return;
  operation.produce_new = [&server, request, run, shared]() -> model::ApiResult<json::Value> {
    // Applying what is not there creates it: that is a right of its own.
    Attributes creation;
    creation.verb = "create";
    creation.group = request->info.group;
    creation.version = request->info.version;
    creation.resource = request->info.resource;
    creation.ns = request->info.ns;
    creation.name = request->info.name;
    if (const auto decision = server.options.authorizer->authorize(request->user, creation); !decision.allowed)
      return std::unexpected(auth::forbidden_status(request->user, creation, decision.reason));
    if (!json::get_string(*shared, {"metadata", "uid"}).empty())
      return std::unexpected(model::conflict("", "", json::get_string(*shared, {"metadata", "name"}), "uid mismatch: the provided object specified a uid, and no existing object was found"));
    return run(json::Value(json::Object()));
  };
}

}  // namespace

void ApiServer::Impl::patch(const RequestPtr& request) {
  auto operation = make_write(request);
  const auto& kind = *operation->kind;
  const auto type = media_type(request->http.headers.get("Content-Type"));
  model::ApiResult<Produce> produce;
  if (type == "application/json-patch+json") {
    produce = json_patch(request, kind);
  } else if (type == "application/merge-patch+json") {
    produce = merge_patch(request, kind);
  } else if (type == "application/strategic-merge-patch+json") {
    produce = strategic_patch(request, kind);
  } else if (type == "application/apply-patch+yaml") {
    if (!request->field_manager_given) {
      return respond_status(*request, model::invalid_object("meta.k8s.io", "PatchOptions", "",
                                                            {{model::FieldError::Type::kRequired, "fieldManager", "", "is required for apply patch"}}));
    }
    auto config = read_configuration(*request, kind);
    if (!config) return respond_status(*request, config.error());
    set_apply(*this, request, *operation, std::move(*config));
    produce = operation->produce;
  } else {
    return respond_status(*request, model::unsupported_media_type(
                                        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "
                                        "application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml"));
  }
  if (request->force && !operation->is_apply)
    return respond_status(*request, model::invalid_object("meta.k8s.io", "PatchOptions", "",
                                                          {{model::FieldError::Type::kForbidden, "force", "", "may not be specified for non-apply patch"}}));
  if (!produce) return respond_status(*request, produce.error());
  operation->produce = std::move(*produce);
  operation->done = [this, request](model::ApiResult<WriteOutcome> outcome) {
    if (!outcome) return respond_status(*request, outcome.error());
    const int code = outcome->created ? 201 : 200;
    if (outcome->object != nullptr) return respond_object(*request, code, outcome->object);
    respond_document(*request, code, outcome->document);
  };
  run_update(operation);
}

}  // namespace berth::apiserver
