// PodWorker: resources that change while the pod runs (in-place resize, pods/resize).
#include "node/agent/pod_worker.h"

namespace berth::node::agent {
namespace {

using Kind = ContainerState::Kind;
constexpr std::string_view kPending = "PodResizePending", kInProgress = "PodResizeInProgress";

json::Value wanted_resources(const json::Value& container) {
  const json::Value* found = json::find(container, "resources");
  return found ? *found : json::Value(json::Object{});
}

/// Whether the container's resizePolicy wants a restart for what changed.
bool needs_restart(const json::Value& container, const json::Value& before, const json::Value& after) {
  for (const json::Value& policy : json::get_array(container, {"resizePolicy"})) {
    if (json::get_string(policy, {"restartPolicy"}) != "RestartContainer") continue;
    const std::string_view resource = json::get_string(policy, {"resourceName"});
    for (const std::string_view list : {"requests", "limits"})
      if (json::get_string(before, {list, resource}) != json::get_string(after, {list, resource})) return true;
  }
  return false;
}

/// What the events about a resize show: the pod's resources as they are wanted.
std::string resize_message(std::string_view prefix, const json::Value& pod, std::string_view error) {
  json::Object summary;
  for (const std::string_view list : {"initContainers", "containers"})
    for (const json::Value& container : json::get_array(pod, {"spec", list})) {
      if (!summary.contains(list)) summary[list] = json::Array{};
      const json::Value* resources = json::find(container, "resources");
      summary[list].as_array().push_back(json::Object{{"name", json::get_string(container, {"name"})},
                                                      {"resources", resources ? *resources : json::Value(json::Object{})}});
    }
  summary["generation"] = json::get_int(pod, {"metadata", "generation"});
  if (!error.empty()) summary["error"] = error;
  return fmt::format("{}: {}", prefix, json::serialize(summary));
}

}  // namespace

void PodWorker::set_condition(std::string_view type, std::string_view reason, std::string_view message) {
  const auto found = std::ranges::find(state_.extra_conditions, type, &ConditionRecord::type);
  if (found == state_.extra_conditions.end()) {
    state_.extra_conditions.push_back(
        {std::string(type), "True", std::string(reason), std::string(message), environment_.clock.now(), spec_.generation});
  } else {
    found->reason = reason;
    found->message = message;
    found->observed_generation = spec_.generation;
  }
}

bool PodWorker::clear_condition(std::string_view type) {
  return std::erase_if(state_.extra_conditions, [&](const ConditionRecord& record) { return record.type == type; }) > 0;
}

bool PodWorker::resize_containers(PodContext& context) {
  bool is_wanted = false;
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    ContainerRecord& record = state_.containers[i];
    Container& own = containers_[i];
    if (record.state.kind != Kind::kRunning || spec_.containers[i].role == ContainerRole::kEphemeral) continue;
    const json::Value wanted = wanted_resources(container_spec(pod_, i));
    // After a restart of the agent, what is in force is taken to be what was reported.
    if (own.applied.is_null()) own.applied = record.resources.is_object() ? record.resources : wanted;
    if (json::equal(own.applied, wanted)) record.resources = wanted;
    is_wanted = is_wanted || !json::equal(own.applied, wanted);
  }
  if (!is_wanted) {
    clear_condition(kPending);
    clear_condition(kInProgress);
    return false;
  }
  if (const auto refusal = environment_.refuse_resize ? environment_.refuse_resize(pod_) : std::nullopt) {
    const auto known = std::ranges::find(state_.extra_conditions, kPending, &ConditionRecord::type);
    if (known == state_.extra_conditions.end() || known->reason != refusal->reason || known->message != refusal->message)
      emit("Warning", "Resize" + refusal->reason, resize_message("Pod resize " + refusal->reason, pod_, refusal->message),
           containers_.size());
    set_condition(kPending, refusal->reason, refusal->message);
    return true;
  }
  clear_condition(kPending);
  if (std::ranges::find(state_.extra_conditions, kInProgress, &ConditionRecord::type) == state_.extra_conditions.end()) {
    set_condition(kInProgress, "", "");
    emit("Normal", "ResizeStarted", resize_message("Pod resize started", pod_, ""), containers_.size());
  }
  const bool is_done = apply_resize(context);
  if (!is_done) return true;
  clear_condition(kInProgress);
  emit("Normal", "ResizeCompleted", resize_message("Pod resize completed", pod_, ""), containers_.size());
  return false;
}

/// False when a container could not be given what it wants.
bool PodWorker::apply_resize(PodContext& context) {
  bool is_done = true;
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    ContainerRecord& record = state_.containers[i];
    Container& own = containers_[i];
    if (record.state.kind != Kind::kRunning || spec_.containers[i].role == ContainerRole::kEphemeral) continue;
    const json::Value& container = container_spec(pod_, i);
    const json::Value wanted = wanted_resources(container);
    if (json::equal(own.applied, wanted)) continue;
    if (needs_restart(container, own.applied, wanted)) {
      emit("Normal", "Killing", fmt::format("Container {} resize requires restart", spec_.containers[i].name), i);
      kill_container(i, grace_period());
      own.crashes = 0;
      look_ = true;
      std::lock_guard lock(mutex_);
      is_dirty_ = true;
      continue;
    }
    const auto resized =
        environment_.runtime.call("RuntimeService/UpdateContainerResources",
                                  json::Object{{"container_id", own.id}, {"linux", container_resources(context, container)}});
    if (!resized) {
      const std::string why = fmt::format("Error resizing container {}: {}", spec_.containers[i].name, resized.error().message);
      set_condition(kInProgress, "Error", why);
      emit("Warning", "ResizeError", resize_message("Pod resize error", pod_, why), containers_.size());
      is_done = false;
      continue;
    }
    own.applied = record.resources = wanted;
  }
  return is_done;
}

}  // namespace berth::node::agent
