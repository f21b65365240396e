#include "base/clock.h"
#include "node/eviction/kubelet_config.h"

namespace berth::node::eviction {
namespace {

json::Value go_duration(std::int64_t ns) { return json::Value(format_go_duration(Duration(ns / 1000))); }

json::Object object_of(const StatementMap& map) {
  json::Object out;
  for (const auto& [name, value] : map) out[name] = value;
  return out;
}

json::Array array_of(const std::vector<std::string>& texts) { return json::Array(texts.begin(), texts.end()); }

}  // namespace

json::Object kubelet_configuration(const KubeletSettings& s) {
  json::Object out{
      {"kind", "KubeletConfiguration"},
      {"apiVersion", "kubelet.config.k8s.io/v1beta1"},
      {"authentication",
       json::Object{{"anonymous", json::Object{{"enabled", false}}}, {"webhook", json::Object{{"enabled", true}, {"cacheTTL", "2m0s"}}}}},
      {"authorization",
       json::Object{{"mode", "Webhook"}, {"webhook", json::Object{{"cacheAuthorizedTTL", "5m0s"}, {"cacheUnauthorizedTTL", "30s"}}}}},
      {"cgroupsPerQOS", true},
      {"cgroupDriver", "cgroupfs"},
      {"cpuManagerPolicy", s.cpu_manager_policy},
      {"memoryManagerPolicy", s.memory_manager_policy},
      {"topologyManagerPolicy", s.topology_manager_policy},
      {"topologyManagerScope", s.topology_manager_scope}};
  if (!s.topology_manager_policy_options.empty()) out["topologyManagerPolicyOptions"] = object_of(s.topology_manager_policy_options);
  json::Array reserved;
  for (const auto& [number, limits] : s.reserved_memory)
    reserved.push_back(json::Object{{"numaNode", static_cast<std::int64_t>(number)}, {"limits", object_of(limits)}});
  if (!reserved.empty()) out["reservedMemory"] = std::move(reserved);
  if (!s.cpu_manager_policy_options.empty()) out["cpuManagerPolicyOptions"] = object_of(s.cpu_manager_policy_options);
  if (!s.reserved_system_cpus.empty()) out["reservedSystemCPUs"] = s.reserved_system_cpus;
  if (!s.static_pod_path.empty()) out["staticPodPath"] = s.static_pod_path;
  out["nodeStatusUpdateFrequency"] = go_duration(s.node_status_update_frequency_ns);
  out["nodeStatusReportFrequency"] = go_duration(s.node_status_report_frequency_ns);
  out["nodeLeaseDurationSeconds"] = s.node_lease_duration_seconds;
  out["imageMinimumGCAge"] = go_duration(s.image_minimum_gc_age_ns);
  out["imageMaximumGCAge"] = go_duration(s.image_maximum_gc_age_ns);
  out["imageGCHighThresholdPercent"] = s.image_gc_high_threshold_percent;
  out["imageGCLowThresholdPercent"] = s.image_gc_low_threshold_percent;
  out["maxPods"] = s.max_pods;
  out["podsPerCore"] = s.pods_per_core;
  out["podPidsLimit"] = s.pod_pids_limit;
  for (const auto& [name, map] : {std::pair("evictionHard", &s.eviction_hard),
                                  {"evictionSoft", &s.eviction_soft},
                                  {"evictionSoftGracePeriod", &s.eviction_soft_grace_period},
                                  {"evictionMinimumReclaim", &s.eviction_minimum_reclaim}})
    if (*map) out[name] = object_of(**map);
  out["evictionPressureTransitionPeriod"] = go_duration(s.eviction_pressure_transition_period_ns);
  if (s.eviction_max_pod_grace_period_seconds != 0) out["evictionMaxPodGracePeriod"] = s.eviction_max_pod_grace_period_seconds;
  out["mergeDefaultEvictionSettings"] = s.merge_default_eviction_settings;
  out["enforceNodeAllocatable"] = array_of(s.enforce_node_allocatable);
  if (!s.kube_reserved.empty()) out["kubeReserved"] = object_of(s.kube_reserved);
  if (!s.system_reserved.empty()) out["systemReserved"] = object_of(s.system_reserved);
  out["failSwapOn"] = s.fail_swap_on;
  out["memorySwap"] = s.swap_behavior.empty() ? json::Object{} : json::Object{{"swapBehavior", s.swap_behavior}};
  out["containerLogMaxSize"] = s.container_log_max_size;
  out["containerLogMaxFiles"] = s.container_log_max_files;
  if (!s.allowed_unsafe_sysctls.empty()) out["allowedUnsafeSysctls"] = array_of(s.allowed_unsafe_sysctls);
  if (!s.cluster_dns.empty()) out["clusterDNS"] = array_of(s.cluster_dns);
  if (!s.cluster_domain.empty()) out["clusterDomain"] = s.cluster_domain;
  out["localStorageCapacityIsolation"] = s.local_storage_capacity_isolation;
  out["crashLoopBackOff"] = json::Object{{"maxContainerRestartPeriod", go_duration(s.max_restart_backoff_ns)}};
  return out;
}

}  // namespace berth::node::eviction
