#include "scheduler/wakeup.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "placement/cluster_kinds.h"

namespace berth::scheduler {
namespace {

using enum ClusterEvent;

/// What the plugin of this profile, with its arguments, registers for.
EventSet events_of(std::string_view name, const placement::Framework& framework) {
  if (name == kDisruptionBudgets) return kDisruptionBudget;
  if (name == kGangScheduling) return {};
  if (name == kGroupDomains) return EventSet(kNodeAdded) | kNodeLabels;
  const placement::Plugin* plugin = framework.find(name);
  return plugin != nullptr ? plugin->events_to_register() : placement::all_events();
}

}  // namespace

PluginSet PluginBits::bit(std::string_view name, const placement::Framework& framework) {
  auto found = std::ranges::find(names_, name);
  if (found == names_.end()) {
    names_.emplace_back(name);
    events_.emplace_back();
    found = names_.end() - 1;
  }
  const auto at = static_cast<std::size_t>(found - names_.begin());
  events_[at] |= events_of(name, framework);
  return PluginSet{1} << std::min<std::size_t>(at, 63);
}

PluginSet PluginBits::set_of(std::span<const std::string_view> plugins, const placement::Framework& framework) {
  PluginSet out = 0;
  for (const std::string_view plugin : plugins) out |= bit(plugin, framework);
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

bool PluginBits::any_hint(PluginSet plugins, const placement::Framework& framework, const placement::Cluster& cluster,
                          const placement::PodInfo& pending, const EventChange& change) const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if ((plugins & (PluginSet{1} << std::min<std::size_t>(i, 63))) == 0 || !events_of(names_[i], framework).has(change.event)) continue;
    const placement::Plugin* plugin = framework.find(names_[i]);
    if (plugin == nullptr || plugin->queueing_hint(cluster, pending, change)) return true;
  }
  return false;
}

std::string event_label(ClusterEvent event, std::string_view kind, ObjectVerb verb) {
  static constexpr std::array<std::string_view, 3> kVerbs = {"Add", "Update", "Delete"};
  static const std::map<ClusterEvent, std::string_view> table = {
      {kNodeAdded, "NodeAdd"},
      {kNodeAllocatable, "NodeUpdateNodeAllocatable"},
      {kNodeLabels, "NodeUpdateNodeLabel"},
      {kNodeTaints, "NodeUpdateNodeTaint"},
      {kNodeConditions, "NodeUpdateNodeCondition"},
      {kNodeOther, "NodeUpdateNodeAnnotation"},
      {kNodeFeatures, "NodeUpdateNodeDeclaredFeature"},
      {kNodeDeleted, "NodeDelete"},
      {kAssignedPodAdded, "AssignedPodAdd"},
      {kAssignedPodLabels, "AssignedPodUpdatePodLabel"},
      {kAssignedPodResized, "AssignedPodUpdatePodScaleDown"},
      {kAssignedPodOther, "AssignedPodUpdate"},
      {kAssignedPodDeleted, "AssignedPodDelete"},
      {kOwnLabels, "UnschedulablePodUpdatePodLabel"},
      {kOwnTolerations, "UnschedulablePodUpdatePodToleration"},
      {kOwnScaledDown, "UnschedulablePodUpdatePodScaleDown"},
      {kOwnClaims, "UnschedulablePodUpdatePodGeneratedResourceClaim"},
      {kOwnOther, "UnschedulablePodUpdate"},
  };
  if (const auto found = table.find(event); found != table.end()) return std::string(found->second);
  const bool is_about_devices = event == kResourceClaim || event == kDevices;
  if (kind.empty() && is_about_devices) kind = event == kDevices ? "ResourceSlice" : "ResourceClaim";
  const placement::ClusterResource* resource = placement::find_cluster_resource(kind);
  const bool is_prefixed = resource != nullptr && (resource->group == "storage.k8s.io" || resource->group == "resource.k8s.io");
  return fmt::format("{}{}{}{}", is_prefixed ? resource->group : "", is_prefixed ? "/" : "", kind, kVerbs[static_cast<std::size_t>(verb)]);
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
  if (a.taints != b.taints || (a.unschedulable && !b.unschedulable)) out |= kNodeTaints;
  if (!a.unschedulable && b.unschedulable) out |= kNodeCordoned;
  if (a.declared_features != b.declared_features) out |= kNodeFeatures;
  if (conditions(a) != conditions(b)) out |= kNodeConditions;
  if (a.meta.annotations != b.meta.annotations || images(a) != images(b)) out |= kNodeOther;
  return out;
}

bool is_scaled_down(const placement::PodInfo& before, const placement::PodInfo& after) {
  const placement::Resource& then = before.request.total;
  const placement::Resource& now = after.request.total;
  return now.cpu_milli < then.cpu_milli || now.memory_bytes < then.memory_bytes ||
         now.ephemeral_storage_bytes < then.ephemeral_storage_bytes ||
         std::ranges::any_of(then.scalars, [&](const auto& one) { return now.scalar(one.first) < one.second; });
}

EventSet own_changes(const placement::PodInfo& before, const placement::PodInfo& after) {
  EventSet out;
  if (before.view().meta.labels != after.view().meta.labels) out |= kOwnLabels;
  if (before.view().tolerations != after.view().tolerations) out |= kOwnTolerations;
  if (before.view().resource_claims != after.view().resource_claims) out |= kOwnClaims;
  if (is_scaled_down(before, after)) out |= kOwnScaledDown;
  if (before.view().meta.annotations != after.view().meta.annotations ||
      before.view().meta.owner_references != after.view().meta.owner_references)
    out |= kOwnOther;
  return out;
}

}  // namespace berth::scheduler
