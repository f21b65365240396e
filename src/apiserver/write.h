// Writes: what one attempt needs, and the steps that all of them share.
//
//   create: names, uid ─> field owners ─> admit (mutate) ─> prepare ─> validate ─> admit (validate) ─> addresses ─> propose
//   update: read ─> produce ─> carry metadata over ─> field owners ─> admit (mutate) ─> prepare ─> validate ─> admit (validate)
//             ^                                                                   ─> unchanged? answer ─> propose
//             └──────────────────────────── somebody else was faster, and the client did not insist on a revision ──┘
#pragma once
#include "apiserver/impl.h"

namespace berth::apiserver {

/// What a write came to.
struct WriteOutcome {
  ObjectPtr object;      ///< As stored now; null on a dry run.
  json::Value document;  ///< On a dry run: what would be stored, in the request's version.
  bool created = false;
};

/// One write, through all its attempts. Documents are in the version of `kind`.
struct WriteOperation : std::enable_shared_from_this<WriteOperation> {
  RequestPtr request;
  const model::KindInfo* kind = nullptr;
  std::string ns, name;
  std::string subresource;  ///< As admission and strategies see it.
  bool dry_run = false;

  /// Update: the new document from the present one. Called once an attempt.
  std::function<model::ApiResult<json::Value>(const json::Value& current)> produce;
  /// Update of something that is not there: the document to create; empty: 404.
  std::function<model::ApiResult<json::Value>()> produce_new;
  /// Create: what to create.
  json::Value document;
  /// Field owners are kept by `produce` itself (apply), or do not change (binding, deletion marks).
  bool tracks_fields = true;
  bool is_apply = false;
  bool admits = true;
  bool validates = true;
  bool always_changes = false;  ///< `produce` never gives back what it got: no need to compare.
  bool prepares = true;         ///< The strategy's part (status kept on main-resource writes); off for subresources that write across it.
  /// Called exactly once.
  std::function<void(model::ApiResult<WriteOutcome>)> done;

  /// The last step: hands over to the writer what the attempt came to.
  void propose(ApiServer::Impl& server, json::Value document, std::function<void(Proposal)> then);

  // State of the present attempt.
  ObjectPtr base;
  json::Value current;  ///< Until admission.old_object takes it over.
  AdmissionRequest admission;
  ServiceAllocation allocation;
  std::string generate_name;
  bool insists_on_revision = false;
  int attempts = 0;

  void fail(model::ApiStatus status) { done(std::unexpected(std::move(status))); }
};

/// A write on behalf of a request to its own resource.
WritePtr make_write(const RequestPtr& request);

/// Encodes a document of `kind` for its key, converted to the stored version.
Proposal make_proposal(const ApiServer::Impl& server, const model::KindInfo& kind, json::Value document);

bool has_finalizers(const json::Value& document);

/// The 409 of a write whose uid or revision (`what`: "UID", "ResourceVersion") is not the stored object's (apiserver/pkg/storage,
/// Preconditions).
model::ApiStatus precondition_conflict(const model::KindInfo& kind, std::string_view ns, std::string_view name, std::string_view what,
                                       std::string_view asked, std::string_view present);

}  // namespace berth::apiserver
