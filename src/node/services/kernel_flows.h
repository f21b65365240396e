// What the kernel knows of UDP flows (connection tracking of this network namespace).
#pragma once
#include <functional>

#include "base/error.h"
#include "node/services/flows.h"

namespace berth::node::services {

/// Makes the kernel forget the UDP flows of both families that `is_stale` names; how many. kUnavailable: no rights, no connection tracking,
/// or built without its library. Blocks while the table is read (about a millisecond a thousand flows).
Result<int> forget_udp_flows(const std::function<bool(const Flow&)>& is_stale);

}  // namespace berth::node::services
