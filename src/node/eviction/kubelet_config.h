// A node's configuration: KubeletConfiguration (kubelet.config.k8s.io/v1beta1), OpenShift's node-config.yaml with its kubeletArguments, and
// the kubelet's flags (SPEC F3; document 000 §21.2).
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/config_reader.h"
#include "base/json.h"
#include "node/eviction/ranking.h"
#include "node/eviction/thresholds.h"

namespace berth::node::eviction {

inline constexpr std::int64_t kDefaultMaxPods = 110;

/// The settings of a KubeletConfiguration that berth acts on, after Kubernetes' defaulting.
struct KubeletSettings {
  std::optional<StatementMap> eviction_hard, eviction_soft, eviction_soft_grace_period, eviction_minimum_reclaim;
  std::vector<std::string> enforce_node_allocatable = {"pods"};
  bool merge_default_eviction_settings = false;
  std::int64_t eviction_max_pod_grace_period_seconds = 0;
  std::int64_t eviction_pressure_transition_period_ns = 300'000'000'000;
  StatementMap kube_reserved, system_reserved;
  std::int64_t max_pods = kDefaultMaxPods, pods_per_core = 0;
  std::int64_t pod_pids_limit = -1;  ///< Processes of a pod; 0 and below: as many as the node has.
  bool fail_swap_on = true;
  int image_gc_high_threshold_percent = 85, image_gc_low_threshold_percent = 80;
  std::int64_t image_minimum_gc_age_ns = 120'000'000'000, image_maximum_gc_age_ns = 0;
  /// Flags of the kubelet without a field in its configuration file.
  std::int64_t minimum_container_ttl_ns = 0;
  bool allocatable_ignores_eviction = false;  ///< Allocatable without the hard thresholds taken away.
  EvictionRules eviction_rules = EvictionRules::kKubernetes;
  int maximum_dead_containers_per_container = 1, maximum_dead_containers = -1;
  std::string swap_behavior;  ///< "", NoSwap or LimitedSwap.
  bool local_storage_capacity_isolation = true;
  std::string static_pod_path;
  std::int64_t node_status_update_frequency_ns = 10'000'000'000, node_lease_duration_seconds = 40;
  std::int64_t node_status_report_frequency_ns = 300'000'000'000;  ///< Of a status in which nothing changed.
  std::string container_log_max_size = "10Mi";                     ///< A quantity of bytes, before a log is rotated.
  int container_log_max_files = 5;
  std::vector<std::string> allowed_unsafe_sysctls;
  std::vector<std::string> cluster_dns;  ///< Name servers that pods get.
  std::string cluster_domain;
  std::int64_t max_restart_backoff_ns = 300'000'000'000;  ///< crashLoopBackOff.maxContainerRestartPeriod.
  std::string cpu_manager_policy = "none";                ///< "static": containers may have processors to themselves (src/node/cpus).
  StatementMap cpu_manager_policy_options;
  std::string memory_manager_policy = "None";   ///< "Static": Guaranteed containers' memory comes from few NUMA nodes (src/node/numa).
  std::map<int, StatementMap> reserved_memory;  ///< By NUMA node: quantities of memory and huge pages that are the system's.
  std::string topology_manager_policy = "none", topology_manager_scope = "container";
  StatementMap topology_manager_policy_options;
  std::string reserved_system_cpus;  ///< A list such as 0-1; counts instead of the cpu that is reserved otherwise.
  json::Object other;                ///< Fields of the document that have no effect here but must be well all the same.
  /// What was read and has no effect here, for whoever starts the node to say.
  std::vector<std::string> warnings;

  [[nodiscard]] EvictionSettings eviction() const;
};

/// Kubernetes' own defaults for Linux: memory.available<100Mi, nodefs.available<10%, nodefs.inodesFree<5%, imagefs.available<15%,
/// imagefs.inodesFree<5%.
[[nodiscard]] const StatementMap& default_eviction_hard();

/// Reads a KubeletConfiguration document. The error has the words of Kubernetes' decoder: `json: cannot unmarshal number into Go struct
/// field KubeletConfiguration.evictionHard of type string`, `time: invalid duration "abc"`. Unknown fields are ignored (with a warning by
/// whoever loads the file). Defaults are applied.
[[nodiscard]] TextResult<KubeletSettings> read_kubelet_configuration(const json::Value& document);
/// The settings as a KubeletConfiguration: what is in force, and nothing that has no effect here.
[[nodiscard]] json::Object kubelet_configuration(const KubeletSettings& settings);
/// The same as a component's reader of its file: unknown fields are problems, with the nearest name, and what has no effect is a note.
KubeletSettings read_kubelet_fields(const config::Reader& document);
/// A file that configures a node, as whoever starts the node reads it: a KubeletConfiguration or an OpenShift NodeConfig, YAML or JSON. The
/// error lists all that is wrong, a line each: "FILE:LINE: PATH: …".
[[nodiscard]] Result<KubeletSettings> read_kubelet_file(std::string_view text, const std::string& file);
/// All that refuses to start a node with these settings: `validate`, then what is reserved. Of file and flags together.
[[nodiscard]] std::vector<std::string> start_errors(const KubeletSettings& settings);
/// The names of a KubeletConfiguration's fields: those that something here acts on, and the others.
struct KubeletFields {
  std::span<const std::string_view> acting, inert;
};
[[nodiscard]] KubeletFields kubelet_fields();
/// What Kubernetes fills in for what a document leaves out.
void apply_kubelet_defaults(KubeletSettings& settings);
/// The names of the kubelet's flags that apply_kubelet_argument takes.
[[nodiscard]] const std::vector<std::string_view>& kubelet_flags();
/// As the kubelet itself loads its file, for replays: unknown and repeated fields are taken. Errors: `failed to load Kubelet config file
/// NAME, error failed to decode: …`.
[[nodiscard]] TextResult<KubeletSettings> load_config_text(std::string_view text, std::string_view name);

/// One kubelet flag or kubeletArguments entry over `settings`. Several values are joined, as are commas within one; document 000 writes
/// "memory=1.5Gi" for system-reserved and "memory.available<500Mi" for thresholds. Flags of the kubelet that mean nothing here are taken
/// with a warning; names that no kubelet knows are an error.
[[nodiscard]] std::optional<std::string> apply_kubelet_argument(KubeletSettings& settings, const std::string& name,
                                                                const std::vector<std::string>& values);

/// All that refuses to start, beyond what reading found: thresholds that cannot be parsed, soft ones without a grace period, numbers out of
/// range (kubelet apis/config/validation, in its words; several errors are joined). Nullopt: fine.
[[nodiscard]] std::optional<std::string> validate(const KubeletSettings& settings);

}  // namespace berth::node::eviction
