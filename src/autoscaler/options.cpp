#include "autoscaler/options.h"

#include <fmt/format.h>

#include <charconv>

namespace berth::autoscaler {
namespace {

constexpr std::int64_t kGiB = 1LL << 30;

Result<void> read_duration(const json::Value& spec, json::Path path, std::string_view field, Duration& out) {
  const json::Value* value = json::find(spec, path);
  if (value == nullptr) return {};
  const auto parsed = value->is_string() ? parse_go_duration(json::as_view(*value)) : std::nullopt;
  if (!parsed || *parsed < Duration::zero()) return invalid(fmt::format("spec.{}: {} is not a duration", field, json::serialize(*value)));
  out = *parsed;
  return {};
}

Result<void> read_bounds(const json::Value& limits, std::string_view key, std::int64_t unit, Bounds& out) {
  if (json::find(limits, key) == nullptr) return {};
  const std::int64_t low = json::get_int(limits, {key, "min"}), high = json::get_int(limits, {key, "max"});
  if (low < 0 || high < low) return invalid(fmt::format("spec.resourceLimits.{}: max must be greater than or equal to min", key));
  out = {low * unit, high * unit};
  return {};
}

std::optional<Expander> parse_expander(std::string_view word) {
  if (word == "LeastWaste" || word == "least-waste") return Expander::kLeastWaste;
  if (word == "Priority" || word == "priority") return Expander::kPriority;
  if (word == "Random" || word == "random") return Expander::kRandom;
  if (word == "MostPods" || word == "most-pods") return Expander::kMostPods;
  if (word == "LeastNodes" || word == "least-nodes") return Expander::kLeastNodes;
  return std::nullopt;
}

Result<void> read_limits(const json::Value& limits, Options& out) {
  out.max_nodes_total = json::get_int(limits, {"maxNodesTotal"});
  if (out.max_nodes_total < 0) return invalid("spec.resourceLimits.maxNodesTotal: must be greater than or equal to 0");
  if (auto ok = read_bounds(limits, "cores", 1, out.cores); !ok) return ok;
  if (auto ok = read_bounds(limits, "memory", kGiB, out.memory_bytes); !ok) return ok;
  for (const json::Value& gpu : json::get_array(limits, {"gpus"})) {
    GpuLimit limit{std::string(json::get_string(gpu, {"type"})), {json::get_int(gpu, {"min"}), json::get_int(gpu, {"max"})}};
    if (limit.type.empty() || limit.bounds.min < 0 || limit.bounds.max < limit.bounds.min)
      return invalid("spec.resourceLimits.gpus: each has a type, and a max that is greater than or equal to min");
    out.gpus.push_back(std::move(limit));
  }
  return {};
}

Result<void> read_scale_down(const json::Value& config, Options& out) {
  out.scale_down_enabled = json::get_bool(config, {"enabled"});
  for (const auto& [field, target] : {std::pair<std::string_view, Duration*>("delayAfterAdd", &out.delay_after_add),
                                      {"delayAfterDelete", &out.delay_after_delete},
                                      {"delayAfterFailure", &out.delay_after_failure},
                                      {"unneededTime", &out.unneeded_time}})
    if (auto ok = read_duration(config, {field}, fmt::format("scaleDown.{}", field), *target); !ok) return ok;
  if (const json::Value* threshold = json::find(config, "utilizationThreshold")) {
    const std::string_view text = threshold->is_string() ? json::as_view(*threshold) : std::string_view();
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), out.utilization_threshold);
    if (text.empty() || wrong != std::errc() || end != text.data() + text.size() || out.utilization_threshold < 0 ||
        out.utilization_threshold > 1)
      return invalid(fmt::format("spec.scaleDown.utilizationThreshold: {} is not a fraction of 1", json::serialize(*threshold)));
  }
  out.cordon_before_terminating = json::get_string(config, {"cordonNodeBeforeTerminating"}) == "Enabled";
  return {};
}

}  // namespace

std::string_view expander_name(Expander expander) {
  switch (expander) {
    case Expander::kRandom:
      return "random";
    case Expander::kLeastWaste:
      return "least-waste";
    case Expander::kMostPods:
      return "most-pods";
    case Expander::kLeastNodes:
      return "least-nodes";
    case Expander::kPriority:
      return "priority";
  }
  return "random";
}

Result<Options> Options::parse(const json::Value& cluster_autoscaler, std::vector<std::string>* notes) {
  Options out;
  const json::Value* found = json::find(cluster_autoscaler, "spec");
  if (found == nullptr) return out;
  const json::Value& spec = *found;
  if (const json::Value* limits = json::find(spec, "resourceLimits"))
    if (auto ok = read_limits(*limits, out); !ok) return std::unexpected(ok.error());
  if (const json::Value* config = json::find(spec, "scaleDown"))
    if (auto ok = read_scale_down(*config, out); !ok) return std::unexpected(ok.error());
  if (auto ok = read_duration(spec, {"maxNodeProvisionTime"}, "maxNodeProvisionTime", out.max_node_provision_time); !ok)
    return std::unexpected(ok.error());
  if (auto ok = read_duration(spec, {"scaleUp", "newPodScaleUpDelay"}, "scaleUp.newPodScaleUpDelay", out.new_pod_scale_up_delay); !ok)
    return std::unexpected(ok.error());
  const std::int64_t grace = json::get_int(spec, {"maxPodGracePeriod"}, 600);
  if (grace < 0) return invalid("spec.maxPodGracePeriod: must be greater than or equal to 0");
  out.max_pod_grace_period = std::chrono::seconds(grace);
  out.pod_priority_threshold = json::get_int(spec, {"podPriorityThreshold"}, out.pod_priority_threshold);
  out.skip_nodes_with_local_storage = json::get_bool(spec, {"skipNodesWithLocalStorage"}, true);
  out.ignore_daemonsets_utilization = json::get_bool(spec, {"ignoreDaemonsetsUtilization"});
  out.balance_similar_node_groups = json::get_bool(spec, {"balanceSimilarNodeGroups"});
  for (const json::Value& label : json::get_array(spec, {"balancingIgnoredLabels"}))
    if (label.is_string()) out.balancing_ignored_labels.emplace_back(json::as_view(label));
  if (const json::Array& words = json::get_array(spec, {"expanders"}); !words.empty()) {
    out.expanders.clear();
    for (const json::Value& word : words) {
      const auto expander = word.is_string() ? parse_expander(json::as_view(word)) : std::nullopt;
      if (!expander) return invalid(fmt::format("spec.expanders: {} is none of LeastWaste, Priority, Random", json::serialize(word)));
      out.expanders.push_back(*expander);
    }
  }
  if (notes != nullptr && json::find(spec, "logVerbosity") != nullptr) notes->push_back("spec.logVerbosity has no effect here");
  return out;
}

}  // namespace berth::autoscaler
