// A cluster to ask about: from files (`kubectl get -o yaml/json` dumps, manifests) or from a live API server.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command/compatibility.h"
#include "cli/command/session.h"
#include "cli/planning/scheduler_configuration.h"
#include "placement/cluster.h"
#include "placement/profiles.h"
#include "scheduler/config/config.h"
#include "whatif/manifests.h"

namespace CLI {
class App;
}

namespace berth::cli {

struct PlacementFlags {
  ConnectionFlags connection;
  std::vector<std::string> cluster_files;
  std::string config_file, policy_file;
  Compatibility compatibility;
  /// `has_scheduler_policy`: --policy-config-file means the scheduler's (the descheduler has a policy of its own).
  void add_to(CLI::App& app, bool has_scheduler_policy = true);
  /// The configuration is told; what schedulers have published does not count.
  [[nodiscard]] bool has_configuration() const { return !config_file.empty() || !policy_file.empty() || compatibility.is_given(); }
};

struct PlacementInput {
  scheduler::config::SchedulerConfig config;  ///< Of the scheduler that was asked for.
  placement::Profiles profiles;
  std::map<std::string, std::string, std::less<>> sources;  ///< Where each one's configuration is from.
  std::vector<std::string> notes;                           ///< What is to be known of the configurations.
  std::vector<std::string> unread;                          ///< What of a live cluster could not be read, a sentence a kind.
  bool budgets_are_hard = false;                            ///< As the scheduler runs.
  placement::Cluster cluster;
  std::vector<json::Value> objects;  ///< As read; of files only.
  std::vector<json::Value> grouped;  ///< PodGroups, and the pods that name one.
  /// Documents that are no use and why, for a warning.
  std::vector<std::string> ignored;

  /// The profile for the pod; the configuration's first, with a warning on standard error, when none has its scheduler's name.
  [[nodiscard]] const placement::FrameworkPtr& framework_for(const placement::PodInfo& pod) const;
  /// The name of the profile that is used for pods of this scheduler.
  [[nodiscard]] std::string profile_for(std::string_view scheduler) const;
  /// With the configuration's first profile for pods of schedulers that nobody knows.
  [[nodiscard]] placement::Profiles profiles_for_all() const;
};

/// Says on standard error what of the input was no use; a long list is cut.
void warn_of_ignored(const PlacementInput& input);
/// Every object of the files (dumps.h).
Result<std::vector<json::Value>> read_objects(const std::vector<std::string>& files);
/// The configuration alone; the cluster is empty: what the flags say, or else what schedulers have published, `scheduler`'s first, or else
/// the defaults.
Result<PlacementInput> read_placement_config(const PlacementFlags& flags, const KnownSchedulers& known,
                                             std::string_view scheduler = "default-scheduler");
/// Reads the configuration and the cluster. `scheduler`: whose pods it is about.
/// `refused`, where given: what a live cluster answered instead.
Result<PlacementInput> read_placement_input(const PlacementFlags& flags, std::string_view scheduler = "default-scheduler",
                                            std::optional<model::ApiStatus>* refused = nullptr);
/// "default-scheduler: ConfigMap …": with whose configuration pods of this scheduler are looked at. Answers end with it.
std::string configuration_words(const PlacementInput& input, std::string_view scheduler);
/// "note: …" on standard error, of what starts: the same, and the notes.
void tell_configuration(const PlacementInput& input, std::string_view scheduler);
/// The notes alone.
void tell_notes(const PlacementInput& input);
using whatif::complete_pod;
using whatif::pods_of;

}  // namespace berth::cli
