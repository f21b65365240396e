// One real pod: a thread that brings its containers to what the spec wants, over and over (kubelet's pod worker and syncPod).
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/event_loop.h"
#include "node/agent/cgroups.h"
#include "node/agent/probes.h"
#include "node/agent/volumes.h"
#include "node/cri/channel.h"

namespace berth::node::agent {

/// What all pods of a node share; outlives them.
struct PodEnvironment {
  cri::Channel& runtime;
  const Cgroups& cgroups;
  const Clock& clock;
  std::string root;         ///< The agent's directory; pods have root/pods/UID.
  std::string pods_cgroup;  ///< "/kubepods"
  std::string node_name, host_ip;
  std::int64_t node_memory_bytes = 1;
  ObjectSource objects;
  TokenSource tokens;
  /// Something of the pod changed: its status, or it is finished. Any thread; must not block.
  std::function<void(const std::string& uid)> changed;
  /// type, reason, message, container (may be empty).
  std::function<void(const json::Value& pod, const std::string& type, const std::string& reason, const std::string& message, const std::string& container)> event;
  /// The Node object's uid; empty until it is registered. On the loop only.
  std::function<std::string()> node_uid;
};

class PodWorker {
 public:
  /// From the API's pod; containers that run already (agent restart) are taken over.
  PodWorker(PodEnvironment& environment, json::Value pod);
  /// Waits for the step under way; containers keep running.
  ~PodWorker();
  /// Starts the thread; once.
  void start();
  /// Asks the thread to end after the step under way, without waiting.
  void quit();
  PodWorker(const PodWorker&) = delete;
  PodWorker& operator=(const PodWorker&) = delete;

  // Any thread:
  void update(json::Value pod);
  /// The pod is being deleted: stop within `grace`, then take everything away.
  void terminate(Duration grace);
  /// Fails the pod (eviction, refused admission): phase Failed at once, containers stop within `grace`.
  void fail_pod(std::string reason, std::string message, Duration grace, bool is_disruption);
  void wake();

  /// The status to be reported.
  [[nodiscard]] json::Value status() const;
  /// The pod takes no room any more: it failed, succeeded or has stopped.
  [[nodiscard]] bool is_over() const;
  /// Nothing runs any more.
  [[nodiscard]] bool is_stopped() const;
  /// Deleted, and everything of it is gone from this machine.
  [[nodiscard]] bool is_finished() const;
  [[nodiscard]] json::Value pod() const;
  [[nodiscard]] PodState state() const;
  [[nodiscard]] const std::string& uid() const { return uid_; }
  [[nodiscard]] std::string cgroup() const;
  [[nodiscard]] std::string directory() const { return environment_.root + "/pods/" + uid_; }
  [[nodiscard]] std::string log_directory() const { return log_directory_; }
  [[nodiscard]] std::string sandbox_id() const;

 private:
  struct Stop {
    Duration grace{};
    bool is_deletion = false;
  };
  struct Container {
    std::string id;
    int attempt = 0;
    bool is_known = false;  ///< `record` describes this id's end.
    ProbeCounter startup, readiness, liveness;
    std::optional<Duration> image_backoff;
    TimePoint not_before{};
  };

  void run();
  /// One step; returns when the next is due without a wake-up.
  TimePoint sync();
  Result<void> load_runtime_state();
  Result<void> take_in(const json::Value& container);
  Result<void> ensure_sandbox(PodContext& context);
  void start_containers(PodContext& context, TimePoint now, TimePoint& next);
  void start_container(PodContext& context, std::size_t i, TimePoint now, TimePoint& next);
  Result<void> ensure_image(const json::Value& container, std::size_t i);
  void set_waiting(std::size_t i, std::string reason, std::string message);
  void run_probes(TimePoint now, TimePoint& next);
  void stop_everything(const Stop& stop);
  void kill_container(std::size_t i, Duration grace);
  void remove_everything();
  void publish();
  void emit(const std::string& type, const std::string& reason, const std::string& message, std::size_t container);
  [[nodiscard]] PodContext make_context() const;
  [[nodiscard]] bool may_start(std::size_t i) const;
  [[nodiscard]] bool mains_done() const;

  PodEnvironment& environment_;
  const std::string uid_;
  std::string log_directory_;

  // The worker thread's own:
  json::Value pod_;
  PodSpec spec_;
  eviction::PodFacts facts_;
  PodState state_;
  std::vector<Container> containers_;
  std::string sandbox_id_;
  int sandbox_attempt_ = -1;
  bool sandbox_ready_ = false;
  bool volumes_ready_ = false;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool is_dirty_ = true, quit_ = false, stopped_ = false, finished_ = false;
  std::optional<json::Value> fresh_pod_;
  std::optional<Stop> stop_;
  struct Failure {
    std::string reason, message;
    Duration grace{};
    bool is_disruption = false;
  };
  std::optional<Failure> failure_;
  json::Value shown_status_, shown_pod_;
  PodState shown_state_;
  std::string shown_sandbox_;
  std::thread thread_;
};

}  // namespace berth::node::agent
