// descheduler/v1alpha2: profiles with plugins by extension point and their arguments (pkg/api/v1alpha2, pkg/framework/plugins/*/types.go).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "descheduler/policy_sections.h"
#include "descheduler/prometheus.h"

namespace berth::descheduler {
namespace {

constexpr std::string_view kDefaultEvictor = "DefaultEvictor";
constexpr std::string_view kDefaultProtections[] = {"PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods", "DaemonSetPods"};
constexpr std::string_view kExtraProtections[] = {"PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims"};

std::vector<std::string> read_protections(const Reader& at, std::string_view name, std::span<const std::string_view> allowed) {
  const auto all = at.strings(name);
  std::set<std::string> seen;
  for (const auto& one : all) {
    if (std::ranges::find(allowed, one) == allowed.end())
      at.problem(name, fmt::format("invalid pod protection policy \"{}\". Valid options are: [{}]", one, fmt::join(allowed, " ")));
    if (!seen.insert(one).second) at.problem(name, "contains duplicate entries");
  }
  return all;
}

void read_pod_protections(const Reader& args, EvictorArgs& out) {
  const Reader at = args.field("podProtections");
  if (!at.is_present() || !at.expect_object()) return;
  at.only({"extraEnabled", "defaultDisabled", "config"});
  const auto extra = read_protections(at, "extraEnabled", kExtraProtections);
  const auto disabled = read_protections(at, "defaultDisabled", kDefaultProtections);
  const Reader config = at.field("config");
  if (config.is_present()) config.expect_object();
  config.only({"PodsWithPVC"});
  const Reader classes = config.field("PodsWithPVC");
  if (classes.is_present()) classes.expect_object();
  classes.only({"protectedStorageClasses"});
  for (const Reader& item : classes.field("protectedStorageClasses").items()) {
    item.only({"name"});
    const std::string name = item.string("name");
    if (name.empty()) item.problem("name", "the storage class's name cannot be empty");
    out.protected_storage_classes.insert(name);
  }
  if (extra.empty() && disabled.empty()) return;
  const bool has_old_fields = !out.protects_local_storage || !out.protects_daemon_sets || !out.protects_system_critical ||
                              !out.protects_failed_bare || out.protects_pvc || out.protects_without_budget;
  if (has_old_fields) at.problem("cannot use Deprecated fields alongside PodProtections.ExtraEnabled or PodProtections.DefaultDisabled");
  const auto has = [](const std::vector<std::string>& all, std::string_view name) { return std::ranges::find(all, name) != all.end(); };
  out.protects_local_storage = !has(disabled, "PodsWithLocalStorage");
  out.protects_daemon_sets = !has(disabled, "DaemonSetPods");
  out.protects_system_critical = !has(disabled, "SystemCriticalPods");
  out.protects_failed_bare = !has(disabled, "FailedBarePods");
  out.protects_pvc = has(extra, "PodsWithPVC");
  out.protects_without_budget = has(extra, "PodsWithoutPDB");
  out.protects_resource_claims = has(extra, "PodsWithResourceClaims");
}

EvictorArgs read_evictor(const Reader& args) {
  EvictorArgs out;
  if (!args.is_present() || !args.expect_object()) return out;
  args.only({"apiVersion", "kind", "nodeSelector", "labelSelector", "namespaceLabelSelector", "priorityThreshold", "nodeFit", "minReplicas",
             "minPodAge", "noEvictionPolicy", "podProtections", "evictLocalStoragePods", "evictDaemonSetPods", "evictSystemCriticalPods",
             "ignorePvcPods", "ignorePodsWithoutPDB", "evictFailedBarePods"});
  out.node_selector = args.string("nodeSelector");
  if (auto parsed = model::Selector::parse(out.node_selector))
    out.node_selector_parsed = *parsed;
  else {
    // The real one notices it when nodeFit asks for nodes, finds none and evicts nobody.
    args.problem("nodeSelector", parsed.error().message, config::Refusal::kOfBerth);
    out.node_selector_parsed = model::Selector::nothing();
  }
  out.labels = read_label_selector(args.field("labelSelector"));
  out.namespace_labels = read_label_selector(args.field("namespaceLabelSelector"));
  if (const Reader at = args.field("priorityThreshold"); at.is_present() && at.expect_object()) {
    at.only({"value", "name"});
    if (at.has("value")) out.priority_threshold = at.integer("value", kSystemCriticalPriority);
    out.priority_threshold_class = at.string("name");
    if (out.priority_threshold && !out.priority_threshold_class.empty())
      at.problem("priority threshold misconfigured, only one of priorityThreshold fields can be set");
    if (out.priority_threshold.value_or(0) > kSystemCriticalPriority)
      at.problem("value", fmt::format("priority threshold can't be greater than {}", kSystemCriticalPriority));
  }
  out.node_fit = args.boolean("nodeFit", false);
  out.min_replicas = read_unsigned(args, "minReplicas").value_or(0);
  if (args.has("minPodAge")) out.min_pod_age = std::chrono::milliseconds(args.duration_ms("minPodAge", 0));
  const std::string no_eviction = args.string("noEvictionPolicy");
  if (!no_eviction.empty() && no_eviction != "Preferred" && no_eviction != "Mandatory")
    args.problem("noEvictionPolicy", "noEvictionPolicy accepts only [\"Preferred\" \"Mandatory\"] values");
  out.no_eviction_is_mandatory = no_eviction == "Mandatory";
  out.protects_local_storage = !args.boolean("evictLocalStoragePods", false);
  out.protects_daemon_sets = !args.boolean("evictDaemonSetPods", false);
  out.protects_system_critical = !args.boolean("evictSystemCriticalPods", false);
  out.protects_failed_bare = !args.boolean("evictFailedBarePods", false);
  out.protects_pvc = args.boolean("ignorePvcPods", false);
  out.protects_without_budget = args.boolean("ignorePodsWithoutPDB", false);
  read_pod_protections(args, out);
  return out;
}

void read_prometheus_query(const Reader& args, Plugin& plugin) {
  const Reader at = args.field("metricsUtilization").field("prometheus");
  if (!at.is_present())
    args.field("metricsUtilization").problem("prometheus property is missing: its query says how much of each node is used");
  else if (at.expect_object()) {
    at.only({"query"});
    plugin.utilization.prometheus_query = at.string("query");
    if (plugin.utilization.prometheus_query.empty()) at.problem("query", "prometheus query is missing");
  }
  for (const auto& [field, thresholds] :
       {std::pair("thresholds", &plugin.utilization.thresholds), std::pair("targetThresholds", &plugin.utilization.target_thresholds)}) {
    if (thresholds->size() == 1 && thresholds->front().first == kMetricResource) continue;
    std::vector<std::string> names;
    for (const auto& [name, percent] : *thresholds) names.push_back(name);
    args.problem(field, fmt::format("{} are expected to specify a single instance of \"{}\" resource, got [{}] instead", field,
                                    kMetricResource, fmt::join(names, " ")));
  }
}

void read_metrics_utilization(const Reader& args, Plugin& plugin) {
  const Reader at = args.field("metricsUtilization");
  if (!at.is_present() || !at.expect_object()) return;
  at.only({"metricsServer", "source", "prometheus"});
  const std::string source = at.string("source");
  const bool server = at.boolean("metricsServer", false), has_prometheus = at.field("prometheus").is_present();
  if (source == "KubernetesMetrics" && server) at.problem("it is not allowed to set both \"KubernetesMetrics\" source and metricsServer");
  if (source == "KubernetesMetrics" && has_prometheus)
    at.problem("prometheus configuration is not allowed to set when source is set to \"KubernetesMetrics\"");
  if (source == "Prometheus") {
    read_prometheus_query(args, plugin);
    return;
  }
  if (!source.empty() && source != "KubernetesMetrics")
    at.problem("source", "unrecognized metrics source");
  else if (source.empty() && !server)
    at.problem("source", "metrics source is empty");
  plugin.utilization.use_metrics = true;
}

void read_utilization(const Reader& args, Plugin& plugin) {
  const bool is_low = plugin.strategy == Strategy::kLowNodeUtilization;
  if (is_low)
    args.only({"apiVersion", "kind", "useDeviationThresholds", "thresholds", "targetThresholds", "numberOfNodes", "metricsUtilization",
               "evictableNamespaces", "evictionLimits"});
  else
    args.only({"apiVersion", "kind", "thresholds", "numberOfNodes", "evictionModes", "evictableNamespaces"});
  auto& out = plugin.utilization;
  plugin.namespaces = read_namespaces(args.field("evictableNamespaces"));
  if (!plugin.namespaces.include.empty())
    args.problem("evictableNamespaces", "only Exclude namespaces can be set, inclusion is not supported");
  out.thresholds = read_thresholds(args.field("thresholds"));
  out.number_of_nodes = args.integer("numberOfNodes", 0);
  if (is_low) {
    out.target_thresholds = read_thresholds(args.field("targetThresholds"));
    out.use_deviation_thresholds = args.boolean("useDeviationThresholds", false);
    const Reader limits = args.field("evictionLimits");
    if (limits.is_present()) limits.expect_object();
    limits.only({"node"});
    out.max_evictions_per_node = read_unsigned(limits, "node");
    read_metrics_utilization(args, plugin);
  } else {
    for (const std::string& mode : args.strings("evictionModes")) {
      if (mode != "OnlyThresholdingResources") args.problem("evictionModes", "invalid eviction mode " + mode);
      out.only_thresholding_resources = true;
    }
  }
  check_utilization(args, plugin);
}

void read_life_time(const Reader& args, Plugin& plugin) {
  args.only({"apiVersion", "kind", "namespaces", "labelSelector", "ownerKinds", "maxPodLifeTimeSeconds", "states", "conditions",
             "exitCodes", "includingInitContainers", "includingEphemeralContainers"});
  if (const Reader at = args.field("ownerKinds"); at.is_present() && at.expect_object()) {
    at.only({"include", "exclude"});
    plugin.include_owner_kinds = read_set(at, "include");
    plugin.exclude_owner_kinds = at.strings("exclude");
    if (!plugin.include_owner_kinds.empty() && !plugin.exclude_owner_kinds.empty())
      at.problem("only one of Include/Exclude ownerKinds can be set");
  }
  if (const auto seconds = read_unsigned(args, "maxPodLifeTimeSeconds")) plugin.max_lifetime_seconds = static_cast<std::int64_t>(*seconds);
  plugin.states = read_set(args, "states");
  check_states(args.field("states"), plugin);
  for (const Reader& item : args.field("conditions").items()) {
    if (!item.expect_object()) continue;
    item.only({"type", "status", "reason", "minTimeSinceLastTransitionSeconds"});
    ConditionFilter filter{item.string("type"), item.string("status"), item.string("reason"), std::nullopt};
    if (const auto seconds = read_unsigned(item, "minTimeSinceLastTransitionSeconds"))
      filter.min_seconds_since_transition = static_cast<std::int64_t>(*seconds);
    if (filter.type.empty() && filter.status.empty() && filter.reason.empty() && !filter.min_seconds_since_transition)
      item.problem("at least one of type, status, reason, or minTimeSinceLastTransitionSeconds must be set");
    plugin.conditions.push_back(std::move(filter));
  }
  plugin.including_ephemeral_containers = args.boolean("includingEphemeralContainers", false);
}

void read_exit_codes(const Reader& args, Plugin& plugin) {
  for (const Reader& item : args.field("exitCodes").items()) {
    if (item.value() != nullptr && item.value()->is_int64())
      plugin.exit_codes.insert(item.value()->get_int64());
    else
      item.problem("must be an integer");
  }
}

void read_constraints(const Reader& args, Plugin& plugin) {
  args.only({"apiVersion", "kind", "namespaces", "labelSelector", "constraints", "topologyBalanceNodeFit"});
  const auto constraints = args.strings("constraints");
  if (!constraints.empty()) plugin.hard_constraints = false;
  for (const auto& constraint : constraints) {
    if (constraint == "DoNotSchedule")
      plugin.hard_constraints = true;
    else if (constraint == "ScheduleAnyway")
      plugin.soft_constraints = true;
    else
      args.problem("constraints", fmt::format("constraint {} is not one of [DoNotSchedule ScheduleAnyway]", constraint));
  }
  plugin.topology_balance_node_fit = args.boolean("topologyBalanceNodeFit", true);
}

void read_restarts(const Reader& args, Plugin& plugin) {
  args.only({"apiVersion", "kind", "namespaces", "labelSelector", "podRestartThreshold", "includingInitContainers", "states"});
  plugin.restart_threshold = args.integer("podRestartThreshold", 0);
  if (plugin.restart_threshold < 1)
    args.problem("podRestartThreshold", "invalid PodsHavingTooManyRestarts threshold: it must be 1 or more");
  plugin.states = read_set(args, "states");
  check_states(args.field("states"), plugin);
}

Plugin read_plugin(Strategy strategy, const Reader& args) {
  Plugin plugin{.strategy = strategy};
  if (args.is_present() && !args.expect_object()) return plugin;
  if (strategy == Strategy::kLowNodeUtilization || strategy == Strategy::kHighNodeUtilization) {
    read_utilization(args, plugin);
    return plugin;
  }
  plugin.namespaces = read_namespaces(args.field("namespaces"));
  if (strategy != Strategy::kRemoveDuplicates) plugin.labels = read_label_selector(args.field("labelSelector"));
  plugin.including_init_containers = args.boolean("includingInitContainers", false);
  switch (strategy) {
    case Strategy::kRemoveDuplicates:
      args.only({"apiVersion", "kind", "namespaces", "excludeOwnerKinds"});
      plugin.exclude_owner_kinds = args.strings("excludeOwnerKinds");
      break;
    case Strategy::kRemovePodsViolatingInterPodAntiAffinity:
      args.only({"apiVersion", "kind", "namespaces", "labelSelector"});
      break;
    case Strategy::kRemovePodsViolatingNodeAffinity:
      args.only({"apiVersion", "kind", "namespaces", "labelSelector", "nodeAffinityType"});
      plugin.node_affinity_types = read_node_affinity_types(args);
      break;
    case Strategy::kRemovePodsViolatingNodeTaints:
      args.only({"apiVersion", "kind", "namespaces", "labelSelector", "includePreferNoSchedule", "excludedTaints", "includedTaints"});
      plugin.include_prefer_no_schedule = args.boolean("includePreferNoSchedule", false);
      plugin.excluded_taints = read_set(args, "excludedTaints");
      if (args.has("includedTaints")) plugin.included_taints = read_set(args, "includedTaints");
      if (!plugin.excluded_taints.empty() && plugin.included_taints && !plugin.included_taints->empty())
        args.problem("includedTaints", "either includedTaints or excludedTaints can be set, but not both");
      break;
    case Strategy::kRemovePodsViolatingTopologySpreadConstraint:
      read_constraints(args, plugin);
      break;
    case Strategy::kRemovePodsHavingTooManyRestarts:
      read_restarts(args, plugin);
      break;
    case Strategy::kRemoveFailedPods:
      args.only({"apiVersion", "kind", "namespaces", "labelSelector", "excludeOwnerKinds", "minPodLifetimeSeconds", "reasons", "exitCodes",
                 "includingInitContainers"});
      plugin.exclude_owner_kinds = args.strings("excludeOwnerKinds");
      if (const auto seconds = read_unsigned(args, "minPodLifetimeSeconds"))
        plugin.min_lifetime_seconds = static_cast<std::int64_t>(*seconds);
      plugin.reasons = read_set(args, "reasons");
      read_exit_codes(args, plugin);
      break;
    case Strategy::kPodLifeTime:
      read_life_time(args, plugin);
      read_exit_codes(args, plugin);
      if (!plugin.max_lifetime_seconds && plugin.states.empty() && plugin.conditions.empty() && plugin.exit_codes.empty())
        args.problem("at least one filtering criterion must be specified (maxPodLifeTimeSeconds, states, conditions, or exitCodes)");
      break;
    case Strategy::kDefragmentation:
      args.only({"apiVersion", "kind", "namespaces", "labelSelector", "gangLabel", "minPendingSeconds", "maxMovesPerPod"});
      plugin.gang_label = args.string("gangLabel", plugin.gang_label);
      if (const auto seconds = read_unsigned(args, "minPendingSeconds")) plugin.min_pending_seconds = static_cast<std::int64_t>(*seconds);
      if (const auto moves = read_unsigned(args, "maxMovesPerPod")) plugin.max_moves = *moves;
      if (plugin.max_moves == 0) args.problem("maxMovesPerPod", "must be 1 or more: nothing is ever moved otherwise");
      break;
    default:
      break;
  }
  return plugin;
}

void read_profile(const Reader& at, Profile& profile) {
  if (!at.expect_object()) return at.is_present() ? void() : at.problem("the profile is empty");
  at.only({"name", "pluginConfig", "plugins"});
  profile.name = at.string("name");
  std::map<std::string, Plugin, std::less<>> configured;
  std::set<std::string> seen, enabled;
  for (const Reader& item : at.field("pluginConfig").items()) {
    if (!item.expect_object()) continue;
    item.only({"name", "args"});
    const std::string name = item.string("name");
    const Reader args = item.field("args");
    if (!seen.insert(name).second)
      item.problem("name", fmt::format("the configuration of plugin {} is there already", name), config::Refusal::kOfBerth);
    if (name == kDefaultEvictor) {
      profile.evictor = read_evictor(args);
    } else if (const auto strategy = find_strategy(name)) {
      configured.try_emplace(name, read_plugin(*strategy, args));
    } else {
      item.problem("name", fmt::format("in profile {}: plugin {} in pluginConfig not registered{}", profile.name, name,
                                       config::suggestion(name, kStrategyNames)));
    }
  }
  const Reader plugins = at.field("plugins");
  if (plugins.is_present()) plugins.expect_object();
  plugins.only({"presort", "sort", "deschedule", "balance", "filter", "preevictionfilter"});
  for (const std::string_view point : {"presort", "sort", "deschedule", "balance", "filter", "preevictionfilter"}) {
    const Reader set = plugins.field(point);
    if (!set.is_present() || !set.expect_object()) continue;
    set.only({"enabled", "disabled"});
    for (const std::string& name : set.strings("enabled")) {
      const auto strategy = find_strategy(name);
      const bool fits = point == "deschedule" ? strategy && !is_balance(*strategy)
                        : point == "balance"  ? strategy && is_balance(*strategy)
                                              : name == kDefaultEvictor;
      if (point == "presort" || point == "sort") {
        set.note("enabled", fmt::format("{} has no effect: no plugin has the point {}", name, point));
        continue;
      }
      if (!fits) {
        std::string hint = strategy ? fmt::format("; {} belongs to {}", name, is_balance(*strategy) ? "balance" : "deschedule")
                           : name == kDefaultEvictor ? "; DefaultEvictor belongs to filter and preevictionfilter"
                                                     : config::suggestion(name, kStrategyNames);
        set.problem("enabled", fmt::format("profile \"{}\" configures {} extension point of non-existing plugins: {}{}", profile.name,
                                           point, name, hint));
        continue;
      }
      if (!strategy) continue;
      if (!enabled.insert(name).second) set.problem("enabled", fmt::format("{} is enabled already", name), config::Refusal::kOfBerth);
      const auto found = configured.find(name);
      if (found == configured.end())
        set.problem("enabled", fmt::format("unable to find \"{}\" plugin config: add it to pluginConfig", name));
      else
        (is_balance(*strategy) ? profile.balance : profile.deschedule).push_back(found->second);
    }
  }
  for (const auto& [name, plugin] : configured)
    if (!enabled.contains(name)) at.note("pluginConfig", fmt::format("{} has arguments and is not enabled: it does not run", name));
}

std::optional<PrometheusProvider> read_prometheus(const Reader& at) {
  if (!at.is_present()) {
    at.problem("prometheus configuration is required when prometheus source is enabled");
    return std::nullopt;
  }
  PrometheusProvider out;
  if (!at.expect_object()) return out;
  at.only({"url", "authToken"});
  out.url = at.string("url");
  if (const std::string why = why_not_prometheus_url(out.url); !why.empty()) at.problem("url", why);
  const Reader token = at.field("authToken");
  if (!token.is_present() || !token.expect_object()) return out;
  token.only({"secretReference"});
  const Reader secret = token.field("secretReference");
  if (!secret.is_present())
    token.problem("prometheus authToken secret is expected to be set when authToken field is");
  else if (secret.expect_object()) {
    secret.only({"namespace", "name"});
    out.secret_namespace = secret.string("namespace");
    out.secret_name = secret.string("name");
    if (out.secret_namespace.empty() || out.secret_name.empty())
      secret.problem("prometheus authToken secret reference does not set both namespace and name");
  }
  return out;
}

/// Whether metrics.k8s.io is a source.
bool read_metrics_providers(const Reader& root, Policy& policy) {
  bool has_kubernetes_metrics = false;
  if (const Reader at = root.field("metricsCollector"); at.is_present() && at.expect_object()) {
    at.only({"enabled"});
    has_kubernetes_metrics = at.boolean("enabled", false);
  }
  const bool has_collector = has_kubernetes_metrics;
  std::set<std::string> seen;
  for (const Reader& item : root.field("metricsProviders").items()) {
    if (!item.expect_object()) continue;
    item.only({"source", "prometheus"});
    const std::string source = item.string("source");
    if (!seen.insert(source).second)
      item.problem(fmt::format("metric provider \"{}\" is already configured, each source can be configured only once", source));
    if (source == "KubernetesMetrics") {
      if (has_collector) item.problem("it is not allowed to combine metrics provider when metrics collector is enabled");
      has_kubernetes_metrics = true;
    } else if (source == "Prometheus") {
      policy.prometheus = read_prometheus(item.field("prometheus"));
    } else {
      item.problem("source", fmt::format("\"{}\" is no source of metrics: use \"KubernetesMetrics\" or \"Prometheus\"", source));
    }
  }
  return has_kubernetes_metrics;
}

}  // namespace

void read_version_2(const Reader& root, Policy& policy) {
  root.only({"apiVersion", "kind", "profiles", "nodeSelector", "maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictPerNamespace",
             "maxNoOfPodsToEvictTotal", "evictionFailureEventNotification", "metricsCollector", "metricsProviders", "gracePeriodSeconds"},
            config::Refusal::kOfBerth);
  const std::string selector = root.string("nodeSelector");
  if (auto parsed = model::Selector::parse(selector))
    policy.node_selector = *parsed;
  else
    root.problem("nodeSelector", parsed.error().message);
  policy.max_evictions_per_node = read_unsigned(root, "maxNoOfPodsToEvictPerNode");
  policy.max_evictions_per_namespace = read_unsigned(root, "maxNoOfPodsToEvictPerNamespace");
  policy.max_evictions_total = read_unsigned(root, "maxNoOfPodsToEvictTotal");
  policy.eviction_failure_events = root.boolean("evictionFailureEventNotification", false);
  if (const auto seconds = read_unsigned(root, "gracePeriodSeconds")) policy.grace_period_seconds = static_cast<std::int64_t>(*seconds);
  const bool has_metrics = read_metrics_providers(root, policy);
  for (const Reader& item : root.field("profiles").items()) read_profile(item, policy.profiles.emplace_back());
  if (policy.needs_metrics() && !has_metrics)
    root.problem("metricsProviders", "a plugin's metricsUtilization needs a provider: add \"- source: KubernetesMetrics\"",
                 config::Refusal::kOfBerth);
  if (!policy.prometheus && !policy.prometheus_queries().empty())
    root.problem("metricsProviders",
                 "a plugin's metricsUtilization asks Prometheus, and there is no provider: add \"- source: Prometheus\" "
                 "with its url",
                 config::Refusal::kOfBerth);
}

}  // namespace berth::descheduler
