// How a simulated pod behaves, read from its annotations and, where there are none, from its commands.
//
// Annotations, all optional; `KEY.CONTAINER` sets one container only and wins over `KEY`:
//   sim.berth.dev/start-delay      duration from the binding until the containers start ("2s"); default: the fleet's
//   sim.berth.dev/run-for          duration after which a main container exits
//   sim.berth.dev/exit-code        what it exits with then; default 0
//   sim.berth.dev/ready-after      duration from its start until a container is ready; default: readinessProbe.initialDelaySeconds, else 0
//   sim.berth.dev/ready            "false": never ready. May be changed while the pod runs
//   sim.berth.dev/liveness-after   duration after which the liveness probe fails: the container is killed and restarted
//   sim.berth.dev/init-for         how long an init container takes
//   sim.berth.dev/init-exit-code   what an init container exits with; default 0
//   sim.berth.dev/stop-after       how long the containers need to stop when asked; default: the fleet's
//   sim.berth.dev/image-pull       "fail": the images cannot be pulled (ErrImagePull, ImagePullBackOff)
//   sim.berth.dev/{cpu,memory,disk,inodes,pids}   usage curves (usage_curve.h) of the first main container, or with .CONTAINER of that one.
//                                  Without: cpu and memory as requested, nothing else
//   kubesuite/complete             "succeeded" or "failed", optionally ":SECONDS" (default 0.5): how a pod that is not restartPolicy Always
//   ends
// Without these, a container ends by itself when its command and args say so: true, false, ["sleep","N"], ["sh","-c",SCRIPT] where the
// script is made of `exit N`, `sleep N`, `true`, `false`, `:` and `echo …`, joined by `;`, `&&` or newlines. Everything else runs until it
// is stopped.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/shared_pool.h"
#include "node/simulated/role_command.h"
#include "node/simulated/usage_curve.h"

namespace berth::node::simulated {

inline constexpr std::string_view kAnnotationPrefix = "sim.berth.dev/";

/// One container's life when nobody interferes.
struct ContainerBehaviour {
  std::optional<Duration> run_for;  ///< Nullopt: until stopped.
  int exit_code = 0;
  Duration started_after{};
  Duration ready_after{};
  bool is_ever_ready = true;
  std::optional<Duration> liveness_after;
  std::vector<std::string> output;                        ///< What its `echo`s print, line by line.
  std::vector<std::pair<std::string, UsageCurve>> usage;  ///< By resource, where an annotation gives one.
  /// What it uses without an annotation: its requests.
  std::int64_t cpu_request_milli = 0, memory_request_bytes = 0;
  std::int64_t memory_limit_bytes = 0;  ///< 0: none.
  /// Its program is one of berth's roles and no annotation says how long it runs: it ends when the program does, where somebody runs it.
  std::optional<RoleCommand> role;

  friend bool operator==(const ContainerBehaviour&, const ContainerBehaviour&) = default;
  [[nodiscard]] auto parts() const {
    return std::tie(run_for, exit_code, started_after, ready_after, is_ever_ready, liveness_after, output, usage, cpu_request_milli,
                    memory_request_bytes, memory_limit_bytes, role);
  }
};

struct PodBehaviour {
  std::optional<Duration> start_delay, stop_after;
  bool pull_fails = false;
  SharedList<ContainerBehaviour> containers;  ///< Init containers first, as in PodSpec.
  /// Values of annotations that could not be understood, as text for an event: "sim.berth.dev/run-for: \"x\" is not a duration".
  std::vector<std::string> problems;
  bool has_usage = false;  ///< Any container has a usage curve.
};

/// Never fails: what cannot be understood is listed and otherwise ignored.
[[nodiscard]] PodBehaviour read_behaviour(const json::Value& pod);

/// What a command does when it is one that can be understood; nullopt: runs until stopped.
struct ScriptResult {
  Duration run_for{};
  int exit_code = 0;
  std::vector<std::string> output;
};
[[nodiscard]] std::optional<ScriptResult> read_command(const std::vector<std::string>& argv);

}  // namespace berth::node::simulated
