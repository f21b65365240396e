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

bool is_reserved_for(const Value& claim, std::string_view pod_uid) {
  return std::ranges::any_of(get_array(claim, {"status", "reservedFor"}),
                             [&](const Value& user) { return get_string(user, {"uid"}) == pod_uid; });
}

bool is_of_pod(const Object& claim, const PodInfo& pod) {
  return std::ranges::any_of(owner_references(*claim.parsed()),
                             [&](const OwnerReference& owner) { return owner.is_controller && owner.uid == pod.uid(); });
}

}  // namespace berth::controllers
