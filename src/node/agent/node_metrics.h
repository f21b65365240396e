// What an agent counts while it works, as the kubelet's /metrics and /metrics/probes show it.
#pragma once
#include <compare>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "node/cri/channel.h"
#include "node/pod_state.h"

namespace berth::node::agent {

/// Thread-safe.
class NodeMetrics {
 public:
  /// One call of the runtime by its CRI name ("RunPodSandbox").
  void runtime_called(std::string_view method, bool failed, double seconds);
  void pod_started();
  void pod_start_failed();
  /// From the pod's creation to its first report as running.
  void pod_ran(Duration since_creation);
  void container_started(ContainerRole role);
  void container_start_failed(ContainerRole role, const std::string& reason);
  void container_ended(ContainerRole role, int exit_code);
  void evicted(const std::string& signal);
  void asked(const std::string& method, const std::string& path);

  struct Probe {
    std::string uid, ns, pod, container, type;  ///< Type: Liveness, Readiness, Startup.
    friend auto operator<=>(const Probe&, const Probe&) = default;
  };
  /// `result`: successful, failed or unknown.
  void probed(const Probe& probe, const std::string& result, double seconds);
  /// The pod has gone: its probes are told of no more.
  void forget(const std::string& pod_uid);

  [[nodiscard]] std::string expose() const { return registry_.expose(); }
  [[nodiscard]] std::string expose_probes() const;

 private:
  struct ProbeFigures {
    std::map<std::string, std::uint64_t> results;
    std::vector<std::uint64_t> buckets;  ///< Cumulative; the last is all.
    double seconds = 0;
  };
  metrics::Registry registry_;
  mutable Mutex mutex_;
  std::map<Probe, ProbeFigures> probes_ BERTH_GUARDED_BY(mutex_);
};

/// The same runtime, each call counted and timed. `metrics` outlives it.
std::unique_ptr<cri::Channel> measured(std::unique_ptr<cri::Channel> runtime, NodeMetrics& metrics);

}  // namespace berth::node::agent
