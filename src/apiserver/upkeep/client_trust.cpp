// ConfigMap kube-system/extension-apiserver-authentication: whom other servers of the cluster may believe (kube-apiserver's
// clusterauthenticationtrust controller).
#include "apiserver/upkeep/client_trust.h"

#include "apiserver/ground/proposals.h"
#include "model/kinds.h"

namespace berth::apiserver {

Result<void> publish_client_trust(Ground& ground, const std::map<std::string, std::string>& data) {
  constexpr int kAttempts = 5;
  const auto& kind = *model::find_resource("", "configmaps");
  constexpr const char* kName = "extension-apiserver-authentication";
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto present = ground.cache->get(object_key(kind, "kube-system", kName));
    auto document = present != nullptr ? decode_object(*present)
                                       : newborn(ground, ground.names, kind,
                                                 json::Object{{"metadata", json::Object{{"name", kName}, {"namespace", "kube-system"}}}});
    bool is_other = present == nullptr;
    auto& entries = json::ensure_object(document, {"data"});
    for (const auto& [key, value] : data) {
      const auto* found = entries.if_contains(key);
      if (found != nullptr && found->is_string() && json::as_view(*found) == value) continue;
      is_other = true;
      entries[key] = value;
    }
    if (!is_other) return {};
    const auto result = put_and_wait(ground, kind, std::move(document), present == nullptr ? 0 : present->revision);
    if (result) return {};
    if (is_of_storage(result.error())) break;
  }
  return fail(ErrorCode::kInternal, fmt::format("ConfigMap {} could not be stored", kName));
}

}  // namespace berth::apiserver
