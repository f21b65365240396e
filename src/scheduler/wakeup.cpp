#include "scheduler/wakeup.h"

#include <algorithm>
#include <map>

namespace berth::scheduler {
namespace {

using enum ClusterEvent;

constexpr EventSet all_events() {
  EventSet out;
  for (unsigned i = 0; i < static_cast<unsigned>(kCount); ++i)
    if (static_cast<ClusterEvent>(i) != kDisruptionBudget) out |= static_cast<ClusterEvent>(i);
  return out;
}

bool any_term_matches(const std::vector<placement::AffinityTerm>& terms, const placement::Cluster& cluster, const placement::PodInfo* pod) {
  if (pod == nullptr) return false;
  return std::ranges::any_of(terms,
                             [&](const auto& term) { return term.matches(pod->view(), cluster.namespace_labels(pod->view().ns())); });
}

}  // namespace

EventSet events_of(std::string_view plugin) {
  // Volumes of clouds are limited by what the node says and by what runs there.
  constexpr EventSet kCloudLimits = {kNodeAdded, kNodeAllocatable, kAssignedPodDeleted, kClaim, kPersistentVolume, kStorageClass, kCsiNode};
  static const std::map<std::string_view, EventSet> table = {
      {"NodeResourcesFit", {kNodeAdded, kNodeAllocatable, kAssignedPodDeleted, kAssignedPodResized, kOwnScaledDown}},
      {"DynamicResources", {kNodeAdded, kNodeLabels, kNodeAllocatable, kResourceClaim, kDevices, kOwnClaims}},
      {"NodePorts", {kNodeAdded, kAssignedPodDeleted}},
      {"NodeName", {kNodeAdded}},
      {"NodeUnschedulable", {kNodeAdded, kNodeTaints, kOwnTolerations}},
      {"NodeAffinity", {kNodeAdded, kNodeLabels}},
      {"NodeLabel", {kNodeAdded, kNodeLabels}},
      {"TaintToleration", {kNodeAdded, kNodeTaints, kOwnTolerations}},
      {"InterPodAffinity", {kNodeAdded, kNodeLabels, kAssignedPodAdded, kAssignedPodLabels, kAssignedPodDeleted, kNamespaces, kOwnLabels}},
      {"PodTopologySpread",
       {kNodeAdded, kNodeDeleted, kNodeLabels, kNodeTaints, kAssignedPodAdded, kAssignedPodLabels, kAssignedPodDeleted, kOwnLabels}},
      {"ServiceAffinity",
       {kNodeAdded, kNodeDeleted, kNodeLabels, kAssignedPodAdded, kAssignedPodLabels, kAssignedPodDeleted, kServices, kOwnLabels}},
      {"VolumeBinding", {kNodeAdded, kNodeLabels, kPersistentVolume, kClaim, kStorageClass, kCsiNode, kCsiDriver, kCsiStorageCapacity}},
      {"VolumeZone", {kNodeAdded, kNodeLabels, kPersistentVolume, kClaim, kStorageClass}},
      {"VolumeRestrictions", {kNodeAdded, kAssignedPodDeleted, kClaim}},
      {"NodeVolumeLimits", {kNodeAdded, kAssignedPodDeleted, kClaim, kCsiNode}},
      {"EBSLimits", kCloudLimits},
      {"GCEPDLimits", kCloudLimits},
      {"AzureDiskLimits", kCloudLimits},
      {"CinderLimits", kCloudLimits},
      // Not a plugin: stands for a preemption that hard budgets forbade.
      {"DisruptionBudgets", {kDisruptionBudget}},
  };
  const auto found = table.find(plugin);
  return found == table.end() ? all_events() : found->second;
}

PluginSet PluginBits::bit(std::string_view plugin) {
  auto found = std::find(names_.begin(), names_.end(), plugin);
  if (found == names_.end()) {
    names_.emplace_back(plugin);
    events_.push_back(events_of(plugin));
    found = names_.end() - 1;
  }
  return PluginSet{1} << std::min<std::size_t>(static_cast<std::size_t>(found - names_.begin()), 63);
}

PluginSet PluginBits::set_of(std::span<const std::string_view> plugins) {
  PluginSet out = 0;
  for (const std::string_view plugin : plugins) out |= bit(plugin);
  return out;
}

PluginSet PluginBits::cured_by(EventSet events) const {
  PluginSet out = 0;
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (events_[i].intersects(events)) out |= PluginSet{1} << std::min<std::size_t>(i, 63);
  return out;
}

std::vector<std::string_view> PluginBits::names(PluginSet plugins) const {
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < names_.size(); ++i)
    if ((plugins & (PluginSet{1} << std::min<std::size_t>(i, 63))) != 0) out.push_back(names_[i]);
  return out;
}

EventSet node_changes(const model::NodeView& a, const model::NodeView& b) {
  const auto conditions = [](const model::NodeView& node) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const auto& condition : node.conditions) out.emplace_back(condition.type, condition.status);
    return out;
  };
  const auto images = [](const model::NodeView& node) {
    std::size_t names = 0;
    std::int64_t bytes = 0;
    for (const auto& image : node.images) {
      bytes += image.size_bytes;
      names += image.names.size();
    }
    return std::tuple(node.images.size(), names, bytes);
  };
  EventSet out;
  if (a.allocatable != b.allocatable) out |= kNodeAllocatable;
  if (a.meta.labels != b.meta.labels) out |= kNodeLabels;
  if (a.taints != b.taints || a.unschedulable != b.unschedulable) out |= kNodeTaints;
  if (conditions(a) != conditions(b)) out |= kNodeConditions;
  if (a.meta.annotations != b.meta.annotations || images(a) != images(b)) out |= kNodeOther;
  return out;
}

EventSet own_changes(const placement::PodInfo& before, const placement::PodInfo& after) {
  EventSet out;
  if (before.view().meta.labels != after.view().meta.labels) out |= kOwnLabels;
  if (before.view().tolerations != after.view().tolerations) out |= kOwnTolerations;
  if (before.view().resource_claims != after.view().resource_claims) out |= kOwnClaims;
  if (!(before.request.total == after.request.total)) out |= kOwnScaledDown;
  return out;
}

bool affinity_may_help(const placement::Cluster& cluster, const placement::PodInfo& pending, const PodChange& change) {
  if (change.pod == nullptr) return true;
  if (change.events.has(kAssignedPodDeleted))
    return any_term_matches(pending.required_anti_affinity, cluster, change.pod) ||
           any_term_matches(change.pod->required_anti_affinity, cluster, &pending) ||
           // The last pod it wanted to be near may go: then it may be the first of its own group anywhere.
           any_term_matches(pending.required_affinity, cluster, change.pod);
  if (any_term_matches(pending.required_affinity, cluster, change.pod)) return true;
  // It wears another label now: it may have left a group that is kept off, or the last one of a group that is wanted near.
  return change.before != nullptr && (any_term_matches(pending.required_anti_affinity, cluster, change.before) ||
                                      any_term_matches(pending.required_affinity, cluster, change.before));
}

bool spread_may_help(const placement::PodInfo& pending, const PodChange& change) {
  if (change.pod == nullptr) return true;
  if (change.pod->view().ns() != pending.view().ns()) return false;
  bool has_hard = false;
  for (const auto& constraint : pending.view().spread_constraints) {
    if (!constraint.is_hard) continue;
    has_hard = true;
    if (constraint.selector.matches(change.pod->view().meta.labels) ||
        (change.before != nullptr && constraint.selector.matches(change.before->view().meta.labels)))
      return true;
  }
  return !has_hard;
}

}  // namespace berth::scheduler
