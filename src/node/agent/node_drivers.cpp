#include "node/agent/node_drivers.h"

#include "base/log.h"
#include "node/csi/csi_volumes.h"
#include "node/devices/device_plugins.h"
#include "node/plugins/plugin_watcher.h"

namespace berth::node::agent {

NodeDrivers::NodeDrivers(const Clock& clock) : clock_(clock) {}
NodeDrivers::~NodeDrivers() { stop_watching(); }

void NodeDrivers::take_device_plugins(const std::string& directory, const std::string& checkpoint, std::function<void()> changed) {
  if (directory.empty()) return;
  devices::PluginOptions options{.directory = directory, .checkpoint = checkpoint};
  options.changed = std::move(changed);
  auto started = devices::DevicePlugins::start(clock_, std::move(options));
  if (!started) return log::warning("node", "this node takes no device plugins: {}", started.error().message);
  devices_ = std::move(*started);
  add_handler(plugins::kDevicePlugin, devices_->handler());
}

void NodeDrivers::serve_csi(csi::CsiOptions options) {
  auto started = csi::CsiVolumes::start(clock_, std::move(options));
  if (!started) return log::warning("node", "this node takes no CSI drivers: {}", started.error().message);
  csi_ = std::move(*started);
  add_handler(plugins::kCsiPlugin, csi_->handler());
}

void NodeDrivers::watch(const std::string& directory) {
  if (directory.empty()) return;
  plugins::WatcherOptions options{.directory = directory};
  options.handlers = handlers_;
  auto started = plugins::PluginWatcher::start(clock_, std::move(options));
  if (started)
    watcher_ = std::move(*started);
  else
    log::warning("node", "this node finds no drivers: {}", started.error().message);
}

void NodeDrivers::stop_watching() { watcher_.reset(); }
void NodeDrivers::stop_csi() { csi_.reset(); }

}  // namespace berth::node::agent
