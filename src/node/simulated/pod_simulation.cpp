#include "node/simulated/pod_simulation.h"

namespace berth::node::simulated {
namespace {

using Kind = ContainerState::Kind;
constexpr Duration kPullRetry = std::chrono::seconds(10);

std::string container_id(const PodSpec& spec, const ContainerSpec& container, int restart) {
  return fmt::format("simulated://{}-{}-{}", spec.uid, container.name, restart);
}

json::Value gate_conditions(const PodSpec& spec, const json::Value& pod) {
  if (spec.readiness_gates.empty()) return nullptr;
  return json::Object{{"conditions", json::get_array(pod, {"status", "conditions"})}};
}

}  // namespace

PodSimulation::PodSimulation(const json::Value& pod, const PodSimulationOptions& options, TimePoint now)
    : spec_(read_pod_spec(pod)), behaviour_(read_behaviour(pod)) {
  state_.containers.resize(spec_.containers.size());
  stop_delay_ = behaviour_.stop_after.value_or(options.stop_delay);
  const json::Value* status = json::find(pod, "status");
  if (status) restore_pod_state(spec_, *status, state_);
  state_.host_ip = options.host_ip;
  if (state_.pod_ip.empty()) assigned_ip_ = spec_.host_network ? options.host_ip : options.pod_ip;
  begun_ = state_.has_sandbox || is_terminal();
  if (spec_.containers.empty() || is_terminal()) stopped_ = true;
  observed_ = gate_conditions(spec_, pod);
  if (!state_.start_time) state_.start_time = now;
  start_at_ = *state_.start_time + behaviour_.start_delay.value_or(options.start_delay);
  read_deadline(pod);
  deadline_grace_ =
      std::chrono::seconds(std::clamp<std::int64_t>(json::get_int(pod, {"spec", "terminationGracePeriodSeconds"}, 30), 0, 1'000'000'000));
  if (!begun_) {
    changed_ = true;
    for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
      const bool behind_init = spec_.containers[i].role == ContainerRole::kMain && spec_.containers[0].role != ContainerRole::kMain;
      state_.containers[i].state.reason =
          behind_init || (i > 0 && spec_.containers[0].role != ContainerRole::kMain) ? "PodInitializing" : "ContainerCreating";
      state_.containers[i].image_id = "";
    }
  }
  for (const std::string& problem : behaviour_.problems) events_.push_back({"Warning", "InvalidSimulationAnnotation", problem, "", false});
}

std::optional<TimePoint> PodSimulation::next_of(std::size_t i) const {
  const ContainerRecord& record = state_.containers[i];
  const ContainerBehaviour& b = behaviour_.containers[i];
  std::optional<TimePoint> next;
  const auto at = [&](TimePoint t) { next = next ? std::min(*next, t) : t; };
  if (record.state.kind == Kind::kRunning) {
    if (b.run_for) at(record.state.started_at + *b.run_for);
    if (b.liveness_after) at(record.state.started_at + *b.liveness_after);
    if (!record.is_started) at(record.state.started_at + b.started_after);
    if (!record.is_ready && b.is_ever_ready && spec_.containers[i].role != ContainerRole::kInit)
      at(record.state.started_at + b.ready_after);
    return next;
  }
  if (!may_run(i)) return std::nullopt;
  if (record.state.kind == Kind::kTerminated) return record.state.finished_at + restart_backoff(record.restart_count);
  // Waiting: for its back-off after an end, or for nothing.
  if (record.last && record.last->kind == Kind::kTerminated) return record.last->finished_at + restart_backoff(record.restart_count);
  return start_at_;
}

bool PodSimulation::may_run(std::size_t i) const {
  const ContainerRole role = spec_.containers[i].role;
  const ContainerRecord& record = state_.containers[i];
  if (is_done(spec_.containers[i], record)) return false;
  if (role == ContainerRole::kMain && !is_initialized(spec_, state_)) return false;
  if (role != ContainerRole::kMain) {
    for (std::size_t before = 0; before < i; ++before) {
      const ContainerRecord& earlier = state_.containers[before];
      if (spec_.containers[before].role == ContainerRole::kInit ? !earlier.is_ready : !earlier.is_started) return false;
    }
  }
  if (role == ContainerRole::kSidecar && mains_done()) return false;
  return true;
}

bool PodSimulation::mains_done() const {
  for (std::size_t i = 0; i < spec_.containers.size(); ++i)
    if (spec_.containers[i].role == ContainerRole::kMain && !is_done(spec_.containers[i], state_.containers[i])) return false;
  return true;
}

std::optional<TimePoint> PodSimulation::next_change() const {
  if (stopped_) return std::nullopt;
  std::optional<TimePoint> next = stop_at_;
  const auto at = [&](TimePoint t) { next = next ? std::min(*next, t) : t; };
  if (deadline_ && state_.failure_reason.empty()) at(*deadline_);
  if (!state_.failure_reason.empty()) return next;
  if (!begun_) {
    at(behaviour_.pull_fails && state_.containers[0].state.reason == "ErrImagePull" ? start_at_ + kPullRetry : start_at_);
    if (behaviour_.pull_fails && state_.containers[0].state.reason == "ImagePullBackOff") return stop_at_ ? stop_at_ : deadline_;
    return next;
  }
  // A container that is asked to stop still may end by itself, but is not started again.
  for (std::size_t i = 0; i < spec_.containers.size(); ++i)
    if (!stop_at_ || state_.containers[i].state.kind == Kind::kRunning)
      if (const auto t = next_of(i)) at(*t);
  return next;
}

bool PodSimulation::advance(TimePoint now) {
  // Each step moves at least one container one state on; the bound only guards against a behaviour that never settles (a container that
  // runs for no time at all), which then goes on with the next call.
  for (int guard = 0; guard < 1000; ++guard) {
    const std::optional<TimePoint> next = next_change();
    if (!next || *next > now) break;
    step(*next);
  }
  return std::exchange(changed_, false);
}

void PodSimulation::step(TimePoint t) {
  changed_ = true;
  if (stop_at_ && *stop_at_ <= t) return finish_stop(t);
  if (deadline_ && *deadline_ <= t && state_.failure_reason.empty())
    return fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline", deadline_grace_, t, false);
  if (!begun_) {
    ContainerRecord& first = state_.containers[0];
    if (behaviour_.pull_fails) {
      const bool again = first.state.reason == "ErrImagePull";
      const std::string& image = spec_.containers[0].image;
      first.state.reason = again ? "ImagePullBackOff" : "ErrImagePull";
      first.state.message =
          again ? fmt::format("Back-off pulling image \"{}\"", image) : fmt::format("the simulated image \"{}\" cannot be pulled", image);
      emit("Warning", again ? "BackOff" : "Failed",
           again ? first.state.message : fmt::format("Failed to pull image \"{}\": {}", image, first.state.message), 0);
      state_.has_sandbox = true;
      return;
    }
    begun_ = true;
    state_.has_sandbox = true;
    if (state_.pod_ip.empty()) state_.pod_ip = std::move(assigned_ip_);
  }
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    if (stop_at_ && state_.containers[i].state.kind != Kind::kRunning) continue;
    const std::optional<TimePoint> due = next_of(i);
    if (due && *due <= t) run_container(i, t);
  }
  if (mains_done()) {  // Sidecars end with what they served.
    for (std::size_t i = 0; i < spec_.containers.size(); ++i)
      if (spec_.containers[i].role == ContainerRole::kSidecar && state_.containers[i].state.kind == Kind::kRunning)
        end_container(i, 0, "Completed", t);
    stopped_ = true;
  }
  if (is_terminal()) stopped_ = true;
}

void PodSimulation::run_container(std::size_t i, TimePoint t) {
  phase_.reset();
  ContainerRecord& record = state_.containers[i];
  const ContainerBehaviour& b = behaviour_.containers[i];
  if (record.state.kind != Kind::kRunning) return start_container(i, t);
  if (b.run_for && record.state.started_at + *b.run_for <= t)
    return end_container(i, b.exit_code, b.exit_code == 0 ? "Completed" : "Error", t);
  if (b.liveness_after && record.state.started_at + *b.liveness_after <= t) {
    emit("Warning", "Unhealthy", "Liveness probe failed: the simulated probe fails", i);
    emit("Normal", "Killing", fmt::format("Container {} failed liveness probe, will be restarted", spec_.containers[i].name), i);
    return end_container(i, 137, "Error", t);
  }
  if (!record.is_started && record.state.started_at + b.started_after <= t) record.is_started = true;
  if (b.is_ever_ready && record.state.started_at + b.ready_after <= t) record.is_ready = spec_.containers[i].role != ContainerRole::kInit;
}

void PodSimulation::start_container(std::size_t i, TimePoint t) {
  phase_.reset();
  ContainerRecord& record = state_.containers[i];
  const ContainerSpec& container = spec_.containers[i];
  if (record.state.kind == Kind::kTerminated) record.last = record.state;
  if (record.last) ++record.restart_count;
  program_output_.erase(i);
  record.container_id = container_id(spec_, container, record.restart_count);
  record.image.clear();
  record.image_id = "simulated://" + container.image;
  record.state = ContainerState{.kind = Kind::kRunning, .started_at = t};
  const ContainerBehaviour& b = behaviour_.containers[i];
  record.is_started = b.started_after <= Duration::zero();
  record.is_ready = container.role != ContainerRole::kInit && b.is_ever_ready && b.ready_after <= Duration::zero();
  emit("Normal", "Pulled", fmt::format("Container image \"{}\" already present on machine", container.image), i);
  emit("Normal", "Created", fmt::format("Created container: {}", container.name), i);
  emit("Normal", "Started", fmt::format("Started container {}", container.name), i);
}

void PodSimulation::end_container(std::size_t i, int exit_code, std::string_view reason, TimePoint t) {
  phase_.reset();
  ContainerRecord& record = state_.containers[i];
  const ContainerSpec& container = spec_.containers[i];
  ContainerState ended = record.state;
  ended.kind = Kind::kTerminated;
  ended.exit_code = exit_code;
  ended.reason = reason;
  ended.finished_at = t;
  ended.container_id = record.container_id;
  record.state = ended;
  record.is_started = false;
  // An init container that succeeded counts as ready: that is how Kubernetes reports "done".
  record.is_ready = container.role == ContainerRole::kInit && exit_code == 0;
  if (is_done(container, record) || stop_at_ || !may_run(i)) return;
  const Duration backoff = restart_backoff(record.restart_count);
  if (backoff == Duration::zero()) return;
  record.last = ended;
  const std::string pod = fmt::format("{}_{}({})", spec_.name, spec_.ns, spec_.uid);
  record.state = ContainerState{};
  record.state.reason = "CrashLoopBackOff";
  record.state.message = fmt::format("back-off {} restarting failed container={} pod={}", format_go_duration(backoff), container.name, pod);
  emit("Warning", "BackOff", fmt::format("Back-off restarting failed container {} in pod {}", container.name, pod), i);
}

void PodSimulation::stop(Duration grace, TimePoint now) {
  if (stopped_) return;
  const bool any_running = std::ranges::any_of(state_.containers, [](const ContainerRecord& r) { return r.state.kind == Kind::kRunning; });
  const TimePoint at = any_running ? now + std::min(grace, stop_delay_) : now;
  if (!stop_at_) {
    for (std::size_t i = 0; i < spec_.containers.size(); ++i)
      if (state_.containers[i].state.kind == Kind::kRunning) emit("Normal", "Killing", "Stopping container " + spec_.containers[i].name, i);
  } else if (*stop_at_ <= at) {
    return;
  }
  stop_grace_ = grace;
  stop_at_ = at;
}

void PodSimulation::fail(std::string reason, std::string message, Duration grace, TimePoint now, bool is_disruption) {
  if (is_terminal()) return;
  stop(grace, now);
  phase_.reset();
  state_.failure_reason = std::move(reason);
  state_.failure_message = std::move(message);
  if (is_disruption)
    state_.extra_conditions.push_back({"DisruptionTarget", "True", "TerminationByKubelet", state_.failure_message, now, spec_.generation});
  for (ContainerRecord& record : state_.containers) record.is_ready = false;
  changed_ = true;
}

void PodSimulation::reject(std::string reason, std::string message) {
  if (is_terminal()) return;
  phase_.reset();
  state_.failure_reason = std::move(reason);
  state_.failure_message = std::move(message);
  state_.is_rejected = true;
  stopped_ = changed_ = true;
}

void PodSimulation::oom_kill(std::string_view container, TimePoint now) {
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    if (spec_.containers[i].name != container || state_.containers[i].state.kind != Kind::kRunning) continue;
    end_container(i, 137, "OOMKilled", now);
    changed_ = true;
  }
}

void PodSimulation::end_program(std::size_t container, std::string_view container_id, int exit_code, TimePoint now) {
  const ContainerRecord& record = state_.containers.at(container);
  if (record.state.kind != Kind::kRunning || record.container_id != container_id) return;
  // The same pass as for a container that ends by itself at this moment: others may start or end with it.
  now = std::max(now, record.state.started_at + Duration(1));  // No run takes no time: it would end for ever in one moment.
  behaviour_.containers.change([&](std::vector<ContainerBehaviour>& containers) {
    containers[container].exit_code = exit_code;
    containers[container].run_for = now - record.state.started_at;
  });
  advance(now);
  behaviour_.containers.change([&](std::vector<ContainerBehaviour>& containers) { containers[container].run_for.reset(); });
  changed_ = true;
}

void PodSimulation::add_output(std::size_t container, std::string_view container_id, std::string_view text) {
  constexpr std::size_t kMostLines = 2000;
  if (state_.containers.at(container).container_id != container_id) return;
  std::deque<std::string>& lines = program_output_[container];
  while (!text.empty()) {
    lines.emplace_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), lines.back().size() + 1));
    if (lines.size() > kMostLines) lines.pop_front();
  }
}

void PodSimulation::finish_stop(TimePoint t) {
  phase_.reset();
  const bool killed = stop_delay_ > stop_grace_;
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    ContainerRecord& record = state_.containers[i];
    if (record.state.kind == Kind::kRunning) {
      end_container(i, killed ? 137 : 143, "Error", t);
    } else if (record.state.kind == Kind::kWaiting) {
      // What never ran, or waited for its restart, is reported as the kubelet does for a container that it finds no trace of.
      record.state.kind = Kind::kTerminated;
      record.state.reason = "ContainerStatusUnknown";
      record.state.message = "The container could not be located when the pod was terminated";
      record.state.exit_code = 137;
      record.state.finished_at = t;
      record.state.started_at = t;
    }
  }
  // A stopped pod is not restarted, whatever its policy: its phase is what its containers came to.
  forbid_restarts_of(spec_);
  stopped_ = true;
}

void PodSimulation::read_deadline(const json::Value& pod) {
  if (const std::int64_t seconds = json::get_int(pod, {"spec", "activeDeadlineSeconds"}); seconds > 0 && seconds < 1'000'000'000)
    deadline_ = *state_.start_time + std::chrono::seconds(seconds);
}

/// A new generation: resources may have been resized, which simulated containers take at once, the pod may have to end sooner, and a
/// container with another image is another container. True when it is one.
bool PodSimulation::take_generation(const json::Value& pod, TimePoint now) {
  if (json::get_int(pod, {"metadata", "generation"}) == spec_.generation) return false;
  phase_.reset();
  const PodSpec fresh = read_pod_spec(pod);
  spec_.generation = fresh.generation;
  spec_.resources = fresh.resources;
  read_deadline(pod);
  std::vector<std::size_t> redefined;
  spec_.containers.change([&](std::vector<ContainerSpec>& containers) {
    for (std::size_t i = 0; i < containers.size(); ++i)
      for (const ContainerSpec& newer : fresh.containers) {
        if (newer.name != containers[i].name) continue;
        containers[i].resources = newer.resources;
        if (newer.image == containers[i].image) continue;
        redefined.push_back(i);
        ContainerRecord& record = state_.containers[i];
        // What ended ran the old one, and shows it.
        if (record.state.kind == Kind::kTerminated && record.image.empty()) record.image = containers[i].image;
        containers[i].image = newer.image;
      }
  });
  for (const std::size_t i : redefined)
    if (state_.containers[i].state.kind == Kind::kRunning && !stop_at_ && !stopped_) redefine(i, now);
  return true;
}

/// As the kubelet: whatever the restart policy, and without a back-off.
void PodSimulation::redefine(std::size_t i, TimePoint now) {
  emit("Normal", "Killing", fmt::format("Container {} definition changed, will be restarted", spec_.containers[i].name), i);
  ContainerRecord& record = state_.containers[i];
  record.state.kind = Kind::kTerminated;
  record.state.exit_code = 143;
  record.state.reason = "Error";
  record.state.finished_at = now;
  record.state.container_id = record.container_id;
  start_container(i, now);
}

/// Ephemeral containers come while the pod runs; what is there stays as it is.
bool PodSimulation::take_newcomers(const json::Value& pod, const PodBehaviour& fresh) {
  const std::size_t known = spec_.containers.size();
  if (fresh.containers.size() <= known || json::get_array(pod, {"spec", "ephemeralContainers"}).empty()) return false;
  const PodSpec newer = read_pod_spec(pod);
  for (std::size_t i = known; i < std::min(newer.containers.size(), fresh.containers.size()); ++i) {
    spec_.containers.push_back(newer.containers[i]);
    behaviour_.containers.push_back(fresh.containers[i]);
    ContainerRecord& record = state_.containers.emplace_back();
    record.state.reason = "ContainerCreating";
    record.image_id = "";
  }
  return true;
}

bool PodSimulation::update(const json::Value& pod, TimePoint now) {
  const PodBehaviour fresh = read_behaviour(pod);
  bool changed = take_generation(pod, now);
  changed = take_newcomers(pod, fresh) || changed;
  std::vector<ContainerBehaviour> containers = *behaviour_.containers;
  for (std::size_t i = 0; i < std::min(fresh.containers.size(), containers.size()); ++i) {
    // How long it runs may become known while it does.
    if (!containers[i].role && fresh.containers[i].run_for && fresh.containers[i].run_for != containers[i].run_for) {
      containers[i].run_for = fresh.containers[i].run_for;
      changed = true;
    }
    if (fresh.containers[i].is_ever_ready == containers[i].is_ever_ready) continue;
    containers[i].is_ever_ready = fresh.containers[i].is_ever_ready;
    if (!fresh.containers[i].is_ever_ready && state_.containers[i].is_ready && spec_.containers[i].role != ContainerRole::kInit)
      state_.containers[i].is_ready = false;
    changed = true;
  }
  behaviour_.containers = std::move(containers);
  if (json::Value gates = gate_conditions(spec_, pod); !gates.is_null()) {
    const json::Value before = status(now);
    observed_ = std::move(gates);
    changed = changed || !json::equal(before, status(now));
  }
  if (changed) advance(now);
  return changed;
}

double PodSimulation::usage(std::size_t container, std::string_view resource, TimePoint now) const {
  const ContainerRecord& record = state_.containers[container];
  if (record.state.kind != Kind::kRunning) return 0;
  const ContainerBehaviour& b = behaviour_.containers[container];
  for (const auto& [name, curve] : b.usage)
    if (name == resource) return curve.at(now - record.state.started_at);
  if (resource == "cpu") return static_cast<double>(b.cpu_request_milli) / 1000;
  if (resource == "memory") return static_cast<double>(b.memory_request_bytes);
  return resource == "pids" ? 1 : 0;
}

const PodSimulation::SteadyUse& PodSimulation::steady_use() const {
  const bool is_running = phase() == PodPhase::kRunning;
  if (steady_use_) return *steady_use_;
  SteadyUse& out = steady_use_.emplace();
  for (std::size_t i = 0; is_running && i < state_.containers.size(); ++i) {
    if (state_.containers[i].state.kind != Kind::kRunning) continue;
    out.cpu_milli += behaviour_.containers[i].cpu_request_milli;
    out.memory_bytes += behaviour_.containers[i].memory_request_bytes;
  }
  return out;
}

void PodSimulation::emit(std::string_view type, std::string_view reason, std::string message, std::size_t container) {
  events_.push_back({std::string(type), std::string(reason), std::move(message), spec_.containers[container].name,
                     spec_.containers[container].role != ContainerRole::kMain});
}

std::string PodSimulation::log(std::size_t container, bool with_timestamps) const {
  const ContainerRecord& record = state_.containers[container];
  if (record.state.kind == Kind::kWaiting && !record.last) return {};
  const ContainerState& run = record.state.kind == Kind::kWaiting ? *record.last : record.state;
  std::string out;
  const auto line = [&](TimePoint t, std::string_view text) {
    if (with_timestamps) out += format_rfc3339_micro(t) + " ";
    out += text;
    out += '\n';
  };
  const ContainerBehaviour& b = behaviour_.containers[container];
  if (const auto written = program_output_.find(container); written != program_output_.end()) {
    for (const std::string& text : written->second) line(run.started_at, text);
    return out;
  }
  if (b.output.empty())
    line(run.started_at, fmt::format("simulated container {} of pod {}/{} started; image {} was not run", spec_.containers[container].name,
                                     spec_.ns, spec_.name, spec_.containers[container].image));
  for (const std::string& text : b.output) line(run.started_at, text);
  if (run.kind == Kind::kTerminated && b.output.empty())
    line(run.finished_at, fmt::format("simulated container ended with exit code {}", run.exit_code));
  return out;
}

}  // namespace berth::node::simulated
