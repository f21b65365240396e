// PodWorker: resources that change while the pod runs (in-place resize, pods/resize).
#include "node/agent/pod_worker.h"

namespace berth::node::agent {
namespace {

using Kind = ContainerState::Kind;

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

}  // namespace

void PodWorker::resize_containers(PodContext& context) {
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    ContainerRecord& record = state_.containers[i];
    Container& own = containers_[i];
    if (record.state.kind != Kind::kRunning || spec_.containers[i].role == ContainerRole::kEphemeral) continue;
    const json::Value& container = container_spec(pod_, i);
    const json::Value* found = json::find(container, "resources");
    const json::Value wanted = found ? *found : json::Value(json::Object{});
    // After a restart of the agent, what is in force is taken to be what was reported.
    if (own.applied.is_null()) own.applied = record.resources.is_object() ? record.resources : wanted;
    if (json::equal(own.applied, wanted)) {
      record.resources = wanted;
      continue;
    }
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
      emit("Warning", "ResizeError", fmt::format("Error resizing container {}: {}", spec_.containers[i].name, resized.error().message), i);
      continue;
    }
    own.applied = record.resources = wanted;
    emit("Normal", "ResizeCompleted", "Pod resize completed", containers_.size());
  }
}

}  // namespace berth::node::agent
