// The configurations of running schedulers: told by each in a ConfigMap, read by everything that explains or plans.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "client/client.h"
#include "scheduler/config/published.h"

namespace berth::cli {

using scheduler::config::Published;

/// What each profile of the configuration publishes.
std::vector<Published> published_of(const scheduler::config::SchedulerConfig& config, bool budgets_are_hard);

/// Writes the ConfigMaps, without waiting; a refusal is logged, with the right that is missing. On the client's loop.
void publish(client::Client& client, const std::vector<Published>& all);

/// What schedulers have published, by scheduler name.
struct KnownSchedulers {
  std::map<std::string, Published, std::less<>> schedulers;
  std::vector<std::string> problems;  ///< What could not be read, for a note.

  /// "ConfigMap kube-system/berth-scheduler-default-scheduler"
  [[nodiscard]] static std::string source_of(std::string_view scheduler_name);
};
/// From a server. Blocks. Where listing is refused, the default scheduler's alone.
KnownSchedulers read_known_schedulers(client::Client& client);
/// From the objects of a dump.
KnownSchedulers known_schedulers_of(const std::vector<json::Value>& objects);

}  // namespace berth::cli
