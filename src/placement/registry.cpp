// Every plugin of both eras by its Kubernetes name.
#include <algorithm>
#include <deque>

#include "base/config_reader.h"
#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

constexpr PluginRegistration kPlugins[] = {
    {"SchedulingGates", make_scheduling_gates},
    {"PrioritySort", make_priority_sort},
    {"DefaultBinder", make_default_binder},
    {"DefaultPreemption", make_default_preemption},
    {"DynamicResources", make_dynamic_resources},
    {"NodeDeclaredFeatures", make_node_declared_features},
    {"NodeResourceTopologyMatch", nullptr, build_node_resource_topology_match},
    {"NodeUnschedulable", make_node_unschedulable},
    {"NodeName", make_node_name},
    {"NodePorts", make_node_ports},
    {"TaintToleration", make_taint_toleration},
    {"NodeAffinity", make_node_affinity},
    {"NodeResourcesFit", make_node_resources_fit},
    {"NodeResourcesBalancedAllocation", make_balanced_allocation},
    {"NodeResourcesLeastAllocated", make_least_allocated},
    {"NodeResourcesMostAllocated", make_most_allocated},
    {"RequestedToCapacityRatio", make_requested_to_capacity_ratio},
    {"ImageLocality", make_image_locality},
    {"PodTopologySpread", make_pod_topology_spread},
    {"InterPodAffinity", make_inter_pod_affinity},
    {"SelectorSpread", make_selector_spread},
    {"NodePreferAvoidPods", make_node_prefer_avoid_pods},
    {"NodeLabel", make_node_label},
    {"ServiceAffinity", make_service_affinity},
    {"VolumeBinding", make_volume_binding},
    {"VolumeZone", make_volume_zone},
    {"VolumeRestrictions", make_volume_restrictions},
    {"NodeVolumeLimits", make_node_volume_limits},
    {"EBSLimits", make_ebs_limits},
    {"GCEPDLimits", make_gce_pd_limits},
    {"AzureDiskLimits", make_azure_disk_limits},
    {"CinderLimits", make_cinder_limits},
};

/// A deque: what find_plugin pointed at stays.
std::deque<PluginRegistration>& added() {
  static std::deque<PluginRegistration> all;
  return all;
}

}  // namespace

std::vector<PluginRegistration> plugin_registry() {
  std::vector<PluginRegistration> out(std::begin(kPlugins), std::end(kPlugins));
  out.insert(out.end(), added().begin(), added().end());
  return out;
}

Result<PluginPtr> make_plugin(const PluginRegistration& registration, const Profile& profile) {
  if (registration.make != nullptr) return registration.make(profile);
  const auto given = profile.args.own.find(registration.name);
  // Who made the profile without a file has no lines to tell.
  config::Problems problems(fmt::format("arguments of plugin {}", registration.name), [](const std::string&) { return 0; });
  auto made = registration.build(config::Reader(given == profile.args.own.end() ? nullptr : &given->second, "args", problems), profile);
  if (!problems.empty()) return invalid(problems.text());
  if (made == nullptr) return invalid(fmt::format("plugin {} was not made, and does not say why", registration.name));
  return made;
}

bool register_plugin(const PluginRegistration& registration) {
  if (find_plugin(registration.name) != nullptr) return false;
  added().push_back(registration);
  return true;
}

const PluginRegistration* find_plugin(std::string_view name) {
  const auto at = std::ranges::find(kPlugins, name, &PluginRegistration::name);
  if (at != std::end(kPlugins)) return at;
  const auto own = std::ranges::find(added(), name, &PluginRegistration::name);
  return own == added().end() ? nullptr : &*own;
}

}  // namespace berth::placement
