// Replays a recorded scenario of the real kube-scheduler against the placement engine and says where they differ (SPEC B11;
// `make parity`, tests/parity).
#pragma once
#include <string>
#include <vector>

#include "base/json.h"

namespace berth::scheduler::parity {

/// True when the document is a scheduling scenario: it has `pods` and `expect` lists and no `kind`.
[[nodiscard]] bool is_scheduling_vector(const json::Value& file);

/// Empty: every step came out as recorded. Otherwise a line per difference: "step 3 default/p03: node n1: plugin X: score: wanted 50, got
/// 49". A malformed file gives a line that says so.
[[nodiscard]] std::vector<std::string> replay_scheduling(const json::Value& file);

}  // namespace berth::scheduler::parity
