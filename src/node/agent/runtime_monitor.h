// Looks at the container runtime once a second, wakes the workers of pods that changed, and takes away what no pod owns any more (kubelet's
// PLEG and pod housekeeping); rotates the containers' logs (container log manager).
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "node/agent/cgroups.h"
#include "node/agent/node_pods.h"
#include "node/cri/channel.h"

namespace berth::node::csi {
class CsiVolumes;
}

namespace berth::node::agent {

class ImageVolumes;

struct MonitorEnvironment {
  cri::Channel& runtime;
  ImageVolumes* image_volumes = nullptr;
  csi::CsiVolumes* csi = nullptr;
  const Cgroups& cgroups;
  NodePods& pods;
  std::string root;         ///< The agent's directory.
  std::string pods_cgroup;  ///< "/kubepods"
  std::int64_t log_max_bytes = 10 << 20;
  int log_max_files = 5;
  const Clock& clock;
  /// What is wrong with the runtime, in a node's words ("container runtime is down"); empty: nothing. Called when that changes, from the
  /// monitor's thread.
  std::function<void(std::vector<std::string> troubles)> health_changed;
};

/// Owns its thread.
class RuntimeMonitor {
 public:
  explicit RuntimeMonitor(MonitorEnvironment environment) : environment_(std::move(environment)) {}
  ~RuntimeMonitor();
  RuntimeMonitor(const RuntimeMonitor&) = delete;
  RuntimeMonitor& operator=(const RuntimeMonitor&) = delete;

  void start();

 private:
  void watch();
  void relist();
  void remove_orphans(const json::Value& sandboxes);
  bool remove_orphaned_directories();
  void settle_driver_volumes();
  bool release_volumes(const std::string& uid, const std::string& directory);
  void rotate_logs();
  void weigh_burstable_pods();
  void report_health(std::vector<std::string> troubles);
  [[nodiscard]] std::vector<std::string> find_troubles();

  MonitorEnvironment environment_;
  std::atomic<bool> stopping_{false};
  std::vector<std::string> troubles_;
  std::map<std::string, std::string> seen_;  ///< By pod uid: its sandboxes and containers with their states.
  bool volumes_settled_ = false, directories_cleaned_ = false;
  int passes_ = 0;
  std::thread thread_;
};

}  // namespace berth::node::agent
