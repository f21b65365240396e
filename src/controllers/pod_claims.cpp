#include "controllers/pod_claims.h"

#include <algorithm>

namespace berth::controllers {

using json::get_array;
using json::get_string;
using json::Value;

std::vector<PodClaim> pod_claims(const Value& pod) {
  std::vector<PodClaim> out;
  for (const Value& item : get_array(pod, {"spec", "resourceClaims"})) {
    PodClaim& one = out.emplace_back();
    one.name = get_string(item, {"name"});
    one.claim = get_string(item, {"resourceClaimName"});
    one.claim_template = get_string(item, {"resourceClaimTemplateName"});
    if (one.claim_template.empty()) continue;
    for (const Value& status : get_array(pod, {"status", "resourceClaimStatuses"})) {
      if (get_string(status, {"name"}) != one.name) continue;
      one.has_status = true;
      one.claim = get_string(status, {"resourceClaimName"});
    }
  }
  return out;
}

bool is_reserved_for(const Value& claim, std::string_view user_uid) {
  return std::ranges::any_of(get_array(claim, {"status", "reservedFor"}),
                             [&](const Value& user) { return get_string(user, {"uid"}) == user_uid; });
}

bool may_use(const Value& claim, const PodInfo& pod) {
  return std::ranges::any_of(get_array(claim, {"status", "reservedFor"}), [&](const Value& user) {
    if (get_string(user, {"uid"}) == pod.uid()) return true;
    // A group outlives its pods: the name is enough.
    return !pod.scheduling_group.empty() && get_string(user, {"resource"}) == "podgroups" &&
           get_string(user, {"name"}) == pod.scheduling_group;
  });
}

bool is_shared(const Value& group, const PodClaim& entry) {
  return std::ranges::any_of(get_array(group, {"spec", "resourceClaims"}), [&](const Value& one) {
    const std::string_view claim_template = get_string(one, {"resourceClaimTemplateName"});
    return get_string(one, {"name"}) == entry.name && claim_template == entry.claim_template &&
           (!claim_template.empty() || get_string(one, {"resourceClaimName"}) == entry.claim);
  });
}

bool is_of_pod(const Object& claim, const PodInfo& pod) {
  return std::ranges::any_of(owner_references(*claim.parsed()), [&](const OwnerReference& owner) {
    const bool is_group = !pod.scheduling_group.empty() && owner.kind == "PodGroup" && owner.name == pod.scheduling_group;
    return owner.is_controller && (owner.uid == pod.uid() || is_group);
  });
}

}  // namespace berth::controllers
