// What the Endpoints and the EndpointSlice of the Service `kubernetes` say of servers at these addresses. Nobody mirrors these Endpoints:
// the slice is the servers' own, loopback or not.
#pragma once
#include <cstdint>
#include <set>
#include <string>

#include "base/json.h"

namespace berth::apiserver {

json::Value own_endpoints(const std::set<std::string>& addresses, std::uint16_t port);
json::Value own_slice(const std::set<std::string>& addresses, std::uint16_t port);

}  // namespace berth::apiserver
