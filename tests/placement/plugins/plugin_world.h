// A small cluster written in YAML, and what one profile says of a pod in it.
#pragma once
#include <map>
#include <string>

#include "placement/engine.h"
#include "placement/framework.h"

namespace berth::placement::testing {

class PluginWorld {
 public:
  explicit PluginWorld(Era era) : era(era), profile(default_profile(era)), cluster(era) {}

  /// Any object that placement knows. A node without allocatable has 4 CPUs, 4Gi and room for 10 pods; each has its name as hostname label.
  PluginWorld& add(const std::string& yaml);
  /// A pod: labels, and the fields of its spec. Names and namespace "default" are given.
  [[nodiscard]] PodInfoPtr pod(const std::string& spec, const std::string& labels = "{}", const std::string& name = "pod") const;
  /// The same running on a node.
  PluginWorld& run(const std::string& name, const std::string& node, const std::string& spec, const std::string& labels = "{}");

  [[nodiscard]] Evaluation evaluate(const PodInfoPtr& pod) const;
  /// "fits", or "Plugin Code: reasons"; "prefilter Plugin Code: reasons"; "error: …".
  [[nodiscard]] std::string verdict(const std::string& node, const PodInfoPtr& pod) const;
  /// The plugin's weighted scores by node; empty when it skipped.
  [[nodiscard]] std::map<std::string, std::int64_t> scores(const std::string& plugin, const PodInfoPtr& pod) const;
  /// Makes the plugin the only scorer.
  PluginWorld& score_by(const std::string& plugin, std::int64_t weight = 1);

  Era era;
  Profile profile;
  Cluster cluster;
};

using Scores = std::map<std::string, std::int64_t>;

}  // namespace berth::placement::testing
