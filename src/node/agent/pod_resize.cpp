// PodWorker: resources that change while the pod runs (in-place resize, pods/resize).
#include "base/mutex.h"
#include "node/agent/pod_worker.h"

namespace berth::node::agent {
namespace {

using Kind = ContainerState::Kind;
constexpr std::string_view kPending = "PodResizePending", kInProgress = "PodResizeInProgress";

/// Of a container, or of a pod's spec.
json::Value wanted_resources(const json::Value& holder) {
  const json::Value* found = json::find(holder, "resources");
  return found && found->is_object() ? *found : json::Value(json::Object{});
}

json::Value wanted_of_pod(const json::Value& pod) {
  const json::Value* spec = json::find(pod, "spec");
  return spec ? wanted_resources(*spec) : json::Value(json::Object{});
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

/// Of a class whose containers may have processors to themselves: whether one asks for another amount of cpu.
bool PodWorker::own_cpus_are_in_the_way() const {
  if (environment_.cpus == nullptr || qos_ != eviction::QosClass::kGuaranteed) return false;
  for (std::size_t i = 0; i < spec_.containers.size(); ++i)
    if (!containers_[i].allocated.is_null() && spec_.containers[i].role != ContainerRole::kEphemeral &&
        json::get_string(containers_[i].allocated, {"requests", "cpu"}) !=
            json::get_string(wanted_resources(container_spec(pod_, i)), {"requests", "cpu"}))
      return true;
  return false;
}

/// Whether a container that may swap asks for another amount of memory without a restart: its share of the swap would have to follow.
bool PodWorker::swap_is_in_the_way(const PodContext& context) const {
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    const json::Value& container = container_spec(pod_, i);
    const json::Value wanted = wanted_resources(container);
    if (containers_[i].allocated.is_null() || swap_limit_bytes(context, container) == 0) continue;
    if (json::get_string(containers_[i].allocated, {"requests", "memory"}) == json::get_string(wanted, {"requests", "memory"})) continue;
    if (!needs_restart(container, containers_[i].allocated, wanted)) return true;
  }
  return false;
}

json::Value PodWorker::granted_pod() const {
  json::Value pod = pod_;
  std::size_t i = 0;
  for (const std::string_view list : {"initContainers", "containers"}) {
    json::Value* containers = json::find(pod, {"spec", list});
    if (!containers || !containers->is_array()) continue;
    for (json::Value& container : containers->get_array()) {
      if (!containers_[i].allocated.is_null()) container.as_object()["resources"] = containers_[i].allocated;
      ++i;
    }
  }
  if (!whole_allocated_.is_object()) return pod;
  if (whole_allocated_.as_object().empty())
    json::erase(pod, {"spec", "resources"});
  else
    json::set(pod, {"spec", "resources"}, whole_allocated_);
  return pod;
}

/// What the status tells as allocated, and what other pods find taken, is what was granted.
void PodWorker::show_granted_resources() {
  bool differs = whole_allocated_.is_object() && !json::equal(whole_allocated_, wanted_of_pod(pod_));
  for (std::size_t i = 0; i < containers_.size(); ++i)
    differs = differs || (!containers_[i].allocated.is_null() && spec_.containers[i].role != ContainerRole::kEphemeral &&
                          !json::equal(containers_[i].allocated, wanted_resources(container_spec(pod_, i))));
  json::Value granted;
  if (differs) granted = granted_pod();
  PodSpec shown = read_pod_spec(differs ? granted : pod_);
  facts_ = eviction::read_pod_facts(differs ? granted : pod_);
  facts_.qos = qos_;
  spec_.resources = std::move(shown.resources);
  spec_.containers.change([&](std::vector<ContainerSpec>& containers) {
    for (std::size_t i = 0; i < containers.size(); ++i) containers[i].resources = shown.containers[i].resources;
  });
  MutexLock lock(mutex_);
  shown_granted_ = std::move(granted);
}

/// What an agent before this one reported as granted of the pod's own resources.
void PodWorker::restore_whole_resources() {
  if (json::get_array(pod_, {"status", "containerStatuses"}).empty() || !facts_.overhead.empty()) return;
  json::Value whole = wanted_of_pod(pod_);
  for (auto& [list, amounts] : whole.as_object()) {
    if (!amounts.is_object()) continue;
    for (auto& [name, amount] : amounts.as_object()) {
      const auto reported =
          model::Quantity::parse(json::get_string(pod_, {"status", "resources", std::string_view(list), std::string_view(name)}));
      const auto asked = model::Quantity::parse(json::as_view(amount));
      if (reported && asked && !(*reported == *asked)) amount = reported->to_string();
    }
  }
  whole_allocated_ = std::move(whole);
}

PodWorker::ResizeState PodWorker::look_at_resources() {
  const json::Value whole = wanted_of_pod(pod_);
  if (whole_allocated_.is_null()) whole_allocated_ = whole;
  ResizeState out{json::equal(whole_allocated_, whole), has_wanted_limits()};
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    if (spec_.containers[i].role == ContainerRole::kEphemeral) continue;
    ContainerRecord& record = state_.containers[i];
    Container& own = containers_[i];
    const bool runs = record.state.kind == Kind::kRunning;
    const json::Value wanted = wanted_resources(container_spec(pod_, i));
    // After a restart of the agent, what is in force is taken to be what was reported.
    if (own.allocated.is_null()) own.allocated = runs && record.resources.is_object() ? record.resources : wanted;
    if (runs && own.in_force.is_null())
      own.in_force = resources_in_force(record.resources.is_object() ? record.resources : own.allocated, whole_allocated_);
    out.is_granted = out.is_granted && json::equal(own.allocated, wanted);
    if (!runs) continue;
    const bool is_so = json::equal(own.in_force, resources_in_force(wanted, whole));
    if (is_so) record.resources = wanted;
    out.is_done = out.is_done && is_so;
  }
  return out;
}

bool PodWorker::resize_containers(PodContext& context) {
  if (const ResizeState now = look_at_resources(); now.is_granted && now.is_done) {
    clear_condition(kPending);
    complete_resize();
    return false;
  }
  const char* why = swap_is_in_the_way(context) ? "In-place resize of containers with swap is not supported."
                    : own_cpus_are_in_the_way() ? "Resize is infeasible for Guaranteed Pods alongside CPU Manager policy \"static\""
                                                : nullptr;
  if (why != nullptr) {
    const auto known = std::ranges::find(state_.extra_conditions, kPending, &ConditionRecord::type);
    if (known == state_.extra_conditions.end() || known->reason != "Infeasible")
      emit("Warning", "ResizeInfeasible", resize_message("Pod resize Infeasible", pod_, why), containers_.size());
    set_condition(kPending, "Infeasible", why);
    return false;
  }
  if (const auto refusal = environment_.refuse_resize ? environment_.refuse_resize(pod_) : std::nullopt) {
    const auto known = std::ranges::find(state_.extra_conditions, kPending, &ConditionRecord::type);
    if (known == state_.extra_conditions.end() || known->message != refusal->message)
      // The event names what is short; the condition says that it may come yet.
      emit("Warning", "ResizeDeferred", resize_message("Pod resize " + refusal->reason, pod_, refusal->message), containers_.size());
    set_condition(kPending, "Deferred", refusal->message);
    return true;
  }
  clear_condition(kPending);
  for (std::size_t i = 0; i < containers_.size(); ++i)
    if (spec_.containers[i].role != ContainerRole::kEphemeral) containers_[i].allocated = wanted_resources(container_spec(pod_, i));
  whole_allocated_ = wanted_of_pod(pod_);
  show_granted_resources();
  if (std::ranges::find(state_.extra_conditions, kInProgress, &ConditionRecord::type) == state_.extra_conditions.end()) {
    set_condition(kInProgress, "", "");
    emit("Normal", "ResizeStarted", resize_message("Pod resize started", pod_, ""), containers_.size());
    publish();
  }
  restart_for_resize();
  if (const std::string why = memory_in_the_way(); !why.empty()) return resize_failed(why), true;
  // Around the containers: the pod's cgroup grows before them, and what cannot shrink before them does so after them.
  (void)ensure_cgroup();
  const bool is_done = apply_resize(context);
  if (!ensure_cgroup() || !is_done || !has_wanted_limits()) return true;
  complete_resize();
  return false;
}

/// Of one that is under way: a restart, or who makes the pod's group, may have done the last of it.
void PodWorker::complete_resize() {
  if (std::ranges::find(state_.extra_conditions, kInProgress, &ConditionRecord::type) == state_.extra_conditions.end()) return;
  clear_condition(kInProgress);
  emit("Normal", "ResizeCompleted", resize_message("Pod resize completed", pod_, ""), containers_.size());
}

void PodWorker::resize_failed(const std::string& why) {
  set_condition(kInProgress, "Error", why);
  emit("Warning", "ResizeError", resize_message("Pod resize error", pod_, why), containers_.size());
}

/// Running containers that are to get other resources than they have, with these: those that want a restart for it, or the others.
std::vector<std::pair<std::size_t, json::Value>> PodWorker::to_resize(bool by_restart) const {
  std::vector<std::pair<std::size_t, json::Value>> out;
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    if (state_.containers[i].state.kind != Kind::kRunning || spec_.containers[i].role == ContainerRole::kEphemeral) continue;
    const json::Value &container = container_spec(pod_, i), &before = containers_[i].in_force;
    json::Value in_force = resources_in_force(wanted_resources(container), whole_allocated_);
    if (!json::equal(before, in_force) && needs_restart(container, before, in_force) == by_restart)
      out.emplace_back(i, std::move(in_force));
  }
  return out;
}

void PodWorker::restart_for_resize() {
  for (const auto& [i, in_force] : to_resize(true)) {
    emit("Normal", "Killing", fmt::format("Container {} resize requires restart", spec_.containers[i].name), i);
    stop_while_probing({i}, grace_period());
    containers_[i].crashes = 0;
    look_ = true;
    MutexLock lock(mutex_);
    is_dirty_ = true;
  }
}

/// Which limits would fall below what is in use, in the kubelet's words; empty: none.
std::string PodWorker::memory_in_the_way() const {
  std::vector<std::string> whys;
  const auto look = [&](const std::string& who, const std::string& group, std::int64_t limit) {
    if (const auto usage = environment_.cgroups.usage_in_the_way(group, limit))
      whys.push_back(fmt::format("attempting to set {} memory limit ({}) below current usage ({})", who, limit, *usage));
  };
  look("pod", cgroup(), *wanted_limits().memory_bytes);
  for (const auto& [i, in_force] : to_resize(false))
    if (const auto limit = model::Quantity::parse(json::get_string(in_force, {"limits", "memory"})))
      look(fmt::format("container \"{}\"", spec_.containers[i].name), cgroup() + "/" + containers_[i].id, limit->value());
  if (whys.empty()) return {};
  const std::string list = fmt::format("{}", fmt::join(whys, ", "));
  return "cannot decrease memory limits: " + (whys.size() > 1 ? "[" + list + "]" : list);
}

/// False when a container could not be given what it wants.
bool PodWorker::apply_resize(PodContext& context) {
  bool is_done = true;
  for (auto& [i, in_force] : to_resize(false)) {
    const json::Value& container = container_spec(pod_, i);
    const auto resized =
        environment_.runtime.call("RuntimeService/UpdateContainerResources",
                                  json::Object{{"container_id", containers_[i].id}, {"linux", container_resources(context, container)}});
    if (!resized) {
      resize_failed(fmt::format("Error resizing container {}: {}", spec_.containers[i].name, resized.error().message));
      is_done = false;
      continue;
    }
    state_.containers[i].resources = wanted_resources(container);
    containers_[i].in_force = std::move(in_force);
  }
  return is_done;
}

}  // namespace berth::node::agent
