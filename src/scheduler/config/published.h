// What a running scheduler tells of its configuration: a ConfigMap a scheduler name, which whatever explains or plans reads back, so that
// it decides as the scheduler does (SPEC I3).
#pragma once
#include "scheduler/config/config.h"

namespace berth::scheduler::config {

inline constexpr std::string_view kPublishedNamespace = "kube-system";
/// Label of the ConfigMaps, with the value "true".
inline constexpr std::string_view kPublishedLabel = "scheduling.berth.dev/configuration";

struct Published {
  std::string scheduler_name;
  SchedulerConfig config;
  bool budgets_are_hard = false;  ///< --hard-disruption-budgets
};

/// "berth-scheduler-default-scheduler"
std::string published_name(std::string_view scheduler_name);
/// The ConfigMap: `configuration.yaml` as given, `arguments.json` where flags were applied over it (without what only the scheduler needs:
/// credentials and connections), the release it follows, and `configz.json`, the same with every default filled in.
json::Value publish(const Published& published);
/// Back from the ConfigMap. The error names it.
Result<Published> read_published(const json::Value& config_map);

}  // namespace berth::scheduler::config
