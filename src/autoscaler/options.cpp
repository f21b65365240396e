#include "autoscaler/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/config_reader.h"

namespace berth::autoscaler {
namespace {

using config::Reader;
using config::Refusal;

constexpr std::int64_t kGiB = 1LL << 30;

void read_duration(const Reader& at, std::string_view field, Duration& out) {
  if (!at.has(field)) return;
  const std::string text = at.string(field);
  const auto parsed = parse_go_duration(text);
  if (!parsed || *parsed < Duration::zero())
    at.problem(field, fmt::format("\"{}\" is not a duration such as 10m", text));
  else
    out = *parsed;
}

/// min and max, of what is counted in `unit`.
void read_bounds(const Reader& at, std::int64_t unit, Bounds& out) {
  if (!at.is_present() || !at.expect_object()) return;
  const std::int64_t low = at.integer("min", 0), high = at.integer("max", 0);
  if (low < 0 || high < low) return at.problem("max must be greater than or equal to min, and neither negative");
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (high > kMost) return at.problem("max", fmt::format("must be less than or equal to {}", kMost));
  out = {low * unit, high * unit};
}

std::optional<Expander> parse_expander(std::string_view word) {
  if (word == "LeastWaste" || word == "least-waste") return Expander::kLeastWaste;
  if (word == "Priority" || word == "priority") return Expander::kPriority;
  if (word == "Random" || word == "random") return Expander::kRandom;
  if (word == "MostPods" || word == "most-pods") return Expander::kMostPods;
  if (word == "Price" || word == "price") return Expander::kPrice;
  if (word == "Grpc" || word == "grpc") return Expander::kGrpc;
  if (word == "LeastNodes" || word == "least-nodes") return Expander::kLeastNodes;
  return std::nullopt;
}

/// The documents allow two resources; clusters whose nodes say what they have give the value of a node label instead.
void check_gpu_type(const Reader& at, std::string_view type) {
  constexpr std::string_view kTypes[] = {"nvidia.com/gpu", "amd.com/gpu"};
  if (type.empty()) return at.problem("type", fmt::format("required: {}", fmt::join(kTypes, " or ")));
  if (std::ranges::find(kTypes, type) != std::end(kTypes)) return;
  if (type.find('/') != std::string_view::npos)
    at.problem("type", fmt::format("\"{}\" is not allowed: {}{}", type, fmt::join(kTypes, " or "), config::suggestion(type, kTypes)));
  else
    at.note("type", fmt::format("\"{}\" counts nodes by their label cluster-api/accelerator", type));
}

void read_limits(const Reader& at, Options& out) {
  if (!at.is_present() || !at.expect_object()) return;
  at.only({"maxNodesTotal", "cores", "memory", "gpus"});
  out.max_nodes_total = at.integer("maxNodesTotal", 0);
  if (out.max_nodes_total < 0) at.problem("maxNodesTotal", "must be greater than or equal to 0");
  for (const auto& [field, unit, bounds] :
       {std::tuple("cores", std::int64_t{1}, &out.cores), std::tuple("memory", kGiB, &out.memory_bytes)}) {
    at.field(field).only({"min", "max"});
    read_bounds(at.field(field), unit, *bounds);
  }
  for (const Reader& gpu : at.field("gpus").items()) {
    if (!gpu.expect_object()) continue;
    gpu.only({"type", "min", "max"});
    GpuLimit limit{gpu.string("type"), {}};
    check_gpu_type(gpu, limit.type);
    if (std::ranges::find(out.gpus, limit.type, &GpuLimit::type) != out.gpus.end())
      gpu.problem("type", fmt::format("\"{}\" is there already", limit.type));
    read_bounds(gpu, 1, limit.bounds);
    out.gpus.push_back(std::move(limit));
  }
}

void read_scale_down(const Reader& at, Options& out) {
  if (!at.is_present() || !at.expect_object()) return;
  at.only({"enabled", "delayAfterAdd", "delayAfterDelete", "delayAfterFailure", "unneededTime", "utilizationThreshold",
           "cordonNodeBeforeTerminating"});
  out.scale_down_enabled = at.boolean("enabled", false);
  for (const auto& [field, target] : {std::pair<std::string_view, Duration*>("delayAfterAdd", &out.delay_after_add),
                                      {"delayAfterDelete", &out.delay_after_delete},
                                      {"delayAfterFailure", &out.delay_after_failure},
                                      {"unneededTime", &out.unneeded_time}})
    read_duration(at, field, *target);
  if (at.has("utilizationThreshold")) {
    const std::string text = at.string("utilizationThreshold");
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), out.utilization_threshold);
    // A number that is none is in no order with others.
    const bool is_share = out.utilization_threshold >= 0 && out.utilization_threshold <= 1;
    if (text.empty() || wrong != std::errc() || end != text.data() + text.size() || !is_share)
      at.problem("utilizationThreshold", fmt::format("\"{}\" is not a fraction of 1, as a string", text));
  }
  constexpr std::string_view kWords[] = {"Enabled", "Disabled"};
  out.cordon_before_terminating = at.one_of("cordonNodeBeforeTerminating", kWords) == "Enabled";
}

void read_expanders(const Reader& at, Options& out) {
  const auto words = at.strings("expanders");
  if (words.empty()) return;
  constexpr std::string_view kWords[] = {"LeastWaste", "Priority", "Random", "MostPods", "LeastNodes", "Price", "Grpc"};
  out.expanders.clear();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (const auto expander = parse_expander(words[i]))
      out.expanders.push_back(*expander);
    else
      at.problem(fmt::format("expanders[{}]", i),
                 fmt::format("\"{}\" is not one of {}{}", words[i], fmt::join(kWords, ", "), config::suggestion(words[i], kWords)));
  }
}

}  // namespace

Options Options::read(const Reader& object) {
  Options out;
  if (!object.expect_object()) return out;
  object.only({"kind", "apiVersion", "metadata", "spec", "status"}, Refusal::kOfBerth);
  static_cast<void>(object.field("status"));
  constexpr std::string_view kKinds[] = {"ClusterAutoscaler"}, kVersions[] = {"autoscaling.openshift.io/v1"};
  object.expect_kind(kKinds, kVersions);
  const Reader spec = object.field("spec");
  if (!spec.is_present() || !spec.expect_object()) return out;
  spec.only({"resourceLimits", "scaleDown", "scaleUp", "maxPodGracePeriod", "maxNodeProvisionTime", "podPriorityThreshold",
             "skipNodesWithLocalStorage", "balanceSimilarNodeGroups", "balancingIgnoredLabels", "ignoreDaemonsetsUtilization", "expanders",
             "logVerbosity"},
            Refusal::kOfBerth);
  out.log_verbosity = spec.integer("logVerbosity", out.log_verbosity);
  if (out.log_verbosity < 0) spec.problem("logVerbosity", "must be greater than or equal to 0");
  read_limits(spec.field("resourceLimits"), out);
  read_scale_down(spec.field("scaleDown"), out);
  read_duration(spec, "maxNodeProvisionTime", out.max_node_provision_time);
  spec.field("scaleUp").only({"newPodScaleUpDelay"});
  read_duration(spec.field("scaleUp"), "newPodScaleUpDelay", out.new_pod_scale_up_delay);
  const std::int64_t grace = spec.integer("maxPodGracePeriod", 600);
  if (grace < 0) spec.problem("maxPodGracePeriod", "must be greater than or equal to 0");
  out.max_pod_grace_period = std::chrono::seconds(grace);
  out.pod_priority_threshold = spec.integer("podPriorityThreshold", out.pod_priority_threshold);
  out.skip_nodes_with_local_storage = spec.boolean("skipNodesWithLocalStorage", true);
  out.ignore_daemonsets_utilization = spec.boolean("ignoreDaemonsetsUtilization", false);
  out.balance_similar_node_groups = spec.boolean("balanceSimilarNodeGroups", false);
  out.balancing_ignored_labels = spec.strings("balancingIgnoredLabels");
  read_expanders(spec, out);
  return out;
}

Result<Options> Options::parse(const json::Value& cluster_autoscaler, std::vector<std::string>* notes) {
  config::Problems problems("ClusterAutoscaler", {}, true);
  Options out = read(Reader(&cluster_autoscaler, "", problems));
  if (!problems.empty()) return invalid(problems.text());
  if (notes != nullptr) *notes = problems.notes();
  return out;
}

}  // namespace berth::autoscaler
