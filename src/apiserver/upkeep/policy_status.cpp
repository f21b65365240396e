#include "apiserver/upkeep/policy_status.h"

#include "apiserver/admission/type_checking.h"
#include "apiserver/apply/managed_fields.h"
#include "apiserver/ground/proposals.h"

namespace berth::apiserver {

struct PolicyStatus::Follower final : WatchSink, std::enable_shared_from_this<Follower> {
  std::mutex mutex;
  Ground* ground = nullptr;  ///< Null once the status is kept no more.
  const CustomResources* custom = nullptr;

  bool deliver(const WatchEvent& event) override {
    if (event.object == nullptr || event.type == WatchEventType::kDeleted) return true;
    const std::lock_guard lock(mutex);
    if (ground != nullptr)
      ground->defer([self = shared_from_this(), key = std::string(event.object->key)] {
        Ground* there = nullptr;
        {
          const std::lock_guard inner(self->mutex);
          there = self->ground;
        }
        // Whoever runs tasks ends before the server does.
        if (there != nullptr) look_at(*there, *self->custom, key);
      });
    return true;
  }

  static void look_at(const Ground& ground, const CustomResources& custom, const std::string& key) {
    const auto object = ground.cache->get(key);
    if (object == nullptr) return;
    const auto old = decode_object(*object);
    const auto generation = json::get_int(old, {"metadata", "generation"});
    if (json::get_int(old, {"status", "observedGeneration"}) >= generation) return;
    const auto& kind = *model::find_resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies");
    auto document = old;
    auto& status = json::ensure_object(document, {"status"});
    status["observedGeneration"] = generation;
    json::Object checking;
    if (auto warnings = check_policy_types(document, custom.table()); !warnings.empty())
      checking["expressionWarnings"] = std::move(warnings);
    status["typeChecking"] = std::move(checking);
    apply::track_update(kind, &old, document, {"validatingadmissionpolicy-status", "status", ground.loop.now()});
    put(ground, kind, std::move(document), object->revision);  // Who was faster is looked at next.
  }
};

PolicyStatus::PolicyStatus(Ground& ground, const CustomResources& custom) : follower_(std::make_shared<Follower>()) {
  follower_->ground = &ground;
  follower_->custom = &custom;
  WatchFilter all;
  all.prefix = make_prefix("admissionregistration.k8s.io", "validatingadmissionpolicies");
  watch_ = ground.cache->watch(std::move(all), 0, true, follower_);
}

PolicyStatus::~PolicyStatus() {
  {
    const std::lock_guard lock(follower_->mutex);
    follower_->ground = nullptr;
  }
  watch_.reset();
}

}  // namespace berth::apiserver
