#include "cli/nodes/scenario_flag.h"

#include "base/config_reader.h"
#include "node/simulated/devices.h"

namespace berth::cli {

void read_scenario(const std::string& file, node::simulated::SimulatedNodesOptions& options, Findings& findings) {
  if (file.empty()) return;
  const auto text = findings.take(config::read_whole_file(file));
  if (!text) return;
  std::vector<std::string> notes;
  auto scenario = findings.take(node::simulated::Scenario::parse(*text, file, &notes));
  findings.notes(notes);
  if (!scenario) return;
  if (scenario->kubelet()) {
    options.fleet.kubelet = *scenario->kubelet();
    options.fleet.reserves_resources = true;
    if (const auto over = overreserved(options.fleet, options.node_template); !over.empty())
      findings.error(fmt::format("--scenario {}: kubelet: more {} is reserved than a node has", file, fmt::join(over, ", ")));
  }
  options.fleet.scenario = std::move(*scenario);
}

void read_devices(const std::string& text, node::simulated::NodeTemplate& node_template, Findings& findings) {
  if (text.empty()) return;
  if (const auto groups = node::simulated::parse_devices(text); !groups) findings.error("--devices: " + groups.error().message);
  node_template.annotations[std::string(node::simulated::kDevicesAnnotation)] = text;
}

}  // namespace berth::cli
