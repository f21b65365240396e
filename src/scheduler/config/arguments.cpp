#include "scheduler/config/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/clock.h"
#include "scheduler/config/reader.h"

namespace berth::scheduler::config {
namespace {

constexpr std::string_view kFlags[] = {"config",
                                       "policy-config-file",
                                       "algorithm-provider",
                                       "scheduler-name",
                                       "disablePreemption",
                                       "disable-preemption",
                                       "hard-pod-affinity-symmetric-weight",
                                       "leader-elect",
                                       "leader-elect-lease-duration",
                                       "leader-elect-renew-deadline",
                                       "leader-elect-retry-period",
                                       "leader-elect-resource-name",
                                       "leader-elect-resource-namespace",
                                       "lock-object-name",
                                       "lock-object-namespace"};
/// Flags of kube-scheduler up to 1.36 that have nothing to act on here.
constexpr std::string_view kWithoutEffect[] = {"address",
                                               "alsologtostderr",
                                               "authentication-kubeconfig",
                                               "authorization-kubeconfig",
                                               "bind-address",
                                               "cert-dir",
                                               "client-ca-file",
                                               "contention-profiling",
                                               "failure-domains",
                                               "feature-gates",
                                               "kube-api-burst",
                                               "kube-api-content-type",
                                               "kube-api-qps",
                                               "kubeconfig",
                                               "leader-elect-resource-lock",
                                               "log-dir",
                                               "logging-format",
                                               "logtostderr",
                                               "master",
                                               "policy-configmap",
                                               "policy-configmap-namespace",
                                               "pod-max-in-unschedulable-pods-duration",
                                               "port",
                                               "profiling",
                                               "secure-port",
                                               "show-hidden-metrics-for-version",
                                               "tls-cert-file",
                                               "tls-cipher-suites",
                                               "tls-min-version",
                                               "tls-private-key-file",
                                               "use-legacy-policy-config",
                                               "v",
                                               "vmodule",
                                               "write-config-to"};

class ArgumentReader {
 public:
  explicit ArgumentReader(SchedulerConfig& config) : config_(config) {}
  std::vector<std::string> problems;

  void read(const std::string& name, const berth::config::Argument& argument) {
    argument_ = &argument;
    value_ = argument.values.empty() ? "true" : argument.values.back();
    if (argument.values.size() > 1) problem(fmt::format("takes one value, not {}", argument.values.size()));
    if (name == "config" || name == "policy-config-file") return;  // Read before all others.
    if (name == "disablePreemption" || name == "disable-preemption") return preemption();
    if (name == "scheduler-name") return scheduler_name();
    if (name == "algorithm-provider") return provider();
    if (name == "hard-pod-affinity-symmetric-weight") return symmetric_weight();
    if (name.starts_with("leader-elect") || name.starts_with("lock-object-")) {
      if (election(name)) return;
    }
    if (std::ranges::find(kWithoutEffect, std::string_view(name)) != std::end(kWithoutEffect)) {
      config_.notes.push_back(fmt::format("{}: has no effect here", argument.place));
      return;
    }
    std::vector<std::string_view> known(std::begin(kFlags), std::end(kFlags));
    known.insert(known.end(), std::begin(kWithoutEffect), std::end(kWithoutEffect));
    problem(fmt::format("unknown flag of the scheduler: \"{}\"{}", name, suggestion(name, known)));
  }

 private:
  void problem(std::string_view message) { problems.push_back(fmt::format("{}: {}", argument_->place, message)); }

  std::optional<bool> boolean() {
    if (value_ == "true" || value_ == "false") return value_ == "true";
    problem(fmt::format("\"{}\" is neither true nor false", value_));
    return std::nullopt;
  }

  void preemption() {
    const auto disabled = boolean();
    if (disabled.value_or(false))
      for (auto& profile : config_.profiles) disable_preemption(profile);
  }

  void scheduler_name() {
    if (config_.profiles.size() != 1) return problem("the configuration has several profiles, which name themselves");
    if (value_.empty()) return problem("must not be empty");
    config_.profiles.front().scheduler_name = value_;
  }

  void provider() {
    constexpr std::string_view kProviders[] = {"DefaultProvider", "ClusterAutoscalerProvider"};
    if (value_ == "DefaultProvider") return;
    if (value_ != "ClusterAutoscalerProvider")
      return problem(fmt::format("\"{}\" is not one of {}{}", value_, fmt::join(kProviders, ", "), suggestion(value_, kProviders)));
    if (config_.is_policy || !config_.source.is_null()) return problem("a configuration file names the plugins already");
    const std::string name = config_.profiles.front().scheduler_name;
    config_.profiles.front() = placement::cluster_autoscaler_profile();
    config_.profiles.front().scheduler_name = name;
    config_.era = placement::Era::k120;
  }

  void symmetric_weight() {
    std::int64_t weight = -1;
    const auto [end, wrong] = std::from_chars(value_.data(), value_.data() + value_.size(), weight);
    if (wrong != std::errc() || end != value_.data() + value_.size() || weight < 0 || weight > 100)
      return problem(fmt::format("\"{}\" is not a number from 0 to 100", value_));
    for (auto& profile : config_.profiles) profile.args.inter_pod_affinity.hard_pod_affinity_weight = weight;
  }

  /// False for a name that is none of these.
  bool election(const std::string& name) {
    auto& out = config_.leader_election;
    if (name == "leader-elect") {
      if (const auto wanted = boolean()) out.leader_elect = *wanted;
      return true;
    }
    using client::ElectionTimes;
    for (const auto& [flag, which] : {std::pair("leader-elect-lease-duration", &ElectionTimes::lease_duration),
                                      std::pair("leader-elect-renew-deadline", &ElectionTimes::renew_deadline),
                                      std::pair("leader-elect-retry-period", &ElectionTimes::retry_period)}) {
      if (name != flag) continue;
      const auto duration = parse_go_duration(value_);
      if (!duration || *duration <= Duration::zero())
        problem(fmt::format("\"{}\" is not a duration such as 15s", value_));
      else
        out.times.set(which, *duration);
      return true;
    }
    if (name == "leader-elect-resource-name" || name == "lock-object-name") return out.resource_name = value_, true;
    if (name == "leader-elect-resource-namespace" || name == "lock-object-namespace") return out.resource_namespace = value_, true;
    return false;
  }

  SchedulerConfig& config_;
  const berth::config::Argument* argument_ = nullptr;
  std::string value_;
};

}  // namespace

std::string file_of(const Arguments& arguments, const std::string& base_dir) {
  for (const char* name : {"config", "policy-config-file"}) {
    const auto found = arguments.find(name);
    if (found == arguments.end() || found->second.values.empty()) continue;
    const std::string& path = found->second.values.back();
    return path.starts_with('/') || base_dir.empty() ? path : base_dir + "/" + path;
  }
  return {};
}

Result<void> apply(const Arguments& arguments, SchedulerConfig& config) {
  ArgumentReader reader(config);
  // What makes the profiles anew goes before what changes them.
  if (const auto provider = arguments.find("algorithm-provider"); provider != arguments.end())
    reader.read(provider->first, provider->second);
  for (const auto& [name, argument] : arguments)
    if (name != "algorithm-provider") reader.read(name, argument);
  if (reader.problems.empty()) {
    for (const auto& [name, argument] : arguments)
      config.arguments.emplace_back(name, argument.values.empty() ? "true" : argument.values.back());
    return {};
  }
  return invalid(fmt::format("{}", fmt::join(reader.problems, "\n")));
}

}  // namespace berth::scheduler::config
