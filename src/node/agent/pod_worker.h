// One real pod: a thread that brings its containers to what the spec wants, over and over (kubelet's pod worker and syncPod).
//
//            bound                    deleted
//   (new) ────────▶ starting/running ─────────▶ stopping ──▶ finished: nothing of it is left on this machine
//                        │  containers all over,              ▲
//                        │  evicted, refused, too old         │ deleted
//                        └───────────────▶ stopping ──▶ stopped: its records and logs stay
#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "base/event_loop.h"
#include "base/mutex.h"
#include "node/admission.h"
#include "node/agent/cgroups.h"
#include "node/agent/pod_trace.h"
#include "node/agent/probes.h"
#include "node/agent/task_group.h"
#include "node/agent/volumes.h"
#include "node/cri/channel.h"
#include "node/devices/device_ledger.h"

namespace berth::node::csi {
class CsiVolumes;
}
namespace berth::node::numa {
class MemoryManager;
}
namespace berth::node::cpus {
class CpuManager;
}
namespace berth::node::devices {
class ClaimDrivers;
}

namespace berth::node::agent {

class ImageVolumes;
class NodeMetrics;

/// What all pods of a node share; outlives them.
struct PodEnvironment {
  PodEnvironment(cri::Channel& runtime, const Cgroups& cgroups, const Clock& clock) : runtime(runtime), cgroups(cgroups), clock(clock) {}
  cri::Channel& runtime;
  const Cgroups& cgroups;
  const Clock& clock;
  std::string root;         ///< The agent's directory; pods have root/pods/UID.
  std::string pods_cgroup;  ///< "/kubepods"
  std::string node_name, host_ip;
  std::string runtime_name = "containerd";  ///< Before "://" in container ids.
  std::int64_t node_memory_bytes = 1;
  eviction::ResourceList allocatable;
  SwapRules swap;
  std::optional<std::int64_t> pids_limit;  ///< Of each pod.
  Duration max_restart_backoff = std::chrono::seconds(300);
  DnsConfig host_dns;                    ///< The machine's resolv.conf.
  std::vector<std::string> cluster_dns;  ///< Name servers of the cluster; empty: it has none.
  std::string cluster_domain = "cluster.local";
  ImageVolumes* image_volumes = nullptr;         ///< Null: this node mounts no images.
  csi::CsiVolumes* csi = nullptr;                ///< Null: no CSI driver can be had.
  std::shared_ptr<net::tracing::Tracer> tracer;  ///< Null: nobody is told of starts.
  NodeMetrics* metrics = nullptr;                ///< Null: nothing is counted.
  ObjectSource objects;
  TokenSource tokens;
  /// Something of the pod changed: its status, or it is finished. Any thread; must not block.
  std::function<void(const std::string& uid)> changed;
  /// type, reason, message, and what of the pod it is about ("spec.containers{c}"; may be empty).
  std::function<void(const json::Value& pod, const std::string& type, const std::string& reason, const std::string& message,
                     const std::string& field_path)>
      event;
  /// Why a running pod cannot have the resources that its spec now asks for yet (OutOfcpu, …); empty or nullopt: it can.
  std::function<std::optional<Refusal>(const json::Value& pod)> refuse_resize;
  /// What a container needs for the devices that it holds; blocks while their plugins are asked. Null: this node has no device plugins.
  std::function<Result<devices::DeviceGrant>(const std::string& uid, const std::string& container)> devices;
  /// Those that it holds, as their plugins list them. Null: likewise.
  std::function<devices::DeviceLedger::ByResource(const std::string& uid, const std::string& container)> held_devices;
  devices::ClaimDrivers* claims = nullptr;                              ///< Null: no DRA driver can register with this node.
  std::vector<std::string> cdi_folders = {"/etc/cdi", "/var/run/cdi"};  ///< For runtimes that know no CDI devices.
  cpus::CpuManager* cpus = nullptr;                                     ///< Null: all containers run on all processors.
  numa::MemoryManager* memory = nullptr;                                ///< Null: memory comes from all NUMA nodes.
  /// The Node object's uid; empty until it is registered. On the loop only.
  std::function<std::string()> node_uid;
  TaskGroup tasks;  ///< Probes under way. Last: destroyed first.
};

class PodWorker {
 public:
  /// From the API's pod; containers that run already (agent restart) are taken over.
  PodWorker(PodEnvironment& environment, json::Value pod);
  /// Waits for the step under way; containers keep running.
  ~PodWorker();
  PodWorker(const PodWorker&) = delete;
  PodWorker& operator=(const PodWorker&) = delete;

  /// Starts the thread; once.
  void start();
  // Any thread:
  /// Asks the thread to end after the step under way, without waiting.
  void quit();
  void update(json::Value pod);
  /// The pod is being deleted: stop within `grace`, then take everything away. A shorter grace than before cuts the stopping short.
  void terminate(Duration grace);
  /// Fails the pod (eviction): containers stop within `grace`, then the phase is Failed.
  void fail_pod(std::string reason, std::string message, Duration grace, bool is_disruption);
  /// The node does not admit the pod: phase Failed, nothing is ever started.
  void reject_pod(std::string reason, std::string message);
  /// The runtime has news of this pod.
  void wake();
  /// Its devices are not as healthy as before, perhaps.
  void show_devices();

  /// The status to be reported.
  [[nodiscard]] json::Value status() const;
  /// The pod takes no room any more: it failed, succeeded or has stopped.
  [[nodiscard]] bool is_over() const;
  /// Nothing runs any more.
  [[nodiscard]] bool is_stopped() const;
  /// Deleted, and everything of it is gone from this machine.
  [[nodiscard]] bool is_finished() const;
  [[nodiscard]] json::Value pod() const;
  /// The same with the resources that the node has granted: what it takes of the node.
  [[nodiscard]] json::Value granted() const;
  [[nodiscard]] PodState state() const;
  [[nodiscard]] const std::string& uid() const { return uid_; }
  [[nodiscard]] const std::string& cgroup() const { return cgroup_; }
  [[nodiscard]] std::string directory() const { return environment_.root + "/pods/" + uid_; }
  [[nodiscard]] std::string log_directory() const { return log_directory_; }
  [[nodiscard]] std::string sandbox_id() const;

 private:
  struct Stop {
    Duration grace{};
    bool is_deletion = false;
  };
  struct Failure {
    std::string reason, message;
    Duration grace{};
    bool is_disruption = false;
    bool is_rejection = false;
  };
  struct Container {
    std::string id;
    int attempt = 0;
    bool is_known = false;  ///< The record describes this id's end.
    std::string hash;       ///< container_hash of the spec that it was made from; empty: not known.
    json::Value in_force;   ///< The resources that it runs with, limits that it has from its pod among them; null: not known.
    json::Value allocated;  ///< Those that the node has granted, which a resize may still be on its way to; null: the spec's.
    ProbeCounter startup, readiness, liveness;
    std::string cpus;  ///< The processors that it was last put on; empty: not known.
    int crashes = 0;   ///< Restarts that count for the next back-off.
    std::optional<Duration> image_backoff;
    std::string image_error;   ///< Why the last pull failed, until the next try.
    std::string failed_image;  ///< What that was: the container's image, or a volume's.
    TimePoint not_before{};
  };
  enum class ProbeKind { kStartup, kReadiness, kLiveness };
  /// What probes under way leave for the worker.
  struct ProbeInbox;

  // pod_worker.cpp: the thread and its steps
  void run();
  /// One step; returns when the next is due without a wake-up.
  TimePoint sync();
  void adopt(json::Value pod);
  std::optional<Stop> why_stop(TimePoint now);
  TimePoint sync_running(TimePoint now);
  Result<void> load_runtime_state();
  Result<void> ensure_sandbox(PodContext& context);
  /// Makes the pod's cgroup with its limits. A memory limit below what is in use is left as it is: has_wanted_limits says so.
  Result<void> ensure_cgroup();
  [[nodiscard]] CgroupLimits wanted_limits() const;
  [[nodiscard]] bool has_wanted_limits() const;
  void publish();
  void count_start(const json::Value& status);
  void emit(const std::string& type, const std::string& reason, const std::string& message, std::size_t container);
  [[nodiscard]] PodContext make_context();

  // pod_containers.cpp: one container at a time
  Result<void> take_in(const json::Value& container);
  void take_end(std::size_t i, const json::Value& status);
  void restart_changed_containers();
  void start_containers(PodContext& context, TimePoint now, TimePoint& next);
  bool wait_for_backoff(std::size_t i, TimePoint now, TimePoint& next);
  std::string place_container(std::size_t i, json::Value& config) const;
  void start_container(PodContext& context, std::size_t i, TimePoint now, TimePoint& next);
  struct PulledImage {
    std::string reference;
    json::Value status;  ///< ImageService/ImageStatus's answer.
  };
  void show_image_backoff(std::size_t i, TimePoint now, TimePoint& next);
  // pod_images.cpp
  bool place_image_volumes(PodContext& context, std::size_t i, TimePoint now, TimePoint& next);
  Result<PulledImage> ensure_image(const json::Value& container, std::size_t i);
  Result<void> pull_image(const json::Value& container, const std::string& image, std::size_t i);
  void image_failed(std::size_t i, const json::Value& container, const Error& error, TimePoint now, TimePoint& next);
  void started(std::size_t i, const std::string& id, int attempt);
  void run_post_start(std::size_t i);
  bool take_start_error(std::size_t i, const std::string& id, const std::string& message);
  void remove_old_containers(std::size_t i, const std::string& previous);
  void set_waiting(std::size_t i, std::string reason, std::string message);
  [[nodiscard]] bool may_start(std::size_t i) const;
  [[nodiscard]] bool mains_done() const;
  [[nodiscard]] Duration grace_period() const;
  [[nodiscard]] ProbeTarget probe_target(std::size_t i) const;

  // pod_devices.cpp
  enum class Given { kAll, kNotYet, kNever };
  Result<void> prepare_claims();
  bool release_claims();
  Given give_devices(std::size_t i, json::Object& config, std::string& why);
  [[nodiscard]] Result<void> add_grant(const devices::DeviceGrant& grant, json::Object& config) const;
  void look_at_devices();
  void keep_on_cpus(PodContext& context);

  // pod_stop.cpp
  /// What a thread that stops a container knows of it.
  struct Victim {
    json::Value pod;
    std::string name, field_path;
    ProbeTarget target;
  };
  void stop_everything(const Stop& stop);
  void stop_containers(Duration grace);
  void stop_while_probing(const std::vector<std::size_t>& which, Duration grace);
  [[nodiscard]] Victim victim(std::size_t i) const;
  void kill_container(const Victim& victim, Duration grace);
  bool release_driver_volumes();
  void forbid_restarts();
  void account_for_unknown_containers();
  void remove_everything();

  // pod_probes.cpp
  /// `only_readiness`: while containers are being stopped; startup and liveness have nothing to say any more.
  void run_probes(TimePoint now, TimePoint& next, bool only_readiness = false);
  void start_probe(std::size_t i, ProbeKind kind, const json::Value& probe, ProbeCounter& counter, TimePoint now, TimePoint& next);
  void take_probe_results(bool only_readiness = false);
  void take_probe_result(std::size_t i, ProbeKind kind, const std::optional<ProbeFailure>& wrong);
  void kill_unhealthy(std::size_t i, ProbeKind kind, const json::Value& probe);

  // pod_restart.cpp
  /// Where a container ended so that its rules want the whole pod started anew: stops all and sets them back to their beginning.
  void restart_all_containers();

  // pod_resize.cpp
  /// Brings running containers to resources that changed in the spec.
  /// True when a resize has to wait, or failed, and is to be tried again.
  bool resize_containers(PodContext& context);
  void restart_for_resize();
  bool apply_resize(PodContext& context);
  void resize_failed(const std::string& why);
  void complete_resize();
  [[nodiscard]] std::vector<std::pair<std::size_t, json::Value>> to_resize(bool by_restart) const;
  [[nodiscard]] std::string memory_in_the_way() const;
  void set_condition(std::string_view type, std::string_view reason, std::string_view message);
  bool clear_condition(std::string_view type);
  [[nodiscard]] bool swap_is_in_the_way(const PodContext& context) const;
  [[nodiscard]] bool own_cpus_are_in_the_way() const;
  /// Containers that have processors to themselves.
  [[nodiscard]] std::set<std::string> with_own_cpus() const;
  /// The pod's spec as the node has granted it: with the resources from before a resize that has to wait.
  [[nodiscard]] json::Value granted_pod() const;
  /// Takes in what is new to know of containers. Whether all that the spec asks for is granted, and in force.
  struct ResizeState {
    bool is_granted = true, is_done = true;
  };
  ResizeState look_at_resources();
  void restore_whole_resources();
  void show_granted_resources();

  PodEnvironment& environment_;
  const std::string uid_;
  /// The class that a pod started with stays its class, whatever it is resized to, and its cgroup stays where it is.
  const eviction::QosClass qos_;
  const std::string cgroup_;
  std::string log_directory_;

  // The worker thread's own:
  json::Value pod_;
  PodTrace trace_;
  PodSpec spec_;
  eviction::PodFacts facts_;
  PodState state_;
  std::vector<Container> containers_;
  std::string sandbox_id_;
  int sandbox_attempt_ = -1;
  bool sandbox_ready_ = false;
  bool volumes_ready_ = false;
  bool is_held_ = false;  ///< A driver has not given the pod's volumes or devices back yet.
  bool look_ = true;      ///< The runtime's state must be read before anything is decided.
  bool is_deleting_ = false;
  bool has_run_ = false;  ///< It was told of as more than pending.
  TimePoint volumes_due_{};
  std::map<std::string, PlacedVolume> volumes_, image_volumes_;
  Duration mount_backoff_{};
  TokenCache token_cache_;
  std::optional<CgroupLimits> applied_limits_;
  json::Value whole_allocated_;  ///< spec.resources as the node has granted them; null: not looked at yet.

  mutable Mutex mutex_;
  CondVar wake_;
  bool is_dirty_ BERTH_GUARDED_BY(mutex_) = true, runtime_changed_ BERTH_GUARDED_BY(mutex_) = true, quit_ BERTH_GUARDED_BY(mutex_) = false,
                 stopped_ BERTH_GUARDED_BY(mutex_) = false, finished_ BERTH_GUARDED_BY(mutex_) = false;
  std::atomic<bool> interrupt_{false};  ///< A stop came that calls under way must not hold up.
  std::optional<json::Value> fresh_pod_ BERTH_GUARDED_BY(mutex_);
  std::optional<Stop> stop_ BERTH_GUARDED_BY(mutex_);
  std::optional<Failure> failure_ BERTH_GUARDED_BY(mutex_);
  json::Value shown_status_ BERTH_GUARDED_BY(mutex_), shown_pod_ BERTH_GUARDED_BY(mutex_), shown_granted_ BERTH_GUARDED_BY(mutex_);
  PodState shown_state_ BERTH_GUARDED_BY(mutex_);
  std::string shown_sandbox_ BERTH_GUARDED_BY(mutex_);
  std::shared_ptr<ProbeInbox> inbox_;
  std::thread thread_;
};

/// How the kubelet shows an error of the runtime: "rpc error: code = Unknown desc = …".
[[nodiscard]] std::string rpc_error(const Error& error);

}  // namespace berth::node::agent
