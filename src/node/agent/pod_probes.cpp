// PodWorker: probes. Each try runs on a thread of its own, so that a slow one holds nothing up.
#include "base/mutex.h"
#include "node/agent/node_metrics.h"
#include "node/agent/pod_worker.h"
#include "node/agent/pod_worker_inbox.h"

namespace berth::node::agent {
namespace {

using Kind = ContainerState::Kind;

std::string result_of(const std::optional<ProbeFailure>& wrong) {
  if (!wrong || wrong->is_warning) return "successful";
  return wrong->is_error ? "unknown" : "failed";
}

}  // namespace

void PodWorker::run_probes(TimePoint now, TimePoint& next, bool only_readiness) {
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    const ContainerRecord& record = state_.containers[i];
    if (record.state.kind != Kind::kRunning || spec_.containers[i].role == ContainerRole::kInit ||
        spec_.containers[i].role == ContainerRole::kEphemeral)
      continue;
    Container& own = containers_[i];
    const json::Value& container = container_spec(pod_, i);
    if (!record.is_started) {  // The others wait for it.
      if (only_readiness) continue;
      if (const json::Value* probe = json::find(container, "startupProbe"))
        start_probe(i, ProbeKind::kStartup, *probe, own.startup, now, next);
      continue;
    }
    if (const json::Value* probe = json::find(container, "readinessProbe"))
      start_probe(i, ProbeKind::kReadiness, *probe, own.readiness, now, next);
    if (const json::Value* probe = only_readiness ? nullptr : json::find(container, "livenessProbe"))
      start_probe(i, ProbeKind::kLiveness, *probe, own.liveness, now, next);
  }
}

void PodWorker::start_probe(std::size_t i, ProbeKind kind, const json::Value& probe, ProbeCounter& counter, TimePoint now,
                            TimePoint& next) {
  if (counter.is_running) return;
  counter.next =
      std::max(counter.next, state_.containers[i].state.started_at + std::chrono::seconds(json::get_int(probe, {"initialDelaySeconds"})));
  if (counter.next > now) {
    next = std::min(next, counter.next);
    return;
  }
  counter.next = now + std::chrono::seconds(std::max<std::int64_t>(1, json::get_int(probe, {"periodSeconds"}, 10)));
  counter.is_running = true;
  const char* type = kind == ProbeKind::kStartup ? "Startup" : kind == ProbeKind::kReadiness ? "Readiness" : "Liveness";
  environment_.tasks.run([inbox = inbox_, i, kind, probe = probe, target = probe_target(i), metrics = environment_.metrics,
                          about = NodeMetrics::Probe{uid_, spec_.ns, spec_.name, spec_.containers[i].name, type}] {
    const auto began = std::chrono::steady_clock::now();
    auto wrong = run_probe(probe, target);
    if (metrics) metrics->probed(about, result_of(wrong), std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    MutexLock lock(inbox->mutex);
    if (!inbox->worker) {
      if (metrics) metrics->forget(about.uid);
      return;
    }
    inbox->results.push_back({i, target.container_id, kind, std::move(wrong)});
    MutexLock worker(inbox->worker->mutex_);
    inbox->worker->is_dirty_ = true;
    inbox->worker->wake_.notify_all();
  });
}

void PodWorker::take_probe_results(bool only_readiness) {
  // One after the other: taking one in may stop a container, and while that lasts the others' results are taken in there.
  const auto next_result = [&]() -> std::optional<ProbeInbox::Result> {
    MutexLock lock(inbox_->mutex);
    const auto found = std::ranges::find_if(
        inbox_->results, [&](const ProbeInbox::Result& one) { return !only_readiness || one.kind == ProbeKind::kReadiness; });
    if (found == inbox_->results.end()) return std::nullopt;
    ProbeInbox::Result result = std::move(*found);
    inbox_->results.erase(found);
    return result;
  };
  while (const auto taken = next_result()) {
    const ProbeInbox::Result& result = *taken;
    // The container may have been replaced meanwhile.
    if (result.container >= containers_.size() || containers_[result.container].id != result.container_id) continue;
    Container& own = containers_[result.container];
    (result.kind == ProbeKind::kStartup     ? own.startup
     : result.kind == ProbeKind::kReadiness ? own.readiness
                                            : own.liveness)
        .is_running = false;
    if (state_.containers[result.container].state.kind == Kind::kRunning) take_probe_result(result.container, result.kind, result.wrong);
  }
}

void PodWorker::take_probe_result(std::size_t i, ProbeKind kind, const std::optional<ProbeFailure>& wrong) {
  Container& own = containers_[i];
  ContainerRecord& record = state_.containers[i];
  const json::Value& container = container_spec(pod_, i);
  const char* word = kind == ProbeKind::kStartup ? "Startup" : kind == ProbeKind::kReadiness ? "Readiness" : "Liveness";
  const char* field = kind == ProbeKind::kStartup ? "startupProbe" : kind == ProbeKind::kReadiness ? "readinessProbe" : "livenessProbe";
  const json::Value* probe = json::find(container, field);
  if (!probe) return;
  if (wrong && wrong->is_error)
    return emit("Warning", "Unhealthy", fmt::format("{} probe errored and resulted in unknown state: {}", word, wrong->text), i);
  const bool is_well = !wrong || wrong->is_warning;
  if (wrong && is_well) emit("Warning", "ProbeWarning", fmt::format("{} probe warning: {}", word, wrong->text), i);
  if (!is_well) emit("Warning", "Unhealthy", fmt::format("{} probe failed: {}", word, wrong->text), i);
  ProbeCounter& counter = kind == ProbeKind::kStartup ? own.startup : kind == ProbeKind::kReadiness ? own.readiness : own.liveness;
  if (!counter.take(*probe, is_well)) return;
  const bool well = *counter.verdict();
  if (kind == ProbeKind::kReadiness) {
    record.is_ready = well;
    return;
  }
  if (!well) return kill_unhealthy(i, kind, *probe);
  if (kind == ProbeKind::kLiveness) return;
  record.is_started = true;
  record.is_ready = !json::find(container, "readinessProbe");
}

/// Stops a container that its probe has condemned. Its exit code is not known yet: only policies, not rules, say whether it comes back.
void PodWorker::kill_unhealthy(std::size_t i, ProbeKind kind, const json::Value& probe) {
  const ContainerSpec& spec = spec_.containers[i];
  const bool comes_back = spec.restart_policy != RestartPolicy::kNever;
  bool any_other = false;
  for (std::size_t other = 0; other < spec_.containers.size(); ++other)
    any_other = any_other || (other != i && spec_.containers[other].role == ContainerRole::kMain &&
                              !is_done(spec_.containers[other], state_.containers[other]));
  // With the last container the pod ends.
  if (!comes_back && !any_other)
    emit("Normal", "Killing", "Stopping container " + spec.name, i);
  else
    emit("Normal", "Killing",
         fmt::format("Container {} failed {} probe{}", spec.name, kind == ProbeKind::kStartup ? "startup" : "liveness",
                     comes_back ? ", will be restarted" : ""),
         i);
  const std::int64_t own_grace = json::get_int(probe, {"terminationGracePeriodSeconds"}, -1);
  stop_while_probing({i}, own_grace >= 0 ? std::chrono::seconds(own_grace) : grace_period());
  look_ = true;
}

}  // namespace berth::node::agent
