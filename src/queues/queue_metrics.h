// What the component counts, by Kueue's names (pkg/metrics).
#pragma once
#include <set>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "queues/core.h"

namespace berth::queues {

/// The registry must outlive it.
class QueueMetrics {
 public:
  explicit QueueMetrics(metrics::Registry& registry) : registry_(registry) {}
  void count(const Tally& tally);
  /// One step of the core that looked for somebody to admit.
  void attempted(const Effects& effects, Duration took);
  void show(const std::vector<QueueFigures>& figures);

 private:
  void gauge(const std::string& name, const std::string& help, metrics::Labels labels, double value);
  metrics::Registry& registry_;
  std::set<std::pair<std::string, metrics::Labels>> shown_, showing_;
};

}  // namespace berth::queues
