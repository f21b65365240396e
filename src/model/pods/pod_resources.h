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
/// kHeld: what a pod holds while its size changes, which is the largest of what is asked, what runs and what its node has agreed to;
/// a wish that the node cannot grant is no part of it.
enum class PodAmounts { kAsked, kHeld };
/// What a pod's containers ask for (`field`: "requests" or "limits"): containers and restartable init containers summed, or the largest
/// init container (k8s.io/component-helpers/resource).
ResourceAmounts containers_total(const json::Value& pod, std::string_view field, PodAmounts which = PodAmounts::kAsked);
/// What a pod asks for in all: its own amounts where it has them, else its containers', plus overhead.
ResourceAmounts pod_total(const json::Value& pod, std::string_view field, PodAmounts which = PodAmounts::kAsked);

}  // namespace berth::model
