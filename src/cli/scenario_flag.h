// `--scenario FILE` of `berth nodes` and `berth up`.
#pragma once
#include <optional>
#include <string>

#include "node/simulated/fleet.h"

namespace berth::cli {

inline constexpr const char* kScenarioHelp =
    "a file that says how pods of simulated nodes behave and what those nodes' kubelets are set to (docs/simulated-nodes.md)";
/// Reads the file into the options; nothing is done for an empty name. Nullopt: fine; otherwise what is wrong, with the flag's name.
[[nodiscard]] std::optional<std::string> read_scenario(const std::string& file, node::simulated::FleetOptions& options);

}  // namespace berth::cli
