// Replays a recorded scenario of a real kubelet against this eviction core and says where they differ (`make parity`, tests).
#pragma once
#include <string>
#include <vector>

#include "base/json.h"

namespace berth::node::eviction {

/// True when this parsed vector file is of a kind that replay_eviction understands: manager, parsing, oom, allocatable.
[[nodiscard]] bool is_eviction_vector(const json::Value& file);

/// Empty: every recorded answer is given (or, where the kubelet picks one at random, one of the recorded alternatives). Otherwise a line
/// per difference: "step 3: evicted: expected […], got […]". Malformed files give a line that says so.
[[nodiscard]] std::vector<std::string> replay_eviction(const json::Value& file);

}  // namespace berth::node::eviction
