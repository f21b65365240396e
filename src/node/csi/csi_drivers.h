// The CSI drivers of a node, as they register, and what is said to them (kubelet's pkg/volume/csi/csi_client.go).
#pragma once
#include <functional>
#include <memory>

#include "base/mutex.h"
#include "net/grpc.h"
#include "net/proto/messages.h"
#include "node/csi/csi_node.h"
#include "node/csi/volume_request.h"
#include "node/plugins/plugin_watcher.h"

namespace berth::node::csi {

/// How long a driver may take for one thing (csiTimeout).
inline constexpr int kCallTimeoutMs = 120'000;

struct CallFailure {
  Outcome outcome = Outcome::kUnknown;  ///< kRefused or kUnknown.
  std::string message;                  ///< "rpc error: code = Internal desc = …"
};
using CallAnswer = Expected<json::Value, CallFailure>;

struct DriverHooks {
  /// The cluster is to know of it; blocks. The error is told to the driver.
  std::function<Result<void>(const DriverNodeInfo& info)> install;
  std::function<void(const std::string& driver)> uninstall;
  std::function<void(const std::string&driver)> came, went;
};

/// Thread-safe; calls block.
class CsiDrivers final : public plugins::PluginHandler {
 public:
  static Result<std::unique_ptr<CsiDrivers>> make(DriverHooks hooks);
  CsiDrivers(DriverHooks hooks, std::unique_ptr<net::proto::Messages> messages);

  Result<void> register_plugin(const plugins::PluginInfo& plugin, const std::atomic<bool>& cancel) override;
  void deregister_plugin(const plugins::PluginInfo& plugin) override;

  /// Nullopt: no driver of this name is registered.
  [[nodiscard]] std::optional<Capabilities> capabilities(const std::string& driver) const;
  /// `method`: "NodePublishVolume".
  [[nodiscard]] CallAnswer call(const std::string& driver, const std::string& method, const json::Value& request,
                                const std::atomic<bool>& cancel, int timeout_ms = kCallTimeoutMs) const;

 private:
  struct Driver {
    std::string socket;  ///< Of its registration.
    std::pair<int, int> version;
    std::shared_ptr<net::GrpcCalls> calls;
    Capabilities capabilities;
  };
  [[nodiscard]] CallAnswer call(net::GrpcCalls& calls, const std::string& method, const json::Value& request,
                                const std::atomic<bool>& cancel, int timeout_ms) const;
  [[nodiscard]] Result<std::pair<int, int>> best_version(const plugins::PluginInfo& plugin) const;

  const DriverHooks hooks_;
  const std::unique_ptr<net::proto::Messages> messages_;
  mutable Mutex mutex_;
  std::map<std::string, Driver> drivers_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::node::csi
