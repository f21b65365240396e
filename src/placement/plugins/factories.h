// The makers of the plugins, one a file, collected by placement/registry.cpp.
#pragma once
#include "placement/plugin_of.h"

namespace berth::placement {

Result<PluginPtr> make_scheduling_gates(const Profile& profile);
Result<PluginPtr> make_priority_sort(const Profile& profile);
Result<PluginPtr> make_default_binder(const Profile& profile);
Result<PluginPtr> make_default_preemption(const Profile& profile);
Result<PluginPtr> make_dynamic_resources(const Profile& profile);
Result<PluginPtr> make_node_declared_features(const Profile& profile);
PluginPtr build_node_resource_topology_match(const config::Reader& args, const Profile& profile);
Result<PluginPtr> make_node_unschedulable(const Profile& profile);
Result<PluginPtr> make_node_name(const Profile& profile);
Result<PluginPtr> make_node_ports(const Profile& profile);
Result<PluginPtr> make_taint_toleration(const Profile& profile);
Result<PluginPtr> make_node_affinity(const Profile& profile);
Result<PluginPtr> make_node_resources_fit(const Profile& profile);
Result<PluginPtr> make_balanced_allocation(const Profile& profile);
Result<PluginPtr> make_least_allocated(const Profile& profile);
Result<PluginPtr> make_most_allocated(const Profile& profile);
Result<PluginPtr> make_requested_to_capacity_ratio(const Profile& profile);
Result<PluginPtr> make_image_locality(const Profile& profile);
Result<PluginPtr> make_pod_topology_spread(const Profile& profile);
Result<PluginPtr> make_inter_pod_affinity(const Profile& profile);
Result<PluginPtr> make_selector_spread(const Profile& profile);
Result<PluginPtr> make_node_prefer_avoid_pods(const Profile& profile);
Result<PluginPtr> make_node_label(const Profile& profile);
Result<PluginPtr> make_service_affinity(const Profile& profile);
Result<PluginPtr> make_volume_binding(const Profile& profile);
Result<PluginPtr> make_volume_zone(const Profile& profile);
Result<PluginPtr> make_volume_restrictions(const Profile& profile);
Result<PluginPtr> make_node_volume_limits(const Profile& profile);
Result<PluginPtr> make_ebs_limits(const Profile& profile);
Result<PluginPtr> make_gce_pd_limits(const Profile& profile);
Result<PluginPtr> make_azure_disk_limits(const Profile& profile);
Result<PluginPtr> make_cinder_limits(const Profile& profile);

}  // namespace berth::placement
