#include "cli/scenario_flag.h"

#include <fstream>
#include <sstream>

#include "node/simulated/devices.h"

namespace berth::cli {

std::optional<std::string> read_scenario(const std::string& file, node::simulated::SimulatedNodesOptions& options) {
  if (file.empty()) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  if (!(text << in.rdbuf())) return fmt::format("--scenario: {} cannot be read", file);
  auto scenario = node::simulated::Scenario::parse(text.str());
  if (!scenario) return fmt::format("--scenario {}: {}", file, scenario.error().message);
  if (scenario->kubelet()) {
    options.fleet.kubelet = *scenario->kubelet();
    options.fleet.reserves_resources = true;
    if (const auto over = overreserved(options.fleet, options.node_template); !over.empty())
      return fmt::format("--scenario {}: kubelet: more {} is reserved than a node has", file, fmt::join(over, ", "));
  }
  options.fleet.scenario = std::move(*scenario);
  return std::nullopt;
}

std::optional<std::string> read_devices(const std::string& text, node::simulated::NodeTemplate& node_template) {
  if (text.empty()) return std::nullopt;
  if (const auto groups = node::simulated::parse_devices(text); !groups) return fmt::format("--devices: {}", groups.error().message);
  node_template.annotations[std::string(node::simulated::kDevicesAnnotation)] = text;
  return std::nullopt;
}

}  // namespace berth::cli
