// The arguments of the plugins (pluginConfig[].args; Policy arguments share the shapes), with Kubernetes' defaults and validation.
#pragma once
#include "placement/profile.h"
#include "scheduler/config/reader.h"

namespace berth::scheduler::config {

/// Reads `args` of the named plugin into `out`. A plugin that is not berth's reads them itself and finds their problems. What a plugin
/// without arguments is given is not looked at; a wrong field or value is a problem.
void read_plugin_args(std::string_view plugin, const Reader& args, placement::Era era, placement::PluginArgs& out);
/// A shape: at least one point, utilization strictly rising within 0–100, score within 0–10.
std::vector<placement::UtilizationShapePoint> read_shape(const Reader& list, bool is_required);
/// What a resource's weight may be. 1.20 did not take one that is missing or zero for 1.
struct WeightRules {
  bool zero_is_one = true;
  std::int64_t max = 100;
};
/// RequestedToCapacityRatio of 1.20 sets no upper bound.
inline constexpr WeightRules kRatioWeights{.zero_is_one = false, .max = INT32_MAX};
/// A list of {name, weight}; the fallback when it is empty.
std::vector<placement::ResourceWeight> read_resources(const Reader& list, std::vector<placement::ResourceWeight> fallback,
                                                      const WeightRules& rules = {});

}  // namespace berth::scheduler::config
