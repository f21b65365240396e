// What of a node is done by others: its device plugins, and the drivers that are found by their sockets.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"

namespace berth::node::devices {
class DevicePlugins;
}
namespace berth::node::csi {
class CsiVolumes;
struct CsiOptions;
}  // namespace berth::node::csi
namespace berth::node::plugins {
class PluginHandler;
class PluginWatcher;
}  // namespace berth::node::plugins

namespace berth::node::agent {

/// Its functions one after the other, on one thread. A node without what cannot be had is a node all the same: the log says why.
class NodeDrivers {
 public:
  explicit NodeDrivers(const Clock& clock);
  ~NodeDrivers();
  NodeDrivers(const NodeDrivers&) = delete;
  NodeDrivers& operator=(const NodeDrivers&) = delete;

  /// `directory` empty: none. `changed`: what the node has is another; any thread.
  void take_device_plugins(const std::string& directory, const std::string& checkpoint, std::function<void()> changed);
  void serve_csi(csi::CsiOptions options);
  /// Who is told of the drivers of a type (plugin_watcher.h); outlives the watch.
  void add_handler(std::string_view type, plugins::PluginHandler& handler) { handlers_.emplace(type, &handler); }
  /// From now on, once all that a driver may be needed for is there. `directory` empty: none is looked for.
  void watch(const std::string& directory);
  /// No handler is called any more.
  void stop_watching();
  /// What CSI drivers are asked is called off; who was given csi() is gone.
  void stop_csi();

  /// Null: this node takes none.
  [[nodiscard]] devices::DevicePlugins* devices() const { return devices_.get(); }
  [[nodiscard]] csi::CsiVolumes* csi() const { return csi_.get(); }

 private:
  const Clock& clock_;
  std::map<std::string, plugins::PluginHandler*, std::less<>> handlers_;  ///< By type.
  std::unique_ptr<devices::DevicePlugins> devices_;
  std::unique_ptr<csi::CsiVolumes> csi_;
  std::unique_ptr<plugins::PluginWatcher> watcher_;
};

}  // namespace berth::node::agent
