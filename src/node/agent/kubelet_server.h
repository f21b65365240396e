// The kubelet's HTTPS endpoints of a real node: logs, exec, attach, port-forward, pods, stats (SPEC F11).
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "net/http.h"
#include "node/cri/channel.h"
#include "node/pod_state.h"

namespace berth::node::agent {

/// What the endpoints need of the agent. Functions are called from I/O threads.
struct KubeletBackend {
  struct Pod {
    PodSpec spec;
    PodState state;
    std::string log_directory, sandbox_id;
  };
  cri::Channel& runtime;
  std::function<std::optional<Pod>(const std::string& ns, const std::string& name)> find_pod;
  std::function<json::Value()> pods, summary;
  std::function<std::string()> metrics;
};

/// Answers only verified client certificates (the API server's), but for /healthz. Logs are followed on a thread each.
std::unique_ptr<net::Handler> make_kubelet_handler(KubeletBackend backend);

/// Lines of a CRI log file ("TIME stdout F text") as `kubectl logs` shows them. `partial` lines are joined.
struct LogOptions {
  bool timestamps = false, previous = false, follow = false;
  std::optional<std::int64_t> tail_lines, limit_bytes;
  std::optional<TimePoint> since;
};
[[nodiscard]] std::string render_log(std::string_view raw, const LogOptions& options);

}  // namespace berth::node::agent
