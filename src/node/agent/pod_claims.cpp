#include "node/agent/pod_claims.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::node::agent {
namespace {

Result<void> not_prepared(const std::string& why) {
  return fail(ErrorCode::kUnavailable, fmt::format("prepare dynamic resources: {}", why));
}

/// The claim that an entry of spec.resourceClaims stands for: empty when none is needed; nullopt while it is not made.
std::optional<std::string> resource_claim_name(const json::Value& pod, const json::Value& entry) {
  if (const auto direct = json::get_string(entry, {"resourceClaimName"}); !direct.empty()) return std::string(direct);
  for (const auto& status : json::get_array(pod, {"status", "resourceClaimStatuses"}))
    if (json::get_string(status, {"name"}) == json::get_string(entry, {"name"}))
      return std::string(json::get_string(status, {"resourceClaimName"}));
  return std::nullopt;
}

/// The pod itself, or its group: a name is enough there, since a group outlives its pods.
bool is_user(const json::Value& user, const json::Value& pod, std::string_view uid) {
  if (json::get_string(user, {"uid"}) == uid) return true;
  const std::string_view group = json::get_string(pod, {"spec", "schedulingGroup", "podGroupName"});
  return !group.empty() && json::get_string(user, {"resource"}) == "podgroups" && json::get_string(user, {"name"}) == group;
}

}  // namespace

Result<void> prepare_claims(const json::Value& pod, const ObjectSource& objects) {
  const std::string ns(json::get_string(pod, {"metadata", "namespace"})), pod_name(json::get_string(pod, {"metadata", "name"}));
  const std::string uid(json::get_string(pod, {"metadata", "uid"}));
  for (const auto& entry : json::get_array(pod, {"spec", "resourceClaims"})) {
    const auto name = resource_claim_name(pod, entry);
    if (!name) return not_prepared(fmt::format("pod \"{}/{}\": ResourceClaim not created yet", ns, pod_name));
    if (name->empty()) continue;
    if (!objects.resource_claim) return not_prepared(fmt::format("fetch ResourceClaim {}: there is no API to ask", *name));
    const auto claim = objects.resource_claim(ns, *name);
    if (!claim) return not_prepared(fmt::format("fetch ResourceClaim {}: {}", *name, claim.error().message));
    const bool is_reserved =
        std::ranges::any_of(json::get_array(*claim, {"status", "reservedFor"}), [&](const auto& user) { return is_user(user, pod, uid); });
    if (!is_reserved)
      return not_prepared(fmt::format("pod {} ({}) is not allowed to use ResourceClaim {} ({})", pod_name, uid, *name,
                                      json::get_string(*claim, {"metadata", "uid"})));
    for (const auto& device : json::get_array(*claim, {"status", "allocation", "devices", "results"}))
      return not_prepared(fmt::format("DRA driver {} is not registered", json::get_string(device, {"driver"})));
  }
  return {};
}

}  // namespace berth::node::agent
