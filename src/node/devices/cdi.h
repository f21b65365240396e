// CDI (Container Device Interface) for runtimes whose CRI does not know it: what a device's specification changes of a container, as far as
// the CRI can say it. Source: the CDI specification, 0.3 to 0.8.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "node/devices/device_ledger.h"

namespace berth::node::devices {

/// Where specifications are; what a later folder says of a device counts.
inline constexpr std::string_view kCdiFolders[] = {"/etc/cdi", "/var/run/cdi"};

/// The specifications in these folders (.json, .yaml), in the order in which they count. What cannot be read is left out, and logged.
[[nodiscard]] std::vector<json::Value> read_cdi_specs(std::span<const std::string> folders);

/// What these devices ("vendor.com/class=name") change of a container: variables, device nodes, mounts. The error: one is not specified, or
/// wants what the CRI of such a runtime cannot say (hooks, groups, network devices).
Result<DeviceGrant> cdi_edits(const std::vector<json::Value>& specs, const std::vector<std::string>& devices);

}  // namespace berth::node::devices
