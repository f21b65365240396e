#include "scheduler/config/plugin_args.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/validation/validation.h"
#include "placement/framework.h"

namespace berth::scheduler::config {
namespace {

using placement::Era;
using placement::PluginArgs;

constexpr std::string_view kStrategies[] = {"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"};

void read_fit(const Reader& args, Era era, placement::NodeResourcesFitArgs& out) {
  if (era == Era::k120) {
    args.only({"kind", "apiVersion", "ignoredResources", "ignoredResourceGroups"});
  } else {
    args.only({"kind", "apiVersion", "ignoredResources", "ignoredResourceGroups", "scoringStrategy"});
  }
  out.ignored_resources = args.strings("ignoredResources");
  out.ignored_resource_groups = args.strings("ignoredResourceGroups");
  const auto check_names = [&](std::string_view field, const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (const auto why = model::validation::check_qualified_name(names[i]); !why.empty())
        args.problem(fmt::format("{}[{}]", field, i), fmt::format("Invalid value: \"{}\": {}", names[i], why));
  };
  check_names("ignoredResources", out.ignored_resources);
  check_names("ignoredResourceGroups", out.ignored_resource_groups);
  for (std::size_t i = 0; i < out.ignored_resource_groups.size(); ++i) {
    if (out.ignored_resource_groups[i].find('/') != std::string::npos)
      args.problem(fmt::format("ignoredResourceGroups[{}]", i),
                   fmt::format("Invalid value: \"{}\": resource group name can't contain '/'", out.ignored_resource_groups[i]));
  }
  const Reader strategy = args.field("scoringStrategy");
  if (!strategy.expect_object()) return;
  strategy.only({"type", "resources", "requestedToCapacityRatio"});
  const std::string type = strategy.string("type");
  const auto at = std::ranges::find(kStrategies, type);
  if (at == std::end(kStrategies)) {
    strategy.problem("type", fmt::format("Unsupported value: \"{}\": supported values: \"LeastAllocated\", \"MostAllocated\", "
                                         "\"RequestedToCapacityRatio\"{}",
                                         type, suggestion(type, kStrategies)));
  } else {
    out.strategy = static_cast<placement::ScoringStrategyType>(at - std::begin(kStrategies));
  }
  out.resources = read_resources(strategy.field("resources"), {{"cpu", 1}, {"memory", 1}});
  if (out.strategy == placement::ScoringStrategyType::kRequestedToCapacityRatio) {
    const Reader ratio = strategy.field("requestedToCapacityRatio");
    if (!ratio.is_present()) ratio.problem("Required value: must be specified when type is RequestedToCapacityRatio");
    ratio.only({"shape"});
    if (ratio.is_present()) out.shape = read_shape(ratio.field("shape"), true);
  } else if (strategy.has("requestedToCapacityRatio")) {
    strategy.problem("requestedToCapacityRatio", "Forbidden: must be nil when type is not RequestedToCapacityRatio");
  }
}

void read_spread(const Reader& args, Era era, placement::PodTopologySpreadArgs& out) {
  args.only({"kind", "apiVersion", "defaultConstraints", "defaultingType"});
  std::string type = args.string("defaultingType");
  // v1beta1 takes a list for what it is.
  if (type.empty()) type = era == Era::k120 && !args.field("defaultConstraints").items().empty() ? "List" : "System";
  if (type != "System" && type != "List") {
    constexpr std::string_view kTypes[] = {"System", "List"};
    args.problem("defaultingType",
                 fmt::format("Unsupported value: \"{}\": supported values: \"System\", \"List\"{}", type, suggestion(type, kTypes)));
  }
  out.system_defaulting = type == "System";
  const auto items = args.field("defaultConstraints").items();
  if (out.system_defaulting && !items.empty())
    args.problem("defaultingType",
                 "Invalid value: \"System\": when .defaultConstraints are not empty; set defaultingType: List to use them");
  for (const auto& item : items) {
    if (!item.expect_object()) continue;
    item.only({"maxSkew", "topologyKey", "whenUnsatisfiable", "labelSelector", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy",
               "matchLabelKeys"});
    if (item.integer("maxSkew", 0) <= 0)
      item.problem("maxSkew", fmt::format("Invalid value: {}: not in valid range (0, inf)", item.integer("maxSkew", 0)));
    const std::string key = item.string("topologyKey");
    if (key.empty()) {
      item.problem("topologyKey", "Required value: can not be empty");
    } else if (const auto why = model::validation::check_qualified_name(key); !why.empty()) {
      item.problem("topologyKey", fmt::format("Invalid value: \"{}\": {}", key, why));
    }
    const std::string when = item.string("whenUnsatisfiable");
    if (when.empty()) {
      item.problem("whenUnsatisfiable", "Required value: can not be empty");
    } else if (when != "DoNotSchedule" && when != "ScheduleAnyway") {
      constexpr std::string_view kWhen[] = {"DoNotSchedule", "ScheduleAnyway"};
      item.problem("whenUnsatisfiable", fmt::format("Unsupported value: \"{}\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\"{}",
                                                    when, suggestion(when, kWhen)));
    }
    if (item.has("labelSelector"))
      item.problem("labelSelector", "Forbidden: constraint must not define a selector, as they deduced for each pod");
    auto constraint = model::TopologySpreadConstraint::parse(*item.value());
    for (const auto& other : out.default_constraints) {
      if (other.topology_key == constraint.topology_key && other.is_hard == constraint.is_hard)
        item.problem(fmt::format("Duplicate value: \"{{{}, {}}}\"", key, when));
    }
    out.default_constraints.push_back(std::move(constraint));
  }
}

void read_preemption(const Reader& args, placement::DefaultPreemptionArgs& out) {
  args.only({"kind", "apiVersion", "minCandidateNodesPercentage", "minCandidateNodesAbsolute", "disruptionBudgets"});
  // berth's own field: Kubernetes knows budgets as a last resort only.
  const std::string budgets = args.string("disruptionBudgets", "LastResort");
  if (budgets != "LastResort" && budgets != "Hard")
    args.problem("disruptionBudgets", fmt::format("Unsupported value: \"{}\": supported values: \"LastResort\", \"Hard\"", budgets));
  out.budgets_are_hard = budgets == "Hard";
  out.min_candidate_nodes_percentage = args.integer("minCandidateNodesPercentage", 10);
  out.min_candidate_nodes_absolute = args.integer("minCandidateNodesAbsolute", 100);
  args.without_effect({"minCandidateNodesPercentage", "minCandidateNodesAbsolute"}, "every node is looked at");
  if (out.min_candidate_nodes_percentage < 0 || out.min_candidate_nodes_percentage > 100)
    args.problem("minCandidateNodesPercentage",
                 fmt::format("Invalid value: {}: not in valid range [0, 100]", out.min_candidate_nodes_percentage));
  if (out.min_candidate_nodes_absolute < 0)
    args.problem("minCandidateNodesAbsolute",
                 fmt::format("Invalid value: {}: not in valid range [0, inf)", out.min_candidate_nodes_absolute));
  if (out.min_candidate_nodes_percentage == 0 && out.min_candidate_nodes_absolute == 0) {
    args.problem("minCandidateNodesPercentage", "Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute");
    args.problem("minCandidateNodesAbsolute", "Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage");
  }
}

/// No map of the term has a field that no term has.
void check_fields_of_term(const Reader& term) {
  if (!term.is_present() || !term.expect_object()) return;
  term.only({"matchExpressions", "matchFields"});
  term.skip();
  for (const std::string_view name : {"matchExpressions", "matchFields"})
    for (const Reader& requirement : term.field(name).items())
      if (requirement.expect_object()) {
        requirement.only({"key", "operator", "values"});
        requirement.skip();
      }
}

void check_fields_of_affinity(const Reader& added) {
  added.only({"requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"});
  added.skip();
  const Reader required = added.field("requiredDuringSchedulingIgnoredDuringExecution");
  if (required.is_present() && required.expect_object()) {
    required.only({"nodeSelectorTerms"});
    required.skip();
    for (const Reader& term : required.field("nodeSelectorTerms").items()) check_fields_of_term(term);
  }
  for (const Reader& one : added.field("preferredDuringSchedulingIgnoredDuringExecution").items()) {
    if (!one.expect_object()) continue;
    one.only({"weight", "preference"});
    one.skip();
    check_fields_of_term(one.field("preference"));
  }
}

void read_node_affinity(const Reader& args, PluginArgs& out) {
  args.only({"kind", "apiVersion", "addedAffinity"});
  const Reader added = args.field("addedAffinity");
  if (!added.expect_object()) return;
  check_fields_of_affinity(added);
  // As a pod's own, so that one parser serves both.
  out.added_affinity = model::NodeAffinity::parse(*added.value());
  const auto check = [&](const std::string& path, const model::NodeSelectorTerm& term) {
    for (const std::string_view error : term.errors) {
      const auto end = error.find(": ");
      args.problem(fmt::format("addedAffinity.{}.{}", path, error.substr(0, end)), error.substr(end + 2));
    }
  };
  if (out.added_affinity->required) {
    const auto& terms = out.added_affinity->required->terms;
    for (std::size_t i = 0; i < terms.size(); ++i)
      check(fmt::format("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{}]", i), terms[i]);
  }
  for (std::size_t i = 0; i < out.added_affinity->preferred.size(); ++i) {
    const auto& term = out.added_affinity->preferred[i];
    if (term.weight != 0) check(fmt::format("preferredDuringSchedulingIgnoredDuringExecution[{}]", i), term.preference);
  }
}

void no_common(const Reader& args, const std::vector<std::string>& a, const std::vector<std::string>& b, std::string_view names) {
  for (const auto& label : a)
    if (std::ranges::find(b, label) != b.end())
      args.problem(fmt::format("Invalid value: \"{}\": detecting at least one label that exist in both {}", label, names));
}

void read_node_label(const Reader& args, placement::NodeLabelArgs& out) {
  args.only({"kind", "apiVersion", "presentLabels", "absentLabels", "presentLabelsPreference", "absentLabelsPreference"});
  out.present_labels = args.strings("presentLabels");
  out.absent_labels = args.strings("absentLabels");
  out.present_labels_preference = args.strings("presentLabelsPreference");
  out.absent_labels_preference = args.strings("absentLabelsPreference");
  no_common(args, out.present_labels, out.absent_labels, "the present labels and the absent labels");
  no_common(args, out.present_labels_preference, out.absent_labels_preference,
            "the present labels preference and the absent labels preference");
}

void read_volume_binding(const Reader& args, Era era, placement::VolumeBindingArgs& out) {
  args.only({"kind", "apiVersion", "bindTimeoutSeconds", "shape"});
  out.bind_timeout_seconds = args.integer("bindTimeoutSeconds", 600);
  if (out.bind_timeout_seconds < 0)
    args.problem("bindTimeoutSeconds",
                 fmt::format("Invalid value: {}: invalid BindTimeoutSeconds, should not be a negative value", out.bind_timeout_seconds));
  // The gate of 1.33 and later, StorageCapacityScoring, is off.
  if (era == Era::k136 && args.has("shape"))
    args.problem("shape", "Invalid value: unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring");
  out.shape = read_shape(args.field("shape"), false);
}

}  // namespace

std::vector<placement::UtilizationShapePoint> read_shape(const Reader& list, bool is_required) {
  std::vector<placement::UtilizationShapePoint> out;
  const auto items = list.items();
  if (items.empty() && is_required) list.problem("Required value: at least one point must be specified");
  for (const auto& item : items) {
    if (!item.expect_object()) continue;
    item.only({"utilization", "score"});
    const placement::UtilizationShapePoint point{item.integer("utilization", 0), item.integer("score", 0)};
    if (point.utilization < 0 || point.utilization > 100)
      item.problem("utilization", fmt::format("Invalid value: {}: not in valid range [0, 100]", point.utilization));
    if (point.score < 0 || point.score > 10)
      item.problem("score", fmt::format("Invalid value: {}: not in valid range [0, 10]", point.score));
    if (!out.empty() && point.utilization <= out.back().utilization)
      item.problem("utilization",
                   fmt::format("Invalid value: {}: utilization values must be sorted in increasing order", point.utilization));
    out.push_back(point);
  }
  return out;
}

std::vector<placement::ResourceWeight> read_resources(const Reader& list, std::vector<placement::ResourceWeight> fallback,
                                                      const WeightRules& rules) {
  std::vector<placement::ResourceWeight> out;
  for (const auto& item : list.items()) {
    if (!item.expect_object()) continue;
    item.only({"name", "weight"});
    placement::ResourceWeight one{item.string("name"), item.integer("weight", 0)};
    if (one.weight == 0 && rules.zero_is_one) one.weight = 1;
    if (one.weight < 1 || one.weight > rules.max)
      item.problem("weight",
                   fmt::format("Invalid value: {}: resource weight of {} not in valid range (0, {}]", one.weight, one.name, rules.max));
    out.push_back(std::move(one));
  }
  return out.empty() ? fallback : out;
}

void read_plugin_args(std::string_view plugin, const Reader& args, Era era, PluginArgs& out) {
  if (!args.expect_object()) return;
  const std::vector<placement::ResourceWeight> cpu_memory = {{"cpu", 1}, {"memory", 1}};
  if (plugin == "NodeResourcesFit") return read_fit(args, era, out.fit);
  if (plugin == "NodeAffinity") return read_node_affinity(args, out);
  if (plugin == "PodTopologySpread") return read_spread(args, era, out.spread);
  if (plugin == "DefaultPreemption") return read_preemption(args, out.preemption);
  if (plugin == "VolumeBinding") return read_volume_binding(args, era, out.volume_binding);
  if (plugin == "NodeLabel") return read_node_label(args, out.node_label);
  if (plugin == "InterPodAffinity") {
    args.only({"kind", "apiVersion", "hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"});
    out.inter_pod_affinity.hard_pod_affinity_weight = args.integer("hardPodAffinityWeight", 1);
    out.inter_pod_affinity.ignore_preferred_terms_of_existing_pods = args.boolean("ignorePreferredTermsOfExistingPods", false);
    const auto weight = out.inter_pod_affinity.hard_pod_affinity_weight;
    if (weight < 0 || weight > 100)
      args.problem("hardPodAffinityWeight", fmt::format("Invalid value: {}: not in valid range [0, 100]", weight));
    return;
  }
  if (plugin == "NodeResourcesBalancedAllocation" || plugin == "NodeResourcesLeastAllocated" || plugin == "NodeResourcesMostAllocated") {
    args.only({"kind", "apiVersion", "resources"});
    auto& target = plugin == "NodeResourcesBalancedAllocation" ? out.balanced
                   : plugin == "NodeResourcesLeastAllocated"   ? out.least_allocated
                                                               : out.most_allocated;
    target.resources = read_resources(args.field("resources"), cpu_memory, {.zero_is_one = era != Era::k120});
    if (plugin == "NodeResourcesBalancedAllocation") {
      for (std::size_t i = 0; i < target.resources.size(); ++i) {
        const auto& [name, weight] = target.resources[i];
        const auto first = std::ranges::find(target.resources, name, &placement::ResourceWeight::name) - target.resources.begin();
        if (first != static_cast<std::ptrdiff_t>(i))
          args.problem(fmt::format("resources[{}].name", i), fmt::format("Duplicate value: \"{}\"", name));
        if (weight != 1) args.problem(fmt::format("resources[{}].weight", i), fmt::format("Invalid value: {}: must be 1", weight));
      }
    }
    return;
  }
  if (plugin == "RequestedToCapacityRatio") {
    args.only({"kind", "apiVersion", "shape", "resources"});
    out.ratio.shape = read_shape(args.field("shape"), true);
    out.ratio.resources = read_resources(args.field("resources"), cpu_memory, kRatioWeights);
    return;
  }
  if (plugin == "ServiceAffinity") {
    args.only({"kind", "apiVersion", "affinityLabels", "antiAffinityLabelsPreference"});
    out.service_affinity.affinity_labels = args.strings("affinityLabels");
    out.service_affinity.anti_affinity_labels_preference = args.strings("antiAffinityLabelsPreference");
    return;
  }
  if (plugin == "DynamicResources") {
    args.only({"kind", "apiVersion", "filterTimeout", "bindingTimeout"});
    if (args.duration_ms("filterTimeout", 0) < 0) args.problem("filterTimeout", "Invalid value: must be zero or positive");
    if (args.duration_ms("bindingTimeout", 1000) < 1000) args.problem("bindingTimeout", "Invalid value: must be at least 1 second");
    args.without_effect({"filterTimeout", "bindingTimeout"}, "claims are allocated at once");
    return;
  }
  if (const auto* registration = placement::find_plugin(plugin); registration != nullptr && registration->build != nullptr) {
    placement::Profile alone;
    alone.era = era;
    (void)registration->build(args, alone);
    out.own.insert_or_assign(std::string(plugin), *args.value());
    return;
  }
  // The others have no arguments: as in Kubernetes, what is given is not looked at.
  if (args.is_present()) args.note(fmt::format("has no effect: plugin {} takes no arguments", plugin));
}

}  // namespace berth::scheduler::config
