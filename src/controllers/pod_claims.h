// A pod's resource claims, as its spec and status name them.
#pragma once
#include <string>
#include <vector>

#include "controllers/controller.h"

namespace berth::controllers {

/// What an entry of spec.resourceClaims stands for.
struct PodClaim {
  std::string name, claim, claim_template;
  bool has_status = false;  ///< The claim of the template is known.
};
/// Of a pod; a PodGroup's are alike.
std::vector<PodClaim> pod_claims(const json::Value& pod);

bool is_reserved_for(const json::Value& claim, std::string_view user_uid);
/// The pod may use it: it is one of the claim's users, or of a PodGroup that is.
bool may_use(const json::Value& claim, const PodInfo& pod);
/// The pod, or its PodGroup, controls it: it was made of the template that they name.
bool is_of_pod(const Object& claim, const PodInfo& pod);
/// The PodGroup has the very same entry, so that its pods share one claim, which is reserved for the group (KEP-5729).
bool is_shared(const json::Value& group, const PodClaim& entry);

}  // namespace berth::controllers
