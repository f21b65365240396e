// The eviction manager of a real node at work: a thread that watches what is left, reports conditions, reclaims and evicts (SPEC F2–F8).
//
// A pass is due every ten seconds, when a soft threshold's grace period ends, after an eviction, and at once when memory falls below a
// threshold: the kernel says so (memory_alarm.h), and between its words memory is looked at by itself several times a second.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "node/agent/garbage_collector.h"
#include "node/agent/memory_alarm.h"
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
  GarbageCollector& collector;
  std::function<std::vector<std::shared_ptr<PodWorker>>()> workers;
  std::function<void()> conditions_changed;
  std::function<void(const std::string& type, const std::string& reason, const std::string& message)> node_event;
  std::function<void(const json::Value& pod, const std::string& type, const std::string& reason, const std::string& message)> pod_event;
  std::function<void(const std::string& signal)> evicted;  ///< One more for this signal's sake.
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
  [[nodiscard]] bool is_newly_short();
  void arm();
  void watch();
  bool pass(bool is_urgent);
  eviction::Summary measure(const std::vector<std::shared_ptr<PodWorker>>& active, bool with_disk, TimePoint now);
  [[nodiscard]] TimePoint next_pass(const eviction::Outcome& outcome, TimePoint now) const;
  [[nodiscard]] bool is_short_of_disk(const eviction::NodeUsage& node) const;
  eviction::NodeUsage reclaim(const eviction::Outcome& outcome);
  eviction::NodeUsage wait_for_relief(Duration longest);
  void set_conditions();

  PressureEnvironment environment_;
  std::atomic<bool> stopping_{false};
  MemoryAlarm alarm_;
  Mutex mutex_;
  eviction::EvictionManager manager_ BERTH_GUARDED_BY(mutex_);
  /// For the thread, which alone changes it and reads it without the lock.
  [[nodiscard]] const eviction::EvictionManager& own_manager() const BERTH_NO_THREAD_SAFETY_ANALYSIS { return manager_; }
  std::vector<eviction::NodeCondition> conditions_ BERTH_GUARDED_BY(mutex_);

  // The thread's own:
  struct MemoryThreshold {
    std::string group;
    std::uint64_t bytes = 0;
    bool is_short = false;  ///< At the last look.
  };
  std::vector<MemoryThreshold> memory_thresholds_;
  TimePoint due_{};
  std::unordered_map<std::string, eviction::PodUsage> disk_figures_;  ///< Of the last pass that measured the disk, by pod uid.
  std::thread thread_;
};

}  // namespace berth::node::agent
