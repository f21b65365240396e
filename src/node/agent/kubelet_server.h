// The kubelet's HTTPS endpoints of a real node: logs, exec, attach, port-forward, pods, stats, metrics, configuration, checkpoints, the
// machine's own logs (SPEC F11).
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "net/http.h"
#include "node/agent/endpoint_access.h"
#include "node/cri/channel.h"
#include "node/pod_state.h"

namespace berth::node::agent {

class NodeMetrics;

/// What the endpoints need of the agent. Functions are called from I/O threads.
struct KubeletBackend {
  struct Pod {
    PodSpec spec;
    PodState state;
    std::string log_directory, sandbox_id;
  };
  cri::Channel& runtime;
  /// Nullopt: the request may pass; otherwise the status and text of its refusal. May block.
  std::function<std::optional<EndpointAccess::Refusal>(const net::HttpRequest& request)> refuse;
  std::function<std::optional<Pod>(const std::string& ns, const std::string& name)> find_pod;
  std::function<json::Value()> pods, summary;
  std::function<std::string()> resource_metrics, cadvisor_metrics, metrics, probe_metrics;
  std::function<json::Value()> configuration = {};           ///< /configz: the KubeletConfiguration in force.
  NodeMetrics* counts = nullptr;                             ///< Of requests; null: nobody counts them.
  std::string system_logs = "/var/log";                      ///< The folder of the machine's own logs.
  std::string checkpoints = "/var/lib/kubelet/checkpoints";  ///< Where containers are written to.
};

class KubeletHandler : public net::Handler {
 public:
  /// Ends what is under way (logs that are followed) and waits for it. Call when the server has stopped, before what the backend uses goes.
  virtual void finish() = 0;
};
/// Every path is subject to `refuse`. What may block runs on a thread of its own.
std::unique_ptr<KubeletHandler> make_kubelet_handler(KubeletBackend backend);

}  // namespace berth::node::agent
