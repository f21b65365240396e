// Metrics that other API servers have (custom.metrics.k8s.io/v1beta2, external.metrics.k8s.io/v1beta1): how they are asked for, what the
// answers say, and how many replicas they ask for (pkg/controller/podautoscaler: replica_calculator.go, metrics/client.go).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "controllers/controller.h"
#include "controllers/hpa_model.h"

namespace berth::controllers::hpa {

/// One entry of spec.metrics that is no resource.
struct OtherMetric {
  enum class Type { kPods, kObject, kExternal } type = Type::kPods;
  std::string name;
  const json::Value* source = nullptr;  ///< The entry's "pods", "object" or "external".
  bool is_average = false;              ///< Target: a pod's share.
  std::int64_t target_milli = 0;
  [[nodiscard]] const char* field() const { return type == Type::kPods ? "pods" : type == Type::kObject ? "object" : "external"; }
};
/// nullopt: a resource, or nothing that is known. Borrows `metric`.
std::optional<OtherMetric> read_other_metric(const json::Value& metric);

/// The request for it; on_result gets it back by `tag`.
Write ask_other_metric(const OtherMetric& metric, const std::string& ns, const model::Selector& pods, std::string tag);

/// What was answered.
struct OtherAnswer {
  json::Array items;
  std::string error;  ///< In the words of Kubernetes' metrics clients; empty: none.
};
OtherAnswer read_other_answer(const Write& write, const ApiResult<json::Value>& result);

/// The values by the object they describe.
std::unordered_map<std::string, Sample> samples_of(const OtherAnswer& answer);
std::int64_t sum_milli(const OtherAnswer& answer);

struct OtherProposal {
  std::int64_t replicas = 0;
  std::int64_t value_milli = 0, average_milli = 0;
};
/// Of a value for all pods: `ready` of which there are.
OtherProposal propose_for_value(std::int64_t usage_milli, std::int64_t target_milli, std::int64_t current, std::int64_t ready,
                                const Tolerance& tolerance);
/// Of a value that the pods share.
OtherProposal propose_for_share(std::int64_t usage_milli, std::int64_t target_milli, std::int64_t current, const Tolerance& tolerance);

}  // namespace berth::controllers::hpa
