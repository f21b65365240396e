// What pods ask for, as amounts by resource name.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/json.h"
#include "model/quantity.h"

namespace berth::model {

using ResourceAmounts = std::map<std::string, Quantity, std::less<>>;
/// A resource list object's parsed quantities; malformed ones are left out.
ResourceAmounts amounts_of(const json::Value* resource_list);
/// What a pod asks for in all (`field`: "requests" or "limits"): containers and restartable init containers summed, the largest init
/// container, plus overhead (k8s.io/component-helpers/resource).
ResourceAmounts pod_total(const json::Value& pod, std::string_view field);

}  // namespace berth::model
