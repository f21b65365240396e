// One scheduling profile as data: which plugins run at which extension point, with weights and arguments (SPEC B2, B5).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/views/pod_view.h"
#include "placement/status.h"

namespace berth::placement {

struct ResourceWeight {
  std::string name;
  std::int64_t weight = 1;
  friend bool operator==(const ResourceWeight&, const ResourceWeight&) = default;
};

/// A point of RequestedToCapacityRatio's shape: utilization 0–100, score 0–10 as in the configuration (scaled by ten when used).
struct UtilizationShapePoint {
  std::int64_t utilization = 0;
  std::int64_t score = 0;
};

enum class ScoringStrategyType : std::uint8_t { kLeastAllocated, kMostAllocated, kRequestedToCapacityRatio };

struct NodeResourcesFitArgs {
  std::vector<std::string> ignored_resources;
  std::vector<std::string> ignored_resource_groups;
  ScoringStrategyType strategy = ScoringStrategyType::kLeastAllocated;
  std::vector<ResourceWeight> resources = {{"cpu", 1}, {"memory", 1}};
  std::vector<UtilizationShapePoint> shape;
};

/// NodeResourcesBalancedAllocation (1.36), NodeResourcesLeastAllocated and NodeResourcesMostAllocated (1.20).
struct ResourceWeightsArgs {
  std::vector<ResourceWeight> resources = {{"cpu", 1}, {"memory", 1}};
};

/// RequestedToCapacityRatio as its own plugin (1.20).
struct RequestedToCapacityRatioArgs {
  std::vector<UtilizationShapePoint> shape;
  std::vector<ResourceWeight> resources = {{"cpu", 1}, {"memory", 1}};
};

struct PodTopologySpreadArgs {
  std::vector<model::TopologySpreadConstraint> default_constraints;
  /// defaultingType System (the default): hostname and zone, soft. False: `default_constraints` (List).
  bool system_defaulting = true;
};

struct InterPodAffinityArgs {
  std::int64_t hard_pod_affinity_weight = 1;
  bool ignore_preferred_terms_of_existing_pods = false;
};

struct DefaultPreemptionArgs {
  std::int64_t min_candidate_nodes_percentage = 10;
  std::int64_t min_candidate_nodes_absolute = 100;
  /// Not of Kubernetes: preemption never breaks a disruption budget, not even as a last resort (args field `disruptionBudgets: Hard`).
  bool budgets_are_hard = false;
};

struct VolumeBindingArgs {
  std::int64_t bind_timeout_seconds = 600;
  std::vector<UtilizationShapePoint> shape;
};

/// 1.20's NodeLabel: CheckNodeLabelPresence and labelPreference.
struct NodeLabelArgs {
  std::vector<std::string> present_labels, absent_labels;
  std::vector<std::string> present_labels_preference, absent_labels_preference;
};

/// 1.20's ServiceAffinity: serviceAffinity and serviceAntiAffinity.
struct ServiceAffinityArgs {
  std::vector<std::string> affinity_labels;
  std::vector<std::string> anti_affinity_labels_preference;
};

struct PluginArgs {
  NodeResourcesFitArgs fit;
  ResourceWeightsArgs balanced, least_allocated, most_allocated;
  RequestedToCapacityRatioArgs ratio;
  std::optional<model::NodeAffinity> added_affinity;
  PodTopologySpreadArgs spread;
  InterPodAffinityArgs inter_pod_affinity;
  DefaultPreemptionArgs preemption;
  VolumeBindingArgs volume_binding;
  NodeLabelArgs node_label;
  ServiceAffinityArgs service_affinity;
  /// Of plugins whose arguments berth does not know: as given, by the plugin's name.
  std::map<std::string, json::Value, std::less<>> own;
};

/// A plugin at one extension point; the weight counts at Score only.
struct PluginUse {
  std::string name;
  std::int64_t weight = 0;
  friend bool operator==(const PluginUse&, const PluginUse&) = default;
};

/// Lists are in the order of running.
struct Profile {
  std::string scheduler_name = "default-scheduler";
  Era era = Era::k136;
  std::vector<PluginUse> pre_enqueue, queue_sort, pre_filter, filter, post_filter, pre_score, score, reserve, permit, pre_bind, bind,
      post_bind;
  PluginArgs args;
  /// Policy's alwaysCheckAllPredicates: every filter is run on every node.
  bool always_check_all_filters = false;
  /// 0 and 100: every node is considered.
  std::int64_t percentage_of_nodes_to_score = 0;

  [[nodiscard]] bool has(const std::vector<PluginUse>& point, std::string_view name) const;
};

/// The default plugins, weights and arguments of the release.
Profile default_profile(Era era);
/// 1.20's ClusterAutoscalerProvider: the default with MostAllocated instead of LeastAllocated.
Profile cluster_autoscaler_profile();

}  // namespace berth::placement
