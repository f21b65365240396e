// kube-controller-manager's flags and OpenShift's controllerArguments.
#include "base/clock.h"
#include "base/config_reader.h"
#include "base/split.h"
#include "client/leader_election.h"
#include "controllers/manager.h"
#include "model/features.h"

namespace berth::controllers {
namespace {

/// Gates of Kubernetes up to 1.32 that no longer do anything there: accepted, and said.
constexpr std::array<const char*, 14> kRetiredGates = {"TaintBasedEvictions",
                                                       "TaintNodesByCondition",
                                                       "PodPriority",
                                                       "AttachVolumeLimit",
                                                       "EvenPodsSpread",
                                                       "TTLAfterFinished",
                                                       "CronJobControllerV2",
                                                       "IndexedJob",
                                                       "SuspendJob",
                                                       "DefaultPodTopologySpread",
                                                       "NonPreemptingPriority",
                                                       "ServiceNodeExclusion",
                                                       "LegacyNodeRoleBehavior",
                                                       "StatefulSetMinReadySeconds"};
/// Gates that Kubernetes 1.32 knows and whose behaviour is always on here.
constexpr std::array<const char*, 20> kKnownGates = {"AllAlpha",
                                                     "AllBeta",
                                                     "PodDisruptionConditions",
                                                     "JobPodFailurePolicy",
                                                     "JobSuccessPolicy",
                                                     "JobBackoffLimitPerIndex",
                                                     "JobManagedBy",
                                                     "JobPodReplacementPolicy",
                                                     "StatefulSetAutoDeletePVC",
                                                     "StatefulSetStartOrdinal",
                                                     "PDBUnhealthyPodEvictionPolicy",
                                                     "CronJobsScheduledAnnotation",
                                                     "SeparateTaintEvictionController",
                                                     "LogarithmicScaleDown",
                                                     "ElasticIndexedJob",
                                                     "NodeOutOfServiceVolumeDetach",
                                                     "MaxUnavailableStatefulSet",
                                                     "HPAScaleToZero",
                                                     "HPAContainerMetrics",
                                                     "ContextualLogging"};
/// Flags of kube-controller-manager that are accepted and have nothing to act on here.
constexpr auto kUnusedFlags = std::to_array<std::string_view>({"kubeconfig",
                                                               "authentication-kubeconfig",
                                                               "authorization-kubeconfig",
                                                               "bind-address",
                                                               "secure-port",
                                                               "port",
                                                               "address",
                                                               "tls-cert-file",
                                                               "tls-private-key-file",
                                                               "client-ca-file",
                                                               "requestheader-client-ca-file",
                                                               "cluster-name",
                                                               "cluster-cidr",
                                                               "service-cluster-ip-range",
                                                               "service-account-private-key-file",
                                                               "use-service-account-credentials",
                                                               "allocate-node-cidrs",
                                                               "cloud-provider",
                                                               "cloud-config",
                                                               "concurrent-gc-syncs",
                                                               "concurrent-deployment-syncs",
                                                               "kube-api-qps",
                                                               "kube-api-burst",
                                                               "v",
                                                               "logtostderr",
                                                               "profiling",
                                                               "enable-hostpath-provisioner",
                                                               "experimental-cluster-signing-duration",
                                                               "pod-eviction-timeout",
                                                               "enable-taint-manager",
                                                               "resource-quota-sync-period",
                                                               "disable-attach-detach-reconcile-sync",
                                                               "allow-metric-labels",
                                                               "allow-metric-labels-manifest",
                                                               "attach-detach-reconcile-sync-period",
                                                               "authentication-skip-lookup",
                                                               "authentication-token-webhook-cache-ttl",
                                                               "authentication-tolerate-lookup-failure",
                                                               "authorization-always-allow-paths",
                                                               "authorization-webhook-cache-authorized-ttl",
                                                               "authorization-webhook-cache-unauthorized-ttl",
                                                               "cert-dir",
                                                               "cidr-allocator-type",
                                                               "cluster-signing-legacy-unknown-cert-file",
                                                               "cluster-signing-legacy-unknown-key-file",
                                                               "configure-cloud-routes",
                                                               "contention-profiling",
                                                               "controller-shutdown-timeout",
                                                               "controller-start-interval",
                                                               "disable-force-detach-on-timeout",
                                                               "disable-http2-serving",
                                                               "disabled-metrics",
                                                               "emulated-version",
                                                               "emulation-forward-compatible",
                                                               "enable-dynamic-provisioning",
                                                               "enable-garbage-collector",
                                                               "enable-leader-migration",
                                                               "endpoint-updates-batch-period",
                                                               "endpointslice-updates-batch-period",
                                                               "external-cloud-volume-plugin",
                                                               "flex-volume-plugin-dir",
                                                               "http2-max-streams-per-connection",
                                                               "kube-api-content-type",
                                                               "leader-migration-config",
                                                               "legacy-service-account-token-clean-up-period",
                                                               "log-flush-frequency",
                                                               "log-text-info-buffer-size",
                                                               "log-text-split-stream",
                                                               "logging-format",
                                                               "master",
                                                               "max-endpoints-per-slice",
                                                               "min-compatibility-version",
                                                               "min-resync-period",
                                                               "mirroring-concurrent-service-endpoint-syncs",
                                                               "mirroring-endpointslice-updates-batch-period",
                                                               "mirroring-max-endpoints-per-subset",
                                                               "namespace-sync-period",
                                                               "node-cidr-mask-size",
                                                               "node-cidr-mask-size-ipv4",
                                                               "node-cidr-mask-size-ipv6",
                                                               "permit-address-sharing",
                                                               "permit-port-sharing",
                                                               "pv-recycler-increment-timeout-nfs",
                                                               "pv-recycler-minimum-timeout-hostpath",
                                                               "pv-recycler-minimum-timeout-nfs",
                                                               "pv-recycler-pod-template-filepath-hostpath",
                                                               "pv-recycler-pod-template-filepath-nfs",
                                                               "pv-recycler-timeout-increment-hostpath",
                                                               "pvclaimbinder-sync-period",
                                                               "requestheader-allowed-names",
                                                               "requestheader-extra-headers-prefix",
                                                               "requestheader-group-headers",
                                                               "requestheader-uid-headers",
                                                               "requestheader-username-headers",
                                                               "root-ca-file",
                                                               "route-reconciliation-period",
                                                               "show-hidden-metrics-for-version",
                                                               "tls-cipher-suites",
                                                               "tls-curve-preferences",
                                                               "tls-min-version",
                                                               "tls-sni-cert-key",
                                                               "unsupported-kube-api-over-localhost",
                                                               "vmodule"});

/// Flags that act (apply).
constexpr std::string_view kFlags[] = {"cluster-signing-cert-file",
                                       "cluster-signing-key-file",
                                       "cluster-signing-duration",
                                       "cluster-signing-kube-apiserver-client-cert-file",
                                       "cluster-signing-kube-apiserver-client-key-file",
                                       "cluster-signing-kubelet-client-cert-file",
                                       "cluster-signing-kubelet-client-key-file",
                                       "cluster-signing-kubelet-serving-cert-file",
                                       "cluster-signing-kubelet-serving-key-file",
                                       "approve-kubelet-serving",
                                       "node-monitor-period",
                                       "node-monitor-grace-period",
                                       "node-startup-grace-period",
                                       "node-eviction-rate",
                                       "secondary-node-eviction-rate",
                                       "unhealthy-zone-threshold",
                                       "large-cluster-size-threshold",
                                       "terminated-pod-gc-threshold",
                                       "concurrent-replicaset-syncs",
                                       "horizontal-pod-autoscaler-sync-period",
                                       "horizontal-pod-autoscaler-downscale-stabilization",
                                       "horizontal-pod-autoscaler-cpu-initialization-period",
                                       "horizontal-pod-autoscaler-initial-readiness-delay",
                                       "horizontal-pod-autoscaler-tolerance",
                                       "feature-gates",
                                       "simulated-machines",
                                       "leader-elect",
                                       "controllers"};

template <typename List>
bool is_in(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

Result<void> set_duration(Duration& target, std::string_view flag, std::string_view value) {
  const std::optional<Duration> parsed = parse_go_duration(value);
  if (!parsed || parsed->count() <= 0)
    return invalid(fmt::format("--{}: \"{}\" is not a positive duration (like \"40s\" or \"1m30s\")", flag, value));
  target = *parsed;
  return {};
}

template <typename T>
Result<void> set_number(T& target, std::string_view flag, std::string_view value) {
  T parsed{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (error != std::errc{} || end != value.data() + value.size() || parsed < T{})
    return invalid(fmt::format("--{}: \"{}\" is not a number of at least 0", flag, value));
  target = parsed;
  return {};
}

Result<void> set_gates(model::Features& features, std::string_view value, std::vector<std::string>& notes) {
  std::vector<std::pair<model::Feature, bool>> said;
  for (const std::string_view item : words(value, ',')) {
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) return invalid(fmt::format("--feature-gates: missing bool value for {}", item));
    const std::string_view name = item.substr(0, equals), setting = item.substr(equals + 1);
    if (setting != "true" && setting != "false")
      return invalid(fmt::format("--feature-gates: invalid value of {}={}, it must be true or false", name, setting));
    if (const auto feature = model::feature_named(name)) {
      said.emplace_back(*feature, setting == "true");
    } else if (is_in(kRetiredGates, name)) {
      if (setting == "false")
        return invalid(
            fmt::format("--feature-gates: cannot set feature gate {} to false, it was retired: its behaviour is always on", name));
      notes.push_back(fmt::format("feature gate {} is retired: its behaviour is always on", name));
    } else if (is_in(kKnownGates, name)) {
      notes.push_back(fmt::format("feature gate {} is accepted; its behaviour is fixed in this version", name));
    } else {
      std::vector<std::string_view> known(kRetiredGates.begin(), kRetiredGates.end());
      known.insert(known.end(), kKnownGates.begin(), kKnownGates.end());
      for (const std::string_view one : model::feature_names()) known.push_back(one);
      return invalid(fmt::format("--feature-gates: unrecognized feature gate: {}{}", name, config::suggestion(name, known)));
    }
  }
  if (const auto wrong = model::set_gates(features, said); !wrong.empty()) return invalid("--feature-gates: " + wrong);
  return {};
}

/// Names of Kubernetes' controllers: those that run here, and those of others that people switch off.
std::vector<std::string> controller_names() {
  ManagerOptions all;
  all.root_ca_pem = "-";
  all.simulated_machines = true;
  all.signing.authority = [] -> Result<net::SigningAuthority> { return invalid("none"); };
  std::vector<std::string> names;
  for (const ControllerPtr& controller : make_controllers(all)) names.emplace_back(controller->name());
  return names;
}

Result<void> set_controllers(ManagerOptions& options, std::string_view value, std::vector<std::string>& notes) {
  bool all = false;
  std::set<std::string, std::less<>> only;
  static const std::vector<std::string> kNames = controller_names();
  const std::vector<std::string_view> known(kNames.begin(), kNames.end());
  for (const std::string_view item : words(value, ',')) {
    if (item == "*") {
      all = true;
      continue;
    }
    const std::string_view name = item.starts_with('-') ? item.substr(1) : item;
    if (!is_in(known, name)) {
      // A slip would leave on what was to be off; a controller that Kubernetes has and berth not is off anyway.
      const std::string meant = config::suggestion(name, known);
      if (!meant.empty() || item == name) return invalid(fmt::format("--controllers: there is no controller \"{}\"{}", name, meant));
      notes.push_back(fmt::format("--controllers: there is no controller \"{}\" here to be switched off", name));
    }
    item == name ? only.emplace(name) : options.disabled.emplace(name);
  }
  if (!all) options.enabled_only = std::move(only);
  return {};
}

std::string near_flag(std::string_view name) {
  std::vector<std::string_view> known(kUnusedFlags.begin(), kUnusedFlags.end());
  known.insert(known.end(), std::begin(kFlags), std::end(kFlags));
  return config::suggestion(name, known);
}

Result<void> apply(ManagerOptions& options, std::string_view name, std::string_view value, std::vector<std::string>& notes) {
  NodeLifecycleOptions& node = options.node_lifecycle;
  HorizontalPodAutoscalerOptions& hpa = options.horizontal_pod_autoscaler;
  if (name == "node-monitor-period") return set_duration(node.monitor_period, name, value);
  if (name == "node-monitor-grace-period") return set_duration(node.monitor_grace_period, name, value);
  if (name == "node-startup-grace-period") return set_duration(node.startup_grace_period, name, value);
  if (name == "node-eviction-rate") return set_number(node.eviction_rate, name, value);
  if (name == "secondary-node-eviction-rate") return set_number(node.secondary_eviction_rate, name, value);
  if (name == "unhealthy-zone-threshold") return set_number(node.unhealthy_zone_threshold, name, value);
  if (name == "large-cluster-size-threshold") return set_number(node.large_cluster_size_threshold, name, value);
  if (name == "terminated-pod-gc-threshold") return set_number(options.pod_gc.terminated_pod_threshold, name, value);
  if (name == "concurrent-replicaset-syncs") return set_number(options.replica_set.concurrency, name, value);
  if (name == "horizontal-pod-autoscaler-sync-period") return set_duration(hpa.sync_period, name, value);
  if (name == "horizontal-pod-autoscaler-downscale-stabilization") return set_duration(hpa.downscale_stabilization, name, value);
  if (name == "horizontal-pod-autoscaler-cpu-initialization-period") return set_duration(hpa.cpu_initialization_period, name, value);
  if (name == "horizontal-pod-autoscaler-initial-readiness-delay") return set_duration(hpa.initial_readiness_delay, name, value);
  if (name == "horizontal-pod-autoscaler-tolerance") return set_number(hpa.tolerance, name, value);
  if (name == "cluster-signing-duration") return set_duration(options.signing.duration, name, value);
  if (name == "cluster-signing-cert-file" || name == "cluster-signing-key-file") {
    (name == "cluster-signing-cert-file" ? options.signing.certificate_file : options.signing.key_file) = value;
    return {};
  }
  if (name == "approve-kubelet-serving") {
    if (value != "none" && value != "own-addresses")
      return invalid(
          fmt::format("--approve-kubelet-serving: \"{}\" is neither none (an administrator approves, as in Kubernetes) nor "
                      "own-addresses (where every name asked for is in the node's status and nobody else's)",
                      value));
    options.signing.approves_kubelet_serving = value == "own-addresses";
    return {};
  }
  for (const std::string_view signer : {"kube-apiserver-client", "kubelet-client", "kubelet-serving"})
    for (const bool is_key : {false, true})
      if (name == fmt::format("cluster-signing-{}-{}-file", signer, is_key ? "key" : "cert")) {
        auto& authority = options.signing.own_authorities[std::string(signer)];
        (is_key ? authority.key_file : authority.certificate_file) = value;
        return {};
      }
  if (name == "feature-gates") return set_gates(options.features, value, notes);
  if (name == "simulated-machines") {
    if (value != "true" && value != "false") return invalid(fmt::format("--simulated-machines: \"{}\" is neither true nor false", value));
    options.simulated_machines = value == "true";
    return {};
  }
  if (name == "leader-elect") {
    if (value != "true" && value != "false") return invalid(fmt::format("--leader-elect: \"{}\" is neither true nor false", value));
    options.leader_elect = value == "true";
    return {};
  }
  using client::ElectionTimes;
  for (const auto& [flag, which] : {std::pair("leader-elect-lease-duration", &ElectionTimes::lease_duration),
                                    std::pair("leader-elect-renew-deadline", &ElectionTimes::renew_deadline),
                                    std::pair("leader-elect-retry-period", &ElectionTimes::retry_period)})
    if (name == flag) {
      const auto parsed = parse_go_duration(value);
      if (!parsed || *parsed <= Duration::zero()) return invalid(fmt::format("--{}: \"{}\" is not a duration such as 15s", name, value));
      options.election.set(which, *parsed);
      return {};
    }
  if (name == "controllers") return set_controllers(options, value, notes);
  if (name.starts_with("concurrent-") || name.starts_with("leader-elect-") || is_in(kUnusedFlags, name)) {
    notes.push_back(fmt::format("--{} is accepted and has no effect here", name));
    return {};
  }
  return invalid(fmt::format("unknown flag: --{}{}", name, near_flag(name)));
}

}  // namespace

Result<void> check_election(const ManagerOptions& options) {
  client::LeaderElectionConfig election;
  election.name = election.identity = "any";
  election.lease_duration = options.election.lease_duration;
  election.renew_deadline = options.election.renew_deadline;
  election.retry_period = options.election.retry_period;
  if (auto possible = client::LeaderElector::validate(election); !possible)
    return invalid(fmt::format("--leader-elect-…: {}", possible.error().message));
  return {};
}

Result<ManagerOptions> parse_manager_flags(const std::vector<std::string>& flags, ManagerOptions options, std::vector<std::string>& notes) {
  for (std::size_t i = 0; i < flags.size(); ++i) {
    std::string_view flag = flags[i];
    if (!flag.starts_with("--")) return invalid(fmt::format("unexpected argument \"{}\": flags begin with --", flag));
    flag.remove_prefix(2);
    const std::size_t equals = flag.find('=');
    const std::string name(flag.substr(0, equals));
    std::string value = equals == std::string_view::npos ? std::string() : std::string(flag.substr(equals + 1));
    if (equals == std::string_view::npos) {
      // As pflag: a flag without '=' takes the next word, unless that is a flag too (then it is a switch).
      if (i + 1 < flags.size() && !flags[i + 1].starts_with("--"))
        value = flags[++i];
      else
        value = "true";
    }
    if (auto done = apply(options, name, value, notes); !done) return std::unexpected(done.error());
  }
  return options;
}

Result<ManagerOptions> parse_controller_arguments(const config::Arguments& arguments, ManagerOptions options,
                                                  std::vector<std::string>& notes) {
  std::vector<std::string> problems;
  for (const auto& [name, argument] : arguments)
    for (const std::string& value : argument.values) {
      std::vector<std::string> said;
      if (auto done = apply(options, name, value, said); !done)
        problems.push_back(fmt::format("{}: {}", argument.place, done.error().message));
      for (const std::string& note : said) notes.push_back(fmt::format("{}: {}", argument.place, note));
    }
  if (!problems.empty()) return invalid(fmt::format("{}", fmt::join(problems, "\n")));
  return options;
}

json::Value config_document(const ManagerOptions& options) {
  const NodeLifecycleOptions& node = options.node_lifecycle;
  const HorizontalPodAutoscalerOptions& hpa = options.horizontal_pod_autoscaler;
  json::Array controllers;
  if (options.enabled_only.empty()) controllers.emplace_back("*");
  for (const std::string& name : options.enabled_only) controllers.emplace_back(name);
  for (const std::string& name : options.disabled) controllers.emplace_back("-" + name);
  return json::Object{
      {"Generic", json::Object{{"Controllers", std::move(controllers)},
                               {"LeaderElection", json::Object{{"LeaderElect", options.leader_elect},
                                                               {"LeaseDuration", format_go_duration(options.election.lease_duration)},
                                                               {"RenewDeadline", format_go_duration(options.election.renew_deadline)},
                                                               {"RetryPeriod", format_go_duration(options.election.retry_period)},
                                                               {"ResourceLock", "leases"},
                                                               {"ResourceName", "kube-controller-manager"},
                                                               {"ResourceNamespace", "kube-system"}}}}},
      {"KubeCloudShared", json::Object{{"NodeMonitorPeriod", format_go_duration(node.monitor_period)}}},
      {"NodeLifecycleController", json::Object{{"NodeEvictionRate", node.eviction_rate},
                                               {"SecondaryNodeEvictionRate", node.secondary_eviction_rate},
                                               {"NodeStartupGracePeriod", format_go_duration(node.startup_grace_period)},
                                               {"NodeMonitorGracePeriod", format_go_duration(node.monitor_grace_period)},
                                               {"LargeClusterSizeThreshold", node.large_cluster_size_threshold},
                                               {"UnhealthyZoneThreshold", node.unhealthy_zone_threshold}}},
      {"CSRSigningController", json::Object{{"ClusterSigningCertFile", options.signing.certificate_file},
                                            {"ClusterSigningKeyFile", options.signing.key_file},
                                            {"ClusterSigningDuration", format_go_duration(options.signing.duration)}}},
      {"PodGCController", json::Object{{"TerminatedPodGCThreshold", options.pod_gc.terminated_pod_threshold}}},
      {"ReplicaSetController", json::Object{{"ConcurrentRSSyncs", options.replica_set.concurrency}}},
      {"HPAController",
       json::Object{{"HorizontalPodAutoscalerSyncPeriod", format_go_duration(hpa.sync_period)},
                    {"HorizontalPodAutoscalerDownscaleStabilizationWindow", format_go_duration(hpa.downscale_stabilization)},
                    {"HorizontalPodAutoscalerTolerance", hpa.tolerance},
                    {"HorizontalPodAutoscalerCPUInitializationPeriod", format_go_duration(hpa.cpu_initialization_period)},
                    {"HorizontalPodAutoscalerInitialReadinessDelay", format_go_duration(hpa.initial_readiness_delay)}}}};
}

}  // namespace berth::controllers
