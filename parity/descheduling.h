// Replays a recorded cycle of the real descheduler against this one and says where they differ (`make parity`, tests).
#pragma once
#include <string>
#include <vector>

#include "base/json.h"

namespace berth::descheduler {

/// True when this parsed file is a recording of one cycle: a `policy`, the cluster's `objects`, and what was `expected`.
[[nodiscard]] bool is_descheduler_vector(const json::Value& file);

/// Empty: the cycle, without the placement engine's word, evicts as recorded, by the rules of docs/descheduler.md ("Beside the real one").
/// Else a line per difference: "evicted: expected shop/a on n1 by p/PodLifeTime, which was not". Malformed files give a line that says so.
[[nodiscard]] std::vector<std::string> replay_descheduler(const json::Value& file);

}  // namespace berth::descheduler
