// A cluster to ask about: from files (`kubectl get -o yaml/json` dumps, manifests) or from a live API server.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/compatibility.h"
#include "cli/session.h"
#include "placement/cluster.h"
#include "placement/profiles.h"
#include "scheduler/config/config.h"

namespace CLI {
class App;
}

namespace berth::cli {

struct PlacementFlags {
  ConnectionFlags connection;
  std::vector<std::string> cluster_files;
  std::string config_file;
  Compatibility compatibility;
  void add_to(CLI::App& app);
};

struct PlacementInput {
  scheduler::config::SchedulerConfig config;
  placement::Profiles profiles;
  placement::Cluster cluster;
  std::vector<json::Value> objects;  ///< As read; of files only.
  /// Documents that are no use and why, for a warning.
  std::vector<std::string> ignored;

  /// The profile for the pod; the default profile, with a note on standard error, when no profile has its scheduler's name.
  [[nodiscard]] const placement::FrameworkPtr& framework_for(const placement::PodInfo& pod) const;
};

/// Says on standard error what of the input was no use; a long list is cut.
void warn_of_ignored(const PlacementInput& input);
/// All documents of the files; Lists (also typed ones such as NodeList) are taken apart. Errors name the file.
Result<std::vector<json::Value>> read_objects(const std::vector<std::string>& files);
/// Reads the configuration alone; the cluster is empty.
Result<PlacementInput> read_placement_config(const PlacementFlags& flags);
/// Reads the configuration and the cluster.
Result<PlacementInput> read_placement_input(const PlacementFlags& flags);
/// What the API server would have done to a pod of a manifest: defaults, namespace, priority by class. Requires a document of kind Pod.
json::Value complete_pod(json::Value pod, const placement::Cluster& cluster, const std::string& default_namespace);
/// The pods that a document asks for: a Pod itself; a workload's template as often as it has replicas. Empty for other kinds.
std::vector<json::Value> pods_of(const json::Value& document);

}  // namespace berth::cli
