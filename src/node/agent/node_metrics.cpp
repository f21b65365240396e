#include "node/agent/node_metrics.h"

#include <chrono>
#include <map>

#include "base/mutex.h"

namespace berth::node::agent {
namespace {

const std::vector<double> kPodStartBounds{0.5, 1,   2,   3,   4,   5,   6,   8,   10,   20,   30,   45,  60,
                                          120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600};
const std::vector<double> kProbeBounds{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

/// The kubelet's word for a call of the runtime; empty: it counts none such.
std::string_view operation_of(std::string_view method) {
  static const std::map<std::string_view, std::string_view> kOperations{
      {"Version", "version"},
      {"Status", "status"},
      {"CreateContainer", "create_container"},
      {"StartContainer", "start_container"},
      {"StopContainer", "stop_container"},
      {"RemoveContainer", "remove_container"},
      {"ListContainers", "list_containers"},
      {"ContainerStatus", "container_status"},
      {"UpdateContainerResources", "update_container"},
      {"ReopenContainerLog", "reopen_container_log"},
      {"CheckpointContainer", "checkpoint_container"},
      {"ExecSync", "exec_sync"},
      {"Exec", "exec"},
      {"Attach", "attach"},
      {"PortForward", "port_forward"},
      {"RunPodSandbox", "run_podsandbox"},
      {"StopPodSandbox", "stop_podsandbox"},
      {"RemovePodSandbox", "remove_podsandbox"},
      {"PodSandboxStatus", "podsandbox_status"},
      {"ListPodSandbox", "list_podsandbox"},
      {"ContainerStats", "container_stats"},
      {"ListContainerStats", "list_container_stats"},
      {"ListImages", "list_images"},
      {"ImageStatus", "image_status"},
      {"PullImage", "pull_image"},
      {"RemoveImage", "remove_image"},
      {"ImageFsInfo", "image_fs_info"},
  };
  const auto found = kOperations.find(method);
  return found == kOperations.end() ? std::string_view() : found->second;
}

std::string type_of(ContainerRole role) {
  switch (role) {
    case ContainerRole::kInit:
    case ContainerRole::kSidecar:
      return "init_container";
    case ContainerRole::kEphemeral:
      return "ephemeral_container";
    case ContainerRole::kMain:
      break;
  }
  return "container";
}

class MeasuredChannel final : public cri::Channel {
 public:
  MeasuredChannel(std::unique_ptr<cri::Channel> runtime, NodeMetrics& metrics) : runtime_(std::move(runtime)), metrics_(metrics) {}
  cri::CallAnswer call(const std::string& method, const json::Value& request, int timeout_ms, const std::atomic<bool>* cancel) override {
    const auto began = std::chrono::steady_clock::now();
    auto answer = runtime_->call(method, request, timeout_ms, cancel);
    metrics_.runtime_called(std::string_view(method).substr(method.find('/') + 1), !answer,
                            std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    return answer;
  }
  [[nodiscard]] bool has_field(const std::string& message, const std::string& field) const override {
    return runtime_->has_field(message, field);
  }

 private:
  std::unique_ptr<cri::Channel> runtime_;
  NodeMetrics& metrics_;
};

}  // namespace

void NodeMetrics::runtime_called(std::string_view method, bool failed, double seconds) {
  const std::string_view operation = operation_of(method);
  if (operation.empty()) return;
  const metrics::Labels labels{{"operation_type", std::string(operation)}};
  static const std::vector<double> bounds = metrics::exponential_buckets(0.005, 2.5, 14);
  registry_.counter("kubelet_runtime_operations_total", "Cumulative number of runtime operations by operation type.", labels).add();
  registry_
      .histogram("kubelet_runtime_operations_duration_seconds", "Duration in seconds of runtime operations. Broken down by operation type.",
                 bounds, labels)
      .observe(seconds);
  if (failed)
    registry_.counter("kubelet_runtime_operations_errors_total", "Cumulative number of runtime operation errors by operation type.", labels)
        .add();
}

void NodeMetrics::pod_started() { registry_.counter("kubelet_started_pods_total", "Cumulative number of pods started").add(); }

void NodeMetrics::pod_start_failed() {
  registry_.counter("kubelet_started_pods_errors_total", "Cumulative number of errors when starting pods").add();
}

void NodeMetrics::pod_ran(Duration since_creation) {
  registry_
      .histogram("kubelet_pod_start_duration_seconds",
                 "Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run", kPodStartBounds)
      .observe(std::chrono::duration<double>(since_creation).count());
}

void NodeMetrics::container_started(ContainerRole role) {
  registry_.counter("kubelet_started_containers_total", "Cumulative number of containers started", {{"container_type", type_of(role)}})
      .add();
}

void NodeMetrics::container_start_failed(ContainerRole role, const std::string& reason) {
  registry_
      .counter("kubelet_started_containers_errors_total", "Cumulative number of errors when starting containers",
               {{"code", reason}, {"container_type", type_of(role)}})
      .add();
}

void NodeMetrics::container_ended(ContainerRole role, int exit_code) {
  registry_
      .counter("terminated_containers_total", "Cumulative number of terminated containers by exit code",
               {{"container_type", type_of(role)}, {"exit_code", std::to_string(exit_code)}})
      .add();
}

void NodeMetrics::evicted(const std::string& signal) {
  registry_.counter("kubelet_evictions", "Cumulative number of pod evictions by eviction signal", {{"eviction_signal", signal}}).add();
}

void NodeMetrics::asked(const std::string& method, const std::string& path) {
  const bool is_long = path == "exec" || path == "attach" || path == "portForward";
  registry_
      .counter("kubelet_http_requests_total", "Number of the http requests received since the server started",
               {{"long_running", is_long ? "true" : "false"}, {"method", method}, {"path", path}, {"server_type", "readwrite"}})
      .add();
}

void NodeMetrics::probed(const Probe& probe, const std::string& result, double seconds) {
  MutexLock lock(mutex_);
  ProbeFigures& figures = probes_[probe];
  ++figures.results[result];
  figures.seconds += seconds;
  figures.buckets.resize(kProbeBounds.size() + 1);
  for (std::size_t i = 0; i < kProbeBounds.size(); ++i) figures.buckets[i] += seconds <= kProbeBounds[i] ? 1 : 0;
  ++figures.buckets.back();
}

void NodeMetrics::forget(const std::string& pod_uid) {
  MutexLock lock(mutex_);
  std::erase_if(probes_, [&](const auto& entry) { return entry.first.uid == pod_uid; });
}

std::string NodeMetrics::expose_probes() const {
  constexpr const char *kTotal = "prober_probe_total", *kSeconds = "prober_probe_duration_seconds";
  std::string totals = fmt::format(
      "# HELP {0} Cumulative number of a liveness, readiness or startup probe for a container by result.\n# TYPE {0} counter\n", kTotal);
  std::string durations = fmt::format("# HELP {0} Duration in seconds for a probe response.\n# TYPE {0} histogram\n", kSeconds);
  MutexLock lock(mutex_);
  for (const auto& [probe, figures] : probes_) {
    const std::string pod = fmt::format(R"(container="{}",namespace="{}",pod="{}")", probe.container, probe.ns, probe.pod);
    const std::string of = fmt::format(R"({},probe_type="{}")", pod, probe.type);
    for (const auto& [result, count] : figures.results)
      totals +=
          fmt::format("{}{{{},pod_uid=\"{}\",probe_type=\"{}\",result=\"{}\"}} {}\n", kTotal, pod, probe.uid, probe.type, result, count);
    for (std::size_t i = 0; i < figures.buckets.size(); ++i)
      durations += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", kSeconds, of,
                               i < kProbeBounds.size() ? fmt::format("{}", kProbeBounds[i]) : "+Inf", figures.buckets[i]);
    durations += fmt::format("{0}_sum{{{1}}} {2}\n{0}_count{{{1}}} {3}\n", kSeconds, of, figures.seconds, figures.buckets.back());
  }
  return durations + totals;
}

std::unique_ptr<cri::Channel> measured(std::unique_ptr<cri::Channel> runtime, NodeMetrics& metrics) {
  return std::make_unique<MeasuredChannel>(std::move(runtime), metrics);
}

}  // namespace berth::node::agent
