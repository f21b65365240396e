// The kubelet's flags, and the same words in an OpenShift node-config.yaml (cmd/kubelet/app/options).
#include <array>
#include <ranges>

#include "base/split.h"
#include "node/eviction/kubelet_config.h"

namespace berth::node::eviction {
namespace {

/// Flags that kubelets take and that say nothing to this agent: their subject does not exist here, or is set another way.
constexpr std::array<std::string_view, 45> kFlagsWithoutEffect = {"address",
                                                                  "anonymous-auth",
                                                                  "authentication-token-webhook",
                                                                  "authentication-token-webhook-cache-ttl",
                                                                  "authorization-mode",
                                                                  "bootstrap-kubeconfig",
                                                                  "cadvisor-port",
                                                                  "cert-dir",
                                                                  "cgroup-driver",
                                                                  "cgroup-root",
                                                                  "cgroups-per-qos",
                                                                  "client-ca-file",
                                                                  "cloud-config",
                                                                  "cloud-provider",
                                                                  "cluster-cidr",
                                                                  "config",
                                                                  "container-runtime",
                                                                  "container-runtime-endpoint",
                                                                  "cpu-cfs-quota",
                                                                  "enable-controller-attach-detach",
                                                                  "event-burst",
                                                                  "event-qps",
                                                                  "feature-gates",
                                                                  "file-check-frequency",
                                                                  "healthz-bind-address",
                                                                  "healthz-port",
                                                                  "host-network-sources",
                                                                  "hostname-override",
                                                                  "image-pull-progress-deadline",
                                                                  "image-service-endpoint",
                                                                  "kernel-memcg-notification",
                                                                  "experimental-kernel-memcg-notification",
                                                                  "kube-api-burst",
                                                                  "kube-api-qps",
                                                                  "kubeconfig",
                                                                  "network-plugin",
                                                                  "node-ip",
                                                                  "node-labels",
                                                                  "pod-infra-container-image",
                                                                  "read-only-port",
                                                                  "register-node",
                                                                  "root-dir",
                                                                  "runtime-request-timeout",
                                                                  "serialize-image-pulls",
                                                                  "v"};

constexpr std::string_view kFlagsThatAct[] = {"eviction-hard",
                                              "eviction-soft",
                                              "eviction-soft-grace-period",
                                              "eviction-minimum-reclaim",
                                              "kube-reserved",
                                              "system-reserved",
                                              "eviction-max-pod-grace-period",
                                              "eviction-pressure-transition-period",
                                              "max-pods",
                                              "pod-max-pids",
                                              "pods-per-core",
                                              "image-gc-high-threshold",
                                              "image-gc-low-threshold",
                                              "minimum-image-ttl-duration",
                                              "image-maximum-gc-age",
                                              "minimum-container-ttl-duration",
                                              "maximum-dead-containers-per-container",
                                              "maximum-dead-containers",
                                              "node-status-update-frequency",
                                              "container-log-max-files",
                                              "container-log-max-size",
                                              "pod-manifest-path",
                                              "cluster-domain",
                                              "cpu-manager-policy",
                                              "cpu-manager-policy-options",
                                              "reserved-cpus",
                                              "memory-manager-policy",
                                              "reserved-memory",
                                              "topology-manager-policy",
                                              "topology-manager-scope",
                                              "topology-manager-policy-options",
                                              "cluster-dns",
                                              "allowed-unsafe-sysctls",
                                              "enforce-node-allocatable",
                                              "fail-swap-on",
                                              "experimental-allocatable-ignore-eviction",
                                              "local-storage-capacity-isolation",
                                              "experimental-fail-swap-on"};

std::vector<std::string> split_commas(const std::vector<std::string>& values) {
  std::vector<std::string> parts;
  for (const std::string_view value : values)
    for (const std::string_view part : words(value, ',')) parts.emplace_back(part);
  return parts;
}

std::optional<std::string> read_statements(std::string_view name, const std::vector<std::string>& values, char sign, StatementMap& out) {
  StatementMap map;
  for (const std::string& part : split_commas(values)) {
    const auto statement = split_statement(part, sign);
    if (!statement) return fmt::format("invalid argument \"{}\" for \"--{}\" flag: {}", part, name, statement.error());
    if (!map.emplace(statement->first, statement->second).second)
      return fmt::format("invalid argument \"{}\" for \"--{}\" flag: \"{}\" is set twice", part, name, statement->first);
  }
  out = std::move(map);
  return std::nullopt;
}

std::optional<std::string> read_statements(std::string_view name, const std::vector<std::string>& values, char sign,
                                           std::optional<StatementMap>& out) {
  StatementMap map;
  if (auto error = read_statements(name, values, sign, map)) return error;
  out = std::move(map);
  return std::nullopt;
}

/// "0:memory=1Gi,hugepages-2Mi=64Mi;1:memory=2Gi".
std::optional<std::string> read_reserved_memory(const std::vector<std::string>& values, std::map<int, StatementMap>& out) {
  out.clear();
  for (const std::string& value : values)
    for (const auto part : std::views::split(value, ';')) {
      const std::string text(part.begin(), part.end());
      const std::size_t colon = text.find(':');
      int number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + std::min(colon, text.size()), number);
      if (colon == std::string::npos || error != std::errc() || end != text.data() + colon || number < 0)
        return fmt::format(R"(invalid argument "{}" for "--reserved-memory" flag: a NUMA node with amounts such as 0:memory=1Gi is wanted)",
                           text);
      StatementMap limits;
      if (auto wrong = read_statements("reserved-memory", {text.substr(colon + 1)}, '=', limits)) return wrong;
      if (!out.emplace(number, std::move(limits)).second)
        return fmt::format(R"(invalid argument "{}" for "--reserved-memory" flag: NUMA node {} is named twice)", text, number);
    }
  return std::nullopt;
}

template <typename Number>
std::optional<std::string> read_number(std::string_view name, const std::vector<std::string>& values, Number& out) {
  const std::string text = values.empty() ? "" : values.back();
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return fmt::format("invalid argument \"{}\" for \"--{}\" flag: not a whole number", text, name);
  out = static_cast<Number>(number);
  return std::nullopt;
}

std::optional<std::string> read_duration(std::string_view name, const std::vector<std::string>& values, std::int64_t& out) {
  const std::string text = values.empty() ? "" : values.back();
  const auto ns = parse_duration_ns(text);
  if (!ns) return fmt::format("invalid argument \"{}\" for \"--{}\" flag: {}", text, name, ns.error());
  out = *ns;
  return std::nullopt;
}

std::optional<std::string> read_flag(std::string_view name, const std::vector<std::string>& values, bool& out) {
  const std::string text = values.empty() ? "true" : values.back();
  if (text != "true" && text != "false") return fmt::format("invalid argument \"{}\" for \"--{}\" flag: must be true or false", text, name);
  out = text == "true";
  return std::nullopt;
}

}  // namespace

const std::vector<std::string_view>& kubelet_flags() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names(std::begin(kFlagsThatAct), std::end(kFlagsThatAct));
    names.insert(names.end(), kFlagsWithoutEffect.begin(), kFlagsWithoutEffect.end());
    return names;
  }();
  return kNames;
}

std::optional<std::string> apply_kubelet_argument(KubeletSettings& s, const std::string& name, const std::vector<std::string>& values) {
  if (name == "eviction-hard") return read_statements(name, values, '<', s.eviction_hard);
  if (name == "eviction-soft") return read_statements(name, values, '<', s.eviction_soft);
  if (name == "eviction-soft-grace-period") return read_statements(name, values, '=', s.eviction_soft_grace_period);
  if (name == "eviction-minimum-reclaim") return read_statements(name, values, '=', s.eviction_minimum_reclaim);
  if (name == "kube-reserved") return read_statements(name, values, '=', s.kube_reserved);
  if (name == "system-reserved") return read_statements(name, values, '=', s.system_reserved);
  if (name == "eviction-max-pod-grace-period") return read_number(name, values, s.eviction_max_pod_grace_period_seconds);
  if (name == "eviction-pressure-transition-period") return read_duration(name, values, s.eviction_pressure_transition_period_ns);
  if (name == "max-pods") return read_number(name, values, s.max_pods);
  if (name == "pod-max-pids") return read_number(name, values, s.pod_pids_limit);
  if (name == "pods-per-core") return read_number(name, values, s.pods_per_core);
  if (name == "image-gc-high-threshold") return read_number(name, values, s.image_gc_high_threshold_percent);
  if (name == "image-gc-low-threshold") return read_number(name, values, s.image_gc_low_threshold_percent);
  if (name == "minimum-image-ttl-duration") return read_duration(name, values, s.image_minimum_gc_age_ns);
  if (name == "image-maximum-gc-age") return read_duration(name, values, s.image_maximum_gc_age_ns);
  if (name == "minimum-container-ttl-duration") return read_duration(name, values, s.minimum_container_ttl_ns);
  if (name == "maximum-dead-containers-per-container") return read_number(name, values, s.maximum_dead_containers_per_container);
  if (name == "maximum-dead-containers") return read_number(name, values, s.maximum_dead_containers);
  if (name == "node-status-update-frequency") return read_duration(name, values, s.node_status_update_frequency_ns);
  if (name == "container-log-max-files") return read_number(name, values, s.container_log_max_files);
  const auto last = values.empty() ? std::string() : values.back();
  if (name == "container-log-max-size") return s.container_log_max_size = last, std::nullopt;
  if (name == "pod-manifest-path") return s.static_pod_path = last, std::nullopt;
  if (name == "cpu-manager-policy") return s.cpu_manager_policy = last, std::nullopt;
  if (name == "cpu-manager-policy-options") return read_statements(name, values, '=', s.cpu_manager_policy_options);
  if (name == "memory-manager-policy") return s.memory_manager_policy = last, std::nullopt;
  if (name == "reserved-memory") return read_reserved_memory(values, s.reserved_memory);
  if (name == "topology-manager-policy") return s.topology_manager_policy = last, std::nullopt;
  if (name == "topology-manager-scope") return s.topology_manager_scope = last, std::nullopt;
  if (name == "topology-manager-policy-options") return read_statements(name, values, '=', s.topology_manager_policy_options);
  if (name == "reserved-cpus") return s.reserved_system_cpus = last, std::nullopt;
  if (name == "cluster-domain") return s.cluster_domain = last, std::nullopt;
  if (name == "cluster-dns") return s.cluster_dns = split_commas(values), std::nullopt;
  if (name == "allowed-unsafe-sysctls") return s.allowed_unsafe_sysctls = split_commas(values), std::nullopt;
  if (name == "enforce-node-allocatable") {
    s.enforce_node_allocatable = split_commas(values);
    return std::nullopt;
  }
  if (name == "fail-swap-on" || name == "experimental-fail-swap-on") return read_flag(name, values, s.fail_swap_on);
  if (name == "experimental-allocatable-ignore-eviction") return read_flag(name, values, s.allocatable_ignores_eviction);
  if (name == "local-storage-capacity-isolation") return read_flag(name, values, s.local_storage_capacity_isolation);
  if (std::ranges::find(kFlagsWithoutEffect, name) == kFlagsWithoutEffect.end())
    return fmt::format("unknown flag: --{}{}", name, config::suggestion(name, kubelet_flags()));
  s.warnings.push_back(fmt::format("--{} has no effect here", name));
  return std::nullopt;
}

}  // namespace berth::node::eviction
