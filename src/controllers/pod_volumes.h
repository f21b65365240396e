// The claims that a pod's volumes name.
#pragma once
#include <set>
#include <string>

#include "controllers/pod_info.h"

namespace berth::controllers {

/// "namespace/name" of every claim that the pod's volumes name; null: none.
std::set<std::string> claims_of_volumes(const PodRef& pod);

}  // namespace berth::controllers
