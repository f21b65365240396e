// PATCH in its four languages. Which documents a patch sees and what its errors are called: apiserver/pkg/endpoints/handlers/patch.go.
#include "apiserver/apply/managed_fields.h"
#include "apiserver/body.h"
#include "apiserver/impl.h"
#include "apiserver/patch/json_patch.h"
#include "apiserver/patch/strategic_merge.h"
#include "apiserver/write.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kMaxJsonPatchOperations = 10'000;

constexpr std::size_t kMaxShownPatch = 16 * 1024;

/// 422 with what went wrong as a finding on the patched document.
model::ApiStatus invalid_patch(const json::Value& patched, std::string detail) {
  const auto text = json::serialize(patched);
  return model::invalid_object("", "", "",
                               {{model::FieldError::Type::kInvalid, "patch",
                                 json::serialize(json::Value(std::string_view(text).substr(0, kMaxShownPatch))), std::move(detail)}});
}

std::string_view word_of(const json::Value& value) {
  if (value.is_array()) return "array";
  if (value.is_object()) return "object";
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  return value.is_null() ? "null" : "number";
}

/// A body that decoding into a Go map refuses; null is an empty map.
model::ApiResult<void> expect_map(const json::Value& patch, std::string_view before) {
  if (patch.is_object() || patch.is_null()) return {};
  return std::unexpected(model::bad_request(
      fmt::format("{}json: cannot unmarshal {} into Go value of type map[string]interface {{}}", before, word_of(patch))));
}

/// What decoding says, without the sentence around it that only whole objects get.
std::string bare_reason(std::string_view message) {
  constexpr std::string_view kBefore = " cannot be handled as a ";
  const auto at = message.find(kBefore);
  const auto end = at == std::string_view::npos ? at : message.find(": ", at);
  return std::string(end == std::string_view::npos ? message : message.substr(end + 2));
}

/// What every patched document goes through before it is an update like any other.
model::ApiResult<json::Value> finish_patched(const RequestPtr& request, const model::KindInfo& kind, const json::Value& current,
                                             json::Value patched) {
  if (!patched.is_object()) return std::unexpected(invalid_patch(patched, "the patched document is not an object"));
  if (auto decoded = decode_document(*request, kind, patched, {}); !decoded) {
    auto& status = decoded.error();
    const auto strict = status.message.find("strict decoding error");
    if (strict != std::string::npos) {
      status.message = status.message.substr(strict);
      return std::unexpected(std::move(status));
    }
    return std::unexpected(invalid_patch(patched, bare_reason(status.message)));
  }
  model::apply_defaults(kind, patched);
  for (const char* field : {"namespace", "name"}) {
    const auto before = json::get_string(current, {"metadata", field});
    const auto after = json::get_string(patched, {"metadata", field});
    if (before == after) continue;
    if (std::string_view(field) == "namespace")
      return std::unexpected(model::bad_request("the namespace of the provided object does not match the namespace sent on the request"));
    return std::unexpected(
        model::bad_request(fmt::format("the name of the object ({}) does not match the name on the URL ({})", after, before)));
  }
  return patched;
}

using Produce = std::function<model::ApiResult<json::Value>(const json::Value&)>;

/// The words around an error: Kubernetes' decoders of the three languages differ in them.
constexpr std::string_view kDecoding = "error decoding patch: ";

model::ApiResult<json::Value> parse_patch(const Request& request, std::string_view before) {
  if (request.http.body.empty()) return std::unexpected(model::bad_request(fmt::format("{}unexpected end of JSON input", before)));
  auto patch = json::parse(request.http.body);
  if (patch) return std::move(*patch);
  constexpr std::string_view kOurs = "invalid JSON: ";
  const std::string_view why = patch.error().message;
  return std::unexpected(model::bad_request(fmt::format("{}{}", before, why.starts_with(kOurs) ? why.substr(kOurs.size()) : why)));
}

model::ApiResult<Produce> json_patch(const RequestPtr& request, const model::KindInfo& kind) {
  auto document = parse_patch(*request, kDecoding);
  if (!document) return std::unexpected(document.error());
  if (!document->is_array())
    return std::unexpected(model::bad_request(
        fmt::format("{}json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp", kDecoding, word_of(*document))));
  auto operations = patch::parse_json_patch(*document);
  if (!operations && operations.error().message.starts_with("Unexpected kind")) return std::unexpected(model::unprocessable());
  if (!operations) return std::unexpected(model::bad_request("error decoding patch: " + operations.error().message));
  if (operations->size() > kMaxJsonPatchOperations) {
    model::ApiStatus status;
    status.code = 413;
    status.reason = "RequestEntityTooLarge";
    status.message =
        fmt::format("The allowed maximum operations in a JSON patch is {}, got {}", kMaxJsonPatchOperations, operations->size());
    return std::unexpected(std::move(status));
  }
  return [request, &kind, operations = std::move(*operations)](const json::Value& current) -> model::ApiResult<json::Value> {
    auto patched = current;
    if (auto applied = patch::apply_json_patch(patched, operations); !applied) {
      return std::unexpected(model::unprocessable());
    }
    return finish_patched(request, kind, current, std::move(patched));
  };
}

model::ApiResult<Produce> merge_patch(const RequestPtr& request, const model::KindInfo& kind) {
  auto document = parse_patch(*request, kDecoding);
  if (!document) return std::unexpected(document.error());
  if (auto map = expect_map(*document, kDecoding); !map) return std::unexpected(map.error());
  if (document->is_null()) *document = json::Object();
  return [request, &kind, document = std::move(*document)](const json::Value& current) -> model::ApiResult<json::Value> {
    auto patched = current;
    patch::apply_merge_patch(patched, document);
    return finish_patched(request, kind, current, std::move(patched));
  };
}

model::ApiResult<Produce> strategic_patch(const RequestPtr& request, const model::KindInfo& kind) {
  auto document = parse_patch(*request, "");
  if (!document) return std::unexpected(document.error());
  if (auto map = expect_map(*document, ""); !map) return std::unexpected(map.error());
  if (document->is_null()) *document = json::Object();
  return [request, &kind, document = std::move(*document)](const json::Value& current) -> model::ApiResult<json::Value> {
    auto patched = current;
    if (auto applied = patch::apply_strategic_merge(Shape::of(kind), patched, document); !applied) {
      auto status = model::unprocessable();
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
  if (!json::get_array(*config, {"metadata", "managedFields"}).empty())
    return std::unexpected(model::bad_request("metadata.managedFields must be nil"));
  if (auto decoded = decode_document(request, kind, *config, {}); !decoded) return std::unexpected(decoded.error());
  const auto name = json::get_string(*config, {"metadata", "name"});
  if (!name.empty() && name != request.info.name)
    return std::unexpected(
        model::bad_request(fmt::format("the name of the object ({}) does not match the name on the URL ({})", name, request.info.name)));
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
  const auto run = [&server, request, &kind, shared,
                    subresource = operation.subresource](const json::Value& live) -> model::ApiResult<json::Value> {
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
    if (auto refused = server.refuse_creation(*request)) return std::unexpected(std::move(*refused));
    if (!json::get_string(*shared, {"metadata", "uid"}).empty())
      return std::unexpected(model::conflict("", "", json::get_string(*shared, {"metadata", "name"}),
                                             "uid mismatch: the provided object specified a uid, and no existing object was found"));
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
      return respond_status(
          *request, model::invalid_object("meta.k8s.io", "PatchOptions", "",
                                          {{model::FieldError::Type::kRequired, "fieldManager", "", "is required for apply patch"}}));
    }
    auto config = read_configuration(*request, kind);
    if (!config) return respond_status(*request, config.error());
    set_apply(*this, request, *operation, std::move(*config));
    produce = operation->produce;
  } else {
    return respond_status(*request, model::unknown_patch_type());
  }
  if (request->force && !operation->is_apply)
    return respond_status(
        *request, model::invalid_object("meta.k8s.io", "PatchOptions", "",
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
