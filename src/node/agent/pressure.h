// The eviction manager of a real node at work: a thread that watches what is left, reports conditions, reclaims and evicts (SPEC F2–F8).
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "node/agent/node_stats.h"
#include "node/eviction/manager.h"

namespace berth::node::agent {

/// What the manager needs of the node; everything outlives it. The functions are called from its thread and must not block.
struct PressureEnvironment {
  cri::Channel& runtime;
  const Cgroups& cgroups;
  const Clock& clock;
  const MachinePaths& paths;
  const eviction::Machine& machine;
  CpuRates& cpu_rates;
  std::string node_name;
  std::function<std::vector<std::shared_ptr<PodWorker>>()> workers;
  std::function<void()> conditions_changed;
  std::function<void(const std::string& type, const std::string& reason, const std::string& message)> node_event;
  std::function<void(const json::Value& pod, const std::string& type, const std::string& reason, const std::string& message)> pod_event;
};

/// Thread-safe. The destructor ends the pass under way.
class PressureManager {
 public:
  PressureManager(PressureEnvironment environment, eviction::EvictionManager manager);
  ~PressureManager();
  PressureManager(const PressureManager&) = delete;
  PressureManager& operator=(const PressureManager&) = delete;

  void start();
  /// Why a pod may not start on this node now; nullopt: it may.
  [[nodiscard]] std::optional<std::string> refuse(const eviction::PodFacts& facts);
  [[nodiscard]] std::vector<eviction::NodeCondition> conditions();

 private:
  [[nodiscard]] std::uint64_t memory_alarm_bytes();
  void watch();
  bool pass();
  void set_conditions();
  void remove_dead_containers();
  void remove_unused_images();

  PressureEnvironment environment_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  eviction::EvictionManager manager_;
  std::vector<eviction::NodeCondition> conditions_;
  std::thread thread_;
};

}  // namespace berth::node::agent
