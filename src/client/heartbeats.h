// What a revision of an object says that is no more than that somebody lives.
#pragma once
#include "client/object.h"

namespace berth::client {

/// The two say the same but for the revision, lastHeartbeatTime of conditions and the times of field managers: a node's report of every
/// five minutes, which nobody needs to read but who counts how long it has been silent. Compares texts: about a microsecond.
bool is_heartbeat(const Object& before, const Object& after);

}  // namespace berth::client
