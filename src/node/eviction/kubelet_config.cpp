#include "node/eviction/kubelet_config.h"

#include <cmath>

namespace berth::node::eviction {
namespace {

std::string_view kind_of(const json::Value& value) {
  return value.is_string() ? "string" : value.is_bool() ? "bool" : value.is_number() ? "number" : value.is_array() ? "array" : "object";
}

/// Reads fields in document order with the error behaviour of Go's JSON decoder: a wrong type is remembered and reading goes on; a field
/// with a reader of its own (durations) that fails ends it at once.
class Decoder {
 public:
  std::string type_error, fatal_error;

  void wrong(const json::Value& value, std::string_view field, std::string_view type, bool with_text = false) {
    const std::string_view kind = kind_of(value);
    const std::string text = with_text ? fmt::format("{} {}", kind, json::serialize(value)) : std::string(kind);
    if (type_error.empty())
      type_error = fmt::format("json: cannot unmarshal {} into Go struct field KubeletConfiguration.{} of type {}", text, field, type);
  }
  void read(const json::Value& value, std::string_view field, std::optional<StatementMap>& out) {
    if (value.is_null()) return;
    if (!value.is_object()) return wrong(value, field, "map[string]string");
    out.emplace();
    for (const auto& [key, entry] : value.get_object()) {
      if (entry.is_string())
        (*out)[std::string(key)] = json::as_view(entry);
      else if (entry.is_null())
        (*out)[std::string(key)] = "";
      else
        wrong(entry, field, "string");
    }
  }
  void read(const json::Value& value, std::string_view field, StatementMap& out) {
    std::optional<StatementMap> map;
    read(value, field, map);
    if (map) out = std::move(*map);
  }
  void read(const json::Value& value, std::string_view field, std::vector<std::string>& out) {
    if (value.is_null()) return;
    if (!value.is_array()) return wrong(value, field, "[]string");
    out.clear();
    for (const json::Value& entry : value.get_array()) {
      if (entry.is_string())
        out.emplace_back(json::as_view(entry));
      else if (entry.is_null())
        out.emplace_back();
      else
        wrong(entry, field, "string");
    }
  }
  void read(const json::Value& value, std::string_view field, bool& out) {
    if (value.is_null()) return;
    if (!value.is_bool()) return wrong(value, field, "bool");
    out = value.get_bool();
  }
  void read(const json::Value& value, std::string_view field, std::string& out) {
    if (value.is_null()) return;
    if (!value.is_string()) return wrong(value, field, "string");
    out = json::as_view(value);
  }
  void read_swap(const json::Value& value, std::string& behavior) {
    if (value.is_null()) return;
    if (!value.is_object()) return wrong(value, "memorySwap", "v1beta1.MemorySwapConfiguration");
    if (const json::Value* found = json::find(value, "swapBehavior")) read(*found, "memorySwap.swapBehavior", behavior);
  }
  template <typename Number>
  void read_int32(const json::Value& value, std::string_view field, Number& out) {
    if (value.is_null()) return;
    const bool fits = value.is_int64() && value.get_int64() >= std::numeric_limits<std::int32_t>::min() &&
                      value.get_int64() <= std::numeric_limits<std::int32_t>::max();
    if (!fits) return wrong(value, field, "int32", value.is_number());
    out = static_cast<Number>(value.get_int64());
  }
  void read_int64(const json::Value& value, std::string_view field, std::int64_t& out) {
    if (value.is_null()) return;
    if (!value.is_int64()) return wrong(value, field, "int64", value.is_number());
    out = value.get_int64();
  }
  void read_duration(const json::Value& value, std::string_view field, std::int64_t& out) {
    if (!value.is_string() && !value.is_null()) {
      const std::string_view kind = kind_of(value);
      fatal_error = fmt::format("json: cannot unmarshal {} into Go struct field KubeletConfiguration.{} of type string", kind, field);
      return;
    }
    // A duration reads null itself, as an empty text, and refuses it.
    const auto ns = parse_duration_ns(value.is_null() ? std::string_view{} : json::as_view(value));
    if (ns)
      out = *ns;
    else
      fatal_error = ns.error();
  }
};

enum class FieldType { kDuration, kInt32, kInt64, kBool, kString, kStrings, kMap, kFlags, kOther };
/// Settings of a KubeletConfiguration that have no effect here: their types are checked, as the kubelet does, and whoever sets one is told.
constexpr std::pair<std::string_view, FieldType> kFieldsWithoutEffect[] = {
    {"enableServer", FieldType::kBool},
    {"podLogsDir", FieldType::kString},
    {"syncFrequency", FieldType::kDuration},
    {"fileCheckFrequency", FieldType::kDuration},
    {"httpCheckFrequency", FieldType::kDuration},
    {"staticPodURL", FieldType::kString},
    {"staticPodURLHeader", FieldType::kOther},
    {"address", FieldType::kString},
    {"port", FieldType::kInt32},
    {"readOnlyPort", FieldType::kInt32},
    {"tlsCertFile", FieldType::kString},
    {"tlsPrivateKeyFile", FieldType::kString},
    {"tlsCipherSuites", FieldType::kStrings},
    {"tlsCurvePreferences", FieldType::kOther},
    {"tlsMinVersion", FieldType::kString},
    {"rotateCertificates", FieldType::kBool},
    {"serverTLSBootstrap", FieldType::kBool},
    {"authentication", FieldType::kOther},
    {"authorization", FieldType::kOther},
    {"registryPullQPS", FieldType::kInt32},
    {"registryBurst", FieldType::kInt32},
    {"imagePullCredentialsVerificationPolicy", FieldType::kOther},
    {"preloadedImagesVerificationAllowlist", FieldType::kStrings},
    {"eventRecordQPS", FieldType::kInt32},
    {"eventBurst", FieldType::kInt32},
    {"enableDebuggingHandlers", FieldType::kBool},
    {"enableContentionProfiling", FieldType::kBool},
    {"healthzPort", FieldType::kInt32},
    {"healthzBindAddress", FieldType::kString},
    {"oomScoreAdj", FieldType::kInt32},
    {"streamingConnectionIdleTimeout", FieldType::kDuration},
    {"nodeStatusReportFrequency", FieldType::kDuration},
    {"volumeStatsAggPeriod", FieldType::kDuration},
    {"kubeletCgroups", FieldType::kString},
    {"systemCgroups", FieldType::kString},
    {"cgroupRoot", FieldType::kString},
    {"cgroupsPerQOS", FieldType::kBool},
    {"cgroupDriver", FieldType::kString},
    {"singleProcessOOMKill", FieldType::kBool},
    {"cpuManagerReconcilePeriod", FieldType::kDuration},
    {"qosReserved", FieldType::kMap},
    {"runtimeRequestTimeout", FieldType::kDuration},
    {"hairpinMode", FieldType::kString},
    {"podCIDR", FieldType::kString},
    {"resolvConf", FieldType::kString},
    {"runOnce", FieldType::kBool},
    {"cpuCFSQuota", FieldType::kBool},
    {"cpuCFSQuotaPeriod", FieldType::kDuration},
    {"nodeStatusMaxImages", FieldType::kInt32},
    {"maxOpenFiles", FieldType::kInt64},
    {"contentType", FieldType::kString},
    {"kubeAPIQPS", FieldType::kInt32},
    {"kubeAPIBurst", FieldType::kInt32},
    {"serializeImagePulls", FieldType::kBool},
    {"maxParallelImagePulls", FieldType::kInt32},
    {"enableControllerAttachDetach", FieldType::kBool},
    {"protectKernelDefaults", FieldType::kBool},
    {"makeIPTablesUtilChains", FieldType::kBool},
    {"iptablesMasqueradeBit", FieldType::kInt32},
    {"iptablesDropBit", FieldType::kInt32},
    {"featureGates", FieldType::kFlags},
    {"containerLogMaxWorkers", FieldType::kInt32},
    {"containerLogMonitorInterval", FieldType::kDuration},
    {"configMapAndSecretChangeDetectionStrategy", FieldType::kOther},
    {"showHiddenMetricsForVersion", FieldType::kString},
    {"systemReservedCgroup", FieldType::kString},
    {"kubeReservedCgroup", FieldType::kString},
    {"volumePluginDir", FieldType::kString},
    {"providerID", FieldType::kString},
    {"kernelMemcgNotification", FieldType::kBool},
    {"logging", FieldType::kOther},
    {"enableSystemLogHandler", FieldType::kBool},
    {"enableSystemLogQuery", FieldType::kBool},
    {"shutdownGracePeriod", FieldType::kDuration},
    {"shutdownGracePeriodCriticalPods", FieldType::kDuration},
    {"shutdownGracePeriodByPodPriority", FieldType::kOther},
    {"crashLoopBackOff", FieldType::kOther},
    {"enableProfilingHandler", FieldType::kBool},
    {"enableDebugFlagsHandler", FieldType::kBool},
    {"seccompDefault", FieldType::kBool},
    {"memoryThrottlingFactor", FieldType::kOther},
    {"memoryReservationPolicy", FieldType::kOther},
    {"registerWithTaints", FieldType::kOther},
    {"registerNode", FieldType::kBool},
    {"tracing", FieldType::kOther},
    {"containerRuntimeEndpoint", FieldType::kString},
    {"imageServiceEndpoint", FieldType::kString},
    {"failCgroupV1", FieldType::kBool},
    {"userNamespaces", FieldType::kOther},
};
constexpr std::string_view kActing[] = {"evictionHard",
                                        "evictionSoft",
                                        "evictionSoftGracePeriod",
                                        "evictionMinimumReclaim",
                                        "enforceNodeAllocatable",
                                        "mergeDefaultEvictionSettings",
                                        "evictionMaxPodGracePeriod",
                                        "evictionPressureTransitionPeriod",
                                        "kubeReserved",
                                        "systemReserved",
                                        "maxPods",
                                        "podsPerCore",
                                        "podPidsLimit",
                                        "failSwapOn",
                                        "imageGCHighThresholdPercent",
                                        "imageGCLowThresholdPercent",
                                        "imageMinimumGCAge",
                                        "imageMaximumGCAge",
                                        "memorySwap",
                                        "localStorageCapacityIsolation",
                                        "staticPodPath",
                                        "nodeStatusUpdateFrequency",
                                        "nodeStatusReportFrequency",
                                        "nodeLeaseDurationSeconds",
                                        "containerLogMaxFiles",
                                        "containerLogMaxSize",
                                        "clusterDNS",
                                        "allowedUnsafeSysctls",
                                        "clusterDomain",
                                        "cpuManagerPolicy",
                                        "cpuManagerPolicyOptions",
                                        "reservedSystemCPUs",
                                        "memoryManagerPolicy",
                                        "reservedMemory",
                                        "topologyManagerPolicy",
                                        "topologyManagerScope",
                                        "topologyManagerPolicyOptions",
                                        "crashLoopBackOff"};
/// Pointers to durations stay unset where null is given; plain durations refuse it.
constexpr std::string_view kDurationPointers[] = {"cpuCFSQuotaPeriod", "containerLogMonitorInterval"};

void read_field_without_effect(Decoder& decoder, KubeletSettings& s, std::string_view key, const json::Value& value) {
  const auto* field = std::ranges::find(kFieldsWithoutEffect, key, &std::pair<std::string_view, FieldType>::first);
  if (field == std::end(kFieldsWithoutEffect)) {
    if (key != "apiVersion" && key != "kind") s.warnings.push_back(fmt::format("the configuration's unknown field \"{}\" is ignored", key));
    return;
  }
  std::int64_t number = 0;
  bool flag = false;
  std::string text;
  std::vector<std::string> texts;
  StatementMap map;
  switch (field->second) {
    case FieldType::kDuration:
      if (!value.is_null() || std::ranges::find(kDurationPointers, key) == std::end(kDurationPointers))
        decoder.read_duration(value, key, number);
      break;
    case FieldType::kInt32:
      decoder.read_int32(value, key, number);
      break;
    case FieldType::kInt64:
      decoder.read_int64(value, key, number);
      break;
    case FieldType::kBool:
      decoder.read(value, key, flag);
      break;
    case FieldType::kString:
      decoder.read(value, key, text);
      break;
    case FieldType::kStrings:
      decoder.read(value, key, texts);
      break;
    case FieldType::kMap:
      decoder.read(value, key, map);
      break;
    case FieldType::kFlags:
      if (!value.is_null() && !value.is_object()) decoder.wrong(value, key, "map[string]bool");
      for (const auto& [name, entry] : value.is_object() ? value.get_object() : json::Object{}) decoder.read(entry, key, flag);
      break;
    case FieldType::kOther:
      break;
  }
  if (value.is_null()) return;
  s.other[key] = value;
  if (key == "crashLoopBackOff") {
    if (const auto most = parse_duration_ns(json::get_string(value, {"maxContainerRestartPeriod"}))) s.max_restart_backoff_ns = *most;
    return;
  }
  s.warnings.push_back(fmt::format("the configuration's field \"{}\" has no effect here", key));
}

void read_reserved_memory(Decoder& decoder, const json::Value& value, std::map<int, StatementMap>& out) {
  if (value.is_null()) return;
  if (!value.is_array()) return decoder.wrong(value, "reservedMemory", "[]v1beta1.MemoryReservation");
  for (const json::Value& one : value.get_array()) {
    if (!one.is_object()) return decoder.wrong(one, "reservedMemory", "v1beta1.MemoryReservation");
    std::int64_t number = 0;
    if (const json::Value* node = json::find(one, "numaNode")) decoder.read_int32(*node, "reservedMemory.numaNode", number);
    for (const auto& [type, amount] : json::get_object(one, {"limits"})) {
      if (!amount.is_string() && !amount.is_number()) return decoder.wrong(amount, "reservedMemory.limits", "resource.Quantity");
      out[static_cast<int>(number)][std::string(type)] = amount.is_string() ? std::string(json::as_view(amount)) : json::serialize(amount);
    }
  }
}

constexpr std::pair<std::string_view, std::string KubeletSettings::*> kTexts[] = {
    {"staticPodPath", &KubeletSettings::static_pod_path},
    {"containerLogMaxSize", &KubeletSettings::container_log_max_size},
    {"clusterDomain", &KubeletSettings::cluster_domain},
    {"cpuManagerPolicy", &KubeletSettings::cpu_manager_policy},
    {"reservedSystemCPUs", &KubeletSettings::reserved_system_cpus},
    {"memoryManagerPolicy", &KubeletSettings::memory_manager_policy},
    {"topologyManagerPolicy", &KubeletSettings::topology_manager_policy},
    {"topologyManagerScope", &KubeletSettings::topology_manager_scope},
};

void read_field(Decoder& decoder, KubeletSettings& s, std::string_view key, const json::Value& value) {
  if (const auto* text = std::ranges::find(kTexts, key, &std::pair<std::string_view, std::string KubeletSettings::*>::first);
      text != std::end(kTexts))
    decoder.read(value, key, s.*text->second);
  else if (key == "evictionHard")
    decoder.read(value, key, s.eviction_hard);
  else if (key == "evictionSoft")
    decoder.read(value, key, s.eviction_soft);
  else if (key == "evictionSoftGracePeriod")
    decoder.read(value, key, s.eviction_soft_grace_period);
  else if (key == "evictionMinimumReclaim")
    decoder.read(value, key, s.eviction_minimum_reclaim);
  else if (key == "enforceNodeAllocatable")
    decoder.read(value, key, s.enforce_node_allocatable);
  else if (key == "mergeDefaultEvictionSettings")
    decoder.read(value, key, s.merge_default_eviction_settings);
  else if (key == "evictionMaxPodGracePeriod")
    decoder.read_int32(value, key, s.eviction_max_pod_grace_period_seconds);
  else if (key == "evictionPressureTransitionPeriod")
    decoder.read_duration(value, key, s.eviction_pressure_transition_period_ns);
  else if (key == "kubeReserved")
    decoder.read(value, key, s.kube_reserved);
  else if (key == "systemReserved")
    decoder.read(value, key, s.system_reserved);
  else if (key == "maxPods")
    decoder.read_int32(value, key, s.max_pods);
  else if (key == "podsPerCore")
    decoder.read_int32(value, key, s.pods_per_core);
  else if (key == "podPidsLimit")
    decoder.read_int64(value, key, s.pod_pids_limit);
  else if (key == "failSwapOn")
    decoder.read(value, key, s.fail_swap_on);
  else if (key == "imageGCHighThresholdPercent")
    decoder.read_int32(value, key, s.image_gc_high_threshold_percent);
  else if (key == "imageGCLowThresholdPercent")
    decoder.read_int32(value, key, s.image_gc_low_threshold_percent);
  else if (key == "imageMinimumGCAge")
    decoder.read_duration(value, key, s.image_minimum_gc_age_ns);
  else if (key == "imageMaximumGCAge")
    decoder.read_duration(value, key, s.image_maximum_gc_age_ns);
  else if (key == "memorySwap")
    decoder.read_swap(value, s.swap_behavior);
  else if (key == "localStorageCapacityIsolation")
    decoder.read(value, key, s.local_storage_capacity_isolation);
  else if (key == "nodeStatusUpdateFrequency")
    decoder.read_duration(value, key, s.node_status_update_frequency_ns);
  else if (key == "nodeStatusReportFrequency")
    decoder.read_duration(value, key, s.node_status_report_frequency_ns);
  else if (key == "nodeLeaseDurationSeconds")
    decoder.read_int32(value, key, s.node_lease_duration_seconds);
  else if (key == "containerLogMaxFiles")
    decoder.read_int32(value, key, s.container_log_max_files);
  else if (key == "clusterDNS")
    decoder.read(value, key, s.cluster_dns);
  else if (key == "allowedUnsafeSysctls")
    decoder.read(value, key, s.allowed_unsafe_sysctls);
  else if (key == "cpuManagerPolicyOptions")
    decoder.read(value, key, s.cpu_manager_policy_options);
  else if (key == "topologyManagerPolicyOptions")
    decoder.read(value, key, s.topology_manager_policy_options);
  else if (key == "reservedMemory")
    read_reserved_memory(decoder, value, s.reserved_memory);
  else
    read_field_without_effect(decoder, s, key, value);
}

void apply_defaults(KubeletSettings& s) {
  if (!s.eviction_hard) {
    s.eviction_hard = default_eviction_hard();
  } else if (s.merge_default_eviction_settings) {
    for (const auto& [signal, value] : default_eviction_hard()) s.eviction_hard->emplace(signal, value);
  }
  if (s.eviction_pressure_transition_period_ns == 0) s.eviction_pressure_transition_period_ns = 300'000'000'000;
  if (s.max_pods == 0) s.max_pods = 110;
  if (s.cpu_manager_policy.empty()) s.cpu_manager_policy = "none";
  if (s.memory_manager_policy.empty()) s.memory_manager_policy = "None";
  if (s.topology_manager_policy.empty()) s.topology_manager_policy = "none";
  if (s.topology_manager_scope.empty()) s.topology_manager_scope = "container";
  if (s.image_minimum_gc_age_ns == 0) s.image_minimum_gc_age_ns = 120'000'000'000;
  // Who says how often it is looked at the status, and no more, has it reported as often (SetDefaults_KubeletConfiguration).
  if (s.node_status_report_frequency_ns == 0)
    s.node_status_report_frequency_ns = s.node_status_update_frequency_ns == 0 ? 300'000'000'000 : s.node_status_update_frequency_ns;
  if (s.node_status_update_frequency_ns == 0) s.node_status_update_frequency_ns = 10'000'000'000;
  if (s.node_lease_duration_seconds == 0) s.node_lease_duration_seconds = 40;
  if (s.container_log_max_files == 0) s.container_log_max_files = 5;
  if (s.container_log_max_size.empty()) s.container_log_max_size = "10Mi";
}

/// How the kubelet names the set of kinds that it can read.
constexpr std::string_view kScheme = "k8s.io/kubernetes/pkg/kubelet/apis/config/scheme/scheme.go:33";

/// YAML reaches the kubelet's decoder as JSON with its keys in byte order: that decides which of several mistakes is named.
/// A whole number written as a fraction ("1e3") becomes a whole one on that way.
json::Value sorted_by_key(const json::Value& value) {
  if (value.is_double() && std::abs(value.get_double()) < 0x1p53 && value.get_double() == std::trunc(value.get_double()))
    return static_cast<std::int64_t>(value.get_double());
  if (!value.is_object()) return value;
  std::map<std::string_view, const json::Value*> sorted;
  for (const auto& [key, entry] : value.get_object()) sorted.emplace(key, &entry);
  json::Object out;
  for (const auto& [key, entry] : sorted) out[key] = sorted_by_key(*entry);
  return out;
}

/// What follows a first document is ignored, as by the kubelet.
Result<json::Value> first_yaml_document(std::string_view text) {
  auto documents = json::parse_yaml_stream(text);
  if (!documents) return std::unexpected(documents.error());
  return documents->empty() ? json::Value(nullptr) : std::move(documents->front());
}

}  // namespace

EvictionSettings KubeletSettings::eviction() const {
  EvictionSettings out;
  out.hard = eviction_hard.value_or(StatementMap{});
  out.soft = eviction_soft.value_or(StatementMap{});
  out.soft_grace_period = eviction_soft_grace_period.value_or(StatementMap{});
  out.minimum_reclaim = eviction_minimum_reclaim.value_or(StatementMap{});
  out.enforce_node_allocatable = enforce_node_allocatable;
  return out;
}

const StatementMap& default_eviction_hard() {
  static const StatementMap map = {{"memory.available", "100Mi"},
                                   {"nodefs.available", "10%"},
                                   {"nodefs.inodesFree", "5%"},
                                   {"imagefs.available", "15%"},
                                   {"imagefs.inodesFree", "5%"}};
  return map;
}

KubeletFields kubelet_fields() {
  static const std::vector<std::string_view> kInert = [] {
    std::vector<std::string_view> names;
    for (const auto& [name, type] : kFieldsWithoutEffect)
      if (std::ranges::find(kActing, name) == std::end(kActing)) names.push_back(name);
    return names;
  }();
  return {kActing, kInert};
}

void apply_kubelet_defaults(KubeletSettings& settings) { apply_defaults(settings); }

TextResult<KubeletSettings> read_kubelet_configuration(const json::Value& document) {
  if (!document.is_object()) return std::unexpected("the configuration is not an object");
  Decoder decoder;
  KubeletSettings settings;
  settings.eviction_pressure_transition_period_ns = 0;
  settings.node_status_update_frequency_ns = settings.node_status_report_frequency_ns = 0;
  for (const auto& [key, value] : document.get_object()) {
    read_field(decoder, settings, key, value);
    if (!decoder.fatal_error.empty()) return std::unexpected(decoder.fatal_error);
  }
  if (!decoder.type_error.empty()) return std::unexpected(decoder.type_error);
  apply_defaults(settings);
  return settings;
}

TextResult<KubeletSettings> load_config_text(std::string_view text, std::string_view name) {
  const auto failed = [&](std::string_view why) {
    return std::unexpected(fmt::format("failed to load Kubelet config file {}, error failed to decode: {}", name, why));
  };
  if (text.empty())
    return std::unexpected(fmt::format("failed to load Kubelet config file {0}, error kubelet config file \"{0}\" was empty", name));
  // A JSON text may repeat a key, as may YAML to Kubernetes' lenient second reading: the last one counts.
  const bool is_json = text.find_first_not_of(" \t\r\n") != std::string_view::npos && text[text.find_first_not_of(" \t\r\n")] == '{';
  const Result<json::Value> document = is_json ? json::parse(text) : first_yaml_document(text);
  if (!document) return failed(document.error().message);
  const std::string_view kind = json::get_string(*document, {"kind"}), version = json::get_string(*document, {"apiVersion"});
  if (kind == "NodeConfig" || (kind.empty() && json::find(*document, "kubeletArguments"))) {
    auto settings = read_kubelet_file(text, std::string(name));
    if (!settings) return std::unexpected(settings.error().message);
    return std::move(*settings);
  }
  for (const char* key : {"apiVersion", "kind"})
    if (const json::Value* value = json::find(*document, key); value && !value->is_string() && !value->is_null())
      return failed(
          fmt::format("couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{} of type string",
                      kind_of(*value), key));
  if (kind.empty()) return failed(fmt::format("Object 'Kind' is missing in '{}'", text));
  if (version.empty()) return failed(fmt::format("Object 'apiVersion' is missing in '{}'", text));
  // Kinds that the kubelet knows, but not as its configuration.
  if ((kind == "SerializedNodeConfigSource" || kind == "CredentialProviderConfig") && version == "kubelet.config.k8s.io/v1beta1")
    return std::unexpected(fmt::format(
        "failed to load Kubelet config file {}, error failed to cast object to KubeletConfiguration, unexpected type: {}, Kind={}", name,
        version, kind));
  if (std::ranges::count(version, '/') > 1) return failed(fmt::format("unexpected GroupVersion string: {}", version));
  if (kind != "KubeletConfiguration" || version != "kubelet.config.k8s.io/v1beta1")
    return failed(fmt::format("no kind \"{}\" is registered for version \"{}\" in scheme \"{}\"", kind, version, kScheme));
  auto settings = read_kubelet_configuration(is_json ? *document : sorted_by_key(*document));
  if (!settings) return failed(settings.error());
  return settings;
}

}  // namespace berth::node::eviction
