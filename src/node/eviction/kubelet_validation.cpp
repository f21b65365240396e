// What a kubelet refuses to start with (pkg/kubelet/apis/config/validation).
#include <set>

#include "node/eviction/kubelet_config.h"

namespace berth::node::eviction {
namespace {

constexpr std::string_view kEnforce = "enforceNodeAllocatable (--enforce-node-allocatable)";

/// The fields that berth only looks at, with what the kubelet gives them when they are not there.
class Others {
 public:
  Others(const json::Object& fields, std::vector<std::string>& errors) : fields_(fields), errors_(errors) {}

  [[nodiscard]] std::int64_t number(std::string_view key, std::int64_t fallback = 0) const {
    const json::Value* value = fields_.if_contains(key);
    return value && value->is_int64() && value->get_int64() != 0 ? value->get_int64() : fallback;
  }
  [[nodiscard]] std::int64_t duration(std::string_view key, std::int64_t fallback = 0) const {
    const json::Value* value = fields_.if_contains(key);
    const auto ns = value && value->is_string() ? parse_duration_ns(json::as_view(*value)) : TextResult<std::int64_t>(0);
    return ns && *ns != 0 ? *ns : fallback;
  }
  [[nodiscard]] std::string text(std::string_view key, std::string_view fallback = {}) const {
    const json::Value* value = fields_.if_contains(key);
    return std::string(value && value->is_string() && !value->get_string().empty() ? json::as_view(*value) : fallback);
  }
  [[nodiscard]] bool flag(std::string_view key, bool fallback) const {
    const json::Value* value = fields_.if_contains(key);
    return value && value->is_bool() ? value->get_bool() : fallback;
  }
  [[nodiscard]] const json::Value* find(std::string_view key) const { return fields_.if_contains(key); }

  void not_negative(std::string_view key, std::string_view flag) {
    if (const std::int64_t value = number(key); value < 0) add(fmt::format("{} ({}) {} must not be a negative number", key, flag, value));
  }
  void between(std::string_view key, std::string_view flag, std::int64_t least, std::int64_t most, std::int64_t fallback) {
    if (const std::int64_t value = number(key, fallback); value < least || value > most)
      add(fmt::format("{} ({}) {} must be between {} and {}, inclusive", key, flag, value, least, most));
  }
  void add(std::string error) { errors_.push_back(std::move(error)); }

 private:
  const json::Object& fields_;
  std::vector<std::string>& errors_;
};

/// Everything between nodeLeaseDurationSeconds and the images.
void check_rates(Others& others) {
  if (!others.text("systemCgroups").empty() && others.text("cgroupRoot").empty())
    others.add("systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified");
  others.not_negative("eventBurst", "--event-burst");
  others.not_negative("eventRecordQPS", "--event-qps");
  if (others.find("healthzPort") && others.number("healthzPort") != 0) others.between("healthzPort", "--healthz-port", 1, 65535, 10248);
  const std::int64_t period = others.duration("cpuCFSQuotaPeriod", 100'000'000);
  if (period < 1'000'000 || period > 1'000'000'000)
    others.add(fmt::format("cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {{{}}} must be between 1ms and 1sec, inclusive",
                           format_duration_ns(period)));
}

/// Everything between the images and enforceNodeAllocatable that berth does not act on.
void check_limits(const KubeletSettings& s, Others& others) {
  others.between("iptablesDropBit", "--iptables-drop-bit", 0, 31, 15);
  others.between("iptablesMasqueradeBit", "--iptables-masquerade-bit", 0, 31, 14);
  others.not_negative("kubeAPIBurst", "--kube-api-burst");
  others.not_negative("kubeAPIQPS", "--kube-api-qps");
  if (const std::int64_t images = others.number("nodeStatusMaxImages"); images < -1)
    others.add(fmt::format("nodeStatusMaxImages (--node-status-max-images) {} must be -1 or greater", images));
  others.not_negative("maxOpenFiles", "--max-open-files");
  if (s.max_pods < 0) others.add(fmt::format("maxPods (--max-pods) {} must not be a negative number", s.max_pods));
  others.between("oomScoreAdj", "--oom-score-adj", -1000, 1000, -999);
  if (s.pods_per_core < 0) others.add(fmt::format("podsPerCore (--pods-per-core) {} must not be a negative number", s.pods_per_core));
  others.between("port", "--port", 1, 65535, 10250);
  if (const std::int64_t port = others.number("readOnlyPort"); port < 0 || port > 65535)
    others.add(fmt::format("readOnlyPort (--read-only-port) {} must be between 0 and 65535, inclusive", port));
  others.not_negative("registryBurst", "--registry-burst");
  others.not_negative("registryPullQPS", "--registry-qps");
  if (const json::Value* pulls = others.find("maxParallelImagePulls"); pulls && pulls->is_int64()) {
    const std::int64_t most = pulls->get_int64();
    if (most < 1) others.add(fmt::format("maxParallelImagePulls {} must be a positive number", most));
    // More than one at a time goes with serializeImagePulls false, which is what it then is unless said.
    if (most > 1 && others.flag("serializeImagePulls", false))
      others.add("maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false");
  }
  if (others.flag("runOnce", false)) others.add("runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set");
  const auto one_of = [](const std::string& text, std::initializer_list<std::string_view> allowed) {
    return std::ranges::find(allowed, std::string_view(text)) != allowed.end();
  };
  if (const std::string& policy = s.topology_manager_policy; !one_of(policy, {"none", "best-effort", "restricted", "single-numa-node"}))
    others.add(
        fmt::format("topologyManagerPolicy (--topology-manager-policy) {} must be one of: [\"none\" \"best-effort\" \"restricted\" "
                    "\"single-numa-node\"]",
                    go::quote(policy)));
  if (const std::string& scope = s.topology_manager_scope; !one_of(scope, {"container", "pod"}))
    others.add(
        fmt::format("topologyManagerScope (--topology-manager-scope) {} must be one of: \"container\", or \"pod\"", go::quote(scope)));
  const std::int64_t grace = others.duration("shutdownGracePeriod"), critical = others.duration("shutdownGracePeriodCriticalPods");
  if (critical > grace)
    others.add(fmt::format("shutdownGracePeriodCriticalPods {{{}}} must be <= shutdownGracePeriod {{{}}}", format_duration_ns(critical),
                           format_duration_ns(grace)));
  for (const auto& [name, value] : {std::pair("shutdownGracePeriod", grace), std::pair("shutdownGracePeriodCriticalPods", critical)})
    if (value < 0 || (value > 0 && value < 1'000'000'000))
      others.add(fmt::format("{} {{{}}} must be either zero or otherwise >= 1 sec", name, format_duration_ns(value)));
  const json::Value* by_priority = others.find("shutdownGracePeriodByPodPriority");
  if (by_priority && by_priority->is_array() && !by_priority->get_array().empty() && (grace > 0 || critical > 0))
    others.add("Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time");
}

/// What stands behind enforceNodeAllocatable.
void check_rest(Others& others) {
  if (const std::string mode = others.text("hairpinMode", "promiscuous-bridge");
      mode != "none" && mode != "hairpin-veth" && mode != "promiscuous-bridge")
    others.add(
        fmt::format("option {} specified for hairpinMode (--hairpin-mode). Valid options are \"none\", \"hairpin-veth\" or "
                    "\"promiscuous-bridge\"",
                    go::quote(mode)));
  if (const json::Value* factor = others.find("memoryThrottlingFactor"); factor && factor->is_number()) {
    const double value = factor->is_double() ? factor->get_double() : static_cast<double>(factor->get_int64());
    if (value <= 0 || value > 1)
      others.add(fmt::format("memoryThrottlingFactor {} must be greater than 0 and less than or equal to 1.0", value));
  }
  if (others.flag("enableSystemLogQuery", false) && !others.flag("enableSystemLogHandler", true))
    others.add("enableSystemLogHandler is required for enableSystemLogQuery");
  if (others.number("containerLogMaxWorkers", 1) < 1) others.add("containerLogMaxWorkers must be greater than or equal to 1");
  if (others.duration("containerLogMonitorInterval", 10'000'000'000) < 3'000'000'000)
    others.add("containerLogMonitorInterval must be a positive time duration greater than or equal to 3s");
}

void check_pod_logs(Others& others) {
  const std::string logs = others.text("podLogsDir", "/var/log/pods");
  if (!logs.starts_with('/')) return;  // Relative ones are read from the configuration's own directory, and are clean then.
  if (logs.find("//") != std::string::npos || (logs.size() > 1 && logs.ends_with('/')) || (logs + "/").find("/./") != std::string::npos ||
      (logs + "/").find("/../") != std::string::npos)
    others.add(fmt::format("pod logs path {} must be normalized", go::quote(logs)));
}

void check_enforcements(const std::vector<std::string>& options, const Others& others, std::vector<std::string>& errors) {
  std::set<std::string> seen(options.begin(), options.end());
  for (const std::string_view who : {"system-reserved", "kube-reserved"})
    if (seen.contains(std::string(who)) && seen.contains(fmt::format("{}-compressible", who)))
      errors.push_back(fmt::format("both \"{0}\" and \"{0}-compressible\" cannot be specified together in {1}", who, kEnforce));
  seen.clear();
  for (const std::string& option : options) {
    if (!seen.insert(option).second) {
      errors.push_back(fmt::format("duplicated enforcements {} in {}", go::quote(option), kEnforce));
      continue;
    }
    if (option == "none") {
      if (options.size() > 1)
        errors.push_back(fmt::format("{} may not contain additional enforcements when \"none\" is specified", kEnforce));
      continue;
    }
    if (option == "system-reserved" || option == "system-reserved-compressible") {
      if (others.text("systemReservedCgroup").empty())
        errors.push_back(
            fmt::format("systemReservedCgroup (--system-reserved-cgroup) must be specified when \"system-reserved\" or "
                        "\"system-reserved-compressible\" included in {}",
                        kEnforce));
    } else if (option == "kube-reserved" || option == "kube-reserved-compressible") {
      if (others.text("kubeReservedCgroup").empty())
        errors.push_back(
            fmt::format("kubeReservedCgroup (--kube-reserved-cgroup) must be specified when \"kube-reserved\" or "
                        "\"kube-reserved-compressible\" included in {}",
                        kEnforce));
    } else if (option != "pods") {
      errors.push_back(
          fmt::format("option {} specified for {}. Valid options are \"pods\", \"system-reserved\", \"system-reserved-compressible\", "
                      "\"kube-reserved\", "
                      "\"kube-reserved-compressible\" or \"none\"",
                      go::quote(option), kEnforce));
      continue;
    }
    if (!others.flag("cgroupsPerQOS", true))
      errors.push_back(
          fmt::format("cgroupsPerQOS (--cgroups-per-qos) must be set to true when {} contained in {}", go::quote(option), kEnforce));
  }
}

void check_images(const KubeletSettings& s, std::vector<std::string>& errors) {
  const int high = s.image_gc_high_threshold_percent, low = s.image_gc_low_threshold_percent;
  if (high < 0 || high > 100)
    errors.push_back(fmt::format("imageGCHighThresholdPercent (--image-gc-high-threshold) {} must be between 0 and 100, inclusive", high));
  if (low < 0 || low > 100)
    errors.push_back(fmt::format("imageGCLowThresholdPercent (--image-gc-low-threshold) {} must be between 0 and 100, inclusive", low));
  if (low >= high)
    errors.push_back(
        fmt::format("imageGCLowThresholdPercent (--image-gc-low-threshold) {} must be less than imageGCHighThresholdPercent "
                    "(--image-gc-high-threshold) {}",
                    low, high));
  const std::string least = format_duration_ns(s.image_minimum_gc_age_ns), most = format_duration_ns(s.image_maximum_gc_age_ns);
  if (s.image_minimum_gc_age_ns < 0) errors.push_back(fmt::format("imageMinimumGCAge {} must not be negative", least));
  if (s.image_maximum_gc_age_ns < 0) errors.push_back(fmt::format("imageMaximumGCAge {} must not be negative", most));
  if (s.image_maximum_gc_age_ns > 0 && s.image_maximum_gc_age_ns <= s.image_minimum_gc_age_ns)
    errors.push_back(fmt::format("imageMaximumGCAge {} must be greater than imageMinimumGCAge {}", most, least));
}

}  // namespace

std::optional<std::string> validate(const KubeletSettings& s) {
  std::vector<std::string> errors;
  if (s.node_lease_duration_seconds <= 0) errors.emplace_back("nodeLeaseDurationSeconds must be greater than 0");
  Others others(s.other, errors);
  check_rates(others);
  check_images(s, errors);
  check_limits(s, others);
  if (!s.swap_behavior.empty() && s.swap_behavior != "NoSwap" && s.swap_behavior != "LimitedSwap")
    errors.push_back(
        fmt::format("memorySwap.swapBehavior {} must be one of: \"\", \"LimitedSwap\" or \"NoSwap\"", go::quote(s.swap_behavior)));
  if (s.max_restart_backoff_ns < 1'000'000'000 || s.max_restart_backoff_ns > 300'000'000'000)
    errors.push_back(fmt::format("CrashLoopBackOff.MaxContainerRestartPeriod (got: {} seconds) must be set between 1s and 300s",
                                 static_cast<double>(s.max_restart_backoff_ns) / 1e9));
  check_enforcements(s.enforce_node_allocatable, others, errors);
  check_rest(others);
  if (s.container_log_max_files <= 1) errors.emplace_back("containerLogMaxFiles must be greater than 1");
  check_pod_logs(others);
  // Not the kubelet's words: it finds these when it begins to work.
  if (const auto size = Quantity::parse(s.container_log_max_size); !size || size->sign() <= 0)
    errors.push_back(
        fmt::format("containerLogMaxSize (--container-log-max-size) {} must be a positive quantity", go::quote(s.container_log_max_size)));
  if (s.node_status_update_frequency_ns <= 0) errors.emplace_back("nodeStatusUpdateFrequency must be greater than 0");
  if (s.eviction_pressure_transition_period_ns < 0) errors.emplace_back("evictionPressureTransitionPeriod must not be negative");
  if (s.minimum_container_ttl_ns < 0) errors.emplace_back("--minimum-container-ttl-duration must not be negative");
  for (std::string& error : errors) error.insert(0, "invalid configuration: ");
  if (errors.size() == 1) return "failed to validate kubelet configuration, error: " + errors[0];
  if (!errors.empty()) return fmt::format("failed to validate kubelet configuration, error: [{}]", fmt::join(errors, ", "));
  if (const auto wrong = all_parse_errors(s.eviction()); !wrong.empty()) return "failed to parse eviction configuration: " + wrong.front();
  return std::nullopt;
}

}  // namespace berth::node::eviction
