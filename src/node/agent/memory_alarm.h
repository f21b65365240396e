// The kernel's own word that memory runs short, so that nobody has to wait for the next look (SPEC F4; kubelet pkg/kubelet/eviction
// threshold_notifier_linux.go, memory_threshold_notifier.go).
//
//   version 1: a threshold on a group's usage (cgroup.event_control with an eventfd) fires when it is crossed, either way
//   version 2: a pressure trigger (PSI) on memory.pressure, and memory.events, which changes when a limit is hit
//   neither:   nothing ever fires; whoever waits looks by itself more often
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "node/agent/cgroups.h"

namespace berth::node::agent {

/// One thread arms and waits; `stop` may be called from any other.
class MemoryAlarm {
 public:
  /// A group and the usage, page cache included, at which to wake.
  struct Level {
    std::string group;
    std::uint64_t usage_bytes = 0;
  };
  enum class Wake { kTimeout, kThreshold, kPressure, kStopped };

  /// `cgroups` outlives the alarm. `groups` are those whose pressure is listened to (version 2); "" is the machine. `proc`: where the
  /// machine's pressure files are.
  MemoryAlarm(const Cgroups& cgroups, const std::vector<std::string>& groups, const std::string& proc = "/proc");
  ~MemoryAlarm();
  MemoryAlarm(const MemoryAlarm&) = delete;
  MemoryAlarm& operator=(const MemoryAlarm&) = delete;

  /// Version 1: wakes at these levels from now on instead of those before. A level that moved by less than a mebibyte is left as it is.
  /// Groups that cannot be watched are skipped. Version 2: does nothing.
  void arm(const std::vector<Level>& levels);
  /// Returns at the first event, or after `longest`.
  Wake wait(Duration longest);
  void stop();
  /// Something of the kernel's listens; otherwise only time passes in wait.
  [[nodiscard]] bool is_armed() const { return !thresholds_.empty() || !triggers_.empty(); }
  /// For the log: "cgroup thresholds", "pressure triggers", or "polling".
  [[nodiscard]] std::string describe() const;

 private:
  struct Threshold {
    Level level;
    int event_fd = -1;
  };
  struct Trigger {
    int fd = -1;
    bool is_events_file = false;  ///< memory.events: it must be read again after each wake-up.
  };
  [[nodiscard]] int open_threshold(const Level& level) const;
  void open_trigger(const std::string& path);

  const Cgroups& cgroups_;
  int stop_fd_ = -1;
  std::vector<Threshold> thresholds_;
  std::vector<Trigger> triggers_;
};

/// The usage at which less than `threshold` is available, with these figures of now: what is available beyond the threshold may still be
/// used. 0 when there is less already. (The kubelet's limit − threshold + inactive page cache, for groups with a limit.)
[[nodiscard]] std::uint64_t alarm_usage_bytes(std::uint64_t usage_bytes, std::uint64_t available_bytes, std::uint64_t threshold_bytes);

}  // namespace berth::node::agent
