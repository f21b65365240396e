#include "model/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace berth::model {
namespace {

struct Gate {
  Feature feature;
  std::string_view name;
  Feature needs = Feature::kNone;  ///< Itself after those that it needs.
};

constexpr std::array<Gate, 7> kGates = {{
    {Feature::kGenericWorkload, "GenericWorkload"},
    {Feature::kGangScheduling, "GangScheduling", Feature::kGenericWorkload},
    {Feature::kTopologyAwareWorkloadScheduling, "TopologyAwareWorkloadScheduling", Feature::kGenericWorkload},
    {Feature::kWorkloadAwarePreemption, "WorkloadAwarePreemption", Feature::kGangScheduling},
    {Feature::kWorkloadWithJob, "WorkloadWithJob", Feature::kGenericWorkload},
    {Feature::kDRAWorkloadResourceClaims, "DRAWorkloadResourceClaims", Feature::kGenericWorkload},
    {Feature::kDRADeviceTaintRules, "DRADeviceTaintRules"},
}};

}  // namespace

Features preferred_features() {
  Features out{};
  for (const Gate& gate : kGates) set(out, gate.feature, true);
  return out;
}

std::string_view name_of(Feature feature) {
  const auto* found = std::ranges::find(kGates, feature, &Gate::feature);
  return found == kGates.end() ? std::string_view() : found->name;
}

std::optional<Feature> feature_named(std::string_view name) {
  const auto* found = std::ranges::find(kGates, name, &Gate::name);
  return found == kGates.end() ? std::nullopt : std::optional(found->feature);
}

std::vector<std::string_view> feature_names() {
  std::vector<std::string_view> out;
  for (const Gate& gate : kGates) out.push_back(gate.name);
  return out;
}

std::string set_gates(Features& features, const std::vector<std::pair<Feature, bool>>& said) {
  for (const auto& [feature, on] : said) set(features, feature, on);
  for (const Gate& gate : kGates) {
    if (has(features, gate.needs) || !has(features, gate.feature)) continue;
    if (std::ranges::find(said, std::pair(gate.feature, true)) != said.end())
      return fmt::format("{} cannot be on while {} is off", gate.name, name_of(gate.needs));
    set(features, gate.feature, false);
  }
  return {};
}

}  // namespace berth::model
