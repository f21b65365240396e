#include "apiserver/upkeep/policy_status.h"

#include "apiserver/admission/type_checking.h"
#include "apiserver/apply/managed_fields.h"
#include "apiserver/cache/follow.h"
#include "apiserver/ground/proposals.h"
#include "base/mutex.h"

namespace berth::apiserver {
namespace {

constexpr auto kPause = std::chrono::seconds(1);  // After the store failed.

}  // namespace

PolicyStatus::PolicyStatus(Ground& ground, const CustomResources& custom) : ground_(ground), custom_(custom) {
  const auto changed = [this](const WatchEvent& event) {
    if (event.type == WatchEventType::kDeleted) return;
    look_soon(std::string(event.object->key));
  };
  watch_ = follow(*ground.cache, make_prefix("admissionregistration.k8s.io", "validatingadmissionpolicies"), changed);
}

void PolicyStatus::look_soon(const std::string& key) const {
  ground_.defer(lifeline_.guard([this, key] { look_at(key); }));
}

void PolicyStatus::look_at(const std::string& key) const {
  const auto object = ground_.cache->get(key);
  if (object == nullptr) return;
  const auto old = decode_object(*object);
  const auto generation = json::get_int(old, {"metadata", "generation"});
  if (json::get_int(old, {"status", "observedGeneration"}) >= generation) return;
  const auto& kind = *model::find_resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies");
  auto document = old;
  auto& status = json::ensure_object(document, {"status"});
  status["observedGeneration"] = generation;
  json::Object checking;
  if (auto warnings = check_policy_types(document, custom_.table()); !warnings.empty())
    checking["expressionWarnings"] = std::move(warnings);
  status["typeChecking"] = std::move(checking);
  apply::track_update(kind, &old, document, {"validatingadmissionpolicy-status", "status", ground_.loop.now()});
  // Who was faster is looked at next.
  put(ground_, kind, std::move(document), object->revision,
      [&loop = ground_.loop, again = lifeline_.guard([this, key] { look_soon(key); })](const ProposeResult& result) {
        if (!result && is_of_storage(result.error())) loop.schedule_after(kPause, again);
      });
}

}  // namespace berth::apiserver
