// What a kubelet refuses to start with (pkg/kubelet/apis/config/validation).
#include <set>

#include "node/eviction/kubelet_config.h"

namespace berth::node::eviction {
namespace {

constexpr std::string_view kEnforce = "enforceNodeAllocatable (--enforce-node-allocatable)";

void check_enforcements(const std::vector<std::string>& options, std::vector<std::string>& errors) {
  std::set<std::string> seen;
  for (const std::string& option : options) {
    if (!seen.insert(option).second) {
      errors.push_back(fmt::format("duplicated enforcements {} in {}", go_quote(option), kEnforce));
    } else if (option == "none") {
      if (options.size() > 1)
        errors.push_back(fmt::format("{} may not contain additional enforcements when \"none\" is specified", kEnforce));
    } else if (option == "system-reserved" || option == "system-reserved-compressible") {
      errors.push_back(
          fmt::format("systemReservedCgroup (--system-reserved-cgroup) must be specified when \"system-reserved\" or "
                      "\"system-reserved-compressible\" included in {}",
                      kEnforce));
    } else if (option == "kube-reserved" || option == "kube-reserved-compressible") {
      errors.push_back(
          fmt::format("kubeReservedCgroup (--kube-reserved-cgroup) must be specified when \"kube-reserved\" or "
                      "\"kube-reserved-compressible\" included in {}",
                      kEnforce));
    } else if (option != "pods") {
      errors.push_back(
          fmt::format("option {} specified for {}. Valid options are \"pods\", \"system-reserved\", \"system-reserved-compressible\", "
                      "\"kube-reserved\", "
                      "\"kube-reserved-compressible\" or \"none\"",
                      go_quote(option), kEnforce));
    }
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
  check_images(s, errors);
  if (s.max_pods < 0) errors.push_back(fmt::format("maxPods (--max-pods) {} must not be a negative number", s.max_pods));
  if (s.pods_per_core < 0) errors.push_back(fmt::format("podsPerCore (--pods-per-core) {} must not be a negative number", s.pods_per_core));
  if (!s.swap_behavior.empty() && s.swap_behavior != "NoSwap" && s.swap_behavior != "LimitedSwap")
    errors.push_back(
        fmt::format("memorySwap.swapBehavior {} must be one of: \"\", \"LimitedSwap\" or \"NoSwap\"", go_quote(s.swap_behavior)));
  check_enforcements(s.enforce_node_allocatable, errors);
  if (s.container_log_max_files <= 1) errors.emplace_back("containerLogMaxFiles must be greater than 1");
  // Not the kubelet's words: it finds these when it begins to work.
  if (const auto size = Quantity::parse(s.container_log_max_size); !size || size->sign() <= 0)
    errors.push_back(
        fmt::format("containerLogMaxSize (--container-log-max-size) {} must be a positive quantity", go_quote(s.container_log_max_size)));
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
