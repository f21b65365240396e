// The bodies of POST and PUT.
#include "apiserver/apply/managed_fields.h"
#include "apiserver/request/request_body.h"
#include "apiserver/verbs/verbs.h"
#include "model/kind_hooks.h"

namespace berth::apiserver::steps {

StepResult decode_new(WritePipeline&, const WritePtr& operation) {
  auto document = decode_object_body(*operation->request);
  if (!document) return std::unexpected(std::move(document.error()));
  if (auto matched = match_path(*operation->request, *document, false); !matched) return std::unexpected(std::move(matched.error()));
  operation->document = std::move(*document);
  return Flow::kNext;
}

StepResult decode_replacement(WritePipeline& writes, const WritePtr& operation) {
  const auto& request = operation->request;
  auto document = decode_object_body(*request, [&]() -> std::optional<json::Value> {
    const auto stored = writes.ground.cache->get(object_key(*request->kind, request->info.ns, request->info.name));
    return stored == nullptr ? std::nullopt : std::optional(read_document(*request, *stored));
  });
  if (!document) return std::unexpected(std::move(document.error()));
  if (auto matched = match_path(*request, *document, true); !matched) return std::unexpected(std::move(matched.error()));
  if (model::hooks_of(*request->kind).life->is_created_by_update && operation->subresource.empty()) {
    operation->produce_new = [&writes, request, document = *document]() -> model::ApiResult<json::Value> {
      if (const auto uid = json::get_string(document, {"metadata", "uid"}); !uid.empty())
        return std::unexpected(precondition_conflict(*request->kind, request->info.ns, request->info.name, {"UID", std::string(uid), ""}));
      if (auto refused = refuse_creation(writes.ground, *request)) return std::unexpected(std::move(*refused));
      auto fresh = document;
      json::erase(fresh, {"metadata", "resourceVersion"});
      return fresh;
    };
  }
  operation->is_of_status_alone = operation->subresource == "status" && !apply::forgets_owners(*document);
  operation->produce = [document = std::move(*document)](const json::Value&) -> model::ApiResult<json::Value> { return document; };
  return Flow::kNext;
}

}  // namespace berth::apiserver::steps
