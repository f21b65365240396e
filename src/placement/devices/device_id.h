// What a device is known by.
#pragma once
#include <compare>
#include <string>

namespace berth::placement::devices {

struct PoolId {
  std::string driver, pool;
  friend auto operator<=>(const PoolId&, const PoolId&) = default;
  /// "driver/pool"
  [[nodiscard]] std::string text() const { return driver + "/" + pool; }
};

struct DeviceId {
  std::string driver, pool, device;
  friend auto operator<=>(const DeviceId&, const DeviceId&) = default;
  /// "driver/pool/device"
  [[nodiscard]] std::string text() const { return driver + "/" + pool + "/" + device; }
};

}  // namespace berth::placement::devices
