#include "apiserver/upkeep/policy_status.h"

#include "apiserver/admission/type_checking.h"
#include "apiserver/apply/managed_fields.h"
#include "apiserver/impl.h"
#include "apiserver/writes/write.h"

namespace berth::apiserver {

struct PolicyStatus::Follower final : WatchSink, std::enable_shared_from_this<Follower> {
  std::mutex mutex;
  ApiServer::Impl* server = nullptr;  ///< Null once the status is kept no more.

  bool deliver(const WatchEvent& event) override {
    if (event.object == nullptr || event.type == WatchEventType::kDeleted) return true;
    const std::lock_guard lock(mutex);
    if (server != nullptr)
      server->defer([self = shared_from_this(), key = std::string(event.object->key)] {
        ApiServer::Impl* there = nullptr;
        {
          const std::lock_guard inner(self->mutex);
          there = self->server;
        }
        // Whoever runs tasks ends before the server does.
        if (there != nullptr) look_at(*there, key);
      });
    return true;
  }

  static void look_at(ApiServer::Impl& server, const std::string& key) {
    const auto object = server.cache->get(key);
    if (object == nullptr) return;
    const auto old = decode_object(*object);
    const auto generation = json::get_int(old, {"metadata", "generation"});
    if (json::get_int(old, {"status", "observedGeneration"}) >= generation) return;
    const auto& kind = *model::find_resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies");
    auto document = old;
    auto& status = json::ensure_object(document, {"status"});
    status["observedGeneration"] = generation;
    json::Object checking;
    if (auto warnings = check_policy_types(document, server.custom->table()); !warnings.empty())
      checking["expressionWarnings"] = std::move(warnings);
    status["typeChecking"] = std::move(checking);
    apply::track_update(kind, &old, document, {"validatingadmissionpolicy-status", "status", server.loop.now()});
    auto proposal = make_proposal(server, kind, std::move(document));
    proposal.expected = object->revision;
    // Who was faster is looked at next.
    server.cache->propose(std::move(proposal), [](const ProposeResult&) {});
  }
};

PolicyStatus::PolicyStatus(ApiServer::Impl& server) : follower_(std::make_shared<Follower>()) {
  follower_->server = &server;
  WatchFilter all;
  all.prefix = make_prefix("admissionregistration.k8s.io", "validatingadmissionpolicies");
  watch_ = server.cache->watch(std::move(all), 0, true, follower_);
}

PolicyStatus::~PolicyStatus() {
  {
    const std::lock_guard lock(follower_->mutex);
    follower_->server = nullptr;
  }
  watch_.reset();
}

}  // namespace berth::apiserver
