// Replays a recorded pass of the real cluster autoscaler against this one and says where they differ (`make parity`, tests).
#pragma once
#include <string>
#include <vector>

#include "base/json.h"

namespace berth::autoscaler {

/// True when this parsed file is a recording of one pass: a cluster (`input`) and the distinct answers of several runs (`outcomes`).
[[nodiscard]] bool is_autoscaler_vector(const json::Value& file);

/// Empty: the pass decides as one of the recorded outcomes, or otherwise by a rule of docs/autoscaler.md ("Beside the real one"). Else a
/// line per difference from the outcome that is nearest: "grow: expected {…}, got {…}". Malformed files give a line that says so.
[[nodiscard]] std::vector<std::string> replay_autoscaler(const json::Value& file);

}  // namespace berth::autoscaler
