// `kind: Policy` to a profile, as 1.20's legacy registry does it (pkg/scheduler/framework/plugins/legacy_registry.go, factory.go).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "scheduler/config/plugin_args.h"
#include "scheduler/config/sections.h"

namespace berth::scheduler::config {
namespace {

using placement::Profile;
using Uses = std::vector<placement::PluginUse>;

/// What a predicate stands for. `points` of each plugin: f Filter, p PreFilter, r Reserve and PreBind.
struct Predicate {
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string_view>> plugins;
};

/// In the order of running (predicateOrdering); the names without plugins are covered by the taints that the node controllers set for
/// conditions, and so by the mandatory PodToleratesNodeTaints and CheckNodeUnschedulable.
const std::vector<Predicate>& predicates() {
  static const std::vector<Predicate> kTable = {
      {"CheckNodeUnschedulable", {{"NodeUnschedulable", "f"}}},
      {"GeneralPredicates", {{"NodeResourcesFit", "fp"}, {"NodeName", "f"}, {"NodePorts", "fp"}, {"NodeAffinity", "f"}}},
      {"HostName", {{"NodeName", "f"}}},
      {"PodFitsHostPorts", {{"NodePorts", "fp"}}},
      {"MatchNodeSelector", {{"NodeAffinity", "f"}}},
      {"PodFitsResources", {{"NodeResourcesFit", "fp"}}},
      {"NoDiskConflict", {{"VolumeRestrictions", "f"}}},
      {"PodToleratesNodeTaints", {{"TaintToleration", "f"}}},
      {"CheckNodeLabelPresence", {{"NodeLabel", "f"}}},
      {"CheckServiceAffinity", {{"ServiceAffinity", "fp"}}},
      {"MaxEBSVolumeCount", {{"EBSLimits", "f"}}},
      {"MaxGCEPDVolumeCount", {{"GCEPDLimits", "f"}}},
      {"MaxCSIVolumeCountPred", {{"NodeVolumeLimits", "f"}}},
      {"MaxAzureDiskVolumeCount", {{"AzureDiskLimits", "f"}}},
      {"MaxCinderVolumeCount", {{"CinderLimits", "f"}}},
      {"CheckVolumeBinding", {{"VolumeBinding", "fpr"}}},
      {"NoVolumeZoneConflict", {{"VolumeZone", "f"}}},
      {"EvenPodsSpread", {{"PodTopologySpread", "fp"}}},
      {"MatchInterPodAffinity", {{"InterPodAffinity", "fp"}}},
      {"CheckNodeCondition", {}},
      {"CheckNodeMemoryPressure", {}},
      {"CheckNodeDiskPressure", {}},
      {"CheckNodePIDPressure", {}},
      {"PodToleratesNodeNoExecuteTaints", {}},
  };
  return kTable;
}

/// Older and document spellings.
constexpr std::pair<std::string_view, std::string_view> kPredicateAliases[] = {{"PodFitsPorts", "PodFitsHostPorts"},
                                                                               {"checkServiceAffinity", "CheckServiceAffinity"},
                                                                               {"MaxCSIVolumeCount", "MaxCSIVolumeCountPred"},
                                                                               {"MatchNodeSelectorPred", "MatchNodeSelector"}};
constexpr std::string_view kDefaultPredicates[] = {"NoVolumeZoneConflict",    "MaxEBSVolumeCount",      "MaxGCEPDVolumeCount",
                                                   "MaxAzureDiskVolumeCount", "MaxCSIVolumeCountPred",  "MatchInterPodAffinity",
                                                   "NoDiskConflict",          "GeneralPredicates",      "PodToleratesNodeTaints",
                                                   "CheckVolumeBinding",      "CheckNodeUnschedulable", "EvenPodsSpread"};

struct Priority {
  std::string_view name, plugin;
  bool has_pre_score;
};
constexpr Priority kPriorities[] = {
    {"SelectorSpreadPriority", "PodTopologySpread", true},
    {"ServiceSpreadingPriority", "PodTopologySpread", true},
    {"InterPodAffinityPriority", "InterPodAffinity", true},
    {"LeastRequestedPriority", "NodeResourcesLeastAllocated", false},
    {"BalancedResourceAllocation", "NodeResourcesBalancedAllocation", false},
    {"NodePreferAvoidPodsPriority", "NodePreferAvoidPods", false},
    {"NodeAffinityPriority", "NodeAffinity", false},
    {"TaintTolerationPriority", "TaintToleration", true},
    {"MostRequestedPriority", "NodeResourcesMostAllocated", false},
    {"ImageLocalityPriority", "ImageLocality", false},
    {"EvenPodsSpreadPriority", "PodTopologySpread", true},
    {"EqualPriority", "", false},
    {"RequestedToCapacityRatioPriority", "RequestedToCapacityRatio", false},
};
constexpr std::int64_t kMaxWeight = INT64_MAX / 100;

void use(Uses& point, std::string_view plugin, std::int64_t weight = 0) {
  // The first mention keeps its place and its weight.
  if (std::ranges::none_of(point, [&](const auto& one) { return one.name == plugin; })) point.push_back({std::string(plugin), weight});
}

std::string known_names(std::string_view name, bool is_predicate) {
  std::vector<std::string_view> names;
  if (is_predicate) {
    for (const auto& one : predicates()) names.push_back(one.name);
    for (const auto& one : kPredicateAliases) names.push_back(one.first);
  } else {
    for (const auto& one : kPriorities) names.push_back(one.name);
  }
  return suggestion(name, names);
}

/// The one argument set; empty with a problem when there is not exactly one. Absent is fine and empty.
std::string one_argument(const Reader& entry, std::string_view what, std::initializer_list<std::string_view> known) {
  const Reader argument = entry.field("argument");
  if (!argument.expect_object()) return {};
  argument.only(known);
  std::vector<std::string_view> set;
  for (const auto name : known)
    if (argument.has(name)) set.push_back(name);
  if (set.size() == 1) return std::string(set[0]);
  argument.problem(fmt::format("exactly 1 {} argument is required, numArgs: {}, {}: {}; give one of {}", what, set.size(),
                               what == "predicate" ? "Predicate" : "Priority", entry.string("name"), fmt::join(known, ", ")));
  return {};
}

/// `label: "zone"`, or the documents' `label: ["zone"]`. None is a problem unless something is meant by it.
std::vector<std::string> labels_of(const Reader& argument, bool may_be_none = false) {
  const Reader label = argument.field("label");
  std::vector<std::string> out;
  if (label.is_present() && label.value()->is_array()) {
    out = argument.strings("label");
  } else if (auto one = argument.string("label"); !one.empty()) {
    out.push_back(std::move(one));
  }
  const bool is_missing = out.empty() && !(may_be_none && (!label.is_present() || label.value()->is_string()));
  if (is_missing || std::ranges::any_of(out, &std::string::empty)) argument.problem("label", "Required value: a label key is missing");
  return out;
}

class PolicyReader {
 public:
  explicit PolicyReader(const Reader& document) : document_(document) {}

  SchedulerConfig read() {
    document_.only({"kind", "apiVersion", "version", "predicates", "priorities", "extenders", "hardPodAffinitySymmetricWeight",
                    "alwaysCheckAllPredicates", "metadata"});
    const std::string version = document_.string("apiVersion", document_.string("version", "v1"));
    if (version != "v1" && version != "kubescheduler.config.k8s.io/v1")
      document_.problem("apiVersion", fmt::format("unknown version \"{}\" of kind Policy; there is \"v1\"", version));
    out_.era = placement::Era::k120;
    out_.is_policy = true;
    out_.extenders = read_extenders(document_.field("extenders"));
    profile_.era = placement::Era::k120;
    profile_.queue_sort = {{"PrioritySort", 0}};
    profile_.post_filter = {{"DefaultPreemption", 0}};
    profile_.bind = {{"DefaultBinder", 0}};
    profile_.always_check_all_filters = document_.boolean("alwaysCheckAllPredicates", false);
    profile_.args.spread.system_defaulting = false;
    const std::int64_t symmetric = document_.integer("hardPodAffinitySymmetricWeight", 0);
    if (symmetric < 0 || symmetric > 100)
      document_.problem("hardPodAffinitySymmetricWeight", fmt::format("Invalid value: {}: not in valid range [0, 100]", symmetric));
    profile_.args.inter_pod_affinity.hard_pod_affinity_weight = symmetric == 0 ? 1 : symmetric;
    read_predicates();
    read_priorities();
    const auto& labels = profile_.args.node_label;
    refuse_common("predicates", labels.present_labels, labels.absent_labels);
    refuse_common("priorities", labels.present_labels_preference, labels.absent_labels_preference);
    out_.profiles.push_back(std::move(profile_));
    return std::move(out_);
  }

 private:
  void refuse_common(std::string_view list, const std::vector<std::string>& present, const std::vector<std::string>& absent) const {
    for (const auto& label : present)
      if (std::ranges::find(absent, label) != absent.end())
        document_.problem(list, fmt::format("Invalid value: \"{}\": a label is asked to be present and to be absent", label));
  }

  static const std::string& without_argument(const Reader& entry, const std::string& name) {
    entry.without_effect({"argument"}, "the name is Kubernetes' own; give the entry a name of yours");
    return name;
  }

  /// The documents (16.2.5.1.2) and 1.20 take these names alone; the labels that they look at come of entries with arguments.
  static void tell_of_no_labels(const Reader& entry, std::string_view name) {
    const std::string_view argument = name == "CheckNodeLabelPresence" ? "labelsPresence"
                                      : name == "CheckServiceAffinity" ? "serviceAffinity"
                                                                       : "";
    if (!argument.empty())
      entry.note(
          "name",
          fmt::format("{} alone names no label and lets every node pass; an entry with a name of yours and the argument {} names them",
                      name, argument));
  }

  /// Kubernetes takes the last of two entries of one name, in silence.
  static void refuse_second(const Reader& entry, std::string_view what, std::set<std::string>& seen) {
    const std::string name = entry.string("name");
    if (!name.empty() && !seen.insert(name).second)
      entry.problem("name", fmt::format("Duplicate value: {} \"{}\" is there already", what, name), Refusal::kOfBerth);
  }

  void read_predicates() {
    std::set<std::string, std::less<>> keys = {"PodToleratesNodeTaints", "CheckNodeUnschedulable"};
    if (!document_.has("predicates")) {
      keys.insert(std::begin(kDefaultPredicates), std::end(kDefaultPredicates));
    } else {
      std::set<std::string> seen;
      for (const auto& entry : document_.field("predicates").items()) {
        if (!entry.expect_object()) {
          entry.problem("must be a map with a name");
          continue;
        }
        entry.only({"name", "argument"});
        refuse_second(entry, "predicate", seen);
        if (const auto key = predicate(entry); !key.empty()) keys.insert(key);
      }
    }
    for (const auto& one : predicates()) {
      if (!keys.contains(one.name)) continue;
      for (const auto& [plugin, points] : one.plugins) {
        for (const char point : points) {
          if (point == 'f') use(profile_.filter, plugin);
          if (point == 'p') use(profile_.pre_filter, plugin);
          if (point == 'r') use(profile_.reserve, plugin), use(profile_.pre_bind, plugin);
        }
      }
    }
  }

  std::string predicate(const Reader& entry) {
    std::string name = entry.string("name");
    if (name.empty() && !entry.has("argument")) {
      entry.problem("name", "Required value: every predicate has a name");
      return {};
    }
    const std::string argument = one_argument(entry, "predicate", {"serviceAffinity", "labelsPresence"});
    for (const auto& [alias, canonical] : kPredicateAliases)
      if (name == alias) name = canonical;
    const bool is_known = std::ranges::any_of(predicates(), [&](const auto& one) { return one.name == name; });
    // A predicate of Kubernetes' own name is that predicate, whatever argument comes with it.
    if (is_known) {
      tell_of_no_labels(entry, name);
      return without_argument(entry, name);
    }
    if (argument.empty()) {
      if (!entry.has("argument"))
        entry.problem(
            "name",
            fmt::format("predicate type not found for \"{}\"{}; a name of your own needs an argument (serviceAffinity or labelsPresence)",
                        name, known_names(name, true)));
      return {};
    }
    const Reader at = entry.field("argument").field(argument);
    if (!at.expect_object()) return {};
    const auto labels = at.strings("labels");
    if (argument == "serviceAffinity") {
      at.only({"labels"});
      auto& all = profile_.args.service_affinity.affinity_labels;
      all.insert(all.end(), labels.begin(), labels.end());
      return "CheckServiceAffinity";
    }
    at.only({"labels", "presence"});
    auto& args = profile_.args.node_label;
    auto& all = at.boolean("presence", false) ? args.present_labels : args.absent_labels;
    all.insert(all.end(), labels.begin(), labels.end());
    return "CheckNodeLabelPresence";
  }

  void read_priorities() {
    // By name: the order of Go's sorted keys decides which of two names for one plugin sets the weight.
    std::map<std::string, std::int64_t, std::less<>> keys;
    if (!document_.has("priorities")) {
      keys = {{"SelectorSpreadPriority", 1},     {"InterPodAffinityPriority", 1},        {"LeastRequestedPriority", 1},
              {"BalancedResourceAllocation", 1}, {"NodePreferAvoidPodsPriority", 10000}, {"NodeAffinityPriority", 1},
              {"TaintTolerationPriority", 1},    {"ImageLocalityPriority", 1},           {"EvenPodsSpreadPriority", 2}};
    } else {
      std::map<std::string, std::int64_t> custom_weights;
      std::set<std::string> seen;
      for (const auto& entry : document_.field("priorities").items()) {
        if (!entry.expect_object()) {
          entry.problem("must be a map with a name and a weight");
          continue;
        }
        entry.only({"name", "weight", "argument"});
        refuse_second(entry, "priority", seen);
        const std::int64_t weight = entry.integer("weight", 0);
        const std::string name = entry.string("name");
        if (weight <= 0 || weight >= kMaxWeight)
          entry.problem(
              "weight",
              fmt::format("Invalid value: {}: Priority {} should have a positive weight applied to it or it has overflown", weight, name));
        const std::string key = priority(entry, name);
        if (key.empty()) continue;
        if (key == "ServiceAffinity" || key == "NodeLabel") {
          // One plugin scores all labels of a kind, so they share a weight.
          const auto [at, is_new] = custom_weights.emplace(key, weight);
          if (!is_new && at->second != weight)
            entry.problem("weight",
                          fmt::format("{} priority \"{}\" has a different weight with \"{}\": all of one kind must have the same weight",
                                      key == "NodeLabel" ? "LabelPreference" : "ServiceAntiAffinity", name, at->second));
        }
        keys[key] = weight;
      }
    }
    if (keys.contains("SelectorSpreadPriority")) profile_.args.spread.system_defaulting = true;
    for (const auto& [key, weight] : keys) {
      std::string_view plugin = key;
      std::int64_t times = 1;
      bool pre_score = key == "ServiceAffinity";
      if (const auto at = std::ranges::find(kPriorities, key, &Priority::name); at != std::end(kPriorities)) {
        plugin = at->plugin;
        pre_score = at->has_pre_score;
      }
      if (key == "NodeLabel") {
        const auto& args = profile_.args.node_label;
        times = static_cast<std::int64_t>(args.present_labels_preference.size() + args.absent_labels_preference.size());
      }
      if (key == "ServiceAffinity") {
        times = static_cast<std::int64_t>(profile_.args.service_affinity.anti_affinity_labels_preference.size());
        pre_score = false;
      }
      if (pre_score) use(profile_.pre_score, plugin);
      use(profile_.score, plugin, weight > kMaxWeight / std::max<std::int64_t>(times, 1) ? weight : weight * times);
    }
  }

  /// The key under which the priority counts; empty for EqualPriority and after a problem.
  std::string priority(const Reader& entry, const std::string& name) {
    if (name.empty()) {
      entry.problem("name", "Required value: every priority has a name");
      return {};
    }
    const std::string argument =
        one_argument(entry, "priority", {"serviceAntiAffinity", "labelPreference", "requestedToCapacityRatioArguments"});
    if (name == "EqualPriority") return {};
    if (name == "ServiceSpreadingPriority") return "SelectorSpreadPriority";
    const bool is_known = std::ranges::find(kPriorities, name, &Priority::name) != std::end(kPriorities);
    if (argument.empty()) {
      if (is_known && name != "RequestedToCapacityRatioPriority") return name;
      if (name == "RequestedToCapacityRatioPriority") {
        entry.problem("argument", "Required value: RequestedToCapacityRatioPriority needs requestedToCapacityRatioArguments");
      } else if (!entry.has("argument")) {
        entry.problem(
            "name",
            fmt::format("priority type not found for \"{}\"{}; a name of your own needs an argument (serviceAntiAffinity, labelPreference "
                        "or requestedToCapacityRatioArguments)",
                        name, known_names(name, false)));
      }
      return {};
    }
    if (is_known && name != "RequestedToCapacityRatioPriority") return without_argument(entry, name);
    const Reader at = entry.field("argument").field(argument);
    if (!at.expect_object()) return {};
    if (argument == "serviceAntiAffinity") {
      at.only({"label"});
      for (auto& label : labels_of(at)) profile_.args.service_affinity.anti_affinity_labels_preference.push_back(std::move(label));
      return "ServiceAffinity";
    }
    if (argument == "labelPreference") {
      at.only({"label", "presence"});
      auto& args = profile_.args.node_label;
      auto& list = at.boolean("presence", false) ? args.present_labels_preference : args.absent_labels_preference;
      auto labels = labels_of(at, true);
      if (labels.empty()) {
        args.absent_labels_preference.emplace_back();  // Of no label at all.
        at.note("without a label: nodes without labels of their own are preferred, whatever presence says");
      }
      std::ranges::move(labels, std::back_inserter(list));
      return "NodeLabel";
    }
    at.only({"shape", "utilizationShape", "resources"});
    profile_.args.ratio.shape = read_shape(at.field(at.has("utilizationShape") ? "utilizationShape" : "shape"), true);
    profile_.args.ratio.resources = read_resources(at.field("resources"), {{"cpu", 1}, {"memory", 1}}, kRatioWeights);
    return "RequestedToCapacityRatio";
  }

  const Reader& document_;
  SchedulerConfig out_;
  Profile profile_;
};

}  // namespace

SchedulerConfig read_policy(const Reader& document) { return PolicyReader(document).read(); }

}  // namespace berth::scheduler::config
