// Replays a recorded scenario of groups of pods through the scheduler's core, over an API in memory and in virtual time, and says where
// what comes of it differs (`berth parity`, tests/parity).
//
// What kube-scheduler leaves to chance is led as it was recorded: of nodes that are equally good the recorded one, and of members of one
// priority the order in which they choose. Who has a place, in which domain, who goes, and every message are the core's own.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"

namespace berth::scheduler::parity {

/// True when the document has `nodes`, `steps` and `expected`.
[[nodiscard]] bool is_gang_vector(const json::Value& file);

/// Empty: everything that stands in `expected` came out. Otherwise a line per difference: "step 2: pod g-3: wanted n00, got pending".
[[nodiscard]] std::vector<std::string> replay_gangs(const json::Value& file);

/// What becomes of a scenario without `expected`: of each step, every pod so far with its node, "pending" or "gone".
[[nodiscard]] json::Array play_gangs(const json::Value& file);

}  // namespace berth::scheduler::parity
