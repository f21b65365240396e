#include "descheduler/policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "descheduler/policy_sections.h"

namespace berth::descheduler {
namespace {

/// Go's list of words: "[a b c]".
std::string words(std::span<const std::string_view> all) { return fmt::format("[{}]", fmt::join(all, " ")); }

constexpr std::string_view kRestartStates[] = {"CrashLoopBackOff", "Running"};
constexpr std::string_view kLifeTimeStates[] = {"Completed",
                                                "ContainerCannotRun",
                                                "ContainerCreating",
                                                "CrashLoopBackOff",
                                                "CreateContainerConfigError",
                                                "CreateContainerError",
                                                "DeadlineExceeded",
                                                "ErrImagePull",
                                                "Error",
                                                "Evicted",
                                                "Failed",
                                                "ImagePullBackOff",
                                                "InvalidImageName",
                                                "NodeAffinity",
                                                "NodeLost",
                                                "OOMKilled",
                                                "Pending",
                                                "PodInitializing",
                                                "Running",
                                                "Shutdown",
                                                "StartError",
                                                "Succeeded",
                                                "UnexpectedAdmissionError",
                                                "Unknown"};

void read(const Reader& root, Policy& out) {
  if (!root.expect_object()) return root.is_present() ? void() : root.problem("the policy is empty");
  const std::string kind = root.string("kind"), version = root.string("apiVersion");
  if (kind != "DeschedulerPolicy") root.problem("kind", fmt::format("must be \"DeschedulerPolicy\", not \"{}\"", kind));
  if (version == "descheduler/v1alpha1")
    read_version_1(root, out);
  else if (version == "descheduler/v1alpha2")
    read_version_2(root, out);
  else
    root.problem("apiVersion", fmt::format("must be \"descheduler/v1alpha1\" or \"descheduler/v1alpha2\", not \"{}\"", version),
                 version.empty() ? config::Refusal::kOfBerth : config::Refusal::kOfKubernetes);
}

}  // namespace

std::optional<Strategy> find_strategy(std::string_view name) {
  const auto found = std::ranges::find(kStrategyNames, name);
  if (found == kStrategyNames.end()) return std::nullopt;
  return static_cast<Strategy>(found - kStrategyNames.begin());
}

bool is_balance(Strategy strategy) {
  return strategy == Strategy::kRemoveDuplicates || strategy == Strategy::kLowNodeUtilization ||
         strategy == Strategy::kHighNodeUtilization || strategy == Strategy::kRemovePodsViolatingTopologySpreadConstraint ||
         strategy == Strategy::kDefragmentation;
}

bool Policy::needs_metrics() const {
  return std::ranges::any_of(profiles, [](const Profile& profile) {
    return std::ranges::any_of(profile.balance, [](const Plugin& plugin) { return plugin.utilization.use_metrics; });
  });
}

bool Policy::makes_room() const {
  return std::ranges::any_of(profiles, [](const Profile& profile) {
    return std::ranges::any_of(profile.balance, [](const Plugin& plugin) { return plugin.strategy == Strategy::kDefragmentation; });
  });
}

std::set<std::string> Policy::prometheus_queries() const {
  std::set<std::string> out;
  for (const Profile& profile : profiles)
    for (const Plugin& plugin : profile.balance)
      if (!plugin.utilization.prometheus_query.empty()) out.insert(plugin.utilization.prometheus_query);
  return out;
}

std::optional<std::uint64_t> read_unsigned(const Reader& at, std::string_view name) {
  if (!at.has(name)) return std::nullopt;
  const std::int64_t value = at.integer(name, 0);
  if (value < 0) {
    at.problem(name, fmt::format("must not be negative, it is {}", value));
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(value);
}

std::set<std::string, std::less<>> read_set(const Reader& at, std::string_view name) {
  const auto all = at.strings(name);
  return {all.begin(), all.end()};
}

Namespaces read_namespaces(const Reader& at) {
  Namespaces out;
  if (!at.is_present() || !at.expect_object()) return out;
  at.only({"include", "exclude"});
  out.include = read_set(at, "include");
  out.exclude = read_set(at, "exclude");
  if (!out.include.empty() && !out.exclude.empty()) at.problem("only one of Include/Exclude namespaces can be set");
  return out;
}

std::optional<model::Selector> read_label_selector(const Reader& at) {
  if (!at.is_present() || !at.expect_object()) return std::nullopt;
  at.only({"matchLabels", "matchExpressions"});
  auto selector = model::Selector::from_label_selector(at.value());
  if (selector) return *selector;
  at.problem("failed to get label selectors from strategy's params: " + selector.error().message);
  return std::nullopt;
}

Thresholds read_thresholds(const Reader& at) {
  Thresholds out;
  if (!at.is_present() || !at.expect_object()) return out;
  for (const auto& member : at.value()->get_object()) {
    const std::string name(member.key());
    constexpr std::string_view kResources[] = {"cpu", "memory", "pods", "ephemeral-storage"};
    const bool is_resource = name == kMetricResource || std::ranges::find(kResources, std::string_view(name)) != std::end(kResources) ||
                             name.find('/') != name.npos || name.starts_with("hugepages-") || name.starts_with("attachable-volumes-");
    if (!is_resource)
      at.problem(name, fmt::format("\"{}\" is no resource of a node{}", name, config::suggestion(name, kResources)),
                 config::Refusal::kOfBerth);
    out.emplace_back(name, at.number(name, 0));
  }
  std::ranges::sort(out);
  return out;
}

namespace {
bool check_thresholds(const Reader& at, const Thresholds& thresholds) {
  if (thresholds.empty()) {
    at.problem("no resource threshold is configured");
    return false;
  }
  for (const auto& [name, percent] : thresholds)
    if (percent < 0 || percent > 100) at.problem(name, fmt::format("{} threshold not in [0, 100] range", name));
  return true;
}
}  // namespace

void check_utilization(const Reader& at, const Plugin& plugin) {
  const auto& args = plugin.utilization;
  if (args.number_of_nodes < 0) at.problem("numberOfNodes", fmt::format("must not be negative, it is {}", args.number_of_nodes));
  const bool has_thresholds = check_thresholds(at.field("thresholds"), args.thresholds);
  if (plugin.strategy != Strategy::kLowNodeUtilization) return;
  if (!check_thresholds(at.field("targetThresholds"), args.target_thresholds) || !has_thresholds) return;
  const auto names = [](const Thresholds& all) {
    std::vector<std::string> out;
    for (const auto& [name, percent] : all) out.push_back(name);
    return out;
  };
  if (names(args.thresholds) != names(args.target_thresholds)) {
    at.problem("targetThresholds", "thresholds and targetThresholds configured different resources");
    return;
  }
  if (args.use_deviation_thresholds) return;
  for (std::size_t i = 0; i < args.thresholds.size(); ++i)
    if (args.thresholds[i].second > args.target_thresholds[i].second)
      at.field("thresholds")
          .problem(args.thresholds[i].first,
                   fmt::format("thresholds' {} percentage is greater than targetThresholds'", args.thresholds[i].first));
}

void check_states(const Reader& at, const Plugin& plugin) {
  const auto check = [&](std::span<const std::string_view> allowed) {
    for (const auto& state : plugin.states)
      if (std::ranges::find(allowed, state) == allowed.end())
        at.problem(fmt::format("\"{}\": states must be one of {}{}", state, words(allowed), config::suggestion(state, allowed)));
  };
  plugin.strategy == Strategy::kPodLifeTime ? check(kLifeTimeStates) : check(kRestartStates);
}

std::vector<std::string> read_node_affinity_types(const Reader& at) {
  constexpr std::string_view kTypes[] = {"requiredDuringSchedulingIgnoredDuringExecution",
                                         "preferredDuringSchedulingIgnoredDuringExecution"};
  auto types = at.strings("nodeAffinityType");
  if (types.empty()) at.problem("nodeAffinityType", "nodeAffinityType needs to be set");
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (std::ranges::find(kTypes, std::string_view(types[i])) != std::end(kTypes)) continue;
    const auto meant = std::ranges::find_if(kTypes, [&](std::string_view type) { return !types[i].empty() && type.starts_with(types[i]); });
    at.problem(
        fmt::format("nodeAffinityType[{}]", i),
        fmt::format("\"{}\" is not one of {}{}", types[i], fmt::join(kTypes, ", "),
                    meant != std::end(kTypes) ? fmt::format("; did you mean \"{}\"?", *meant) : config::suggestion(types[i], kTypes)),
        config::Refusal::kOfBerth);
  }
  return types;
}

Result<Policy> parse_policy(std::string_view text, const std::string& file, bool as_kubernetes) {
  Policy out;
  std::vector<std::string> notes;
  const auto done = config::read_text(text, {.file = file, .as_kubernetes = as_kubernetes, .notes = &notes}, [&](const Reader& root) {
    out = {};
    read(root, out);
  });
  if (!done) return std::unexpected(done.error());
  out.warnings.insert(out.warnings.end(), notes.begin(), notes.end());
  return out;
}

Result<Policy> load_policy(const std::string& path) {
  const auto text = config::read_whole_file(path);
  if (!text) return std::unexpected(text.error());
  return parse_policy(*text, path);
}

}  // namespace berth::descheduler
