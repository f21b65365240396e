// The two documents' readers, below config::from_json.
#pragma once
#include "scheduler/config/config.h"
#include "scheduler/config/reader.h"

namespace berth::scheduler::config {

SchedulerConfig read_policy(const Reader& document);
SchedulerConfig read_component_config(const Reader& document, std::optional<placement::Era> era);
/// The default multiPoint set of v1 and v1beta3, in order.
const std::vector<placement::PluginUse>& default_multi_point();
/// `extenders` of either document.
std::vector<Extender> read_extenders(const Reader& list);

}  // namespace berth::scheduler::config
