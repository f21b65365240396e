#include "apiserver/body.h"
#include "apiserver/impl.h"
#include "apiserver/write.h"
#include "model/kind_hooks.h"

namespace berth::apiserver {

void ApiServer::Impl::create(const RequestPtr& request) {
  auto document = decode_object_body(*request);
  if (!document) return respond_status(*request, document.error());
  if (auto matched = match_path(*request, *document, false); !matched) return respond_status(*request, matched.error());
  auto operation = make_write(request);
  operation->document = std::move(*document);
  operation->done = [this, request](model::ApiResult<WriteOutcome> outcome) {
    if (!outcome) return respond_status(*request, outcome.error());
    respond_written(request, 201, std::move(*outcome));
  };
  run_create(operation);
}

void ApiServer::Impl::update(const RequestPtr& request) {
  auto document = decode_object_body(*request, [&]() -> std::optional<json::Value> {
    const auto stored = cache->get(object_key(*request->kind, request->info.ns, request->info.name));
    return stored == nullptr ? std::nullopt : std::optional(read_document(*request, *stored));
  });
  if (!document) return respond_status(*request, document.error());
  if (auto matched = match_path(*request, *document, true); !matched) return respond_status(*request, matched.error());
  auto operation = make_write(request);
  if (model::hooks_of(*request->kind).life->is_created_by_update && operation->subresource.empty()) {
    operation->produce_new = [this, request, document = *document]() -> model::ApiResult<json::Value> {
      if (const auto uid = json::get_string(document, {"metadata", "uid"}); !uid.empty())
        return std::unexpected(precondition_conflict(*request->kind, request->info.ns, request->info.name, "UID", uid, ""));
      if (auto refused = refuse_creation(*request)) return std::unexpected(std::move(*refused));
      auto fresh = document;
      json::erase(fresh, {"metadata", "resourceVersion"});
      return fresh;
    };
  }
  operation->produce = [document = std::move(*document)](const json::Value&) -> model::ApiResult<json::Value> { return document; };
  operation->done = [this, request](model::ApiResult<WriteOutcome> outcome) {
    if (!outcome) return respond_status(*request, outcome.error());
    const int code = outcome->created ? 201 : 200;
    respond_written(request, code, std::move(*outcome));
  };
  run_update(operation);
}

}  // namespace berth::apiserver
