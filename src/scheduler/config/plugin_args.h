// The arguments of the plugins (pluginConfig[].args; Policy arguments share the shapes), with Kubernetes' defaults and validation.
#pragma once
#include "placement/profile.h"
#include "scheduler/config/reader.h"

namespace berth::scheduler::config {

/// Reads `args` of the named plugin into `out`. A plugin without arguments accepts none; a wrong field or value is a problem.
void read_plugin_args(std::string_view plugin, const Reader& args, placement::Era era, placement::PluginArgs& out);
/// A shape: at least one point, utilization strictly rising within 0–100, score within 0–10.
std::vector<placement::UtilizationShapePoint> read_shape(const Reader& list, bool is_required);
/// A list of {name, weight}: a weight of 0 or none is 1; otherwise 1–100.
std::vector<placement::ResourceWeight> read_resources(const Reader& list, std::vector<placement::ResourceWeight> fallback);

}  // namespace berth::scheduler::config
