// The device plugins of a node: they register at a socket, say what they have for as long as they live, and are asked what a container
// needs that gets some of it (kubelet's pkg/kubelet/cm/devicemanager). What follows from it is decided in device_ledger.h.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "node/devices/device_ledger.h"

namespace berth::node::plugins {
class PluginHandler;
}

namespace berth::node::devices {

struct PluginOptions {
  /// Where plugins look for kubelet.sock, and have their own sockets; made where it is not there.
  std::string directory = "/var/lib/kubelet/device-plugins";
  std::string checkpoint;         ///< A file: who has what, for the next process.
  std::function<void()> changed;  ///< What the node has is another; any thread.
  int call_timeout_ms = 60'000;   ///< Of a call to a plugin.
  numa::NodeSet machine = 1;      ///< The NUMA nodes that there are.
};

/// Thread-safe. The destructor ends the socket and waits for its threads.
class DevicePlugins : public numa::Giver {
 public:
  /// kUnavailable: somebody else serves that directory, or nobody can; the message says what to do.
  static Result<std::unique_ptr<DevicePlugins>> start(const Clock& clock, PluginOptions options);
  [[nodiscard]] virtual DeviceLedger::Inventory inventory() const = 0;
  /// What a container needs for its devices; blocks while plugins are asked, before its first start and, where they want that, before each.
  virtual Result<DeviceGrant> prepare(const std::string& uid, const std::string& container) = 0;
  /// For plugins whose sockets are found (plugins/plugin_watcher.h). Lives as long as this.
  virtual plugins::PluginHandler& handler() = 0;
  [[nodiscard]] virtual DeviceLedger::ByResource held(const std::string& uid, const std::string& container) const = 0;
  [[nodiscard]] virtual DeviceLedger::ByResource healthy_devices() const = 0;
  virtual void tell(numa::Offer& offer) const = 0;
};

}  // namespace berth::node::devices
