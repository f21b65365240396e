// A container's devices in its CRI configuration: what device plugins say of it, and volumes that are devices (kubelet's
// GetDeviceRunContainerOptions, makeBlockVolumes).
#pragma once
#include "node/agent/container_config.h"
#include "node/devices/device_ledger.h"

namespace berth::node::agent {

/// Adds variables, unless the container sets them itself, mounts, devices, annotations and names of CDI devices.
void add_devices(const devices::DeviceGrant& grant, json::Object& config);

/// The block devices that a container's volumeDevices name. The error: a volume is none.
[[nodiscard]] Result<void> add_block_volumes(const std::map<std::string, PlacedVolume>& volumes, const json::Value& container,
                                             json::Object& config);

}  // namespace berth::node::agent
