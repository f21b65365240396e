#include "node/pod_state.h"

#include <set>

#include "node/eviction/pod_facts.h"

namespace berth::node {
namespace {

constexpr std::string_view kRestartingCondition = "AllContainersRestarting", kResetReason = "RestartingAllContainers";

RestartPolicy parse_restart_policy(std::string_view text, RestartPolicy fallback) {
  if (text == "Always") return RestartPolicy::kAlways;
  if (text == "OnFailure") return RestartPolicy::kOnFailure;
  if (text == "Never") return RestartPolicy::kNever;
  return fallback;
}

std::string join_names(const std::vector<std::string>& names) { return fmt::format("[{}]", fmt::join(names, " ")); }

json::Object state_to_json(const ContainerState& state) {
  json::Object out;
  switch (state.kind) {
    case ContainerState::Kind::kWaiting: {
      json::Object& waiting = out["waiting"].emplace_object();
      if (!state.reason.empty()) waiting["reason"] = state.reason;
      if (!state.message.empty()) waiting["message"] = state.message;
      break;
    }
    case ContainerState::Kind::kRunning:
      out["running"] = {{"startedAt", format_rfc3339(state.started_at)}};
      break;
    case ContainerState::Kind::kTerminated: {
      json::Object& terminated = out["terminated"].emplace_object();
      terminated["exitCode"] = state.exit_code;
      if (!state.reason.empty()) terminated["reason"] = state.reason;
      if (!state.message.empty()) terminated["message"] = state.message;
      if (state.started_at != TimePoint{}) terminated["startedAt"] = format_rfc3339(state.started_at);
      if (state.finished_at != TimePoint{}) terminated["finishedAt"] = format_rfc3339(state.finished_at);
      if (!state.container_id.empty()) terminated["containerID"] = state.container_id;
      break;
    }
  }
  return out;
}

std::optional<ContainerState> state_from_json(const json::Value& value) {
  ContainerState state;
  if (const json::Value* running = json::find(value, "running")) {
    state.kind = ContainerState::Kind::kRunning;
    state.started_at = parse_rfc3339(json::get_string(*running, {"startedAt"})).value_or(TimePoint{});
    return state;
  }
  if (const json::Value* terminated = json::find(value, "terminated")) {
    state.kind = ContainerState::Kind::kTerminated;
    state.exit_code = static_cast<int>(json::get_int(*terminated, {"exitCode"}));
    state.reason = json::get_string(*terminated, {"reason"});
    state.message = json::get_string(*terminated, {"message"});
    state.started_at = parse_rfc3339(json::get_string(*terminated, {"startedAt"})).value_or(TimePoint{});
    state.finished_at = parse_rfc3339(json::get_string(*terminated, {"finishedAt"})).value_or(TimePoint{});
    state.container_id = json::get_string(*terminated, {"containerID"});
    return state;
  }
  if (const json::Value* waiting = json::find(value, "waiting")) {
    state.reason = json::get_string(*waiting, {"reason"});
    state.message = json::get_string(*waiting, {"message"});
    return state;
  }
  return std::nullopt;
}

/// A container of which nothing is known yet waits for its turn.
json::Object shown_state(const ContainerRecord& record, bool has_init) {
  if (record.state.kind != ContainerState::Kind::kWaiting || !record.state.reason.empty()) return state_to_json(record.state);
  ContainerState waiting = record.state;
  waiting.reason = has_init ? "PodInitializing" : "ContainerCreating";
  return state_to_json(waiting);
}

json::Object container_status(const ContainerSpec& spec, const ContainerRecord& record, bool has_init) {
  json::Object out;
  out["name"] = spec.name;
  out["state"] = shown_state(record, has_init);
  if (record.last)
    out["lastState"] = state_to_json(*record.last);
  else
    out["lastState"] = json::Object{};
  out["ready"] = record.is_ready;
  out["restartCount"] = record.restart_count;
  out["image"] = record.image.empty() ? spec.image : record.image;
  out["imageID"] = record.image_id;
  if (!record.container_id.empty()) out["containerID"] = record.container_id;
  if (spec.role != ContainerRole::kEphemeral) out["started"] = record.is_started;
  if (!record.container_id.empty()) {
    out["resources"] = record.resources.is_object() ? record.resources : *spec.resources;
    if (const json::Object& requests = json::get_object(*spec.resources, {"requests"}); !requests.empty())
      out["allocatedResources"] = requests;
  }
  if (!spec.volume_mounts.empty()) out["volumeMounts"] = json::parse(spec.volume_mounts).value_or(json::Value(json::Array()));
  if (record.user.is_object()) out["user"] = record.user;
  if (!record.allocated_devices.empty()) out["allocatedResourcesStatus"] = record.allocated_devices;
  return out;
}

/// `volumeMounts` of a container's status: what the spec says, and of read-only ones whether mounts below them are too (never here).
json::Array shown_mounts(const json::Value& container) {
  json::Array out;
  for (const json::Value& mount : json::get_array(container, {"volumeMounts"})) {
    json::Object shown{{"name", json::get_string(mount, {"name"})}, {"mountPath", json::get_string(mount, {"mountPath"})}};
    if (json::get_bool(mount, {"readOnly"})) {
      shown["readOnly"] = true;
      shown["recursiveReadOnly"] = "Disabled";
    }
    out.push_back(std::move(shown));
  }
  return out;
}

/// Requests and limits of the whole pod, in the form of a status.
json::Object pod_resources(const json::Value& pod) {
  const eviction::PodFacts facts = eviction::read_pod_facts(pod);
  std::set<std::string, std::less<>> requested, limited;
  for (const eviction::ContainerFacts& container : facts.containers) {
    for (const auto& [name, amount] : container.requests) requested.insert(name);
    for (const auto& [name, amount] : container.limits) limited.insert(name);
  }
  for (const auto& [name, amount] : facts.pod_requests) requested.insert(name);
  for (const auto& [name, amount] : facts.pod_limits) limited.insert(name);
  for (const auto& [name, amount] : facts.overhead) requested.insert(name);
  json::Object requests, limits;
  for (const std::string& name : requested) requests[name] = eviction::pod_request(facts, name).to_string();
  for (const std::string& name : limited)
    if (const auto limit = eviction::pod_limit(facts, name)) limits[name] = limit->to_string();
  json::Object out;
  if (!limits.empty()) out["limits"] = std::move(limits);
  if (!requests.empty()) out["requests"] = std::move(requests);
  return out;
}

struct Verdict {
  bool is_true = true;
  std::string reason, message;
};

Verdict containers_ready(const PodSpec& spec, const PodState& state, PodPhase phase) {
  if (phase == PodPhase::kSucceeded) return {false, "PodCompleted", ""};
  if (phase == PodPhase::kFailed) return {false, "PodFailed", ""};
  std::vector<std::string> unready;
  for (std::size_t i = 0; i < spec.containers.size(); ++i)
    if ((spec.containers[i].role == ContainerRole::kMain || spec.containers[i].role == ContainerRole::kSidecar) &&
        !state.containers[i].is_ready)
      unready.push_back(spec.containers[i].name);
  if (unready.empty()) return {};
  return {false, "ContainersNotReady", "containers with unready status: " + join_names(unready)};
}

Verdict pod_ready(const PodSpec& spec, const Verdict& containers, const json::Value* observed) {
  if (!containers.is_true || spec.readiness_gates.empty()) return containers;
  std::vector<std::string> messages;
  for (const std::string& gate : spec.readiness_gates) {
    const json::Value* found = nullptr;
    if (observed)
      for (const json::Value& condition : json::get_array(*observed, {"conditions"}))
        if (json::get_string(condition, {"type"}) == gate) found = &condition;
    if (!found)
      messages.push_back(fmt::format("corresponding condition of pod readiness gate \"{}\" does not exist.", gate));
    else if (const std::string_view status = json::get_string(*found, {"status"}); status != "True")
      messages.push_back(fmt::format("the status of pod readiness gate \"{}\" is not \"True\", but {}", gate, status));
  }
  if (messages.empty()) return {};
  return {false, "ReadinessGatesNotReady", fmt::format("{}", fmt::join(messages, ", "))};
}

Verdict initialized(const PodSpec& spec, const PodState& state, PodPhase phase) {
  if (phase == PodPhase::kSucceeded) return {true, "PodCompleted", ""};
  // A pod that starts anew stays initialized.
  const bool was_initialized = std::ranges::any_of(state.containers, &ContainerRecord::is_reset);
  if (was_initialized || is_initialized(spec, state)) return {};
  std::vector<std::string> incomplete;
  for (std::size_t i = 0; i < spec.containers.size(); ++i) {
    const ContainerRole role = spec.containers[i].role;
    if ((role == ContainerRole::kInit && !state.containers[i].is_ready) ||
        (role == ContainerRole::kSidecar && !state.containers[i].is_started))
      incomplete.push_back(spec.containers[i].name);
  }
  return {false, "ContainersNotInitialized", "containers with incomplete status: " + join_names(incomplete)};
}

bool could_restart_all(const PodSpec& spec) {
  return std::ranges::any_of(spec.containers,
                             [](const ContainerSpec& c) { return std::ranges::any_of(c.restart_rules, &RestartRule::restarts_all); });
}

json::Value condition_to_json(const ConditionRecord& record) {
  json::Object out;
  out["type"] = record.type;
  out["status"] = record.status;
  // Explicit nulls take an earlier reason away in a merge patch.
  out["reason"] = record.reason.empty() ? json::Value(nullptr) : json::Value(record.reason);
  out["message"] = record.message.empty() ? json::Value(nullptr) : json::Value(record.message);
  out["lastProbeTime"] = record.type.starts_with("PodResize") ? json::Value(format_rfc3339(record.transition)) : json::Value(nullptr);
  out["lastTransitionTime"] = format_rfc3339(record.transition);
  if (record.observed_generation > 0) out["observedGeneration"] = record.observed_generation;
  return out;
}

json::Value restarting_condition(const PodState& state, PodPhase phase, const json::Value* observed, TimePoint now) {
  ConditionRecord record{std::string(kRestartingCondition), state.is_restarting ? "True" : "False", {}, {}, now};
  if (phase == PodPhase::kSucceeded || phase == PodPhase::kFailed)
    record.reason = phase == PodPhase::kFailed ? "PodFailed" : "PodCompleted";
  else if (state.is_restarting)
    record.reason = "RestartAllContainersStarted", record.message = "container exited with restart policy rule";
  if (observed)
    for (const json::Value& before : json::get_array(*observed, {"conditions"}))
      if (json::get_string(before, {"type"}) == record.type && json::get_string(before, {"status"}) == record.status)
        record.transition = parse_rfc3339(json::get_string(before, {"lastTransitionTime"})).value_or(now);
  return condition_to_json(record);
}

/// Index into kOwnConditions.
enum OwnIndex : std::size_t { kReadyToStart, kInitialized, kReady, kContainersReady, kScheduled };

void add_condition(json::Array& out, const PodSpec& spec, PodState& state, OwnIndex index, const Verdict& verdict, TimePoint now) {
  PodState::OwnCondition& own = state.conditions[index];
  if (own.status != static_cast<std::int8_t>(verdict.is_true)) own = {static_cast<std::int8_t>(verdict.is_true), now};
  out.push_back(condition_to_json({std::string(kOwnConditions[index]), verdict.is_true ? "True" : "False", verdict.reason, verdict.message,
                                   own.transition, spec.generation}));
}

}  // namespace

void forbid_restarts_of(PodSpec& spec) {
  spec.containers.change([](std::vector<ContainerSpec>& containers) {
    for (ContainerSpec& container : containers) {
      container.restart_policy = RestartPolicy::kNever;
      container.restart_rules.clear();
    }
  });
}

PodSpec read_pod_spec(const json::Value& pod) {
  PodSpec spec;
  spec.ns = json::get_string(pod, {"metadata", "namespace"});
  spec.name = json::get_string(pod, {"metadata", "name"});
  spec.uid = json::get_string(pod, {"metadata", "uid"});
  spec.node_name = json::get_string(pod, {"spec", "nodeName"});
  spec.restart_policy = parse_restart_policy(json::get_string(pod, {"spec", "restartPolicy"}), RestartPolicy::kAlways);
  spec.host_network = json::get_bool(pod, {"spec", "hostNetwork"});
  spec.generation = json::get_int(pod, {"metadata", "generation"});
  spec.resources = json::Value(pod_resources(pod));
  std::vector<ContainerSpec> containers;
  for (const json::Value& gate : json::get_array(pod, {"spec", "readinessGates"}))
    spec.readiness_gates.emplace_back(json::get_string(gate, {"conditionType"}));
  const auto add = [&](const json::Value& container, bool init) {
    ContainerSpec c;
    c.name = json::get_string(container, {"name"});
    c.image = json::get_string(container, {"image"});
    const std::string_view own = json::get_string(container, {"restartPolicy"});
    if (const json::Value* resources = json::find(container, "resources"); resources && resources->is_object()) c.resources = *resources;
    if (const json::Array mounts = shown_mounts(container); !mounts.empty()) c.volume_mounts = json::serialize(mounts);
    for (const json::Value& rule : json::get_array(container, {"restartPolicyRules"})) {
      RestartRule read{
          json::get_string(rule, {"exitCodes", "operator"}) == "In", {}, json::get_string(rule, {"action"}) == "RestartAllContainers"};
      for (const json::Value& code : json::get_array(rule, {"exitCodes", "values"}))
        if (code.is_int64()) read.exit_codes.push_back(code.get_int64());
      c.restart_rules.push_back(std::move(read));
    }
    c.role = !init ? ContainerRole::kMain : own == "Always" ? ContainerRole::kSidecar : ContainerRole::kInit;
    c.restart_policy = parse_restart_policy(own, spec.restart_policy);
    // An init container of an Always pod is repeated until it succeeds, and then it is over.
    if (c.role == ContainerRole::kInit && c.restart_policy == RestartPolicy::kAlways) c.restart_policy = RestartPolicy::kOnFailure;
    containers.push_back(std::move(c));
  };
  for (const json::Value& container : json::get_array(pod, {"spec", "initContainers"})) add(container, true);
  for (const json::Value& container : json::get_array(pod, {"spec", "containers"})) add(container, false);
  for (const json::Value& container : json::get_array(pod, {"spec", "ephemeralContainers"})) {
    add(container, false);
    containers.back().role = ContainerRole::kEphemeral;
    containers.back().restart_policy = RestartPolicy::kNever;
  }
  spec.containers = std::move(containers);
  return spec;
}

void reset_container(ContainerRecord& record) {
  const ContainerState gone{.reason = std::string(kResetReason),
                            .message = "The container is removed because RestartAllContainers in place"};
  record.state = gone;
  record.last = gone;
  record.last->kind = ContainerState::Kind::kTerminated;
  record.last->exit_code = 137;
  ++record.restart_count;
  record.is_ready = record.is_started = false;
  record.is_reset = true;
}

std::string_view to_string(PodPhase phase) {
  switch (phase) {
    case PodPhase::kPending:
      return "Pending";
    case PodPhase::kRunning:
      return "Running";
    case PodPhase::kSucceeded:
      return "Succeeded";
    case PodPhase::kFailed:
      return "Failed";
  }
  return "Unknown";
}

std::optional<PodPhase> parse_phase(std::string_view text) {
  for (const PodPhase phase : {PodPhase::kPending, PodPhase::kRunning, PodPhase::kSucceeded, PodPhase::kFailed})
    if (to_string(phase) == text) return phase;
  return std::nullopt;
}

bool RestartRule::matches(std::int64_t exit_code) const { return (std::ranges::find(exit_codes, exit_code) != exit_codes.end()) == is_in; }

bool is_restarted(const ContainerSpec& spec, std::int64_t exit_code) {
  if (std::ranges::any_of(spec.restart_rules, [&](const RestartRule& rule) { return rule.matches(exit_code); })) return true;
  return spec.restart_policy == RestartPolicy::kAlways || (spec.restart_policy == RestartPolicy::kOnFailure && exit_code != 0);
}

bool is_done(const ContainerSpec& spec, const ContainerRecord& record) {
  return record.state.kind == ContainerState::Kind::kTerminated && !is_restarted(spec, record.state.exit_code);
}

bool is_initialized(const PodSpec& spec, const PodState& state) {
  bool all = true;
  for (std::size_t i = 0; i < spec.containers.size(); ++i) {
    const ContainerRecord& record = state.containers[i];
    switch (spec.containers[i].role) {
      case ContainerRole::kMain:
        if (record.state.kind != ContainerState::Kind::kWaiting || (record.last && !record.is_reset)) return true;
        break;
      case ContainerRole::kInit:
        all = all && record.is_ready;
        break;
      case ContainerRole::kSidecar:
        all = all && record.is_started;
        break;
      case ContainerRole::kEphemeral:
        break;
    }
  }
  return all;
}

namespace {

/// What getPhase counts. Containers that wait after an end count by that end.
struct PhaseCounts {
  int pending_init = 0, failed_init = 0, pending_sidecars = 0;
  int running_sidecars = 0, running = 0, waiting = 0, stopped = 0, stopped_for_good = 0, succeeded = 0;
  bool has_started = false;  ///< A main container has run.

  void count_init(const ContainerSpec& spec, const ContainerRecord& record) {
    const ContainerState* end = record.state.kind == ContainerState::Kind::kTerminated               ? &record.state
                                : record.state.kind == ContainerState::Kind::kWaiting && record.last ? &*record.last
                                                                                                     : nullptr;
    if (!end)
      ++pending_init;
    else if (end->exit_code != 0 && !record.is_reset)
      (is_restarted(spec, end->exit_code) ? pending_init : failed_init)++;
  }
  void count_sidecar(const ContainerRecord& record) {
    if (record.state.kind == ContainerState::Kind::kRunning) {
      pending_sidecars += record.is_started ? 0 : 1;
      ++running_sidecars;
    } else if (record.state.kind == ContainerState::Kind::kWaiting && !record.last) {
      ++pending_sidecars, ++waiting;
    }
  }
  void count_main(const ContainerSpec& spec, const ContainerRecord& record) {
    has_started = has_started || record.state.kind != ContainerState::Kind::kWaiting || record.last;
    if (record.state.kind == ContainerState::Kind::kRunning) {
      ++running;
    } else if (record.state.kind == ContainerState::Kind::kTerminated) {
      ++stopped;
      stopped_for_good += is_restarted(spec, record.state.exit_code) ? 0 : 1;
      succeeded += record.state.exit_code == 0 ? 1 : 0;
    } else if (record.last) {
      ++stopped;
      stopped_for_good += record.is_reset || is_restarted(spec, record.last->exit_code) ? 0 : 1;
    } else {
      ++waiting;
    }
  }
};

PhaseCounts count_containers(const PodSpec& spec, const PodState& state) {
  PhaseCounts counts;
  for (std::size_t i = 0; i < spec.containers.size(); ++i) {
    const ContainerRole role = spec.containers[i].role;
    if (role == ContainerRole::kInit)
      counts.count_init(spec.containers[i], state.containers[i]);
    else if (role == ContainerRole::kSidecar)
      counts.count_sidecar(state.containers[i]);
    else if (role == ContainerRole::kMain)
      counts.count_main(spec.containers[i], state.containers[i]);
  }
  return counts;
}

PodPhase phase_of(const PhaseCounts& counts) {
  if (counts.failed_init > 0) return PodPhase::kFailed;
  if (counts.pending_init > 0 || (counts.pending_sidecars > 0 && !counts.has_started) || counts.waiting > 0) return PodPhase::kPending;
  if (counts.running + counts.running_sidecars > 0) return PodPhase::kRunning;
  if (counts.stopped == 0) return PodPhase::kPending;
  if (counts.stopped != counts.stopped_for_good) return PodPhase::kRunning;
  return counts.stopped == counts.succeeded ? PodPhase::kSucceeded : PodPhase::kFailed;
}

}  // namespace

PodPhase pod_phase(const PodSpec& spec, const PodState& state) {
  if (!state.failure_reason.empty()) return PodPhase::kFailed;
  const PodPhase phase = phase_of(count_containers(spec, state));
  const bool is_last = phase == PodPhase::kFailed || phase == PodPhase::kSucceeded;
  return state.is_ended && !is_last ? PodPhase::kFailed : phase;
}

std::optional<PodPhase> pod_outcome(const PodSpec& spec, const PodState& state) {
  if (!state.failure_reason.empty()) return PodPhase::kFailed;
  if (state.is_restarting) return std::nullopt;
  PhaseCounts counts = count_containers(spec, state);
  counts.running_sidecars = 0;
  const PodPhase phase = phase_of(counts);
  return phase == PodPhase::kFailed || phase == PodPhase::kSucceeded ? std::optional(phase) : std::nullopt;
}

json::Value make_pod_status(const PodSpec& spec, PodState& state, const json::Value* observed, TimePoint now) {
  const PodPhase phase = pod_phase(spec, state);
  const bool is_terminal = phase == PodPhase::kSucceeded || phase == PodPhase::kFailed;
  json::Object out;
  if (spec.generation > 0) out["observedGeneration"] = spec.generation;
  out["phase"] = to_string(phase);
  if (!state.failure_reason.empty()) {
    out["reason"] = state.failure_reason;
    out["message"] = state.failure_message;
  }
  if (state.is_rejected) {
    if (state.start_time) out["startTime"] = format_rfc3339(*state.start_time);
    return out;
  }
  const Verdict ready = containers_ready(spec, state, phase);
  json::Array& conditions = out["conditions"].emplace_array();
  for (const ConditionRecord& record : state.extra_conditions) conditions.push_back(condition_to_json(record));
  add_condition(conditions, spec, state, kReadyToStart, {state.has_sandbox && !is_terminal, "", ""}, now);
  add_condition(conditions, spec, state, kInitialized, initialized(spec, state, phase), now);
  add_condition(conditions, spec, state, kReady, pod_ready(spec, ready, observed), now);
  add_condition(conditions, spec, state, kContainersReady, ready, now);
  add_condition(conditions, spec, state, kScheduled, {}, state.start_time.value_or(now));
  if (could_restart_all(spec)) conditions.push_back(restarting_condition(state, phase, observed, now));
  if (!state.host_ip.empty()) {
    out["hostIP"] = state.host_ip;
    out["hostIPs"] = json::Array{json::Object{{"ip", state.host_ip}}};
  }
  if (!state.pod_ip.empty()) {
    out["podIP"] = state.pod_ip;
    json::Array& ips = out["podIPs"].emplace_array();
    if (state.pod_ips.empty()) ips.push_back(json::Object{{"ip", state.pod_ip}});
    for (const std::string& ip : state.pod_ips) ips.push_back(json::Object{{"ip", ip}});
  }
  if (state.start_time) out["startTime"] = format_rfc3339(*state.start_time);
  const bool has_init = std::ranges::any_of(spec.containers, [](const ContainerSpec& container) {
    return container.role == ContainerRole::kInit || container.role == ContainerRole::kSidecar;
  });
  json::Array init, main, ephemeral;
  for (std::size_t i = 0; i < spec.containers.size(); ++i) {
    const ContainerRole role = spec.containers[i].role;
    (role == ContainerRole::kMain        ? main
     : role == ContainerRole::kEphemeral ? ephemeral
                                         : init)
        .push_back(container_status(spec.containers[i], state.containers[i], has_init));
  }
  // The kubelet's order: of init containers the spec's, of all others by name.
  for (json::Array* list : {&main, &ephemeral})
    std::ranges::sort(*list, {}, [](const json::Value& status) { return json::get_string(status, {"name"}); });
  out["resources"] = *spec.resources;
  if (const json::Value* requests = json::find(*spec.resources, "requests")) out["allocatedResources"] = *requests;
  if (!init.empty()) out["initContainerStatuses"] = std::move(init);
  if (!ephemeral.empty()) out["ephemeralContainerStatuses"] = std::move(ephemeral);
  out["containerStatuses"] = std::move(main);
  return out;
}

void restore_pod_state(const PodSpec& spec, const json::Value& status, PodState& state) {
  state.containers.resize(spec.containers.size());
  state.start_time = parse_rfc3339(json::get_string(status, {"startTime"}));
  state.host_ip = json::get_string(status, {"hostIP"});
  state.pod_ip = json::get_string(status, {"podIP"});
  for (const json::Value& condition : json::get_array(status, {"conditions"})) {
    const std::string_view type = json::get_string(condition, {"type"}), is = json::get_string(condition, {"status"});
    for (std::size_t i = 0; i < kOwnConditions.size(); ++i) {
      if (kOwnConditions[i] != type || (is != "True" && is != "False")) continue;
      state.conditions[i] = {static_cast<std::int8_t>(is == "True"),
                             parse_rfc3339(json::get_string(condition, {"lastTransitionTime"})).value_or(TimePoint{})};
      if (i == kReadyToStart && is == "True") state.has_sandbox = true;
    }
    if (type == kRestartingCondition) state.is_restarting = is == "True";
  }
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"}) {
    for (const json::Value& reported : json::get_array(status, {list})) {
      for (std::size_t i = 0; i < spec.containers.size(); ++i) {
        if (spec.containers[i].name != json::get_string(reported, {"name"})) continue;
        ContainerRecord& record = state.containers[i];
        if (const json::Value* now = json::find(reported, "state")) record.state = state_from_json(*now).value_or(ContainerState{});
        if (const json::Value* last = json::find(reported, "lastState")) record.last = state_from_json(*last);
        record.is_reset = record.state.kind == ContainerState::Kind::kWaiting && record.last && record.last->reason == kResetReason;
        record.restart_count = static_cast<int>(json::get_int(reported, {"restartCount"}));
        record.is_ready = json::get_bool(reported, {"ready"});
        record.is_started = json::get_bool(reported, {"started"});
        record.image_id = json::get_string(reported, {"imageID"});
        record.container_id = json::get_string(reported, {"containerID"});
        if (const json::Value* user = json::find(reported, "user")) record.user = *user;
        if (const json::Value* resources = json::find(reported, "resources")) record.resources = *resources;
        if (record.state.kind == ContainerState::Kind::kRunning) state.has_sandbox = true;
      }
    }
  }
  const std::string_view phase = json::get_string(status, {"phase"});
  const std::string_view reason = json::get_string(status, {"reason"});
  if (phase == "Failed" && !reason.empty()) {
    state.failure_reason = reason;
    state.failure_message = json::get_string(status, {"message"});
    state.is_rejected = !json::find(status, {"containerStatuses"});
  }
}

Duration restart_backoff(int restart_count, Duration most) {
  if (restart_count <= 0) return Duration::zero();
  const int doublings = std::min(restart_count - 1, 5);
  return std::min<Duration>(std::chrono::seconds(10) * (1 << doublings), most);
}

}  // namespace berth::node
