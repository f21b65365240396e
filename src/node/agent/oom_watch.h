// The kernel's OOM killer at work: read from the kernel's log, or where that is not to be had counted in the node's cgroup (SPEC F10;
// kubelet pkg/kubelet/oom, cAdvisor's oomparser).
#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "node/agent/cgroups.h"

namespace berth::node::agent {

struct OomKill {
  std::string process;      ///< Empty: not told.
  std::int64_t pid = 0;     ///< 0: not told.
  std::string limit_group;  ///< The cgroup whose limit was hit; "/": the machine itself ran out.
  std::string victim_group;
};

/// One record of /dev/kmsg ("6,1234,5678,-;text"); nullopt when it does not tell of a kill. Understands the one-line form of Linux 5.0 and
/// later
/// ("oom-kill:constraint=…,oom_memcg=…,task_memcg=…,task=…,pid=…") and of older ones "Killed process 1 (name)" with "Task in A killed as a
/// result of limit of B" before it.
class OomLogParser {
 public:
  std::optional<OomKill> feed(std::string_view record);

 private:
  bool is_open_ = false;  ///< "invoked oom-killer" was read, its end not yet.
  OomKill kill_;
};

/// "System OOM encountered, victim process: stress, pid: 42": the kubelet's event message.
[[nodiscard]] std::string system_oom_message(const OomKill& kill);
/// The node as a whole ran out, not one container at its limit: then the node gets an event. `node_cgroup` stands for the machine where not
/// empty.
[[nodiscard]] bool is_system_oom(const OomKill& kill, const std::string& node_cgroup);

/// Calls `seen` from its own thread for each kill from now on that concerns the node.
class OomWatch {
 public:
  struct Options {
    std::string log = "/dev/kmsg";
    std::string node_cgroup;
    std::function<void(const OomKill&)> system_oom;
  };
  /// `cgroups` outlives the watch.
  OomWatch(const Cgroups& cgroups, Options options);
  ~OomWatch();
  OomWatch(const OomWatch&) = delete;
  OomWatch& operator=(const OomWatch&) = delete;
  /// "the kernel's log" or "cgroup counters".
  [[nodiscard]] std::string describe() const { return log_fd_ >= 0 ? "the kernel's log" : "cgroup counters"; }

 private:
  void follow_log();
  void follow_counter();

  const Cgroups& cgroups_;
  Options options_;
  int log_fd_ = -1, stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace berth::node::agent
