// PodWorker: starting a pod anew in place, because a container's restartPolicyRules say RestartAllContainers (computePodActions).
#include "base/mutex.h"
#include "node/agent/pod_worker.h"

namespace berth::node::agent {
namespace {

using Kind = ContainerState::Kind;

/// The first rule that matches decides.
bool wants_all_restarted(const ContainerSpec& spec, const ContainerState& state) {
  if (state.kind != Kind::kTerminated) return false;
  const auto rule = std::ranges::find_if(spec.restart_rules, [&](const RestartRule& r) { return r.matches(state.exit_code); });
  return rule != spec.restart_rules.end() && rule->restarts_all;
}

}  // namespace

void PodWorker::restart_all_containers() {
  bool is_wanted = state_.is_restarting;  // Begun by an agent before this one, or while the runtime was away.
  for (std::size_t i = 0; i < spec_.containers.size(); ++i)
    is_wanted = is_wanted || wants_all_restarted(spec_.containers[i], state_.containers[i].state);
  if (!is_wanted) return;
  state_.is_restarting = true;
  publish();
  stop_containers(grace_period());
  {
    // A stop that came meanwhile goes first.
    MutexLock lock(mutex_);
    if (interrupt_) return;
  }
  if (const auto loaded = load_runtime_state(); !loaded) {
    look_ = true;
    return;
  }
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    ContainerRecord& record = state_.containers[i];
    Container& own = containers_[i];
    if (record.state.kind != Kind::kTerminated || spec_.containers[i].role == ContainerRole::kEphemeral) continue;
    (void)environment_.runtime.call("RuntimeService/RemoveContainer", json::Object{{"container_id", own.id}});
    reset_container(record);
    own.crashes = 0;
  }
  state_.is_restarting = false;
}

}  // namespace berth::node::agent
