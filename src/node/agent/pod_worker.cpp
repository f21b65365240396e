#include "node/agent/pod_worker.h"

#include <filesystem>
#include <future>

#include "base/log.h"

namespace berth::node::agent {
namespace {

using Kind = ContainerState::Kind;
constexpr Duration kRetry = std::chrono::seconds(2);
constexpr Duration kResync = std::chrono::seconds(60);
constexpr Duration kMaxImageBackoff = std::chrono::seconds(300);

TimePoint from_nanoseconds(std::string_view text) {
  std::int64_t ns = 0;
  std::from_chars(text.data(), text.data() + text.size(), ns);
  return TimePoint(Duration(ns / 1000));
}

std::string short_image(std::string image) { return image.find(':', image.rfind('/') == std::string::npos ? 0 : image.rfind('/')) == std::string::npos ? image + ":latest" : image; }

}  // namespace

PodWorker::PodWorker(PodEnvironment& environment, json::Value pod)
    : environment_(environment), uid_(json::get_string(pod, {"metadata", "uid"})), pod_(std::move(pod)), spec_(read_pod_spec(pod_)), facts_(eviction::read_pod_facts(pod_)) {
  log_directory_ = fmt::format("{}/logs/{}_{}_{}", environment_.root, spec_.ns, spec_.name, uid_);
  state_.containers.resize(spec_.containers.size());
  containers_.resize(spec_.containers.size());
  if (const json::Value* status = json::find(pod_, "status")) restore_pod_state(spec_, *status, state_);
  // What runs is for the runtime to say; a report of running containers may be older than a reboot.
  for (ContainerRecord& record : state_.containers) {
    if (record.state.kind != Kind::kRunning) continue;
    record.state = ContainerState{};
    record.is_ready = record.is_started = false;
  }
  state_.host_ip = environment_.host_ip;
  if (!state_.start_time) state_.start_time = environment_.clock.now();
  shown_pod_ = pod_;
}

PodWorker::~PodWorker() {
  quit();
  if (thread_.joinable()) thread_.join();
}

void PodWorker::start() {
  thread_ = std::thread([this] { run(); });
}

void PodWorker::quit() {
  std::lock_guard lock(mutex_);
  quit_ = true;
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
  is_dirty_ = true;
  wake_.notify_all();
}

void PodWorker::fail_pod(std::string reason, std::string message, Duration grace, bool is_disruption) {
  std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = Failure{std::move(reason), std::move(message), grace, is_disruption};
  is_dirty_ = true;
  wake_.notify_all();
}

void PodWorker::wake() {
  std::lock_guard lock(mutex_);
  is_dirty_ = true;
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
    case eviction::QosClass::kGuaranteed: return environment_.pods_cgroup + "/pod" + uid_;
    case eviction::QosClass::kBurstable: return environment_.pods_cgroup + "/burstable/pod" + uid_;
    case eviction::QosClass::kBestEffort: return environment_.pods_cgroup + "/besteffort/pod" + uid_;
  }
  return {};
}

void PodWorker::run() {
  TimePoint next{};
  while (true) {
    std::unique_lock lock(mutex_);
    const Duration wait = next - environment_.clock.now();
    if (!is_dirty_ && !quit_ && wait > Duration::zero()) wake_.wait_for(lock, wait, [&] { return is_dirty_ || quit_; });
    if (quit_) return;
    is_dirty_ = false;
    if (fresh_pod_) {
      pod_ = std::move(*fresh_pod_);
      fresh_pod_.reset();
      shown_pod_ = pod_;
    }
    lock.unlock();
    next = sync();
    std::lock_guard again(mutex_);
    if (finished_) return;
  }
}

TimePoint PodWorker::sync() {
  const TimePoint now = environment_.clock.now();
  if (const auto loaded = load_runtime_state(); !loaded) {
    log::warning("node", "pod {}/{}: {}", spec_.ns, spec_.name, loaded.error().message);
    return now + kRetry;
  }
  std::optional<Stop> stop;
  {
    std::lock_guard lock(mutex_);
    if (failure_ && state_.failure_reason.empty()) {
      const PodPhase phase = pod_phase(spec_, state_);
      if (phase != PodPhase::kSucceeded && phase != PodPhase::kFailed) {
        state_.failure_reason = failure_->reason;
        state_.failure_message = failure_->message;
        if (failure_->is_disruption) state_.extra_conditions.push_back({"DisruptionTarget", "True", "TerminationByKubelet", failure_->message, now});
        for (ContainerRecord& record : state_.containers) record.is_ready = false;
      }
    }
    if (failure_) stop = Stop{failure_->grace, false};
    if (stop_) stop = *stop_;
  }
  const PodPhase phase = pod_phase(spec_, state_);
  if (!stop && (phase == PodPhase::kFailed || phase == PodPhase::kSucceeded)) stop = Stop{std::chrono::seconds(facts_.grace_period_seconds.value_or(30)), false};
  if (stop) {
    publish();
    stop_everything(*stop);
    return environment_.clock.now() + kResync;
  }
  TimePoint next = now + kResync;
  PodContext context = make_context();
  const auto group = environment_.cgroups.create(cgroup(), {});
  if (!volumes_ready_) {
    const auto mounted = group ? set_up_volumes(context, directory(), environment_.objects, environment_.tokens) : group;
    if (!mounted) {
      emit("Warning", "FailedMount", mounted.error().message, 0);
      publish();
      return now + kRetry;
    }
    volumes_ready_ = true;
  } else if (const auto again = set_up_volumes(context, directory(), environment_.objects, environment_.tokens); !again) {
    log::warning("node", "pod {}/{}: refreshing volumes: {}", spec_.ns, spec_.name, again.error().message);
  }
  if (const auto sandbox = ensure_sandbox(context); !sandbox) {
    emit("Warning", "FailedCreatePodSandBox", "Failed to create pod sandbox: " + sandbox.error().message, 0);
    publish();
    return now + kRetry;
  }
  start_containers(context, now, next);
  run_probes(now, next);
  publish();
  return next;
}

PodContext PodWorker::make_context() const {
  return PodContext{pod_, spec_, facts_, state_.pod_ip, environment_.host_ip, environment_.node_name, log_directory_, cgroup(), environment_.node_memory_bytes, {}};
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
  for (const json::Value& container : json::get_array(*containers, {"containers"}))
    if (const auto taken = take_in(container); !taken) return taken;
  return {};
}

Result<void> PodWorker::take_in(const json::Value& listed) {
  const std::string_view name = json::get_string(listed, {"metadata", "name"});
  const auto spec = std::ranges::find(spec_.containers, name, &ContainerSpec::name);
  if (spec == spec_.containers.end()) return {};
  const auto i = static_cast<std::size_t>(spec - spec_.containers.begin());
  Container& own = containers_[i];
  ContainerRecord& record = state_.containers[i];
  const int attempt = static_cast<int>(json::get_int(listed, {"metadata", "attempt"}));
  const std::string id(json::get_string(listed, {"id"}));
  const std::string_view runtime_state = json::get_string(listed, {"state"});
  if (attempt < own.attempt || runtime_state == "CONTAINER_CREATED") return {};
  const bool running = runtime_state == "CONTAINER_RUNNING";
  if (own.id == id && (own.is_known || (running && record.state.kind == Kind::kRunning))) return {};
  const auto status = environment_.runtime.call("RuntimeService/ContainerStatus", json::Object{{"container_id", id}});
  if (!status) return status.error().code == ErrorCode::kNotFound ? Result<void>{} : std::unexpected(status.error());
  const json::Value& s = *json::find(*status, "status");
  if (own.id != id) {
    own = Container{.id = id, .attempt = attempt};
    if (record.state.kind == Kind::kTerminated) record.last = record.state;
    record.restart_count = attempt;
    record.container_id = "containerd://" + id;
    record.image_id = json::get_string(s, {"image_ref"});
  }
  record.state = ContainerState{};
  record.state.started_at = from_nanoseconds(json::get_string(s, {"started_at"}));
  record.state.container_id = record.container_id;
  if (running) {
    record.state.kind = Kind::kRunning;
    const json::Value& container = container_spec(pod_, i);
    record.is_started = !json::find(container, "startupProbe");
    record.is_ready = record.is_started && !json::find(container, "readinessProbe") && spec->role != ContainerRole::kInit;
    return {};
  }
  own.is_known = true;
  record.state.kind = Kind::kTerminated;
  record.state.exit_code = static_cast<int>(json::get_int(s, {"exit_code"}));
  record.state.finished_at = from_nanoseconds(json::get_string(s, {"finished_at"}));
  record.state.reason = json::get_string(s, {"reason"});
  if (record.state.reason.empty()) record.state.reason = record.state.exit_code == 0 ? "Completed" : "Error";
  record.state.message = json::get_string(s, {"message"});
  record.is_started = false;
  record.is_ready = spec->role == ContainerRole::kInit && record.state.exit_code == 0;
  return {};
}

Result<void> PodWorker::ensure_sandbox(PodContext& context) {
  if (!sandbox_ready_) {
    if (!sandbox_id_.empty()) {  // Died, or from before a reboot: what is left of it goes before the next is made.
      (void)environment_.runtime.call("RuntimeService/StopPodSandbox", json::Object{{"pod_sandbox_id", sandbox_id_}});
      emit("Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.", 0);
    }
    std::error_code error;
    std::filesystem::create_directories(log_directory_, error);
    const auto made = environment_.runtime.call("RuntimeService/RunPodSandbox", json::Object{{"config", sandbox_config(context, sandbox_attempt_ + 1)}}, 120'000);
    if (!made) return std::unexpected(made.error());
    sandbox_id_ = json::get_string(*made, {"pod_sandbox_id"});
    ++sandbox_attempt_;
    sandbox_ready_ = true;
    state_.pod_ip.clear();
  }
  state_.has_sandbox = true;
  if (state_.pod_ip.empty()) {
    state_.pod_ip = environment_.host_ip;
    if (!spec_.host_network) {
      const auto status = environment_.runtime.call("RuntimeService/PodSandboxStatus", json::Object{{"pod_sandbox_id", sandbox_id_}});
      if (!status) return std::unexpected(status.error());
      state_.pod_ip = json::get_string(*status, {"status", "network", "ip"});
    }
  }
  context.pod_ip = state_.pod_ip;
  return {};
}

bool PodWorker::mains_done() const {
  for (std::size_t i = 0; i < spec_.containers.size(); ++i)
    if (spec_.containers[i].role == ContainerRole::kMain && !is_done(spec_.containers[i], state_.containers[i])) return false;
  return true;
}

bool PodWorker::may_start(std::size_t i) const {
  const ContainerRole role = spec_.containers[i].role;
  if (is_done(spec_.containers[i], state_.containers[i])) return false;
  if (role == ContainerRole::kMain) return is_initialized(spec_, state_);
  for (std::size_t before = 0; before < i; ++before) {
    const ContainerRecord& earlier = state_.containers[before];
    if (spec_.containers[before].role == ContainerRole::kInit ? !earlier.is_ready : !earlier.is_started) return false;
  }
  return role == ContainerRole::kInit || !mains_done();
}

void PodWorker::start_containers(PodContext& context, TimePoint now, TimePoint& next) {
  const bool has_init = !spec_.containers.empty() && spec_.containers[0].role != ContainerRole::kMain;
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    ContainerRecord& record = state_.containers[i];
    if (record.state.kind == Kind::kRunning) continue;
    if (!may_start(i)) {
      if (record.state.kind == Kind::kWaiting && record.state.reason.empty()) record.state.reason = has_init ? "PodInitializing" : "ContainerCreating";
      continue;
    }
    const ContainerState* ended = record.state.kind == Kind::kTerminated ? &record.state : record.last ? &*record.last : nullptr;
    if (ended) {
      const Duration backoff = restart_backoff(record.restart_count);
      const TimePoint due = ended->finished_at + backoff;
      if (now < due) {
        next = std::min(next, due);
        if (record.state.kind == Kind::kTerminated) {
          record.last = record.state;
          const std::string pod = fmt::format("{}_{}({})", spec_.name, spec_.ns, uid_);
          set_waiting(i, "CrashLoopBackOff", fmt::format("back-off {} restarting failed container={} pod={}", format_go_duration(backoff), spec_.containers[i].name, pod));
          emit("Warning", "BackOff", fmt::format("Back-off restarting failed container {} in pod {}", spec_.containers[i].name, pod), i);
        }
        continue;
      }
    }
    if (now < containers_[i].not_before) {
      next = std::min(next, containers_[i].not_before);
      continue;
    }
    start_container(context, i, now, next);
  }
}

void PodWorker::set_waiting(std::size_t i, std::string reason, std::string message) {
  ContainerRecord& record = state_.containers[i];
  if (record.state.kind == Kind::kTerminated) record.last = record.state;
  record.state = ContainerState{};
  record.state.reason = std::move(reason);
  record.state.message = std::move(message);
  record.is_ready = record.is_started = false;
}

Result<void> PodWorker::ensure_image(const json::Value& container, std::size_t i) {
  const std::string image(json::get_string(container, {"image"}));
  std::string policy(json::get_string(container, {"imagePullPolicy"}));
  if (policy.empty()) policy = short_image(image).ends_with(":latest") ? "Always" : "IfNotPresent";
  const json::Value spec = json::Object{{"image", json::Object{{"image", image}}}};
  if (policy != "Always") {
    const auto status = environment_.runtime.call("ImageService/ImageStatus", spec);
    if (!status) return std::unexpected(status.error());
    if (const json::Value* found = json::find(*status, "image"); found && !json::get_string(*found, {"id"}).empty()) {
      emit("Normal", "Pulled", fmt::format("Container image \"{}\" already present on machine", image), i);
      return {};
    }
    if (policy == "Never") return fail(ErrorCode::kInvalid, fmt::format("Container image \"{}\" is not present with pull policy of Never", image));
  }
  emit("Normal", "Pulling", fmt::format("Pulling image \"{}\"", image), i);
  const auto pulled = environment_.runtime.call("ImageService/PullImage", spec, 600'000);
  if (!pulled) return fail(ErrorCode::kUnavailable, fmt::format("failed to pull image \"{}\": {}", image, pulled.error().message));
  emit("Normal", "Pulled", fmt::format("Successfully pulled image \"{}\"", image), i);
  return {};
}

void PodWorker::start_container(PodContext& context, std::size_t i, TimePoint now, TimePoint& next) {
  const json::Value& container = container_spec(pod_, i);
  Container& own = containers_[i];
  ContainerRecord& record = state_.containers[i];
  const std::string& name = spec_.containers[i].name;
  const auto retry = [&](const char* reason, const std::string& message, Duration after) {
    set_waiting(i, reason, message);
    own.not_before = now + after;
    next = std::min(next, own.not_before);
  };
  if (const auto image = ensure_image(container, i); !image) {
    if (image.error().code == ErrorCode::kInvalid) {
      emit("Warning", "ErrImageNeverPull", image.error().message, i);
      return retry("ErrImageNeverPull", image.error().message, std::chrono::seconds(10));
    }
    const bool again = own.image_backoff.has_value();
    own.image_backoff = again ? std::min(*own.image_backoff * 2, kMaxImageBackoff) : Duration(std::chrono::seconds(10));
    emit("Warning", "Failed", fmt::format("Failed to pull image \"{}\": {}", json::get_string(container, {"image"}), image.error().message), i);
    if (again) return retry("ImagePullBackOff", fmt::format("Back-off pulling image \"{}\"", json::get_string(container, {"image"})), *own.image_backoff);
    return retry("ErrImagePull", image.error().message, *own.image_backoff);
  }
  const bool ran_before = record.state.kind == Kind::kTerminated || record.last;
  const int attempt = ran_before ? record.restart_count + 1 : record.restart_count;
  auto config = container_config(context, i, attempt, environment_.objects);
  if (!config) {
    emit("Warning", "Failed", "Error: " + config.error().message, i);
    return retry("CreateContainerConfigError", config.error().message, kRetry * 5);
  }
  const auto made = environment_.runtime.call("RuntimeService/CreateContainer",
                                              json::Object{{"pod_sandbox_id", sandbox_id_}, {"config", *config}, {"sandbox_config", sandbox_config(context, sandbox_attempt_)}}, 120'000);
  if (!made) {
    emit("Warning", "Failed", "Error: " + made.error().message, i);
    return retry("CreateContainerError", made.error().message, kRetry * 5);
  }
  const std::string id(json::get_string(*made, {"container_id"}));
  emit("Normal", "Created", "Created container: " + name, i);
  const auto started = environment_.runtime.call("RuntimeService/StartContainer", json::Object{{"container_id", id}}, 120'000);
  if (!started) {
    (void)environment_.runtime.call("RuntimeService/RemoveContainer", json::Object{{"container_id", id}});
    emit("Warning", "Failed", "Error: " + started.error().message, i);
    return retry("RunContainerError", started.error().message, kRetry * 5);
  }
  emit("Normal", "Started", "Started container " + name, i);
  // What an older attempt left goes, but for the last one, whose logs `kubectl logs --previous` shows.
  const std::string previous = own.id;
  if (const auto listed = environment_.runtime.call("RuntimeService/ListContainers", json::Object{{"filter", json::Object{{"label_selector", json::Object{{"io.kubernetes.pod.uid", uid_}, {"io.kubernetes.container.name", name}}}}}}))
    for (const json::Value& old : json::get_array(*listed, {"containers"}))
      if (const std::string_view old_id = json::get_string(old, {"id"}); old_id != id && old_id != previous && json::get_string(old, {"state"}) == "CONTAINER_EXITED")
        (void)environment_.runtime.call("RuntimeService/RemoveContainer", json::Object{{"container_id", old_id}});
  if (record.state.kind == Kind::kTerminated) record.last = record.state;
  own = Container{.id = id, .attempt = attempt};
  record.restart_count = attempt;
  record.container_id = "containerd://" + id;
  record.image_id = json::get_string(container, {"image"});
  record.state = ContainerState{.kind = Kind::kRunning, .started_at = environment_.clock.now()};
  record.is_started = !json::find(container, "startupProbe");
  record.is_ready = record.is_started && !json::find(container, "readinessProbe") && spec_.containers[i].role != ContainerRole::kInit;
  if (const json::Value* hook = json::find(container, {"lifecycle", "postStart", "exec"})) {
    const auto ran = environment_.runtime.call("RuntimeService/ExecSync", json::Object{{"container_id", id}, {"cmd", json::get_array(*hook, {"command"})}, {"timeout", "60"}}, 62'000);
    if (!ran || json::get_int(*ran, {"exit_code"}) != 0) {
      emit("Warning", "FailedPostStartHook", "PostStartHook failed", i);
      kill_container(i, std::chrono::seconds(facts_.grace_period_seconds.value_or(30)));
    }
  }
  next = now;  // The next init container, or the probes, follow at once.
}

void PodWorker::run_probes(TimePoint now, TimePoint& next) {
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    ContainerRecord& record = state_.containers[i];
    if (record.state.kind != Kind::kRunning || spec_.containers[i].role == ContainerRole::kInit) continue;
    Container& own = containers_[i];
    const json::Value& container = container_spec(pod_, i);
    const auto probe_once = [&](const char* field, const char* word, ProbeCounter& counter) -> bool {
      const json::Value* probe = json::find(container, field);
      if (!probe) return false;
      const TimePoint first = record.state.started_at + std::chrono::seconds(json::get_int(*probe, {"initialDelaySeconds"}));
      if (counter.next < first) counter.next = first;
      if (counter.next > now) {
        next = std::min(next, counter.next);
        return false;
      }
      counter.next = now + std::chrono::seconds(std::max<std::int64_t>(1, json::get_int(*probe, {"periodSeconds"}, 10)));
      next = std::min(next, counter.next);
      const auto wrong = run_probe(*probe, {environment_.runtime, own.id, state_.pod_ip, container});
      if (wrong) emit("Warning", "Unhealthy", fmt::format("{} probe failed: {}", word, *wrong), i);
      return counter.take(*probe, !wrong);
    };
    if (!record.is_started) {
      if (probe_once("startupProbe", "Startup", own.startup)) {
        if (*own.startup.verdict()) {
          record.is_started = true;
          record.is_ready = !json::find(container, "readinessProbe");
        } else {
          emit("Normal", "Killing", fmt::format("Container {} failed startup probe, will be restarted", spec_.containers[i].name), i);
          kill_container(i, std::chrono::seconds(facts_.grace_period_seconds.value_or(30)));
        }
      }
      continue;
    }
    if (probe_once("readinessProbe", "Readiness", own.readiness)) record.is_ready = *own.readiness.verdict();
    if (probe_once("livenessProbe", "Liveness", own.liveness) && !*own.liveness.verdict()) {
      emit("Normal", "Killing", fmt::format("Container {} failed liveness probe, will be restarted", spec_.containers[i].name), i);
      kill_container(i, std::chrono::seconds(facts_.grace_period_seconds.value_or(30)));
    }
  }
}

void PodWorker::kill_container(std::size_t i, Duration grace) {
  const std::int64_t seconds = std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(grace).count());
  if (const json::Value* hook = json::find(container_spec(pod_, i), {"lifecycle", "preStop", "exec"}); hook && seconds > 0)
    (void)environment_.runtime.call("RuntimeService/ExecSync",
                                    json::Object{{"container_id", containers_[i].id}, {"cmd", json::get_array(*hook, {"command"})}, {"timeout", std::to_string(seconds)}},
                                    static_cast<int>(seconds * 1000 + 1000));
  const auto stopped = environment_.runtime.call("RuntimeService/StopContainer", json::Object{{"container_id", containers_[i].id}, {"timeout", std::to_string(seconds)}},
                                                 static_cast<int>(seconds * 1000 + 30'000));
  if (!stopped && stopped.error().code != ErrorCode::kNotFound) log::warning("node", "stopping container {} of {}/{}: {}", spec_.containers[i].name, spec_.ns, spec_.name, stopped.error().message);
}

void PodWorker::stop_everything(const Stop& stop) {
  std::vector<std::future<void>> stops;
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    if (state_.containers[i].state.kind != Kind::kRunning) continue;
    emit("Normal", "Killing", "Stopping container " + spec_.containers[i].name, i);
    stops.push_back(std::async(std::launch::async, [this, i, grace = stop.grace] { kill_container(i, grace); }));
  }
  for (auto& one : stops) one.wait();
  if (!sandbox_id_.empty() && sandbox_ready_) (void)environment_.runtime.call("RuntimeService/StopPodSandbox", json::Object{{"pod_sandbox_id", sandbox_id_}}, 60'000);
  (void)load_runtime_state();
  if (stop.is_deletion) {
    // A deleted pod's containers are over: its phase is what they came to.
    for (ContainerSpec& container : spec_.containers) container.restart_policy = RestartPolicy::kNever;
  }
  // What a pod kept on the node goes with its containers: memory-backed volumes would otherwise hold the memory that it was evicted for.
  if (const auto removed = tear_down_volumes(directory()); !removed) log::warning("node", "pod {}/{}: {}", spec_.ns, spec_.name, removed.error().message);
  volumes_ready_ = false;
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

void PodWorker::remove_everything() {
  const json::Value filter = json::Object{{"filter", json::Object{{"label_selector", json::Object{{"io.kubernetes.pod.uid", uid_}}}}}};
  if (const auto containers = environment_.runtime.call("RuntimeService/ListContainers", filter))
    for (const json::Value& container : json::get_array(*containers, {"containers"}))
      (void)environment_.runtime.call("RuntimeService/RemoveContainer", json::Object{{"container_id", json::get_string(container, {"id"})}});
  if (const auto sandboxes = environment_.runtime.call("RuntimeService/ListPodSandbox", filter))
    for (const json::Value& sandbox : json::get_array(*sandboxes, {"items"})) {
      (void)environment_.runtime.call("RuntimeService/StopPodSandbox", json::Object{{"pod_sandbox_id", json::get_string(sandbox, {"id"})}}, 60'000);
      (void)environment_.runtime.call("RuntimeService/RemovePodSandbox", json::Object{{"pod_sandbox_id", json::get_string(sandbox, {"id"})}}, 60'000);
    }
  for (int tries = 0; tries < 20 && !environment_.cgroups.remove(cgroup()); ++tries) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::error_code error;
  std::filesystem::remove_all(log_directory_, error);
}

void PodWorker::publish() {
  const json::Value* observed = json::find(pod_, "status");
  json::Value status = make_pod_status(spec_, state_, observed, environment_.clock.now());
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
  environment_.event(pod_, type, reason, message, container < spec_.containers.size() ? spec_.containers[container].name : "");
}

}  // namespace berth::node::agent
