#include "node/pod_state.h"

namespace berth::node {
namespace {

RestartPolicy parse_restart_policy(std::string_view text, RestartPolicy fallback) {
  if (text == "Always") return RestartPolicy::kAlways;
  if (text == "OnFailure") return RestartPolicy::kOnFailure;
  if (text == "Never") return RestartPolicy::kNever;
  return fallback;
}

std::string join_names(const std::vector<std::string>& names) { return fmt::format("[{}]", fmt::join(names, " ")); }

bool is_restarted(RestartPolicy policy, int exit_code) {
  return policy == RestartPolicy::kAlways || (policy == RestartPolicy::kOnFailure && exit_code != 0);
}

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
      terminated["startedAt"] = format_rfc3339(state.started_at);
      terminated["finishedAt"] = format_rfc3339(state.finished_at);
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

json::Object container_status(const ContainerSpec& spec, const ContainerRecord& record) {
  json::Object out;
  out["name"] = spec.name;
  out["state"] = state_to_json(record.state);
  if (record.last)
    out["lastState"] = state_to_json(*record.last);
  else
    out["lastState"] = json::Object{};
  out["ready"] = record.is_ready;
  out["restartCount"] = record.restart_count;
  out["image"] = record.image.empty() ? spec.image : record.image;
  out["imageID"] = record.image_id;
  if (!record.container_id.empty()) out["containerID"] = record.container_id;
  out["started"] = record.is_started;
  if (record.resources.is_object()) {
    out["resources"] = record.resources;
    if (const json::Value* requests = json::find(record.resources, "requests")) out["allocatedResources"] = *requests;
  }
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
  if (is_initialized(spec, state)) return {};
  std::vector<std::string> incomplete;
  for (std::size_t i = 0; i < spec.containers.size(); ++i) {
    const ContainerRole role = spec.containers[i].role;
    if ((role == ContainerRole::kInit && !state.containers[i].is_ready) ||
        (role == ContainerRole::kSidecar && !state.containers[i].is_started))
      incomplete.push_back(spec.containers[i].name);
  }
  return {false, "ContainersNotInitialized", "containers with incomplete status: " + join_names(incomplete)};
}

json::Value condition_to_json(const ConditionRecord& record) {
  json::Object out;
  out["type"] = record.type;
  out["status"] = record.status;
  // Explicit nulls take an earlier reason away in a merge patch.
  out["reason"] = record.reason.empty() ? json::Value(nullptr) : json::Value(record.reason);
  out["message"] = record.message.empty() ? json::Value(nullptr) : json::Value(record.message);
  out["lastProbeTime"] = nullptr;
  out["lastTransitionTime"] = format_rfc3339(record.transition);
  return out;
}

/// Index into kOwnConditions.
enum OwnIndex : std::size_t { kScheduled, kReadyToStart, kInitialized, kContainersReady, kReady };

void add_condition(json::Array& out, PodState& state, OwnIndex index, const Verdict& verdict, TimePoint now) {
  PodState::OwnCondition& own = state.conditions[index];
  if (own.status != static_cast<std::int8_t>(verdict.is_true)) own = {static_cast<std::int8_t>(verdict.is_true), now};
  out.push_back(condition_to_json(
      {std::string(kOwnConditions[index]), verdict.is_true ? "True" : "False", verdict.reason, verdict.message, own.transition}));
}

bool has_condition(const json::Value* status, std::string_view type) {
  if (!status) return false;
  for (const json::Value& condition : json::get_array(*status, {"conditions"}))
    if (json::get_string(condition, {"type"}) == type) return true;
  return false;
}

}  // namespace

PodSpec read_pod_spec(const json::Value& pod) {
  PodSpec spec;
  spec.ns = json::get_string(pod, {"metadata", "namespace"});
  spec.name = json::get_string(pod, {"metadata", "name"});
  spec.uid = json::get_string(pod, {"metadata", "uid"});
  spec.node_name = json::get_string(pod, {"spec", "nodeName"});
  spec.restart_policy = parse_restart_policy(json::get_string(pod, {"spec", "restartPolicy"}), RestartPolicy::kAlways);
  spec.host_network = json::get_bool(pod, {"spec", "hostNetwork"});
  for (const json::Value& gate : json::get_array(pod, {"spec", "readinessGates"}))
    spec.readiness_gates.emplace_back(json::get_string(gate, {"conditionType"}));
  const auto add = [&](const json::Value& container, bool init) {
    ContainerSpec c;
    c.name = json::get_string(container, {"name"});
    c.image = json::get_string(container, {"image"});
    const std::string_view own = json::get_string(container, {"restartPolicy"});
    c.role = !init ? ContainerRole::kMain : own == "Always" ? ContainerRole::kSidecar : ContainerRole::kInit;
    c.restart_policy = parse_restart_policy(own, spec.restart_policy);
    // An init container of an Always pod is repeated until it succeeds, and then it is over.
    if (c.role == ContainerRole::kInit && c.restart_policy == RestartPolicy::kAlways) c.restart_policy = RestartPolicy::kOnFailure;
    spec.containers.push_back(std::move(c));
  };
  for (const json::Value& container : json::get_array(pod, {"spec", "initContainers"})) add(container, true);
  for (const json::Value& container : json::get_array(pod, {"spec", "containers"})) add(container, false);
  for (const json::Value& container : json::get_array(pod, {"spec", "ephemeralContainers"})) {
    add(container, false);
    spec.containers.back().role = ContainerRole::kEphemeral;
    spec.containers.back().restart_policy = RestartPolicy::kNever;
  }
  return spec;
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

bool is_done(const ContainerSpec& spec, const ContainerRecord& record) {
  return record.state.kind == ContainerState::Kind::kTerminated && !is_restarted(spec.restart_policy, record.state.exit_code);
}

bool is_initialized(const PodSpec& spec, const PodState& state) {
  bool all = true;
  for (std::size_t i = 0; i < spec.containers.size(); ++i) {
    const ContainerRecord& record = state.containers[i];
    switch (spec.containers[i].role) {
      case ContainerRole::kMain:
        if (record.state.kind != ContainerState::Kind::kWaiting || record.last) return true;
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

PodPhase pod_phase(const PodSpec& spec, const PodState& state) {
  if (!state.failure_reason.empty()) return PodPhase::kFailed;
  bool any_active = false, any_waiting_first = false, any_failed = false;
  for (std::size_t i = 0; i < spec.containers.size(); ++i) {
    const ContainerSpec& container = spec.containers[i];
    const ContainerRecord& record = state.containers[i];
    const bool terminated = record.state.kind == ContainerState::Kind::kTerminated;
    if (container.role == ContainerRole::kInit) {
      if (terminated && record.state.exit_code != 0) {
        if (is_done(container, record)) return PodPhase::kFailed;
        return PodPhase::kPending;
      }
      continue;
    }
    if (container.role != ContainerRole::kMain) continue;
    if (record.state.kind == ContainerState::Kind::kWaiting) {
      if (record.last)
        any_active = true;
      else
        any_waiting_first = true;
    } else if (is_done(container, record)) {
      any_failed = any_failed || record.state.exit_code != 0;
    } else {
      any_active = true;
    }
  }
  if (any_waiting_first) return PodPhase::kPending;
  if (any_active) return PodPhase::kRunning;
  return any_failed ? PodPhase::kFailed : PodPhase::kSucceeded;
}

json::Value make_pod_status(const PodSpec& spec, PodState& state, const json::Value* observed, TimePoint now) {
  const PodPhase phase = pod_phase(spec, state);
  const bool is_terminal = phase == PodPhase::kSucceeded || phase == PodPhase::kFailed;
  json::Object out;
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
  if (!has_condition(observed, "PodScheduled")) add_condition(conditions, state, kScheduled, {}, state.start_time.value_or(now));
  add_condition(conditions, state, kReadyToStart, {state.has_sandbox && !is_terminal, "", ""}, now);
  add_condition(conditions, state, kInitialized, initialized(spec, state, phase), now);
  add_condition(conditions, state, kContainersReady, ready, now);
  add_condition(conditions, state, kReady, pod_ready(spec, ready, observed), now);
  for (const ConditionRecord& record : state.extra_conditions) conditions.push_back(condition_to_json(record));
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
  json::Array init, main, ephemeral;
  for (std::size_t i = 0; i < spec.containers.size(); ++i) {
    const ContainerRole role = spec.containers[i].role;
    (role == ContainerRole::kMain        ? main
     : role == ContainerRole::kEphemeral ? ephemeral
                                         : init)
        .push_back(container_status(spec.containers[i], state.containers[i]));
  }
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
  }
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"}) {
    for (const json::Value& reported : json::get_array(status, {list})) {
      for (std::size_t i = 0; i < spec.containers.size(); ++i) {
        if (spec.containers[i].name != json::get_string(reported, {"name"})) continue;
        ContainerRecord& record = state.containers[i];
        if (const json::Value* now = json::find(reported, "state")) record.state = state_from_json(*now).value_or(ContainerState{});
        if (const json::Value* last = json::find(reported, "lastState")) record.last = state_from_json(*last);
        record.restart_count = static_cast<int>(json::get_int(reported, {"restartCount"}));
        record.is_ready = json::get_bool(reported, {"ready"});
        record.is_started = json::get_bool(reported, {"started"});
        record.image_id = json::get_string(reported, {"imageID"});
        record.container_id = json::get_string(reported, {"containerID"});
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

Duration restart_backoff(int restart_count) {
  if (restart_count <= 0) return Duration::zero();
  const int doublings = std::min(restart_count - 1, 5);
  return std::min<Duration>(std::chrono::seconds(10) * (1 << doublings), std::chrono::seconds(300));
}

}  // namespace berth::node
