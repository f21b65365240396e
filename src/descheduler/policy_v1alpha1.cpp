// descheduler/v1alpha1: strategies by name. Each enabled one becomes a profile of its own, as kubernetes-sigs/descheduler 0.26 converts it.
#include <fmt/format.h>

#include <algorithm>

#include "descheduler/policy_sections.h"

namespace berth::descheduler {
namespace {

void read_legacy_utilization(const Reader& params, Plugin& plugin) {
  const Reader at = params.field("nodeResourceUtilizationThresholds");
  if (at.is_present() && !at.expect_object()) return;
  at.only({"useDeviationThresholds", "thresholds", "targetThresholds", "numberOfNodes"});
  auto& args = plugin.utilization;
  args.thresholds = read_thresholds(at.field("thresholds"));
  args.target_thresholds = read_thresholds(at.field("targetThresholds"));
  args.use_deviation_thresholds = at.boolean("useDeviationThresholds", false);
  args.number_of_nodes = at.integer("numberOfNodes", 0);
  check_utilization(at, plugin);
  if (!plugin.namespaces.include.empty()) params.problem("namespaces", "only Exclude namespaces can be set, inclusion is not supported");
}

void read_too_many_restarts(const Reader& params, Plugin& plugin) {
  const Reader at = params.field("podsHavingTooManyRestarts");
  if (at.is_present()) at.expect_object();
  at.only({"podRestartThreshold", "includingInitContainers"});
  plugin.restart_threshold = at.integer("podRestartThreshold", 0);
  plugin.including_init_containers = at.boolean("includingInitContainers", false);
  if (plugin.restart_threshold < 1) at.problem("podRestartThreshold", "invalid PodsHavingTooManyRestarts threshold: it must be 1 or more");
}

void read_failed_pods(const Reader& params, Plugin& plugin) {
  const Reader at = params.field("failedPods");
  if (at.is_present()) at.expect_object();
  at.only({"excludeOwnerKinds", "minPodLifetimeSeconds", "reasons", "includingInitContainers"});
  plugin.exclude_owner_kinds = at.strings("excludeOwnerKinds");
  // v1alpha1 sets no minimum by itself.
  plugin.min_lifetime_seconds = static_cast<std::int64_t>(read_unsigned(at, "minPodLifetimeSeconds").value_or(0));
  plugin.reasons = read_set(at, "reasons");
  plugin.including_init_containers = at.boolean("includingInitContainers", false);
}

void read_legacy_life_time(const Reader& params, Plugin& plugin) {
  const Reader at = params.field("podLifeTime");
  if (at.is_present()) at.expect_object();
  at.only({"maxPodLifeTimeSeconds", "states", "podStatusPhases"});
  if (const auto seconds = read_unsigned(at, "maxPodLifeTimeSeconds"))
    plugin.max_lifetime_seconds = static_cast<std::int64_t>(*seconds);
  else
    at.problem("maxPodLifeTimeSeconds", "MaxPodLifeTimeSeconds not set");
  plugin.states = read_set(at, "states");
  plugin.states.merge(read_set(at, "podStatusPhases"));
  check_states(at.field("states"), plugin);
}

void read_params(const Reader& params, Plugin& plugin) {
  plugin.namespaces = read_namespaces(params.field("namespaces"));
  plugin.labels = read_label_selector(params.field("labelSelector"));
  switch (plugin.strategy) {
    case Strategy::kRemoveDuplicates: {
      const Reader at = params.field("removeDuplicates");
      at.only({"excludeOwnerKinds"});
      plugin.exclude_owner_kinds = at.strings("excludeOwnerKinds");
      break;
    }
    case Strategy::kLowNodeUtilization:
    case Strategy::kHighNodeUtilization:
      return read_legacy_utilization(params, plugin);
    case Strategy::kRemovePodsViolatingNodeAffinity:
      plugin.node_affinity_types = read_node_affinity_types(params);
      break;
    case Strategy::kRemovePodsViolatingNodeTaints:
      plugin.include_prefer_no_schedule = params.boolean("includePreferNoSchedule", false);
      plugin.excluded_taints = read_set(params, "excludedTaints");
      break;
    case Strategy::kRemovePodsViolatingTopologySpreadConstraint:
      plugin.soft_constraints = params.boolean("includeSoftConstraints", false);
      break;
    case Strategy::kRemovePodsHavingTooManyRestarts:
      return read_too_many_restarts(params, plugin);
    case Strategy::kRemoveFailedPods:
      return read_failed_pods(params, plugin);
    case Strategy::kPodLifeTime:
      return read_legacy_life_time(params, plugin);
    case Strategy::kRemovePodsViolatingInterPodAntiAffinity:
    case Strategy::kDefragmentation:
      break;
  }
}

void read_threshold_priority(const Reader& params, EvictorArgs& evictor) {
  const bool has_value = params.has("thresholdPriority");
  if (has_value) evictor.priority_threshold = params.integer("thresholdPriority", kSystemCriticalPriority);
  evictor.priority_threshold_class = params.string("thresholdPriorityClassName");
  if (has_value && !evictor.priority_threshold_class.empty())
    params.problem("thresholdPriority", "only one of thresholdPriority and thresholdPriorityClassName can be set");
  if (has_value && *evictor.priority_threshold > kSystemCriticalPriority)
    params.problem("thresholdPriority", fmt::format("priority threshold can't be greater than {}", kSystemCriticalPriority));
}

}  // namespace

void read_version_1(const Reader& root, Policy& policy) {
  root.only({"apiVersion", "kind", "strategies", "nodeSelector", "evictFailedBarePods", "evictLocalStoragePods", "evictSystemCriticalPods",
             "evictDaemonSetPods", "ignorePvcPods", "maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictPerNamespace"});
  const std::string selector = root.string("nodeSelector");
  if (auto parsed = model::Selector::parse(selector))
    policy.node_selector = *parsed;
  else
    root.problem("nodeSelector", parsed.error().message);
  policy.max_evictions_per_node = read_unsigned(root, "maxNoOfPodsToEvictPerNode");
  policy.max_evictions_per_namespace = read_unsigned(root, "maxNoOfPodsToEvictPerNamespace");
  EvictorArgs shared;
  shared.protects_failed_bare = !root.boolean("evictFailedBarePods", false);
  shared.protects_local_storage = !root.boolean("evictLocalStoragePods", false);
  shared.protects_system_critical = !root.boolean("evictSystemCriticalPods", false);
  shared.protects_daemon_sets = !root.boolean("evictDaemonSetPods", false);
  shared.protects_pvc = root.boolean("ignorePvcPods", false);

  const Reader strategies = root.field("strategies");
  if (!strategies.is_present() || !strategies.expect_object()) return;
  for (const auto& member : strategies.value()->get_object()) {
    const std::string name(member.key());
    const Reader at = strategies.field(name);
    const auto strategy = find_strategy(name);
    if (!strategy) {
      at.problem(fmt::format("unknown strategy name: {}{}", name, config::suggestion(name, kStrategyNames)));
      continue;
    }
    if (*strategy == Strategy::kDefragmentation) {
      at.problem("Defragmentation needs a policy of descheduler/v1alpha2");
      continue;
    }
    if (at.is_present() && !at.expect_object()) continue;
    at.only({"enabled", "weight", "params"});
    const Reader params = at.field("params");
    if (params.is_present()) params.expect_object();
    params.only({"nodeResourceUtilizationThresholds", "nodeAffinityType", "podsHavingTooManyRestarts", "podLifeTime", "removeDuplicates",
                 "failedPods", "includeSoftConstraints", "namespaces", "thresholdPriority", "thresholdPriorityClassName", "labelSelector",
                 "nodeFit", "includePreferNoSchedule", "excludedTaints"});
    if (!at.boolean("enabled", false)) {
      at.skip();
      params.skip();
      continue;
    }
    Profile profile{.name = fmt::format("strategy-{}-profile", name), .evictor = shared};
    profile.evictor.node_fit = *strategy != Strategy::kPodLifeTime && params.boolean("nodeFit", false);
    read_threshold_priority(params, profile.evictor);
    Plugin plugin{.strategy = *strategy};
    read_params(params, plugin);
    (is_balance(*strategy) ? profile.balance : profile.deschedule).push_back(std::move(plugin));
    policy.profiles.push_back(std::move(profile));
  }
}

}  // namespace berth::descheduler
