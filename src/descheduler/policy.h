// DeschedulerPolicy: what a descheduling cycle does, as data (SPEC G1; kubernetes-sigs/descheduler pkg/api/v1alpha2, and v1alpha1 of 0.26).
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "model/selector.h"

namespace berth::descheduler {

/// Priorities from here on are the system's own.
inline constexpr std::int64_t kSystemCriticalPriority = 2'000'000'000;

enum class Strategy : std::uint8_t {
  kRemoveDuplicates,
  kLowNodeUtilization,
  kHighNodeUtilization,
  kRemovePodsViolatingInterPodAntiAffinity,
  kRemovePodsViolatingNodeAffinity,
  kRemovePodsViolatingNodeTaints,
  kRemovePodsViolatingTopologySpreadConstraint,
  kRemovePodsHavingTooManyRestarts,
  kRemoveFailedPods,
  kPodLifeTime,
  kDefragmentation,  ///< berth's own: room for pods that wait (packing.h).
};
inline constexpr std::array<std::string_view, 11> kStrategyNames = {"RemoveDuplicates",
                                                                    "LowNodeUtilization",
                                                                    "HighNodeUtilization",
                                                                    "RemovePodsViolatingInterPodAntiAffinity",
                                                                    "RemovePodsViolatingNodeAffinity",
                                                                    "RemovePodsViolatingNodeTaints",
                                                                    "RemovePodsViolatingTopologySpreadConstraint",
                                                                    "RemovePodsHavingTooManyRestarts",
                                                                    "RemoveFailedPods",
                                                                    "PodLifeTime",
                                                                    "Defragmentation"};
inline std::string_view strategy_name(Strategy strategy) { return kStrategyNames[static_cast<std::size_t>(strategy)]; }
/// Nullopt for a name that is none.
std::optional<Strategy> find_strategy(std::string_view name);
/// Runs at the Balance point, after all that runs at Deschedule.
bool is_balance(Strategy strategy);

/// At most one of the two is not empty.
struct Namespaces {
  std::set<std::string, std::less<>> include, exclude;
  [[nodiscard]] bool admits(std::string_view ns) const {
    return (include.empty() || include.contains(ns)) && (exclude.empty() || !exclude.contains(ns));
  }
};

/// Percent of a node's allocatable by resource; sorted by name.
using Thresholds = std::vector<std::pair<std::string, double>>;

/// Arguments of LowNodeUtilization and HighNodeUtilization (the latter: thresholds, number_of_nodes, only_thresholding_resources).
struct UtilizationArgs {
  Thresholds thresholds, target_thresholds;
  bool use_deviation_thresholds = false;
  std::int64_t number_of_nodes = 0;
  bool use_metrics = false;      ///< Actual use from metrics.k8s.io instead of requests.
  std::string prometheus_query;  ///< Actual use as this query tells it, in percent of a node (MetricResource); empty: not.
  bool only_thresholding_resources = false;
  std::optional<std::uint64_t> max_evictions_per_node;
};

struct ConditionFilter {
  std::string type, status, reason;
  std::optional<std::int64_t> min_seconds_since_transition;
};

/// One strategy with its arguments; those of other strategies have their zero values.
struct Plugin {
  Strategy strategy = Strategy::kRemoveDuplicates;
  Namespaces namespaces;  ///< evictableNamespaces of the two utilization strategies.
  std::optional<model::Selector> labels;

  std::vector<std::string> exclude_owner_kinds;        ///< RemoveDuplicates, RemoveFailedPods.
  UtilizationArgs utilization;                         ///< LowNodeUtilization, HighNodeUtilization.
  std::vector<std::string> node_affinity_types;        ///< RemovePodsViolatingNodeAffinity; other words are skipped.
  bool include_prefer_no_schedule = false;             ///< RemovePodsViolatingNodeTaints, with the next two.
  std::set<std::string, std::less<>> excluded_taints;  ///< "key" or "key=value".
  std::optional<std::set<std::string, std::less<>>> included_taints;
  bool hard_constraints = true, soft_constraints = false;  ///< RemovePodsViolatingTopologySpreadConstraint, with the next.
  bool topology_balance_node_fit = true;
  std::int64_t restart_threshold = 0;           ///< RemovePodsHavingTooManyRestarts.
  bool including_init_containers = false;       ///< It, RemoveFailedPods and PodLifeTime.
  bool including_ephemeral_containers = false;  ///< PodLifeTime.
  std::set<std::string, std::less<>> states;    ///< TooManyRestarts, PodLifeTime.
  std::int64_t min_lifetime_seconds = 3600;     ///< RemoveFailedPods, with the next.
  std::set<std::string, std::less<>> reasons;
  std::set<std::int64_t> exit_codes;                 ///< RemoveFailedPods, PodLifeTime.
  std::optional<std::int64_t> max_lifetime_seconds;  ///< PodLifeTime, with the next two.
  std::set<std::string, std::less<>> include_owner_kinds;
  std::vector<ConditionFilter> conditions;

  std::string gang_label =
      "pod-group.scheduling.sigs.k8s.io";  ///< Defragmentation: waiting pods of one value get room together or not at all.
  std::int64_t min_pending_seconds = 0;    ///< Defragmentation.
  std::uint64_t max_moves = 20;            ///< Defragmentation: for one pod.
};

/// DefaultEvictor's arguments: which pods may be evicted at all.
struct EvictorArgs {
  std::string node_selector;  ///< Of nodeFit's nodes.
  model::Selector node_selector_parsed;
  std::optional<model::Selector> labels, namespace_labels;
  std::optional<std::int64_t> priority_threshold;
  std::string priority_threshold_class;  ///< Resolved by the cycle against the cluster's classes.
  bool node_fit = false;
  std::uint64_t min_replicas = 0;
  std::optional<Duration> min_pod_age;
  bool no_eviction_is_mandatory = false;
  // What is protected.
  bool protects_local_storage = true, protects_daemon_sets = true, protects_system_critical = true, protects_failed_bare = true;
  bool protects_pvc = false, protects_without_budget = false, protects_resource_claims = false;
  std::set<std::string, std::less<>> protected_storage_classes;  ///< Narrows protects_pvc when not empty.
};

struct Profile {
  std::string name;
  EvictorArgs evictor;
  std::vector<Plugin> deschedule, balance;  ///< In the order of running.
};

/// Where usage is asked for (metricsProviders, source Prometheus).
struct PrometheusProvider {
  std::string url;
  /// Of the Secret whose key prometheusAuthToken is the bearer token; empty: the pod's own service account, where there is one.
  std::string secret_namespace, secret_name;
};

/// What a threshold on the answer of a Prometheus query is called.
inline constexpr std::string_view kMetricResource = "MetricResource";

struct Policy {
  std::vector<Profile> profiles;
  model::Selector node_selector;  ///< Everything by default.
  std::optional<std::uint64_t> max_evictions_per_node, max_evictions_per_namespace, max_evictions_total;
  bool eviction_failure_events = false;
  std::optional<std::int64_t> grace_period_seconds;
  std::optional<PrometheusProvider> prometheus;
  std::vector<std::string> warnings;  ///< What was read but is to be said.

  /// Some strategy reads actual use from metrics.k8s.io.
  [[nodiscard]] bool needs_metrics() const;
  [[nodiscard]] bool makes_room() const;  ///< Some profile has Defragmentation.
  /// Those of all strategies, each once.
  [[nodiscard]] std::set<std::string> prometheus_queries() const;
};

/// Reads a policy, YAML or JSON, of either version. `file` is for the messages: all that is wrong, a line each, with file, line and field
/// path. The documents' samples are read even with their callout numbers. `as_kubernetes`: for replays of the real descheduler, which takes
/// unknown fields at the top and unknown affinity types in silence; both are warnings then.
Result<Policy> parse_policy(std::string_view text, const std::string& file, bool as_kubernetes = false);
Result<Policy> load_policy(const std::string& path);

}  // namespace berth::descheduler
