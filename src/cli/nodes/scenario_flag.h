// `--scenario FILE` and `--devices TEXT` of `berth nodes` and `berth up`.
#pragma once
#include <string>

#include "cli/command/findings.h"
#include "node/simulated/simulated_nodes.h"

namespace berth::cli {

inline constexpr const char* kScenarioHelp =
    "a file that says how pods of simulated nodes behave and what those nodes' kubelets are set to (docs/simulated-nodes.md)";
/// Reads the file into the options of the nodes, whose resources are known; nothing is done for an empty name.
void read_scenario(const std::string& file, node::simulated::SimulatedNodesOptions& options, Findings& findings);

inline constexpr const char* kDevicesHelp =
    "devices of every simulated node, for resource claims: DRIVER=COUNT[,KEY=VALUE...][; ...], as in gpu.example.com=4,memory=80Gi "
    "(docs/simulated-nodes.md)";
/// Puts the devices into the template; nothing is done for an empty text.
void read_devices(const std::string& text, node::simulated::NodeTemplate& node_template, Findings& findings);

}  // namespace berth::cli
