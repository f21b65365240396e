#include "node/agent/pod_worker.h"

#include <filesystem>
#include <future>
#include <set>

#include "base/log.h"
#include "node/agent/image_volumes.h"
#include "node/agent/pod_claims.h"
#include "node/agent/pod_worker_inbox.h"
#include "node/agent/thread_memory.h"

namespace berth::node::agent {
namespace {

using Kind = ContainerState::Kind;
constexpr Duration kRetry = std::chrono::seconds(2);
constexpr Duration kResizeRetry = std::chrono::seconds(10);
constexpr Duration kResync = std::chrono::seconds(60);
constexpr Duration kVolumePeriod = std::chrono::seconds(60);  // How old what volumes show may be.
constexpr Duration kMaxMountBackoff = std::chrono::seconds(16);

bool is_running(const ContainerRecord& record) { return record.state.kind == Kind::kRunning; }

/// The limits of the group above a pod's containers: what all of them ask for, and where each has a limit, the sum of those.
CgroupLimits pod_cgroup_limits(const eviction::PodFacts& facts) {
  CgroupLimits limits;
  const auto all_have = [&](std::string_view resource) {
    return !facts.containers.empty() && std::ranges::all_of(facts.containers, [&](const eviction::ContainerFacts& container) {
      return (container.is_init && !container.is_sidecar) || container.limits.contains(resource);
    });
  };
  limits.cpu_shares = facts.qos == eviction::QosClass::kBestEffort
                          ? 2
                          : static_cast<std::uint64_t>(cpu_shares(eviction::pod_request(facts, "cpu").milli_value()));
  limits.cpu_quota_us = -1;
  limits.memory_bytes = -1;
  if (facts.qos == eviction::QosClass::kBestEffort) return limits;
  if (const auto cpu = all_have("cpu") ? eviction::pod_limit(facts, "cpu") : std::nullopt)
    limits.cpu_quota_us = cpu_quota_us(cpu->milli_value());
  if (const auto memory = all_have("memory") ? eviction::pod_limit(facts, "memory") : std::nullopt) limits.memory_bytes = memory->value();
  return limits;
}

bool same(const CgroupLimits& a, const CgroupLimits& b) {
  return a.cpu_shares == b.cpu_shares && a.cpu_quota_us == b.cpu_quota_us && a.memory_bytes == b.memory_bytes;
}

}  // namespace

std::string rpc_error(const Error& error) {
  const char* code = error.code == ErrorCode::kNotFound ? "NotFound" : error.code == ErrorCode::kUnavailable ? "Unavailable" : "Unknown";
  return fmt::format("rpc error: code = {} desc = {}", code, error.message);
}

PodWorker::PodWorker(PodEnvironment& environment, json::Value pod)
    : environment_(environment),
      uid_(json::get_string(pod, {"metadata", "uid"})),
      pod_(std::move(pod)),
      spec_(read_pod_spec(pod_)),
      facts_(eviction::read_pod_facts(pod_)) {
  log_directory_ = fmt::format("{}/logs/{}_{}_{}", environment_.root, spec_.ns, spec_.name, uid_);
  state_.containers.resize(spec_.containers.size());
  containers_.resize(spec_.containers.size());
  if (const json::Value* status = json::find(pod_, "status")) restore_pod_state(spec_, *status, state_);
  for (std::size_t i = 0; i < containers_.size(); ++i) {
    ContainerRecord& record = state_.containers[i];
    containers_[i].crashes = record.restart_count;
    if (record.resources.is_object()) containers_[i].allocated = record.resources;
    // What runs is for the runtime to say; a report of running containers may be older than a reboot.
    if (!is_running(record)) continue;
    record.state = ContainerState{};
    record.is_ready = record.is_started = false;
  }
  show_granted_resources();
  state_.host_ip = environment_.host_ip;
  if (!state_.start_time) state_.start_time = environment_.clock.now();
  shown_pod_ = pod_;
  inbox_ = std::make_shared<ProbeInbox>();
  inbox_->worker = this;
}

PodWorker::~PodWorker() {
  quit();
  if (thread_.joinable()) thread_.join();
  std::lock_guard lock(inbox_->mutex);
  inbox_->worker = nullptr;
}

void PodWorker::start() {
  thread_ = std::thread([this] { run(); });
}

void PodWorker::quit() {
  std::lock_guard lock(mutex_);
  quit_ = true;
  interrupt_ = true;
  wake_.notify_all();
}

void PodWorker::update(json::Value pod) {
  std::lock_guard lock(mutex_);
  fresh_pod_ = std::move(pod);
  is_dirty_ = true;
  wake_.notify_all();
}

void PodWorker::terminate(Duration grace) {
  std::lock_guard lock(mutex_);
  if (stop_ && stop_->is_deletion && stop_->grace <= grace) return;
  stop_ = Stop{grace, true};
  is_dirty_ = interrupt_ = true;
  wake_.notify_all();
}

void PodWorker::fail_pod(std::string reason, std::string message, Duration grace, bool is_disruption) {
  std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = Failure{std::move(reason), std::move(message), grace, is_disruption};
  is_dirty_ = interrupt_ = true;
  wake_.notify_all();
}

void PodWorker::reject_pod(std::string reason, std::string message) {
  std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = Failure{std::move(reason), std::move(message), Duration::zero(), false, true};
  is_dirty_ = interrupt_ = true;
  wake_.notify_all();
}

void PodWorker::wake() {
  std::lock_guard lock(mutex_);
  is_dirty_ = runtime_changed_ = true;
  wake_.notify_all();
}

json::Value PodWorker::status() const {
  std::lock_guard lock(mutex_);
  return shown_status_;
}
json::Value PodWorker::pod() const {
  std::lock_guard lock(mutex_);
  return shown_pod_;
}
json::Value PodWorker::granted() const {
  std::lock_guard lock(mutex_);
  return shown_granted_.is_null() ? shown_pod_ : shown_granted_;
}
PodState PodWorker::state() const {
  std::lock_guard lock(mutex_);
  return shown_state_;
}
std::string PodWorker::sandbox_id() const {
  std::lock_guard lock(mutex_);
  return shown_sandbox_;
}
bool PodWorker::is_over() const {
  std::lock_guard lock(mutex_);
  if (stopped_ || failure_) return true;
  const std::string_view phase = json::get_string(shown_status_, {"phase"});
  return phase == "Failed" || phase == "Succeeded";
}
bool PodWorker::is_stopped() const {
  std::lock_guard lock(mutex_);
  return stopped_;
}
bool PodWorker::is_finished() const {
  std::lock_guard lock(mutex_);
  return finished_;
}

std::string PodWorker::cgroup() const {
  switch (facts_.qos) {
    case eviction::QosClass::kGuaranteed:
      return environment_.pods_cgroup + "/pod" + uid_;
    case eviction::QosClass::kBurstable:
      return environment_.pods_cgroup + "/burstable/pod" + uid_;
    case eviction::QosClass::kBestEffort:
      return environment_.pods_cgroup + "/besteffort/pod" + uid_;
  }
  return {};
}

Duration PodWorker::grace_period() const { return std::chrono::seconds(facts_.grace_period_seconds.value_or(30)); }

void PodWorker::run() {
  TimePoint next{};
  while (true) {
    std::optional<json::Value> fresh;
    {
      std::unique_lock lock(mutex_);
      const Duration wait = next - environment_.clock.now();
      if (!is_dirty_ && !quit_ && wait > Duration::zero()) wake_.wait_for(lock, wait, [&] { return is_dirty_ || quit_; });
      if (quit_) return;
      is_dirty_ = false;
      look_ = look_ || std::exchange(runtime_changed_, false);
      fresh.swap(fresh_pod_);
    }
    if (fresh) adopt(std::move(*fresh));
    take_probe_results();
    next = sync();
    release_thread_memory();
    std::lock_guard lock(mutex_);
    if (finished_) return;
  }
}

/// A newer version of the pod: what may change in a running one is ephemeral containers, images, resources, labels and annotations.
void PodWorker::adopt(json::Value pod) {
  for (const std::string_view shown : {"labels", "annotations"})
    if (json::get_object(pod_, {"metadata", shown}) != json::get_object(pod, {"metadata", shown}))
      volumes_due_ = {};  // Downward API files show them.
  pod_ = std::move(pod);
  spec_ = read_pod_spec(pod_);
  if (is_deleting_) forbid_restarts();
  state_.containers.resize(spec_.containers.size());
  containers_.resize(spec_.containers.size());
  show_granted_resources();
  std::lock_guard lock(mutex_);
  shown_pod_ = pod_;
}

TimePoint PodWorker::sync() {
  const TimePoint now = environment_.clock.now();
  if (look_) {
    if (const auto loaded = load_runtime_state(); !loaded) {
      log::warning("node", "pod {}/{}: {}", spec_.ns, spec_.name, loaded.error().message);
      return now + kRetry;
    }
    look_ = false;
  }
  if (const auto stop = why_stop(now)) {
    if (is_stopped() && !stop->is_deletion) return now + kResync;
    publish();
    stop_everything(*stop);
    return environment_.clock.now() + kResync;
  }
  return sync_running(now);
}

/// Deleted, failed as a whole, too old, or over by itself.
std::optional<PodWorker::Stop> PodWorker::why_stop(TimePoint now) {
  std::optional<Stop> stop;
  {
    std::lock_guard lock(mutex_);
    interrupt_ = quit_;
    const bool is_over = pod_outcome(spec_, state_).has_value();
    const std::int64_t deadline = json::get_int(pod_, {"spec", "activeDeadlineSeconds"});
    if (!failure_ && !is_over && deadline > 0 && state_.start_time && now >= *state_.start_time + std::chrono::seconds(deadline))
      failure_ = Failure{"DeadlineExceeded", "Pod was active on the node longer than the specified deadline", grace_period(), false};
    if (failure_ && state_.failure_reason.empty() && !is_over) {
      state_.failure_reason = failure_->reason;
      state_.failure_message = failure_->message;
      state_.is_rejected = failure_->is_rejection;
      if (failure_->is_disruption)
        state_.extra_conditions.push_back({"DisruptionTarget", "True", "TerminationByKubelet", failure_->message, now, spec_.generation});
      for (ContainerRecord& record : state_.containers) record.is_ready = false;
      if (failure_->reason == "DeadlineExceeded") emit("Normal", "DeadlineExceeded", failure_->message, containers_.size());
    }
    if (failure_) stop = Stop{failure_->grace, false};
    if (stop_) stop = *stop_;
  }
  if (!stop && pod_outcome(spec_, state_)) stop = Stop{grace_period(), false};
  return stop;
}

TimePoint PodWorker::sync_running(TimePoint now) {
  TimePoint next = now + kResync;
  if (const std::int64_t deadline = json::get_int(pod_, {"spec", "activeDeadlineSeconds"}); deadline > 0 && state_.start_time)
    next = std::min(next, *state_.start_time + std::chrono::seconds(deadline));
  PodContext context = make_context();
  if (!sandbox_ready_) publish();  // Volumes, sandbox and image may take a while: until then the pod says what it waits for.
  if (const auto group = ensure_cgroup(); !group) {
    emit("Warning", "FailedCreatePodContainer", "unable to ensure pod container exists: " + group.error().message, containers_.size());
    publish();
    return now + kRetry;
  }
  auto names = pod_names(pod_, environment_.cluster_domain);
  if (!names) {
    emit("Warning", "FailedCreatePodSandBox", "Failed to create pod sandbox: " + names.error().message, containers_.size());
    publish();
    return now + kRetry * 5;
  }
  context.names = std::move(*names);
  // Admission takes such a pod for harmless (PodSecurity lets it be root): it must not run as the machine's own users.
  if (!sandbox_ready_ && !json::get_bool(pod_, {"spec", "hostUsers"}, true)) {
    emit("Warning", "FailedCreatePodSandBox",
         "Failed to create pod sandbox: spec.hostUsers is false, and this node's agent makes no user namespaces", containers_.size());
    publish();
    return now + kRetry * 5;
  }
  Result<void> mounted;
  if (!volumes_ready_ || now >= volumes_due_) {
    mounted = set_up_volumes(context, environment_.objects, environment_.tokens, token_cache_, now);
    // Spread, so that the pods of a node do not all ask at once.
    volumes_due_ = now + kVolumePeriod + std::chrono::milliseconds(std::hash<std::string>{}(uid_) % 15'000);
    if (mounted) volumes_ = context.volumes;
  }
  context.volumes = volumes_;
  context.volumes.insert(image_volumes_.begin(), image_volumes_.end());
  next = std::min(next, volumes_due_);
  if (!mounted && !volumes_ready_) {
    emit("Warning", "FailedMount", mounted.error().message, containers_.size());
    publish();
    mount_backoff_ = mount_backoff_ == Duration::zero() ? kRetry / 2 : std::min(mount_backoff_ * 2, kMaxMountBackoff);
    return now + mount_backoff_;
  }
  if (!mounted) log::warning("node", "pod {}/{}: refreshing volumes: {}", spec_.ns, spec_.name, mounted.error().message);
  volumes_ready_ = true;
  if (!sandbox_ready_)
    if (const auto prepared = prepare_claims(pod_, environment_.objects); !prepared) {
      emit("Warning", "FailedPrepareDynamicResources", "Failed to prepare dynamic resources: " + prepared.error().message,
           containers_.size());
      publish();
      return now + kRetry * 5;
    }
  if (const auto sandbox = ensure_sandbox(context); !sandbox) {
    if (!interrupt_)
      emit("Warning", "FailedCreatePodSandBox", "Failed to create pod sandbox: " + rpc_error(sandbox.error()), containers_.size());
    publish();
    return now + kRetry;
  }
  restart_changed_containers();
  restart_all_containers();
  if (resize_containers(context)) next = std::min(next, now + kResizeRetry);
  start_containers(context, now, next);
  run_probes(now, next);
  publish();
  return next;
}

PodContext PodWorker::make_context() {
  PodContext context{pod_,
                     spec_,
                     facts_,
                     state_.pod_ips,
                     environment_.host_ip,
                     environment_.node_name,
                     directory(),
                     log_directory_,
                     cgroup(),
                     environment_.node_memory_bytes,
                     environment_.allocatable,
                     {},
                     {},
                     environment_.cgroups.is_v2(),
                     environment_.swap,
                     {}};
  if (context.pod_ips.empty() && !state_.pod_ip.empty()) context.pod_ips.push_back(state_.pod_ip);
  bool fell_back = false;
  context.dns = pod_dns(pod_, environment_.host_dns, environment_.cluster_dns, environment_.cluster_domain, fell_back);
  return context;
}

Result<void> PodWorker::ensure_cgroup() {
  const CgroupLimits limits = pod_cgroup_limits(facts_);
  if (applied_limits_ && same(*applied_limits_, limits) && environment_.cgroups.exists(cgroup())) return {};
  if (const auto made = environment_.cgroups.create(cgroup(), limits); !made) return made;
  applied_limits_ = limits;
  return {};
}

Result<void> PodWorker::load_runtime_state() {
  const json::Value filter = json::Object{{"filter", json::Object{{"label_selector", json::Object{{"io.kubernetes.pod.uid", uid_}}}}}};
  const auto sandboxes = environment_.runtime.call("RuntimeService/ListPodSandbox", filter);
  if (!sandboxes) return std::unexpected(sandboxes.error());
  sandbox_ready_ = false;
  for (const json::Value& sandbox : json::get_array(*sandboxes, {"items"})) {
    const int attempt = static_cast<int>(json::get_int(sandbox, {"metadata", "attempt"}));
    if (attempt < sandbox_attempt_) continue;
    sandbox_attempt_ = attempt;
    sandbox_id_ = json::get_string(sandbox, {"id"});
    sandbox_ready_ = json::get_string(sandbox, {"state"}) == "SANDBOX_READY";
  }
  state_.has_sandbox = sandbox_ready_;
  const auto containers = environment_.runtime.call("RuntimeService/ListContainers", filter);
  if (!containers) return std::unexpected(containers.error());
  std::set<std::string> listed;
  for (const json::Value& container : json::get_array(*containers, {"containers"})) {
    listed.emplace(json::get_string(container, {"id"}));
    if (const auto taken = take_in(container); !taken) return taken;
  }
  // A container that somebody removed under a running pod is over; how is not known.
  for (std::size_t i = 0; i < containers_.size(); ++i) {
    ContainerRecord& record = state_.containers[i];
    if (!is_running(record) || containers_[i].id.empty() || listed.contains(containers_[i].id)) continue;
    record.state.kind = Kind::kTerminated;
    record.state.exit_code = 137;
    record.state.reason = "ContainerStatusUnknown";
    record.state.message = "The container could not be located when the pod was terminated";
    record.state.finished_at = environment_.clock.now();
    record.state.container_id = record.container_id;
    record.is_ready = record.is_started = false;
  }
  return {};
}

Result<void> PodWorker::ensure_sandbox(PodContext& context) {
  if (!sandbox_ready_) {
    if (!sandbox_id_.empty()) {  // Died, or from before a reboot: what is left of it goes before the next is made.
      stop_containers(grace_period());
      (void)environment_.runtime.call("RuntimeService/StopPodSandbox", json::Object{{"pod_sandbox_id", sandbox_id_}});
      emit("Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.", containers_.size());
      if (const auto loaded = load_runtime_state(); !loaded) return loaded;
      if (mains_done()) return {};  // Nothing to run in another.
    }
    std::error_code error;
    std::filesystem::create_directories(log_directory_, error);
    if (const auto again = ensure_cgroup(); !again) return again;
    const auto made = environment_.runtime.call(
        "RuntimeService/RunPodSandbox", json::Object{{"config", sandbox_config(context, sandbox_attempt_ + 1)}}, 120'000, &interrupt_);
    if (!made) return std::unexpected(made.error());
    sandbox_id_ = json::get_string(*made, {"pod_sandbox_id"});
    ++sandbox_attempt_;
    sandbox_ready_ = true;
    state_.pod_ip.clear();
    state_.pod_ips.clear();
  }
  state_.has_sandbox = true;
  if (state_.pod_ips.empty()) {
    state_.pod_ip = environment_.host_ip;
    state_.pod_ips = {environment_.host_ip};
    if (!spec_.host_network) {
      const auto status = environment_.runtime.call("RuntimeService/PodSandboxStatus", json::Object{{"pod_sandbox_id", sandbox_id_}});
      if (!status) return std::unexpected(status.error());
      state_.pod_ip = json::get_string(*status, {"status", "network", "ip"});
      state_.pod_ips = {state_.pod_ip};
      for (const json::Value& extra : json::get_array(*status, {"status", "network", "additional_ips"}))
        state_.pod_ips.emplace_back(json::get_string(extra, {"ip"}));
    }
    publish();
  }
  context.pod_ips = state_.pod_ips;
  return {};
}

/// Main and ephemeral containers together, then sidecars from the last to the first, each with what is left of the grace period.
void PodWorker::stop_containers(Duration grace) {
  const TimePoint deadline = environment_.clock.now() + grace;
  std::vector<std::future<void>> stops;
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    if (!is_running(state_.containers[i]) || spec_.containers[i].role == ContainerRole::kSidecar) continue;
    emit("Normal", "Killing", "Stopping container " + spec_.containers[i].name, i);
    stops.push_back(std::async(std::launch::async, [this, i, grace] { kill_container(i, grace); }));
  }
  for (auto& one : stops) one.wait();
  for (std::size_t i = spec_.containers.size(); i-- > 0;) {
    if (!is_running(state_.containers[i]) || spec_.containers[i].role != ContainerRole::kSidecar) continue;
    emit("Normal", "Killing", "Stopping container " + spec_.containers[i].name, i);
    kill_container(i, std::max<Duration>(deadline - environment_.clock.now(), std::min<Duration>(grace, std::chrono::seconds(2))));
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
    std::lock_guard lock(mutex_);
    if (quit_) return;
  }
  if (!sandbox_id_.empty() && sandbox_ready_)
    (void)environment_.runtime.call("RuntimeService/StopPodSandbox", json::Object{{"pod_sandbox_id", sandbox_id_}}, 60'000);
  if (const auto loaded = load_runtime_state(); !loaded || std::ranges::any_of(state_.containers, is_running)) {
    // Not stopped, or the runtime is away: once more, until it is.
    look_ = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    std::lock_guard lock(mutex_);
    is_dirty_ = true;
    return;
  }
  // What a pod kept on the node goes with its containers: memory-backed volumes would otherwise hold the memory that it was evicted for.
  if (environment_.image_volumes) environment_.image_volumes->release(directory());
  image_volumes_.clear();
  if (const auto removed = tear_down_volumes(directory()); !removed)
    log::warning("node", "pod {}/{}: {}", spec_.ns, spec_.name, removed.error().message);
  volumes_ready_ = false;
  account_for_unknown_containers();
  state_.is_ended = true;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  publish();
  if (!stop.is_deletion) return;
  remove_everything();
  {
    std::lock_guard lock(mutex_);
    finished_ = true;
  }
  environment_.changed(uid_);
}

void PodWorker::forbid_restarts() {
  for (ContainerSpec& container : spec_.containers) {
    container.restart_policy = RestartPolicy::kNever;
    container.restart_rules.clear();
  }
}

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

namespace {

/// A pod says that it is over when its last container is, not before: others take its end for the end of what it uses.
void hold_back_the_end(json::Value& status) {
  json::Object& fields = status.as_object();
  const std::string_view phase = json::get_string(status, {"phase"});
  if (phase != "Succeeded" && phase != "Failed") return;
  fields["phase"] = "Running";
  fields.erase("reason");
  fields.erase("message");
  if (!fields.contains("conditions")) return;
  json::Array kept;
  for (json::Value& condition : fields["conditions"].as_array())
    if (json::get_string(condition, {"type"}) != "DisruptionTarget") kept.push_back(std::move(condition));
  fields["conditions"] = std::move(kept);
}

}  // namespace

void PodWorker::publish() {
  const json::Value* observed = json::find(pod_, "status");
  json::Value status = make_pod_status(spec_, state_, observed, environment_.clock.now());
  if (std::ranges::any_of(state_.containers, is_running)) hold_back_the_end(status);
  {
    std::lock_guard lock(mutex_);
    shown_state_ = state_;
    shown_sandbox_ = sandbox_id_;
    if (json::equal(status, shown_status_) && !stopped_) return;
    shown_status_ = std::move(status);
  }
  environment_.changed(uid_);
}

void PodWorker::emit(const std::string& type, const std::string& reason, const std::string& message, std::size_t container) {
  environment_.event(pod_, type, reason, message, container < spec_.containers.size() ? container_field_path(spec_, container) : "");
}

}  // namespace berth::node::agent
