#include "cli/scenario_flag.h"

#include <fstream>
#include <sstream>

namespace berth::cli {

std::optional<std::string> read_scenario(const std::string& file, node::simulated::FleetOptions& options) {
  if (file.empty()) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  if (!(text << in.rdbuf())) return fmt::format("--scenario: {} cannot be read", file);
  auto scenario = node::simulated::Scenario::parse(text.str());
  if (!scenario) return fmt::format("--scenario {}: {}", file, scenario.error().message);
  if (scenario->kubelet()) options.kubelet = *scenario->kubelet();
  options.scenario = std::move(*scenario);
  return std::nullopt;
}

}  // namespace berth::cli
