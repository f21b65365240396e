// The pod's line: how kubectl users read a pod's state.
#include <fmt/format.h>

#include "model/tables/table_cells.h"

namespace berth::model {
namespace {

using json::Value;

bool restarts_always(const Value& pod, std::string_view container) {
  for (const Value& init : json::get_array(pod, {"spec", "initContainers"}))
    if (json::get_string(init, {"name"}) == container) return json::get_string(init, {"restartPolicy"}) == "Always";
  return false;
}

void note_restart(PodSummary& out, const Value& status) {
  const std::string_view finished = json::get_string(status, {"lastState", "terminated", "finishedAt"});
  if (finished > out.last_restart) out.last_restart = finished;
}

std::string terminated_text(const Value& terminated, std::string_view prefix) {
  const std::string_view reason = json::get_string(terminated, {"reason"});
  if (!reason.empty()) return fmt::format("{}{}", prefix, reason);
  const std::int64_t signal = json::get_int(terminated, {"signal"});
  return signal != 0 ? fmt::format("{}Signal:{}", prefix, signal)
                     : fmt::format("{}ExitCode:{}", prefix, json::get_int(terminated, {"exitCode"}));
}

/// True while init containers decide the status. `sidecars`: the restarts of those that go on.
bool summarise_init(const Value& pod, PodSummary& out, PodSummary& sidecars) {
  const std::size_t total = json::get_array(pod, {"spec", "initContainers"}).size();
  std::size_t i = 0;
  for (const Value& status : json::get_array(pod, {"status", "initContainerStatuses"})) {
    const std::size_t index = i++;
    out.restarts += static_cast<int>(json::get_int(status, {"restartCount"}));
    note_restart(out, status);
    const bool sidecar = restarts_always(pod, json::get_string(status, {"name"}));
    if (sidecar) {
      sidecars.restarts += static_cast<int>(json::get_int(status, {"restartCount"}));
      note_restart(sidecars, status);
    }
    if (const Value* terminated = json::find(status, {"state", "terminated"});
        terminated != nullptr && json::get_int(*terminated, {"exitCode"}) == 0)
      continue;
    if (sidecar && json::get_bool(status, {"started"})) {
      if (json::get_bool(status, {"ready"})) ++out.ready;
      continue;
    }
    if (const Value* terminated = json::find(status, {"state", "terminated"}))
      out.status = terminated_text(*terminated, "Init:");
    else if (const std::string_view waiting = json::get_string(status, {"state", "waiting", "reason"});
             !waiting.empty() && waiting != "PodInitializing")
      out.status = fmt::format("Init:{}", waiting);
    else
      out.status = fmt::format("Init:{}/{}", index, total);
    return true;
  }
  return false;
}

}  // namespace

PodSummary summarise_pod(const Value& pod) {
  PodSummary out;
  out.total = static_cast<int>(json::get_array(pod, {"spec", "containers"}).size());
  for (const Value& init : json::get_array(pod, {"spec", "initContainers"}))
    if (json::get_string(init, {"restartPolicy"}) == "Always") ++out.total;
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  const std::string_view reason = json::get_string(pod, {"status", "reason"});
  out.status = reason.empty() ? phase : reason;
  for (const Value& condition : json::get_array(pod, {"status", "conditions"}))
    if (json::get_string(condition, {"type"}) == "PodScheduled" && json::get_string(condition, {"reason"}) == "SchedulingGated")
      out.status = "SchedulingGated";

  PodSummary sidecars;
  const bool initializing = summarise_init(pod, out, sidecars);
  bool initialized = false;
  for (const Value& condition : json::get_array(pod, {"status", "conditions"}))
    initialized |= json::get_string(condition, {"type"}) == "Initialized" && json::get_string(condition, {"status"}) == "True";
  if (!initializing || initialized) {
    // What it took to begin no longer counts.
    out.restarts = sidecars.restarts, out.last_restart = sidecars.last_restart;
    bool has_running = false;
    const json::Array& statuses = json::get_array(pod, {"status", "containerStatuses"});
    for (std::size_t i = statuses.size(); i-- > 0;) {
      const Value& status = statuses[i];
      out.restarts += static_cast<int>(json::get_int(status, {"restartCount"}));
      note_restart(out, status);
      const std::string_view waiting = json::get_string(status, {"state", "waiting", "reason"});
      if (!waiting.empty()) {
        out.status = waiting;
      } else if (const Value* terminated = json::find(status, {"state", "terminated"})) {
        out.status = terminated_text(*terminated, "");
      } else if (json::get_bool(status, {"ready"}) && json::find(status, {"state", "running"}) != nullptr) {
        has_running = true;
        ++out.ready;
      }
    }
    if (out.status == "Completed" && has_running) {
      bool ready = false;
      for (const Value& condition : json::get_array(pod, {"status", "conditions"}))
        ready |= json::get_string(condition, {"type"}) == "Ready" && json::get_string(condition, {"status"}) == "True";
      out.status = ready ? "Running" : "NotReady";
    }
  }
  if (json::find(pod, {"metadata", "deletionTimestamp"}) != nullptr) {
    if (reason == "NodeLost")
      out.status = "Unknown";
    else if (phase != "Succeeded" && phase != "Failed")
      out.status = "Terminating";
  }
  return out;
}

}  // namespace berth::model
