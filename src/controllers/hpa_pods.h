// What the autoscaler of pods asks of the target's pods (pkg/controller/podautoscaler/metrics, replica_calculator.go): what they are by
// their objects, and what metrics.k8s.io measured of them, without documents: both are read once and asked every period. No threads.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "controllers/cache.h"
#include "controllers/hpa_model.h"

namespace berth::controllers::hpa {

/// One entry of spec.metrics, resources only.
struct Wanted {
  std::string type, resource, container;  ///< "Resource" or "ContainerResource"; container: of the latter.
  std::optional<std::int64_t> utilization_percent;
  std::int64_t average_milli = 0;
  [[nodiscard]] std::string name() const {
    return fmt::format("{}{} resource{}", resource, container.empty() ? "" : " container",
                       utilization_percent ? " utilization (percentage of request)" : "");
  }
};

Pod pod_facts(const PodInfo& info, const json::Value& document, const Wanted& wanted);

/// One PodMetrics, without its text.
struct Measured {
  struct Use {
    std::string container, resource;
    std::int64_t milli = 0;
  };
  std::string pod;
  Sample sample;  ///< But for its sum.
  std::size_t containers = 0;
  std::vector<Use> uses;  ///< A container without a use of the resource has none.
};

/// The items of a PodMetricsList.
std::vector<Measured> measured_pods(const json::Value& list);
/// The use that a pod's measurement tells; nullopt when it lacks the container or the resource.
std::optional<Sample> sample_of(const Measured& measured, const Wanted& wanted);

/// What was read of the pods that a question is about, by its resource and container: most are the very same at the next.
class RememberedPods {
 public:
  /// Of the pods that the selector matches, in order of name. The selector and what is wanted are the same at each call.
  const std::vector<Pod>& facts(const Cache& cache, const std::string& ns, const model::Selector& selector, const Wanted& wanted);

 private:
  std::vector<PodRef> seen_;
  std::vector<Pod> facts_;
};

}  // namespace berth::controllers::hpa
