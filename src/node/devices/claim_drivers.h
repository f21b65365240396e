// The DRA drivers of a node: they are found by their sockets, asked to prepare the devices of claims before a pod starts and to take them
// back after the last one, and say how healthy these are (kubelet's pkg/kubelet/cm/dra). What follows from it is decided in claim_ledger.h
// and driver_registry.h.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "node/devices/claim_ledger.h"
#include "node/devices/claim_uses.h"
#include "node/devices/driver_registry.h"

namespace berth::node::plugins {
class PluginHandler;
}

namespace berth::node::devices {

struct ClaimDriverOptions {
  std::string checkpoint;  ///< A file: what is prepared for whom, for the next process.
  std::string boot_id;     ///< Of this start of the machine.
  /// Removes the ResourceSlices of this node that a driver published; "": of all drivers. May block; errors are tried again.
  std::function<Result<void>(const std::string& driver)> remove_slices;
  std::function<void(const std::string& pod_uid)> health_changed;  ///< Any thread.
  int call_timeout_ms = 45'000;                                    ///< Of a call to a driver (dra/plugin's defaultClientCallTimeout).
};

/// A device that a container has of a claim, as a pod's status shows it.
struct DeviceHealth {
  std::string id;  ///< Its first CDI device, or driver/pool/device.
  DriverRegistry::Health health;
};

/// Thread-safe. The destructor calls off what is under way, and waits for its threads.
class ClaimDrivers {
 public:
  /// kUnavailable: this program was built without gRPC.
  static Result<std::unique_ptr<ClaimDrivers>> start(const Clock& clock, ClaimDriverOptions options);
  virtual ~ClaimDrivers() = default;
  /// For drivers whose sockets are found (plugins/plugin_watcher.h). Lives as long as this.
  virtual plugins::PluginHandler& handler() = 0;

  /// Has the drivers of these claims prepare what is not prepared yet; blocks, and waits for whoever is at one of them. Done again it does
  /// nothing. The error is the kubelet's sentence ("DRA driver gpu.example.com is not registered"); the pod uses them all the same as soon
  /// as a driver was asked, until it is released.
  virtual Result<void> prepare(const std::string& pod_uid, const std::vector<ClaimUse>& claims, const std::atomic<bool>& cancel) = 0;
  /// The pod is over: what it alone used is taken back. To be called until it succeeds.
  virtual Result<void> release(const std::string& pod_uid, const std::atomic<bool>& cancel) = 0;
  /// The CDI devices for a container that uses these.
  [[nodiscard]] virtual std::vector<std::string> cdi_devices(const std::vector<ContainerClaim>& uses) const = 0;
  [[nodiscard]] virtual std::vector<DeviceHealth> health(const ContainerClaim& use) const = 0;
  /// Null: not used here.
  [[nodiscard]] virtual std::optional<ClaimLedger::Claim> claim(const std::string& ns, const std::string& name) const = 0;
  /// The uids of the node's pods; nullopt while they are not known.
  using Pods = std::optional<std::set<std::string>>;
  /// Looks whether drivers answer, removes slices that are due, and once a minute releases what others than these pods use: they were
  /// deleted while no agent ran.
  virtual void look(const Pods& pods) = 0;
  /// Looks every so often, on a thread of its own, until `stop_looking`. `pods` is asked on that thread.
  virtual void keep_looking(Duration period, std::function<Pods()> pods) = 0;
  virtual void stop_looking() = 0;
};

}  // namespace berth::node::devices
