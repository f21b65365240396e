#include "apiserver/body.h"
#include "apiserver/impl.h"
#include "apiserver/write.h"

namespace berth::apiserver {

void ApiServer::Impl::create(const RequestPtr& request) {
  auto document = decode_object_body(*request);
  if (!document) return respond_status(*request, document.error());
  if (auto matched = match_path(*request, *document, false); !matched) return respond_status(*request, matched.error());
  auto operation = make_write(request);
  operation->document = std::move(*document);
  operation->done = [this, request](model::ApiResult<WriteOutcome> outcome) {
    if (!outcome) return respond_status(*request, outcome.error());
    if (outcome->object != nullptr) return respond_object(*request, 201, outcome->object);
    respond_document(*request, 201, outcome->document);
  };
  run_create(operation);
}

void ApiServer::Impl::update(const RequestPtr& request) {
  auto document = decode_object_body(*request);
  if (!document) return respond_status(*request, document.error());
  if (auto matched = match_path(*request, *document, true); !matched) return respond_status(*request, matched.error());
  auto operation = make_write(request);
  operation->produce = [document = std::move(*document)](const json::Value&) -> model::ApiResult<json::Value> { return document; };
  operation->done = [this, request](model::ApiResult<WriteOutcome> outcome) {
    if (!outcome) return respond_status(*request, outcome.error());
    if (outcome->object != nullptr) return respond_object(*request, 200, outcome->object);
    respond_document(*request, 200, outcome->document);
  };
  run_update(operation);
}

}  // namespace berth::apiserver
