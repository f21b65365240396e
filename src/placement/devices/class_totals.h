// How many devices of a class a node can reach, and how many of them are given away: the node's amount of the resource that the class
// stands for, where it has none of its own (pkg/scheduler/framework/plugins/noderesources/resource_allocation.go, KEP-5004).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "placement/devices/allocator.h"
#include "placement/devices/matcher.h"
#include "placement/framework.h"

namespace berth::placement::devices {

/// What claims have, and what is about to be theirs.
[[nodiscard]] AllocatedState allocated_devices(const Cluster& cluster);

/// Of one cycle: nothing of the cluster's devices and claims may change while it is used. One thread.
class ClassTotals {
 public:
  explicit ClassTotals(const Cluster& cluster);
  struct Amounts {
    std::int64_t capacity = 0, allocated = 0;
  };
  /// None where no class stands for the resource, or a selector of the class fails on one of the devices.
  [[nodiscard]] Amounts of(const NodeInfo& node, const std::string& resource);

 private:
  /// Whether the class means the device; nullopt: that cannot be said.
  std::optional<bool> is_meant(const model::DeviceClassView& device_class, const model::ResourceSliceView& slice,
                               const model::DeviceView& device);

  const Cluster& cluster_;
  AllocatedState allocated_;
  Matcher matcher_;
  std::map<std::string, std::vector<const model::ResourceSliceView*>, std::less<>> slices_of_node_;
  std::vector<const model::ResourceSliceView*> shared_slices_;
};

}  // namespace berth::placement::devices
