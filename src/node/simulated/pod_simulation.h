// One simulated pod: a machine that is moved by time alone.
//
//   created ── start delay ──▶ init containers, one after the other ──▶ main containers run ──▶ all done ──▶ Succeeded / Failed
//      │                             │  ▲                                   │  ▲
//      │ pull fails: waits           └──┘ failed: back-off                  └──┘ exited: restart by policy, with back-off
//      └────────────────────────────── stop / fail at any time ──────────────────▶ everything terminated
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/pod_state.h"
#include "node/simulated/behaviour.h"

namespace berth::node::simulated {

/// What happened, for the node's events.
struct PodEvent {
  std::string type, reason, message;  ///< type: Normal or Warning.
  std::string container;              ///< Empty: the pod as a whole.
  bool is_init = false;
};

struct PodSimulationOptions {
  Duration start_delay = std::chrono::milliseconds(0);
  Duration stop_delay = std::chrono::milliseconds(200);
  std::string host_ip, pod_ip;
};

/// Pure: every change comes from advance, stop, fail or update. Not thread-safe.
class PodSimulation {
 public:
  /// From a pod as the API has it; where its status says that it ran before (same node, another process), goes on from there.
  PodSimulation(const json::Value& pod, const PodSimulationOptions& options, TimePoint now);

  /// Lives through everything due up to and including `now`. True when the status changed.
  bool advance(TimePoint now);
  /// When advance has something to do next; nullopt: never by itself.
  [[nodiscard]] std::optional<TimePoint> next_change() const;
  /// Asks the containers to stop; they have stopped after min(grace, what they need). A second call can only shorten it.
  void stop(Duration grace, TimePoint now);
  /// Fails the pod as a whole: containers end within `grace`, the phase becomes Failed with this reason at once (kubelet's evictions).
  void fail(std::string reason, std::string message, Duration grace, TimePoint now, bool is_disruption);
  /// The node does not admit the pod: phase Failed, nothing is ever started.
  void reject(std::string reason, std::string message);
  /// Kills one container as the kernel's OOM killer does: exit 137, OOMKilled; restarted by policy.
  void oom_kill(std::string_view container, TimePoint now);
  /// The program of a container with a role (ContainerBehaviour::role) has ended, or has written something. Nothing happens when the
  /// container no longer is the run `container_id`.
  void end_program(std::size_t container, std::string_view container_id, int exit_code, TimePoint now);
  void add_output(std::size_t container, std::string_view container_id, std::string_view text);
  /// Takes in a newer revision: another spec, readiness annotation, readiness gates. True when the status changed.
  bool update(const json::Value& pod, TimePoint now);

  [[nodiscard]] json::Value status(TimePoint now) {
    return make_pod_status(spec_, state_, observed_.is_null() ? nullptr : &observed_, now);
  }
  /// True once no container runs any more after stop or fail.
  [[nodiscard]] bool is_stopped() const { return stopped_; }
  [[nodiscard]] bool is_stopping() const { return stop_at_.has_value(); }
  [[nodiscard]] PodPhase phase() const {
    if (!phase_) {
      phase_ = pod_phase(spec_, state_);
      steady_use_.reset();
    }
    return *phase_;
  }
  [[nodiscard]] bool is_terminal() const { return phase() == PodPhase::kSucceeded || phase() == PodPhase::kFailed; }
  [[nodiscard]] const PodSpec& spec() const { return spec_; }
  [[nodiscard]] const PodState& state() const { return state_; }
  [[nodiscard]] const PodBehaviour& behaviour() const { return behaviour_; }
  /// What a container uses at `now` of "cpu" (cores), "memory" (bytes), "disk", "inodes" or "pids"; 0 unless it runs.
  [[nodiscard]] double usage(std::size_t container, std::string_view resource, TimePoint now) const;
  /// What its containers use now that run without curves, their requests: thousandths of cores, and bytes.
  struct SteadyUse {
    std::int64_t cpu_milli = 0, memory_bytes = 0;
  };
  /// Nothing while the pod's phase is not Running. For pods without curves (PodBehaviour::has_usage).
  [[nodiscard]] const SteadyUse& steady_use() const;
  /// Events since the last call.
  std::vector<PodEvent> take_events() { return std::exchange(events_, {}); }
  /// What the container has written so far, with times ("2026-…Z text") when asked.
  [[nodiscard]] std::string log(std::size_t container, bool with_timestamps) const;

 private:
  bool take_generation(const json::Value& pod, TimePoint now);
  void redefine(std::size_t i, TimePoint now);
  void read_deadline(const json::Value& pod);
  bool take_newcomers(const json::Value& pod, const PodBehaviour& fresh);
  void step(TimePoint t);
  void start_container(std::size_t i, TimePoint t);
  void end_container(std::size_t i, int exit_code, std::string_view reason, TimePoint t);
  void run_container(std::size_t i, TimePoint t);
  void finish_stop(TimePoint t);
  void emit(std::string_view type, std::string_view reason, std::string message, std::size_t container);
  [[nodiscard]] std::optional<TimePoint> next_of(std::size_t i) const;
  [[nodiscard]] bool may_run(std::size_t i) const;
  [[nodiscard]] bool mains_done() const;

  PodSpec spec_;
  PodBehaviour behaviour_;
  PodState state_;
  json::Value observed_;     ///< The API's conditions, kept only for pods with readiness gates.
  std::string assigned_ip_;  ///< The pod's once its sandbox is there.
  TimePoint start_at_{};
  Duration stop_delay_{};
  Duration deadline_grace_{};  ///< What containers have to end at activeDeadlineSeconds.
  std::optional<TimePoint> stop_at_, deadline_;
  Duration stop_grace_{};
  bool begun_ = false, stopped_ = false, changed_ = false;
  /// By container: what its program wrote in its last run, the newest lines.
  std::map<std::size_t, std::deque<std::string>> program_output_;
  std::vector<PodEvent> events_;
  mutable std::optional<PodPhase> phase_;        ///< Of `state_`; forgotten by whatever changes that: asked far more often than it changes.
  mutable std::optional<SteadyUse> steady_use_;  ///< Known anew with the phase.
};

}  // namespace berth::node::simulated
