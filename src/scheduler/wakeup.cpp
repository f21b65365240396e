#include "scheduler/wakeup.h"

#include <algorithm>
#include <map>

namespace berth::scheduler {
namespace {

using Events = std::vector<ClusterEvent>;

/// Nullptr for a plugin that is not listed: any event may help then.
const Events* events_of(std::string_view plugin) {
  using enum ClusterEvent;
  static const std::map<std::string_view, Events> table = {
      {"NodeResourcesFit", {kNodeAdded, kNodeChanged, kAssignedPodRemoved, kAssignedPodChanged}},
      {"NodePorts", {kNodeAdded, kAssignedPodRemoved}},
      {"NodeName", {kNodeAdded}},
      {"NodeUnschedulable", {kNodeAdded, kNodeChanged}},
      {"NodeAffinity", {kNodeAdded, kNodeChanged}},
      {"NodeLabel", {kNodeAdded, kNodeChanged}},
      {"TaintToleration", {kNodeAdded, kNodeChanged}},
      {"InterPodAffinity", {kNodeAdded, kNodeChanged, kAssignedPodAdded, kAssignedPodChanged, kAssignedPodRemoved, kNamespaces}},
      {"PodTopologySpread", {kNodeAdded, kNodeChanged, kAssignedPodAdded, kAssignedPodChanged, kAssignedPodRemoved}},
      {"ServiceAffinity", {kNodeAdded, kNodeChanged, kAssignedPodAdded, kAssignedPodRemoved, kServices}},
      {"VolumeBinding", {kNodeAdded, kNodeChanged, kVolumes}},
      {"VolumeZone", {kNodeAdded, kNodeChanged, kVolumes}},
      {"VolumeRestrictions", {kAssignedPodRemoved, kNodeAdded, kVolumes}},
      {"NodeVolumeLimits", {kAssignedPodRemoved, kNodeAdded, kVolumes}},
      {"EBSLimits", {kAssignedPodRemoved, kNodeAdded, kNodeChanged, kVolumes}},
      {"GCEPDLimits", {kAssignedPodRemoved, kNodeAdded, kNodeChanged, kVolumes}},
      {"AzureDiskLimits", {kAssignedPodRemoved, kNodeAdded, kNodeChanged, kVolumes}},
      {"CinderLimits", {kAssignedPodRemoved, kNodeAdded, kNodeChanged, kVolumes}},
  };
  const auto found = table.find(plugin);
  return found == table.end() ? nullptr : &found->second;
}

constexpr std::size_t kEvents = 8;

}  // namespace

PluginSet PluginBits::bit(std::string_view plugin) {
  auto found = std::find(names_.begin(), names_.end(), plugin);
  if (found == names_.end()) {
    names_.emplace_back(plugin);
    cured_.clear();
    found = names_.end() - 1;
  }
  return PluginSet{1} << std::min<std::size_t>(static_cast<std::size_t>(found - names_.begin()), 63);
}

PluginSet PluginBits::set_of(std::span<const std::string_view> plugins) {
  PluginSet out = 0;
  for (const std::string_view plugin : plugins) out |= bit(plugin);
  return out;
}

PluginSet PluginBits::cured_by(ClusterEvent event) {
  if (cured_.empty()) {
    cured_.assign(kEvents, 0);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const PluginSet mine = PluginSet{1} << std::min<std::size_t>(i, 63);
      const Events* events = events_of(names_[i]);
      for (std::size_t e = 0; e < kEvents; ++e)
        if (events == nullptr || std::find(events->begin(), events->end(), static_cast<ClusterEvent>(e)) != events->end()) cured_[e] |= mine;
    }
  }
  return cured_[static_cast<std::size_t>(event)];
}

}  // namespace berth::scheduler
