// The two documents' readers, below config::from_json.
#pragma once
#include "scheduler/config/config.h"
#include "scheduler/config/reader.h"

namespace berth::scheduler::config {

SchedulerConfig read_policy(const Reader& document);
SchedulerConfig read_component_config(const Reader& document, std::optional<placement::Era> era);
/// `extenders` of either document.
std::vector<Extender> read_extenders(const Reader& list, bool is_policy);

}  // namespace berth::scheduler::config
