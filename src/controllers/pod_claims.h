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
std::vector<PodClaim> pod_claims(const json::Value& pod);

bool is_reserved_for(const json::Value& claim, std::string_view pod_uid);
/// The pod controls it: it was made of the pod's template.
bool is_of_pod(const Object& claim, const PodInfo& pod);

}  // namespace berth::controllers
