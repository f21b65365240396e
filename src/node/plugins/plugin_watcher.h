// The sockets of plugins_registry (kubelet's pkg/kubelet/pluginmanager): who has one there is asked what it is, handed to the handler of
// its type, and told whether it was taken. When to do what is decided in plugin_registry.h.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace berth::node::plugins {

/// The types that plugins say they are.
inline constexpr std::string_view kCsiPlugin = "CSIPlugin", kDraPlugin = "DRAPlugin", kDevicePlugin = "DevicePlugin";

/// What a plugin says of itself. Nothing of it was checked but that there is a name.
struct PluginInfo {
  std::string type, name;
  std::string endpoint;               ///< The path of the socket that serves; the registration's own where the plugin named none.
  std::vector<std::string> versions;  ///< "1.0.0"; "v1.DRAPlugin"; "v1beta1": as its type has them.
  std::string socket;                 ///< The registration's.
};

/// Of one type of plugins. Calls about one socket come one after the other, of several at the same time, each on a thread of the watcher's
/// on which it may block; what else the node does does not wait for it.
class PluginHandler {
 public:
  virtual ~PluginHandler() = default;
  /// The plugin is there, for the first time or again. An error is told to the plugin in these words, and the same plugin comes again after
  /// a pause (half a second, doubled up to two minutes). Two sockets may bring the same name: which of them serves is the handler's to say.
  /// When `cancel` becomes true the node is going: return soon.
  virtual Result<void> register_plugin(const PluginInfo& plugin, const std::atomic<bool>& cancel) = 0;
  /// One that was taken is gone: its socket is not there, or is another's. Not called when the node itself ends.
  virtual void deregister_plugin(const PluginInfo& plugin) = 0;
};

struct WatcherOptions {
  /// Looked through with its subfolders, but for names that begin with a dot; made where it is not there.
  std::string directory = "/var/lib/kubelet/plugins_registry";
  std::map<std::string, PluginHandler*, std::less<>> handlers;  ///< By type; they outlive the watcher.
  Duration period = std::chrono::seconds(1);                    ///< Between looks.
  int info_timeout_ms = 1'000, notify_timeout_ms = 5'000;       ///< Of a plugin's answers.
};

/// Thread-safe. The destructor calls off what is under way and waits for it.
class PluginWatcher {
 public:
  /// kConflict: another agent has its plugins from this directory. kUnavailable: it cannot be made, or this program was built without gRPC.
  static Result<std::unique_ptr<PluginWatcher>> start(const Clock& clock, WatcherOptions options);
  virtual ~PluginWatcher() = default;
  /// Looks now, without waiting for the next second.
  virtual void look() = 0;
};

}  // namespace berth::node::plugins
