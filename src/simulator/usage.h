// What pods use: by their curves, or their share of what their workload needs at this time of the day. Answers metrics.k8s.io with it.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/http.h"
#include "simulator/census.h"
#include "simulator/cluster.h"

namespace berth::simulator {

/// Lives on the loop. Synchronous: answers within handle().
class Usage final : public net::Handler {
 public:
  Usage(const Census& census, TimePoint start, const std::vector<Workload>& workloads);
  /// The cluster whose nodes play the pods; before the first question.
  void connect(Cluster& cluster) { cluster_ = &cluster; }
  /// Of all running pods, in the census' units.
  [[nodiscard]] Amounts total() const;
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  /// What a pod of a workload with a load uses now; asked once for pods in a row that are of the same.
  struct Share {
    std::string ns, workload;
    std::optional<double> cores;  ///< nullopt: it has no load, and each pod tells its own.
  };
  /// One container's use now: cores and bytes.
  [[nodiscard]] std::pair<double, double> of(const node::simulated::PodSimulation& pod, std::size_t container, Share& share) const;
  /// The texts of PodMetrics: a simulated day asks for millions.
  [[nodiscard]] std::vector<std::string> pods(const std::string& ns, const std::string& name, const std::string& selector) const;
  [[nodiscard]] std::vector<std::string> nodes(const std::string& name) const;

  const Census& census_;
  TimePoint start_;
  std::map<std::string, std::vector<std::pair<Duration, double>>, std::less<>> loads_;  ///< By "namespace/name of the workload".
  Cluster* cluster_ = nullptr;
};

}  // namespace berth::simulator
