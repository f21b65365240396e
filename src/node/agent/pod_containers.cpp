// PodWorker: what happens to one container at a time.
#include "base/log.h"
#include "base/mutex.h"
#include "node/agent/mounts.h"
#include "node/agent/node_metrics.h"
#include "node/agent/pod_worker.h"
#include "node/agent/termination_message.h"
#include "node/cpus/cpu_manager.h"
#include "node/numa/memory_manager.h"

namespace berth::node::agent {
namespace {

using Kind = ContainerState::Kind;
constexpr Duration kConfigRetry = std::chrono::seconds(10);
constexpr Duration kBackoffReset = std::chrono::minutes(10);   // A container that ran so long starts its back-off anew.
constexpr Duration kShowStartError = std::chrono::seconds(1);  // So long at least the reason is to be seen before the back-off.

TimePoint from_nanoseconds(std::string_view text) {
  std::int64_t ns = 0;
  std::from_chars(text.data(), text.data() + text.size(), ns);
  return TimePoint(Duration(ns / 1000));
}

std::string pod_words(const PodSpec& spec) { return fmt::format("{}_{}({})", spec.name, spec.ns, spec.uid); }

/// Whom a container runs as, where the runtime tells; null otherwise. The CRI's 64-bit numbers come as text.
json::Value container_user(const json::Value& status) {
  const json::Value* user = json::find(status, {"user", "linux"});
  if (!user) return nullptr;
  const auto number = [](const json::Value& value) -> std::int64_t {
    if (!value.is_string()) return value.is_int64() ? value.get_int64() : 0;
    return std::atoll(value.get_string().c_str());
  };
  json::Object out;
  for (const std::string_view field : {"gid", "uid"}) {
    const json::Value* value = json::find(*user, {field});
    out[field] = value ? number(*value) : 0;
  }
  json::Array groups;
  for (const json::Value& group : json::get_array(*user, {"supplemental_groups"})) groups.push_back(json::Value(number(group)));
  if (!groups.empty()) out["supplementalGroups"] = std::move(groups);
  return json::Object{{"linux", std::move(out)}};
}

}  // namespace

/// Takes over what the runtime says of one of the pod's containers.
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
    const int crashes = own.crashes;
    json::Value allocated = std::move(own.allocated);
    own = Container{.id = id, .attempt = attempt};
    own.crashes = crashes;
    own.allocated = std::move(allocated);
    own.hash = json::get_string(listed, {"annotations", "io.kubernetes.container.hash"});
    if (record.state.kind == Kind::kTerminated && record.state.container_id != environment_.runtime_name + "://" + id)
      record.last = record.state;
    record.restart_count = attempt;
    record.container_id = fmt::format("{}://{}", environment_.runtime_name, id);
  }
  record.image_id = json::get_string(s, {"image_ref"});
  record.image = json::get_string(s, {"image", "image"});
  record.user = container_user(s);
  record.state = ContainerState{};
  record.state.started_at = from_nanoseconds(json::get_string(s, {"started_at"}));
  record.state.container_id = record.container_id;
  if (!running) {
    take_end(i, s);
    return {};
  }
  record.state.kind = Kind::kRunning;
  const json::Value& container = container_spec(pod_, i);
  record.is_started = !json::find(container, "startupProbe");
  record.is_ready = record.is_started && !json::find(container, "readinessProbe") && spec->role != ContainerRole::kInit &&
                    spec->role != ContainerRole::kEphemeral;
  return {};
}

void PodWorker::take_end(std::size_t i, const json::Value& status) {
  Container& own = containers_[i];
  ContainerRecord& record = state_.containers[i];
  own.is_known = true;
  ContainerState& state = record.state;
  state.kind = Kind::kTerminated;
  state.exit_code = static_cast<int>(json::get_int(status, {"exit_code"}));
  if (environment_.metrics) environment_.metrics->container_ended(spec_.containers[i].role, state.exit_code);
  state.finished_at = from_nanoseconds(json::get_string(status, {"finished_at"}));
  state.reason = json::get_string(status, {"reason"});
  if (state.reason.empty()) state.reason = state.exit_code == 0 ? "Completed" : "Error";
  const json::Value& container = container_spec(pod_, i);
  const std::string file = json::get_string(container, {"terminationMessagePath"}).empty()
                               ? ""
                               : termination_message_file(directory(), spec_.containers[i].name, own.attempt);
  state.message = termination_message(file, json::get_string(container, {"terminationMessagePolicy"}), state.exit_code,
                                      fmt::format("{}/{}/{}.log", log_directory_, spec_.containers[i].name, own.attempt),
                                      std::string(json::get_string(status, {"message"})));
  record.is_started = false;
  record.is_ready = spec_.containers[i].role == ContainerRole::kInit && state.exit_code == 0;
  if (state.finished_at - state.started_at >= kBackoffReset) own.crashes = 0;
}

bool PodWorker::mains_done() const {
  for (std::size_t i = 0; i < spec_.containers.size(); ++i)
    if (spec_.containers[i].role == ContainerRole::kMain && !is_done(spec_.containers[i], state_.containers[i])) return false;
  return true;
}

bool PodWorker::may_start(std::size_t i) const {
  const ContainerRole role = spec_.containers[i].role;
  if (is_done(spec_.containers[i], state_.containers[i])) return false;
  if (role == ContainerRole::kEphemeral) return state_.containers[i].state.kind == Kind::kWaiting && !state_.containers[i].last;
  if (role == ContainerRole::kMain) return is_initialized(spec_, state_);
  // Init containers are over once a main one has run; sidecars come back whenever.
  if (role == ContainerRole::kInit && is_initialized(spec_, state_)) return false;
  for (std::size_t before = 0; before < i; ++before) {
    const ContainerRecord& earlier = state_.containers[before];
    if (spec_.containers[before].role == ContainerRole::kInit ? !earlier.is_ready : !earlier.is_started)
      return is_initialized(spec_, state_);
  }
  return role == ContainerRole::kInit || !mains_done();
}

/// A running container whose image was changed in the spec is made anew.
void PodWorker::restart_changed_containers() {
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    if (state_.containers[i].state.kind != Kind::kRunning || containers_[i].hash.empty() ||
        spec_.containers[i].role == ContainerRole::kEphemeral)
      continue;
    if (containers_[i].hash == container_hash(container_spec(pod_, i))) continue;
    emit("Normal", "Killing", fmt::format("Container {} definition changed, will be restarted", spec_.containers[i].name), i);
    stop_while_probing({i}, grace_period());
    containers_[i].crashes = 0;
    containers_[i].hash.clear();
    look_ = true;
    MutexLock lock(mutex_);
    is_dirty_ = true;
  }
}

void PodWorker::start_containers(PodContext& context, TimePoint now, TimePoint& next) {
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    if (state_.containers[i].state.kind == Kind::kRunning) continue;
    if (!may_start(i) || wait_for_backoff(i, now, next)) continue;
    start_container(context, i, now, next);
    if (interrupt_) return;
  }
}

/// True while the container must not be started again yet.
bool PodWorker::wait_for_backoff(std::size_t i, TimePoint now, TimePoint& next) {
  ContainerRecord& record = state_.containers[i];
  Container& own = containers_[i];
  const ContainerState* ended = record.state.kind == Kind::kTerminated ? &record.state : record.last ? &*record.last : nullptr;
  if (ended && spec_.containers[i].role != ContainerRole::kEphemeral) {
    const Duration backoff = restart_backoff(own.crashes, environment_.max_restart_backoff);
    const TimePoint due = ended->finished_at + backoff;
    if (now < due) {
      next = std::min(next, due);
      const bool shows_failed_start = record.state.reason == "RunContainerError" || record.state.reason == "PostStartHookError";
      if (record.state.kind == Kind::kTerminated || (shows_failed_start && now >= own.not_before)) {
        set_waiting(i, "CrashLoopBackOff",
                    fmt::format("back-off {} restarting failed container={} pod={}", format_go_duration(backoff), spec_.containers[i].name,
                                pod_words(spec_)));
        emit("Warning", "BackOff",
             fmt::format("Back-off restarting failed container {} in pod {}", spec_.containers[i].name, pod_words(spec_)), i);
      }
      return true;
    }
  }
  if (now >= own.not_before) return false;
  next = std::min(next, own.not_before);
  show_image_backoff(i, now, next);
  return true;
}

void PodWorker::set_waiting(std::size_t i, std::string reason, std::string message) {
  ContainerRecord& record = state_.containers[i];
  if (record.state.kind == Kind::kTerminated) record.last = record.state;
  record.state = ContainerState{};
  record.state.reason = std::move(reason);
  record.state.message = std::move(message);
  record.is_ready = record.is_started = false;
}

/// What only this node knows: whose processes an ephemeral container sees, and on which processors it runs (those are returned).
std::string PodWorker::place_container(std::size_t i, json::Value& config) const {
  if (const std::string target(json::get_string(container_spec(pod_, i), {"targetContainerName"})); !target.empty())
    for (std::size_t other = 0; other < containers_.size(); ++other)
      if (spec_.containers[other].name == target)
        json::set(config, {"linux", "security_context", "namespace_options", "target_id"}, json::Value(containers_[other].id));
  std::string cpus = environment_.cpus == nullptr ? "" : environment_.cpus->cpus_of(uid_, spec_.containers[i].name);
  if (!cpus.empty()) json::set(config, {"linux", "resources", "cpuset_cpus"}, json::Value(cpus));
  if (environment_.memory != nullptr)
    if (std::string nodes = environment_.memory->nodes_of(uid_, spec_.containers[i].name); !nodes.empty())
      json::set(config, {"linux", "resources", "cpuset_mems"}, json::Value(std::move(nodes)));
  return cpus;
}

void PodWorker::start_container(PodContext& context, std::size_t i, TimePoint now, TimePoint& next) {
  const json::Value& container = container_spec(pod_, i);
  Container& own = containers_[i];
  ContainerRecord& record = state_.containers[i];
  const auto wait = [&](const char* reason, const std::string& message) {
    set_waiting(i, reason, message);
    own.not_before = environment_.clock.now() + kConfigRetry;
    next = std::min(next, own.not_before);
  };
  const auto failed = [&](const char* reason, const std::string& message) {
    if (environment_.metrics) environment_.metrics->container_start_failed(spec_.containers[i].role, reason);
    emit("Warning", "Failed", "Error: " + message, i);
    wait(reason, message);
  };
  if (!place_image_volumes(context, i, now, next)) return;
  const auto image = ensure_image(container, i);
  if (interrupt_) return;
  if (!image) return image_failed(i, container, image.error(), now, next);
  own.image_error.clear();
  own.image_backoff.reset();
  const bool ran_before = record.state.kind == Kind::kTerminated || record.last;
  const int attempt = ran_before && !record.is_reset ? record.restart_count + 1 : record.restart_count;
  auto plan = container_config(context, i, attempt, environment_.objects);
  if (!plan) return failed("CreateContainerConfigError", plan.error().message);
  if (const auto refused = check_run_as_non_root(context, container, image->status)) return failed("CreateContainerConfigError", *refused);
  std::string termination_file;
  auto mounts = container_mounts(context, i, attempt, plan->variables, termination_file);
  if (!mounts)
    return failed(mounts.error().code == ErrorCode::kNotFound ? "CreateContainerError" : "CreateContainerConfigError",
                  mounts.error().message);
  json::Object& config = plan->config.as_object();
  config["mounts"] = std::move(*mounts);
  config["image"] = json::Object{{"image", image->reference}};
  std::string no_devices;
  if (const Given given = give_devices(i, config, no_devices); given != Given::kAll)
    return given == Given::kNever ? void() : failed("CreateContainerConfigError", no_devices);
  std::string cpus = place_container(i, plan->config);
  auto step = trace_.step("RuntimeService/CreateContainer, StartContainer", "k8s.container.name", spec_.containers[i].name);
  const auto made = environment_.runtime.call(
      "RuntimeService/CreateContainer",
      json::Object{
          {"pod_sandbox_id", sandbox_id_}, {"config", plan->config}, {"sandbox_config", sandbox_config(context, sandbox_attempt_)}},
      120'000);
  if (!made) {
    step.fail(made.error().message);
    return failed("CreateContainerError", made.error().message);
  }
  const std::string id(json::get_string(*made, {"container_id"}));
  emit("Normal", "Created", "Container created", i);
  const auto began = environment_.runtime.call("RuntimeService/StartContainer", json::Object{{"container_id", id}}, 120'000);
  if (ran_before) ++own.crashes;
  if (!began) {
    step.fail(began.error().message);
    if (environment_.metrics) environment_.metrics->container_start_failed(spec_.containers[i].role, "RunContainerError");
    emit("Warning", "Failed", "Error: " + began.error().message, i);
    if (take_start_error(i, id, began.error().message)) {
      next = std::min(next, now + kShowStartError);
      return;
    }
    (void)environment_.runtime.call("RuntimeService/RemoveContainer", json::Object{{"container_id", id}});
    return wait("RunContainerError", began.error().message);
  }
  emit("Normal", "Started", "Container started", i);
  const std::string previous = own.id;
  started(i, id, attempt);
  own.cpus = std::move(cpus);
  remove_old_containers(i, previous);
  run_post_start(i);
  next = now;  // The next init container, or the probes, follow at once.
}

/// A container that could not be started is one that ended at once, where the runtime says so: it counts as a try, with its own back-off.
bool PodWorker::take_start_error(std::size_t i, const std::string& id, const std::string& message) {
  const auto listed = environment_.runtime.call("RuntimeService/ListContainers", json::Object{{"filter", json::Object{{"id", id}}}});
  if (!listed) return false;
  for (const json::Value& entry : json::get_array(*listed, {"containers"})) {
    if (json::get_string(entry, {"id"}) != id || json::get_string(entry, {"state"}) != "CONTAINER_EXITED") continue;
    const std::string previous = containers_[i].id;
    if (!take_in(entry) || state_.containers[i].state.kind != Kind::kTerminated) return false;
    set_waiting(i, "RunContainerError", message);
    containers_[i].not_before = environment_.clock.now() + kShowStartError;
    remove_old_containers(i, previous);
    return true;
  }
  return false;
}

/// The record of a container that has just been started.
void PodWorker::started(std::size_t i, const std::string& id, int attempt) {
  const json::Value& container = container_spec(pod_, i);
  ContainerRecord& record = state_.containers[i];
  if (environment_.metrics) environment_.metrics->container_started(spec_.containers[i].role);
  if (record.state.kind == Kind::kTerminated) record.last = record.state;
  const int crashes = containers_[i].crashes;
  containers_[i] = Container{.id = id, .attempt = attempt};
  containers_[i].crashes = crashes;
  containers_[i].hash = container_hash(container);
  containers_[i].allocated = record.resources = *spec_.containers[i].resources;
  containers_[i].in_force = resources_in_force(record.resources, whole_allocated_);
  record.is_reset = false;
  record.restart_count = attempt;
  record.container_id = fmt::format("{}://{}", environment_.runtime_name, id);
  record.state = ContainerState{.kind = Kind::kRunning, .started_at = environment_.clock.now()};
  if (const auto status = environment_.runtime.call("RuntimeService/ContainerStatus", json::Object{{"container_id", id}})) {
    record.image_id = json::get_string(*status, {"status", "image_ref"});
    record.image = json::get_string(*status, {"status", "image", "image"});
    if (const json::Value* s = json::find(*status, "status")) record.user = container_user(*s);
  }
  record.is_started = !json::find(container, "startupProbe");
  const ContainerRole role = spec_.containers[i].role;
  record.is_ready =
      record.is_started && !json::find(container, "readinessProbe") && (role == ContainerRole::kMain || role == ContainerRole::kSidecar);
}

/// What an older attempt left goes, but for the last one, whose logs `kubectl logs --previous` shows.
void PodWorker::remove_old_containers(std::size_t i, const std::string& previous) {
  const json::Value filter =
      json::Object{{"filter", json::Object{{"label_selector", json::Object{{"io.kubernetes.pod.uid", uid_},
                                                                           {"io.kubernetes.container.name", spec_.containers[i].name}}}}}};
  const auto listed = environment_.runtime.call("RuntimeService/ListContainers", filter);
  if (!listed) return;
  for (const json::Value& old : json::get_array(*listed, {"containers"})) {
    const std::string_view id = json::get_string(old, {"id"});
    if (id == containers_[i].id || id == previous || json::get_string(old, {"state"}) != "CONTAINER_EXITED") continue;
    (void)environment_.runtime.call("RuntimeService/RemoveContainer", json::Object{{"container_id", id}});
    const std::string log =
        fmt::format("{}/{}/{}.log", log_directory_, spec_.containers[i].name, json::get_int(old, {"metadata", "attempt"}));
    ::unlink(log.c_str());
    ::unlink(termination_message_file(directory(), spec_.containers[i].name, static_cast<int>(json::get_int(old, {"metadata", "attempt"})))
                 .c_str());
  }
}

ProbeTarget PodWorker::probe_target(std::size_t i) const {
  return {environment_.runtime, containers_[i].id, state_.pod_ip, container_spec(pod_, i)};
}

void PodWorker::run_post_start(std::size_t i) {
  const json::Value* hook = json::find(container_spec(pod_, i), {"lifecycle", "postStart"});
  if (!hook) return;
  const auto wrong = run_hook(*hook, probe_target(i), 3600, &interrupt_);
  if (!wrong || interrupt_) return;
  log::warning("node", "pod {}/{}: postStart of {}: {}", spec_.ns, spec_.name, spec_.containers[i].name, wrong->error);
  emit("Warning", "FailedPostStartHook", "PostStartHook failed", i);
  emit("Normal", "Killing", "FailedPostStartHook", i);
  stop_while_probing({i}, grace_period());
  look_ = true;
  if (const auto loaded = load_runtime_state(); !loaded || state_.containers[i].state.kind != Kind::kTerminated) return;
  set_waiting(i, "PostStartHookError", hook_message(*hook, spec_.containers[i].name, pod_words(spec_), *wrong));
  containers_[i].not_before = environment_.clock.now() + kShowStartError;
}

}  // namespace berth::node::agent
