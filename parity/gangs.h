// Replays a recorded scenario of groups of pods through the scheduler's core, over an API in memory and in virtual time, and says where
// what comes of it differs (`make parity`, tests/parity).
//
// What kube-scheduler leaves to chance is led as it was recorded where the recording tells (of nodes that are equally good, the recorded
// one), and is tried again otherwise: which of the equals others took, in which order members of one priority chose, and whether pods of a
// step came one by one. A recording is met when one course of chances gives all that stands in it: who has a place, in which domain, who
// goes, and every message.
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
