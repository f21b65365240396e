#include "placement/profile.h"

#include <algorithm>

namespace berth::placement {
namespace {

std::vector<PluginUse> names(std::initializer_list<const char*> list) {
  std::vector<PluginUse> out;
  for (const char* name : list) out.push_back({name, 0});
  return out;
}

/// pkg/scheduler/apis/config/v1/default_plugins.go, each plugin at every point it extends, in its order.
Profile profile_136() {
  Profile out;
  out.era = Era::k136;
  out.pre_enqueue = names({"SchedulingGates", "DynamicResources"});
  out.queue_sort = names({"PrioritySort"});
  out.pre_filter = names({"NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding",
                          "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures"});
  out.filter = names({"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
                      "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
                      "DynamicResources", "NodeDeclaredFeatures"});
  out.post_filter = names({"DynamicResources", "DefaultPreemption"});
  out.pre_score = names({"TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread", "InterPodAffinity",
                         "NodeResourcesBalancedAllocation"});
  out.score = {{"TaintToleration", 3},   {"NodeAffinity", 2},     {"NodeResourcesFit", 1}, {"VolumeBinding", 1},
               {"PodTopologySpread", 2}, {"InterPodAffinity", 2}, {"DynamicResources", 2}, {"NodeResourcesBalancedAllocation", 1},
               {"ImageLocality", 1}};
  out.reserve = names({"VolumeBinding", "DynamicResources"});
  out.pre_bind = names({"VolumeBinding", "DynamicResources"});
  out.bind = names({"DefaultBinder"});
  return out;
}

/// pkg/scheduler/algorithmprovider/registry.go of 1.20.
Profile profile_120() {
  Profile out;
  out.era = Era::k120;
  out.queue_sort = names({"PrioritySort"});
  out.pre_filter = names({"NodeResourcesFit", "NodePorts", "PodTopologySpread", "InterPodAffinity", "VolumeBinding"});
  out.filter = names({"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
                      "VolumeRestrictions", "EBSLimits", "GCEPDLimits", "NodeVolumeLimits", "AzureDiskLimits", "VolumeBinding",
                      "VolumeZone", "PodTopologySpread", "InterPodAffinity"});
  out.post_filter = names({"DefaultPreemption"});
  out.pre_score = names({"InterPodAffinity", "PodTopologySpread", "TaintToleration"});
  out.score = {{"NodeResourcesBalancedAllocation", 1},
               {"ImageLocality", 1},
               {"InterPodAffinity", 1},
               {"NodeResourcesLeastAllocated", 1},
               {"NodeAffinity", 1},
               {"NodePreferAvoidPods", 10000},
               {"PodTopologySpread", 2},
               {"TaintToleration", 1}};
  out.reserve = names({"VolumeBinding"});
  out.pre_bind = names({"VolumeBinding"});
  out.bind = names({"DefaultBinder"});
  return out;
}

}  // namespace

bool Profile::has(const std::vector<PluginUse>& point, std::string_view name) const {
  return std::ranges::any_of(point, [&](const PluginUse& use) { return use.name == name; });
}

Profile default_profile(Era era) { return era == Era::k120 ? profile_120() : profile_136(); }

Profile cluster_autoscaler_profile() {
  Profile out = profile_120();
  for (auto& use : out.score)
    if (use.name == "NodeResourcesLeastAllocated") use.name = "NodeResourcesMostAllocated";
  return out;
}

}  // namespace berth::placement
