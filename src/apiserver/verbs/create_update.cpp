// The bodies of POST and PUT.
#include "apiserver/apply/managed_fields.h"
#include "apiserver/request/request_body.h"
#include "apiserver/verbs/verbs.h"
#include "model/kind_hooks.h"

namespace berth::apiserver {
namespace {

/// The object as it is to be.
class Replacement final : public Change {
 public:
  Replacement(WritePipeline& writes, const RequestPtr& request, json::Value document)
      : ground_(writes.ground), request_(request), document_(std::move(document)) {}

  [[nodiscard]] model::ApiResult<json::Value> made_of(const json::Value&) const override { return document_; }
  [[nodiscard]] std::optional<model::ApiResult<json::Value>> made_anew() const override {
    const auto& kind = *request_->kind;
    if (!model::hooks_of(kind).life->is_created_by_update || !request_->info.subresource.empty()) return std::nullopt;
    if (const auto uid = json::get_string(document_, {"metadata", "uid"}); !uid.empty())
      return std::unexpected(precondition_conflict(kind, request_->info.ns, request_->info.name, {"UID", std::string(uid), ""}));
    if (auto refused = refuse_creation(ground_, *request_)) return std::unexpected(std::move(*refused));
    auto fresh = document_;
    json::erase(fresh, {"metadata", "resourceVersion"});
    return fresh;
  }
  [[nodiscard]] Choice part() const override {
    return request_->info.subresource == "status" && !apply::forgets_owners(document_) ? status_part : nullptr;
  }

 private:
  const Ground& ground_;
  RequestPtr request_;
  json::Value document_;
};

}  // namespace

namespace steps {

StepResult decode_new(WritePipeline&, const WritePtr& operation) {
  auto document = decode_object_body(*operation->request);
  if (!document) return std::unexpected(std::move(document.error()));
  if (auto matched = match_path(*operation->request, *document, false); !matched) return std::unexpected(std::move(matched.error()));
  operation->candidate.document = std::move(*document);
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
  operation->decoded.change = std::make_unique<Replacement>(writes, request, std::move(*document));
  return Flow::kNext;
}

}  // namespace steps
}  // namespace berth::apiserver
