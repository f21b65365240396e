// What pods are given of a node beside amounts: devices of plugins and of drivers that are found by their sockets, processors and memory of
// their own.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "node/admission.h"
#include "node/numa/shared.h"

namespace berth::node::cpus {
class CpuManager;
}
namespace berth::node::numa {
class MemoryManager;
}
namespace berth::node::devices {
class ClaimDrivers;
class DevicePlugins;
class PodResources;
}  // namespace berth::node::devices
namespace berth::node::eviction {
struct KubeletSettings;
struct NodeResources;
struct VolumeUsage;
}  // namespace berth::node::eviction
namespace berth::node::csi {
class CsiVolumes;
struct CsiOptions;
}  // namespace berth::node::csi
namespace berth::node::plugins {
class PluginHandler;
class PluginWatcher;
}  // namespace berth::node::plugins

namespace berth::client {
class Client;
}

namespace berth::node::agent {

class NodePods;
class TopologyReporter;
struct PodEnvironment;

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
  /// DRA drivers. `blocking` removes what they published once they are gone; `health_changed` is told of pods, on any thread.
  void take_claim_drivers(client::Client& blocking, const std::string& node_name, const std::string& checkpoint,
                          std::function<void(const std::string& uid)> health_changed);
  /// Who asks at `directory` is told which pod has which devices. Empty: nobody is.
  void tell_of_pods(const std::string& directory, const NodePods& pods);
  /// Who is told of the drivers of a type (plugin_watcher.h); outlives the watch.
  void add_handler(std::string_view type, plugins::PluginHandler& handler) { handlers_.emplace(type, &handler); }
  /// From now on, once all that a driver may be needed for is there. `directory` empty: none is looked for.
  void watch(const std::string& directory, const NodePods& pods);
  /// No handler is called any more, and nobody asks for pods.
  void stop_watching();
  /// What CSI drivers are asked is called off; who was given csi() is gone.
  void stop_csi();

  /// Processors and memory of containers' own, and from which NUMA nodes they and devices come: before any device plugin is taken. The
  /// error says what in the configuration or the files below `root` is in the way. `changed`: the shared processors are others.
  Result<void> manage_numa(const eviction::KubeletSettings& settings, const eviction::NodeResources& resources, const std::string& root,
                           std::function<void()> changed);
  /// A pod that comes gets its devices, processors and memory, all or none; those of pods that are not active are free.
  std::optional<Refusal> refuse(const json::Value& pod, const std::vector<json::Value>& active);
  /// Schedulers are told of the node's NUMA nodes from now on, where something is given from them. On the client's loop.
  void publish_topology(client::Client& client, const std::string& node_name);
  void stop_publishing();
  /// Writes what has changed. On the client's loop, as `refuse`.
  void tell_topology(const NodePods& pods, const std::string& node_uid);
  /// So that pods have what there is.
  void give_to(PodEnvironment& environment) const;
  /// Null: this node takes none.
  [[nodiscard]] devices::DevicePlugins* devices() const { return devices_.get(); }
  /// A pod's volumes of CSI drivers, as these last counted them.
  [[nodiscard]] std::vector<eviction::VolumeUsage> volume_usage(const std::string& pod_uid) const;
  [[nodiscard]] csi::CsiVolumes* csi() const { return csi_.get(); }

 private:
  [[nodiscard]] std::vector<numa::Giver*> givers() const;
  const Clock& clock_;
  std::map<std::string, plugins::PluginHandler*, std::less<>> handlers_;  ///< By type.
  std::unique_ptr<devices::DevicePlugins> devices_;
  std::unique_ptr<csi::CsiVolumes> csi_;
  std::unique_ptr<devices::ClaimDrivers> claims_;
  std::unique_ptr<cpus::CpuManager> cpus_;
  std::unique_ptr<numa::MemoryManager> memory_;
  numa::Machine machine_;
  numa::AlignmentPolicy alignment_;
  std::unique_ptr<TopologyReporter> topology_;
  std::unique_ptr<devices::PodResources> pod_resources_;
  std::unique_ptr<plugins::PluginWatcher> watcher_;
};

}  // namespace berth::node::agent
