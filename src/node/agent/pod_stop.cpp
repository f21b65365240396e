// PodWorker: how its containers, and in the end all of the pod, are stopped (kubelet's SyncTerminatingPod, killContainersWithSyncResult).
#include <filesystem>
#include <future>

#include "base/log.h"
#include "base/mutex.h"
#include "node/agent/image_volumes.h"
#include "node/agent/mounts.h"
#include "node/agent/pod_worker.h"
#include "node/cpus/cpu_manager.h"
#include "node/csi/csi_volumes.h"
#include "node/numa/memory_manager.h"

namespace berth::node::agent {
namespace {

using Kind = ContainerState::Kind;
constexpr std::int64_t kMinimumGraceSeconds = 2;
constexpr Duration kLook = std::chrono::seconds(60);  // How long nothing may happen while containers stop.

std::int64_t to_seconds(Duration duration) {
  return std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(duration).count());
}

}  // namespace

/// Main and ephemeral containers together, then sidecars from the last to the first, each with what is left of the grace period.
void PodWorker::stop_containers(Duration grace) {
  const TimePoint deadline = environment_.clock.now() + grace;
  std::vector<std::size_t> together;
  for (std::size_t i = 0; i < spec_.containers.size(); ++i)
    if (state_.containers[i].state.kind == Kind::kRunning && spec_.containers[i].role != ContainerRole::kSidecar) together.push_back(i);
  for (const std::size_t i : together) emit("Normal", "Killing", "Stopping container " + spec_.containers[i].name, i);
  stop_while_probing(together, grace);
  for (std::size_t i = spec_.containers.size(); i-- > 0;) {
    if (state_.containers[i].state.kind != Kind::kRunning || spec_.containers[i].role != ContainerRole::kSidecar) continue;
    emit("Normal", "Killing", "Stopping container " + spec_.containers[i].name, i);
    stop_while_probing({i}, std::max<Duration>(deadline - environment_.clock.now(), std::min<Duration>(grace, std::chrono::seconds(2))));
  }
}

/// Stops these containers beside each other. Meanwhile containers are asked on whether they are ready: one that ends may serve still, and
/// who leads others to it goes by that.
void PodWorker::stop_while_probing(const std::vector<std::size_t>& which, Duration grace) {
  std::size_t left = which.size();  // Under mutex_.
  std::vector<std::future<void>> stops;
  for (const std::size_t i : which)
    stops.push_back(std::async(std::launch::async, [this, &left, victim = victim(i), grace] {
      kill_container(victim, grace);
      MutexLock lock(mutex_);
      --left;
      wake_.notify_all();
    }));
  bool was_dirty = false;
  while (true) {
    const TimePoint now = environment_.clock.now();
    TimePoint next = now + kLook;
    take_probe_results(true);
    if (state_.failure_reason.empty()) run_probes(now, next, true);
    publish();
    MutexLock lock(mutex_);
    wake_.wait_for(mutex_, std::max<Duration>(next - now, Duration::zero()),
                   [&]() BERTH_REQUIRES(mutex_) { return left == 0 || is_dirty_; });
    was_dirty = std::exchange(is_dirty_, false) || was_dirty;
    if (left > 0) continue;
    is_dirty_ = was_dirty;
    return;
  }
}

PodWorker::Victim PodWorker::victim(std::size_t i) const {
  return {pod_, spec_.containers[i].name, container_field_path(spec_, i), probe_target(i)};
}

/// preStop, then the stop signal, then the kill when `grace` is over. On any thread.
void PodWorker::kill_container(const Victim& victim, Duration grace) {
  const auto began = std::chrono::steady_clock::now();
  // Rounded up: a pod gets the whole of its grace period.
  const auto left = [&](Duration whole) {
    return to_seconds(whole - std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - began) +
                      std::chrono::milliseconds(999));
  };
  if (const json::Value* hook = json::find(victim.target.container, {"lifecycle", "preStop"}); hook && grace > Duration::zero())
    if (const auto wrong = run_hook(*hook, victim.target, std::max<std::int64_t>(1, to_seconds(grace)), &interrupt_); wrong && !interrupt_)
      environment_.event(victim.pod, "Warning", "FailedPreStopHook", "PreStopHook failed", victim.field_path);
  std::int64_t seconds = grace > Duration::zero() ? std::max(left(grace), std::min(kMinimumGraceSeconds, to_seconds(grace))) : 0;
  const std::atomic<bool>* cancel = &interrupt_;
  while (true) {
    const auto stopped = environment_.runtime.call(
        "RuntimeService/StopContainer", json::Object{{"container_id", victim.target.container_id}, {"timeout", std::to_string(seconds)}},
        static_cast<int>(std::min<std::int64_t>(seconds, 1'000'000) * 1000 + 30'000), cancel);
    if (stopped || stopped.error().code == ErrorCode::kNotFound) return;
    {
      MutexLock lock(mutex_);
      if (quit_) return;
      if (cancel && interrupt_) {
        // A stop with less patience (or an eviction) came meanwhile; it is not cut short again.
        cancel = nullptr;
        const Duration patience = stop_ ? stop_->grace : failure_ ? failure_->grace : grace;
        seconds = std::min(left(grace), to_seconds(patience));
        continue;
      }
    }
    log::warning("node", "stopping container {} of {}: {}", victim.name, json::get_string(victim.pod, {"metadata", "name"}),
                 stopped.error().message);
    return;
  }
}

void PodWorker::stop_everything(const Stop& stop) {
  if (stop.is_deletion && !std::exchange(is_deleting_, true)) {
    // A deleted pod's containers are over: its phase is what they came to.
    forbid_restarts();
    for (ContainerRecord& record : state_.containers)
      if (record.state.kind == Kind::kWaiting && record.last) record.state = *record.last;  // It waits for nothing any more.
  }
  stop_containers(stop.grace);
  {
    // Quitting in the middle leaves the rest to the next agent.
    MutexLock lock(mutex_);
    if (quit_) return;
  }
  if (!sandbox_id_.empty() && sandbox_ready_)
    (void)environment_.runtime.call("RuntimeService/StopPodSandbox", json::Object{{"pod_sandbox_id", sandbox_id_}}, 60'000);
  if (const auto loaded = load_runtime_state(); !loaded || std::ranges::any_of(state_.containers, [](const ContainerRecord& record) {
        return record.state.kind == Kind::kRunning;
      })) {
    // Not stopped, or the runtime is away: once more, until it is.
    look_ = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    MutexLock lock(mutex_);
    is_dirty_ = true;
    return;
  }
  if (environment_.cpus) environment_.cpus->release(uid_);
  if (environment_.memory) environment_.memory->release(uid_);
  is_held_ = !release_claims();
  if (is_held_) return;
  // What a pod kept on the node goes with its containers: memory-backed volumes would otherwise hold the memory that it was evicted for.
  if (environment_.image_volumes) environment_.image_volumes->release(directory());
  image_volumes_.clear();
  is_held_ = !release_driver_volumes();
  if (is_held_) return;
  if (const auto removed = tear_down_volumes(directory()); !removed)
    log::warning("node", "pod {}/{}: {}", spec_.ns, spec_.name, removed.error().message);
  volumes_ready_ = false;
  account_for_unknown_containers();
  state_.is_ended = true;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  publish();
  if (!stop.is_deletion) return;
  remove_everything();
  {
    MutexLock lock(mutex_);
    finished_ = true;
  }
  environment_.changed(uid_);
}

/// What drivers mounted they take away; until then the pod is not gone, and its directory is not touched.
bool PodWorker::release_driver_volumes() {
  if (environment_.csi == nullptr) return true;
  unmount_below(directory() + "/volume-subpaths");
  const auto released = environment_.csi->release(uid_, interrupt_);
  if (released) return true;
  log::warning("node", "pod {}/{}: its volumes are not given back: {}", spec_.ns, spec_.name, released.error().message);
  if (!interrupt_) emit("Warning", "FailedUnMount", released.error().message, containers_.size());
  return false;
}

void PodWorker::forbid_restarts() { forbid_restarts_of(spec_); }

/// Of a pod that is over, containers that never came to an end of their own are taken as failed (status_manager.go TerminatePod): the main
/// ones once the pod was initialized, the init ones up to the last of which something is known, at least the first.
void PodWorker::account_for_unknown_containers() {
  if (state_.is_rejected) return;
  const auto is_init = [&](std::size_t i) {
    return spec_.containers[i].role == ContainerRole::kInit || spec_.containers[i].role == ContainerRole::kSidecar;
  };
  std::size_t init_end = 0;  // One past the last init container of which something is known.
  bool any_init = false, last_init_done = true, any_main = false;
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    const ContainerRecord& record = state_.containers[i];
    const bool is_seen = record.state.kind != Kind::kWaiting || record.last;
    if (is_init(i)) {
      any_init = true;
      if (is_seen) init_end = i + 1;
      last_init_done =
          spec_.containers[i].role == ContainerRole::kInit
              ? (record.state.kind == Kind::kTerminated && record.state.exit_code == 0) || (record.last && record.last->exit_code == 0)
              : record.state.kind == Kind::kTerminated;
    } else if (spec_.containers[i].role == ContainerRole::kMain) {
      any_main = any_main || is_seen;
    }
  }
  if (any_init && init_end == 0) init_end = 1;
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    ContainerRecord& record = state_.containers[i];
    const bool is_due =
        is_init(i) ? i < init_end : spec_.containers[i].role == ContainerRole::kMain && (!any_init || any_main || last_init_done);
    if (!is_due || record.state.kind == Kind::kTerminated) continue;
    record.state = ContainerState{.kind = Kind::kTerminated,
                                  .reason = "ContainerStatusUnknown",
                                  .message = "The container could not be located when the pod was terminated",
                                  .exit_code = 137};
    record.is_ready = record.is_started = false;
  }
}

void PodWorker::remove_everything() {
  const json::Value filter = json::Object{{"filter", json::Object{{"label_selector", json::Object{{"io.kubernetes.pod.uid", uid_}}}}}};
  if (const auto containers = environment_.runtime.call("RuntimeService/ListContainers", filter))
    for (const json::Value& container : json::get_array(*containers, {"containers"}))
      (void)environment_.runtime.call("RuntimeService/RemoveContainer",
                                      json::Object{{"container_id", json::get_string(container, {"id"})}});
  if (const auto sandboxes = environment_.runtime.call("RuntimeService/ListPodSandbox", filter))
    for (const json::Value& sandbox : json::get_array(*sandboxes, {"items"})) {
      (void)environment_.runtime.call("RuntimeService/StopPodSandbox", json::Object{{"pod_sandbox_id", json::get_string(sandbox, {"id"})}},
                                      60'000);
      (void)environment_.runtime.call("RuntimeService/RemovePodSandbox",
                                      json::Object{{"pod_sandbox_id", json::get_string(sandbox, {"id"})}}, 60'000);
    }
  for (int tries = 0; tries < 20 && !environment_.cgroups.remove(cgroup()); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::error_code error;
  std::filesystem::remove_all(log_directory_, error);
}

}  // namespace berth::node::agent
