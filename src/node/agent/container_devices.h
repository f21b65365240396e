// What device plugins say of a container, in its CRI configuration (kubelet's GetDeviceRunContainerOptions).
#pragma once
#include "node/devices/device_ledger.h"

namespace berth::node::agent {

/// Adds variables, unless the container sets them itself, mounts, devices, annotations and names of CDI devices.
void add_devices(const devices::DeviceGrant& grant, json::Object& config);

}  // namespace berth::node::agent
