// Devices of simulated nodes: what a driver for dynamic resource allocation would publish of such a machine.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::node::simulated {

/// On a Node object: "DRIVER=COUNT[,KEY=VALUE…][; …]", as in "gpu.example.com=4,model=h100,memory=80Gi". Each key is an attribute of every
/// device of the driver: a number, true or false, a version (1.2.3), or a text; an amount with a unit is a capacity.
inline constexpr std::string_view kDevicesAnnotation = "sim.berth.dev/devices";

/// One driver's devices on a node.
struct DeviceGroup {
  std::string driver;
  int count = 0;
  json::Object attributes, capacity;
};
Result<std::vector<DeviceGroup>> parse_devices(std::string_view text);

/// The ResourceSlices of the node: one a driver, named NODE-DRIVER, in the pool of the node's name, owned by the node. Devices are
/// device-0, device-1, … and have their number as the attribute "index".
std::vector<json::Value> make_slices(const json::Value& node, const std::vector<DeviceGroup>& groups);

}  // namespace berth::node::simulated
