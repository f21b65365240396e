#include "node/agent/pod_worker.h"

#include <filesystem>
#include <set>

#include "base/log.h"
#include "base/mutex.h"
#include "node/agent/image_volumes.h"
#include "node/agent/node_metrics.h"
#include "node/agent/pod_worker_inbox.h"
#include "node/agent/thread_memory.h"
#include "node/cpus/cpu_manager.h"
#include "node/csi/csi_volumes.h"

namespace berth::node::agent {
namespace {

using Kind = ContainerState::Kind;
constexpr Duration kRetry = std::chrono::seconds(2);
constexpr Duration kResizeRetry = std::chrono::seconds(10);
constexpr Duration kResync = std::chrono::seconds(60);
constexpr Duration kVolumePeriod = std::chrono::seconds(60);        // How old what volumes show may be.
constexpr Duration kDriverVolumePeriod = std::chrono::seconds(15);  // One may have grown.
constexpr Duration kMaxMountBackoff = std::chrono::seconds(16);

bool is_running(const ContainerRecord& record) { return record.state.kind == Kind::kRunning; }

/// The limits of the group above a pod's containers: what all of them ask for, and the pod's own limit, or where each has one, their sum.
CgroupLimits pod_cgroup_limits(const eviction::PodFacts& facts) {
  CgroupLimits limits;
  const auto is_limited = [&](std::string_view resource) {
    if (facts.has_pod_level_resources && facts.pod_limits.contains(resource)) return true;
    return !facts.containers.empty() &&
           std::ranges::all_of(facts.containers, [&](const auto& one) { return one.limits.contains(resource); });
  };
  limits.cpu_shares = facts.qos == eviction::QosClass::kBestEffort
                          ? 2
                          : static_cast<std::uint64_t>(cpu_shares(eviction::pod_request(facts, "cpu").milli_value()));
  limits.cpu_quota_us = -1;
  limits.memory_bytes = -1;
  if (facts.qos == eviction::QosClass::kBestEffort) return limits;
  if (const auto cpu = is_limited("cpu") ? eviction::pod_limit(facts, "cpu") : std::nullopt)
    limits.cpu_quota_us = cpu_quota_us(cpu->milli_value());
  if (const auto memory = is_limited("memory") ? eviction::pod_limit(facts, "memory") : std::nullopt) limits.memory_bytes = memory->value();
  return limits;
}

bool same(const CgroupLimits& a, const CgroupLimits& b) {
  return a.cpu_shares == b.cpu_shares && a.cpu_quota_us == b.cpu_quota_us && a.memory_bytes == b.memory_bytes;
}

std::string cgroup_of(eviction::QosClass qos, const std::string& uid, const std::string& above) {
  switch (qos) {
    case eviction::QosClass::kGuaranteed:
      return above + "/pod" + uid;
    case eviction::QosClass::kBurstable:
      return above + "/burstable/pod" + uid;
    case eviction::QosClass::kBestEffort:
      return above + "/besteffort/pod" + uid;
  }
  return {};
}

}  // namespace

std::string rpc_error(const Error& error) {
  const char* code = error.code == ErrorCode::kNotFound ? "NotFound" : error.code == ErrorCode::kUnavailable ? "Unavailable" : "Unknown";
  return fmt::format("rpc error: code = {} desc = {}", code, error.message);
}

PodWorker::PodWorker(PodEnvironment& environment, json::Value pod)
    : environment_(environment),
      uid_(json::get_string(pod, {"metadata", "uid"})),
      qos_(eviction::read_pod_facts(pod).qos),
      cgroup_(cgroup_of(qos_, uid_, environment.pods_cgroup)),
      pod_(std::move(pod)),
      trace_(environment.tracer, pod_, environment.node_name),
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
  restore_whole_resources();
  show_granted_resources();
  const std::string_view phase = json::get_string(pod_, {"status", "phase"});
  has_run_ = !phase.empty() && phase != "Pending";
  state_.host_ip = environment_.host_ip;
  if (!state_.start_time) state_.start_time = environment_.clock.now();
  shown_pod_ = pod_;
  inbox_ = std::make_shared<ProbeInbox>();
  inbox_->worker = this;
}

PodWorker::~PodWorker() {
  quit();
  if (thread_.joinable()) thread_.join();
  MutexLock lock(inbox_->mutex);
  inbox_->worker = nullptr;
  if (environment_.metrics) environment_.metrics->forget(uid_);
}

void PodWorker::start() {
  thread_ = std::thread([this] { run(); });
}

void PodWorker::quit() {
  MutexLock lock(mutex_);
  quit_ = true;
  interrupt_ = true;
  wake_.notify_all();
}

void PodWorker::update(json::Value pod) {
  MutexLock lock(mutex_);
  fresh_pod_ = std::move(pod);
  is_dirty_ = true;
  wake_.notify_all();
}

void PodWorker::terminate(Duration grace) {
  MutexLock lock(mutex_);
  if (stop_ && stop_->is_deletion && stop_->grace <= grace) return;
  stop_ = Stop{grace, true};
  is_dirty_ = interrupt_ = true;
  wake_.notify_all();
}

void PodWorker::fail_pod(std::string reason, std::string message, Duration grace, bool is_disruption) {
  MutexLock lock(mutex_);
  if (failure_) return;
  failure_ = Failure{std::move(reason), std::move(message), grace, is_disruption};
  is_dirty_ = interrupt_ = true;
  wake_.notify_all();
}

void PodWorker::reject_pod(std::string reason, std::string message) {
  MutexLock lock(mutex_);
  if (failure_) return;
  failure_ = Failure{std::move(reason), std::move(message), Duration::zero(), false, true};
  is_dirty_ = interrupt_ = true;
  wake_.notify_all();
}

void PodWorker::wake() {
  MutexLock lock(mutex_);
  is_dirty_ = runtime_changed_ = true;
  wake_.notify_all();
}

void PodWorker::show_devices() {
  MutexLock lock(mutex_);
  is_dirty_ = true;
  wake_.notify_all();
}

json::Value PodWorker::status() const {
  MutexLock lock(mutex_);
  return shown_status_;
}
json::Value PodWorker::pod() const {
  MutexLock lock(mutex_);
  return shown_pod_;
}
json::Value PodWorker::granted() const {
  MutexLock lock(mutex_);
  return shown_granted_.is_null() ? shown_pod_ : shown_granted_;
}
PodState PodWorker::state() const {
  MutexLock lock(mutex_);
  return shown_state_;
}
std::string PodWorker::sandbox_id() const {
  MutexLock lock(mutex_);
  return shown_sandbox_;
}
bool PodWorker::is_over() const {
  MutexLock lock(mutex_);
  if (stopped_ || failure_) return true;
  const std::string_view phase = json::get_string(shown_status_, {"phase"});
  return phase == "Failed" || phase == "Succeeded";
}
bool PodWorker::is_stopped() const {
  MutexLock lock(mutex_);
  return stopped_;
}
bool PodWorker::is_finished() const {
  MutexLock lock(mutex_);
  return finished_;
}

Duration PodWorker::grace_period() const { return std::chrono::seconds(facts_.grace_period_seconds.value_or(30)); }

void PodWorker::run() {
  TimePoint next{};
  while (true) {
    std::optional<json::Value> fresh;
    {
      MutexLock lock(mutex_);
      const Duration wait = next - environment_.clock.now();
      if (!is_dirty_ && !quit_ && wait > Duration::zero())
        wake_.wait_for(mutex_, wait, [&]() BERTH_REQUIRES(mutex_) { return is_dirty_ || quit_; });
      if (quit_) return;
      is_dirty_ = false;
      look_ = look_ || std::exchange(runtime_changed_, false);
      fresh.swap(fresh_pod_);
    }
    if (fresh) adopt(std::move(*fresh));
    take_probe_results();
    next = sync();
    release_thread_memory();
    MutexLock lock(mutex_);
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
  MutexLock lock(mutex_);
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
    return environment_.clock.now() + (is_held_ ? kRetry : kResync);
  }
  return sync_running(now);
}

/// Deleted, failed as a whole, too old, or over by itself.
std::optional<PodWorker::Stop> PodWorker::why_stop(TimePoint now) {
  std::optional<Stop> stop;
  {
    MutexLock lock(mutex_);
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
    DriverVolumes drivers;
    if (environment_.csi != nullptr) drivers = [this](const csi::PodVolume& volume) { return environment_.csi->place(volume, interrupt_); };
    mounted = set_up_volumes(context, environment_.objects, environment_.tokens, token_cache_, now, drivers);
    if (mounted) volumes_ = context.volumes;
    const bool has_drivers = std::ranges::any_of(volumes_, [](const auto& one) { return one.second.is_drivers; });
    // Spread, so that the pods of a node do not all ask at once.
    volumes_due_ = now + (has_drivers ? kDriverVolumePeriod : kVolumePeriod) +
                   std::chrono::milliseconds(std::hash<std::string>{}(uid_) % (has_drivers ? 5'000 : 15'000));
  }
  context.volumes = volumes_;
  context.volumes.insert(image_volumes_.begin(), image_volumes_.end());
  next = std::min(next, volumes_due_);
  if (!mounted && !volumes_ready_) {
    if (!interrupt_) emit("Warning", "FailedMount", mounted.error().message, containers_.size());
    publish();
    mount_backoff_ = mount_backoff_ == Duration::zero() ? kRetry / 2 : std::min(mount_backoff_ * 2, kMaxMountBackoff);
    return now + mount_backoff_;
  }
  if (!mounted) log::warning("node", "pod {}/{}: refreshing volumes: {}", spec_.ns, spec_.name, mounted.error().message);
  volumes_ready_ = true;
  if (!sandbox_ready_)
    if (const auto prepared = prepare_claims(); !prepared) {
      if (!interrupt_)
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
  keep_on_cpus(context);
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
                     {},
                     with_own_cpus()};
  if (context.pod_ips.empty() && !state_.pod_ip.empty()) context.pod_ips.push_back(state_.pod_ip);
  bool fell_back = false;
  context.dns = pod_dns(pod_, environment_.host_dns, environment_.cluster_dns, environment_.cluster_domain, fell_back);
  return context;
}

std::set<std::string> PodWorker::with_own_cpus() const {
  std::set<std::string> out;
  for (const auto& container : spec_.containers)
    if (environment_.cpus != nullptr && !environment_.cpus->own(uid_, container.name).empty()) out.insert(container.name);
  return out;
}

CgroupLimits PodWorker::wanted_limits() const {
  CgroupLimits limits = pod_cgroup_limits(facts_);
  limits.pids = environment_.pids_limit;
  if (!with_own_cpus().empty()) limits.cpu_quota_us = -1;  // Its groups would slow them down as well.
  return limits;
}

bool PodWorker::has_wanted_limits() const { return applied_limits_ && same(*applied_limits_, wanted_limits()); }

Result<void> PodWorker::ensure_cgroup() {
  if (has_wanted_limits() && environment_.cgroups.exists(cgroup())) return {};
  CgroupLimits limits = wanted_limits();
  if (environment_.cgroups.usage_in_the_way(cgroup(), *limits.memory_bytes)) limits.memory_bytes.reset();  // Once less is in use.
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
    auto step = trace_.step("RuntimeService/RunPodSandbox");
    const auto made = environment_.runtime.call(
        "RuntimeService/RunPodSandbox", json::Object{{"config", sandbox_config(context, sandbox_attempt_ + 1)}}, 120'000, &interrupt_);
    if (environment_.metrics) made ? environment_.metrics->pod_started() : environment_.metrics->pod_start_failed();
    if (!made) {
      step.fail(made.error().message);
      return std::unexpected(made.error());
    }
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
  look_at_devices();
  const json::Value* observed = json::find(pod_, "status");
  json::Value status = make_pod_status(spec_, state_, observed, environment_.clock.now());
  if (std::ranges::any_of(state_.containers, is_running)) hold_back_the_end(status);
  trace_.phase(json::get_string(status, {"phase"}), json::get_string(status, {"reason"}));
  count_start(status);
  {
    MutexLock lock(mutex_);
    shown_state_ = state_;
    shown_sandbox_ = sandbox_id_;
    if (json::equal(status, shown_status_) && !stopped_) return;
    shown_status_ = std::move(status);
  }
  environment_.changed(uid_);
}

void PodWorker::count_start(const json::Value& status) {
  if (has_run_ || json::get_string(status, {"phase"}) == "Pending") return;
  has_run_ = true;
  const auto made = parse_rfc3339(json::get_string(pod_, {"metadata", "creationTimestamp"}));
  if (environment_.metrics && made && json::get_string(status, {"phase"}) == "Running")
    environment_.metrics->pod_ran(environment_.clock.now() - *made);
}

void PodWorker::emit(const std::string& type, const std::string& reason, const std::string& message, std::size_t container) {
  environment_.event(pod_, type, reason, message, container < spec_.containers.size() ? container_field_path(spec_, container) : "");
}

}  // namespace berth::node::agent
