#include "placement/devices/class_totals.h"

#include "placement/devices/extended.h"
#include "placement/devices/pools.h"

namespace berth::placement::devices {

AllocatedState allocated_devices(const Cluster& cluster) {
  AllocatedState out;
  for (const auto& [key, claim] : cluster.resource_claims())
    if (claim->allocation != nullptr) out.add(*claim->allocation);
  for (const auto& [uid, pending] : cluster.pending_allocations()) out.add(*pending.allocation);
  return out;
}

ClassTotals::ClassTotals(const Cluster& cluster) : cluster_(cluster), allocated_(allocated_devices(cluster)) {
  for (const auto& [name, slice] : cluster.resource_slices()) {
    if (slice->node_name && !slice->node_name->empty())
      slices_of_node_[*slice->node_name].push_back(slice.get());
    else
      shared_slices_.push_back(slice.get());
  }
}

std::optional<bool> ClassTotals::is_meant(const model::DeviceClassView& device_class, const model::ResourceSliceView& slice,
                                          const model::DeviceView& device) {
  for (const std::string& selector : device_class.selectors) {
    const auto matches = matcher_.matches(selector, slice.driver, device);
    if (!matches) return std::nullopt;
    if (!*matches) return false;
  }
  return true;
}

ClassTotals::Amounts ClassTotals::of(const NodeInfo& node, const std::string& resource) {
  Amounts out;
  const model::DeviceClassView* device_class = class_behind(cluster_, resource);
  if (device_class == nullptr) return out;
  auto slices = shared_slices_;
  if (const auto own = slices_of_node_.find(node.name); own != slices_of_node_.end())
    slices.insert(slices.end(), own->second.begin(), own->second.end());
  for (const auto* slice : slices) {
    if (!slice->per_device && !reaches(*node.node, slice->node_name, slice->all_nodes, slice->node_selector)) continue;
    for (const auto& device : slice->devices) {
      if (slice->per_device && !reaches(*node.node, device.node_name, device.all_nodes, device.node_selector)) continue;
      const auto counts = is_meant(*device_class, *slice, device);
      if (!counts) return {};
      if (!*counts) continue;
      ++out.capacity;
      if (allocated_.is_allocated({slice->driver, slice->pool, device.name})) ++out.allocated;
    }
  }
  return out;
}

}  // namespace berth::placement::devices
