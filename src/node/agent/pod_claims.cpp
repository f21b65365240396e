#include "node/agent/pod_claims.h"

#include <fmt/format.h>

#include <algorithm>

#include "node/devices/claim_uses.h"

namespace berth::node::agent {
namespace {

using json::get_array;
using json::get_string;

/// The pod itself, or its group: a name is enough there, since a group outlives its pods.
bool is_user(const json::Value& user, const json::Value& pod, std::string_view uid) {
  if (get_string(user, {"uid"}) == uid) return true;
  const std::string_view group = get_string(pod, {"spec", "schedulingGroup", "podGroupName"});
  return !group.empty() && get_string(user, {"resource"}) == "podgroups" && get_string(user, {"name"}) == group;
}

Result<devices::ClaimUse> read_claim(const json::Value& pod, const std::string& name, const ObjectSource& objects) {
  const auto wrong = [](std::string why) { return fail(ErrorCode::kUnavailable, std::move(why)); };
  const std::string ns(get_string(pod, {"metadata", "namespace"})), uid(get_string(pod, {"metadata", "uid"}));
  if (!objects.resource_claim) return wrong(fmt::format("fetch ResourceClaim {}: there is no API to ask", name));
  const auto claim = objects.resource_claim(ns, name);
  if (!claim) return wrong(fmt::format("fetch ResourceClaim {}: {}", name, claim.error().message));
  const std::string claim_uid(get_string(*claim, {"metadata", "uid"}));
  if (std::ranges::none_of(get_array(*claim, {"status", "reservedFor"}), [&](const auto& user) { return is_user(user, pod, uid); }))
    return wrong(fmt::format("pod {} ({}) is not allowed to use ResourceClaim {} ({})", get_string(pod, {"metadata", "name"}), uid, name,
                             claim_uid));
  if (json::find(*claim, {"status", "allocation"}) == nullptr) return wrong(fmt::format("ResourceClaim {}: it is not allocated", name));
  devices::ClaimUse out{{ns, name, claim_uid}, {}};
  for (const auto& device : get_array(*claim, {"status", "allocation", "devices", "results"}))
    out.drivers.emplace(get_string(device, {"driver"}));
  return out;
}

}  // namespace

Result<std::vector<devices::ClaimUse>> claims_of_pod(const json::Value& pod, const ObjectSource& objects) {
  std::vector<std::string> names;
  for (const auto& entry : get_array(pod, {"spec", "resourceClaims"})) {
    auto name = devices::resource_claim_name(pod, entry);
    if (!name)
      return fail(ErrorCode::kUnavailable, fmt::format("pod \"{}/{}\": ResourceClaim not created yet",
                                                       get_string(pod, {"metadata", "namespace"}), get_string(pod, {"metadata", "name"})));
    if (!name->empty() && std::ranges::find(names, *name) == names.end()) names.push_back(std::move(*name));
  }
  if (const auto extended = get_string(pod, {"status", "extendedResourceClaimStatus", "resourceClaimName"}); !extended.empty())
    names.emplace_back(extended);
  std::vector<devices::ClaimUse> out;
  for (const std::string& name : names) {
    auto claim = read_claim(pod, name, objects);
    if (!claim) return std::unexpected(claim.error());
    if (!claim->drivers.empty()) out.push_back(std::move(*claim));
  }
  return out;
}

}  // namespace berth::node::agent
