// Small views of the objects that placement consults beside pods and nodes.
#pragma once
#include <memory>

#include "model/views/common.h"

namespace berth::model {

struct ServiceView {
  ObjectMeta meta;
  Selector selector;
  bool has_selector = false;  ///< A service without a selector picks no pods.
  static ServiceView parse(const json::Value& object);
};

/// ReplicationController, ReplicaSet, StatefulSet: what selector spreading reads.
struct WorkloadView {
  std::string kind;
  ObjectMeta meta;
  Selector selector;
  bool selector_ok = true;
  static WorkloadView parse(const json::Value& object);
};

struct NamespaceView {
  ObjectMeta meta;
  static NamespaceView parse(const json::Value& object);
};

// What pods/eviction answers.
inline constexpr std::string_view kBudgetViolated = "Cannot evict pod as it would violate the pod's disruption budget.";
inline constexpr std::string_view kSeveralBudgets =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";

struct PodDisruptionBudgetView {
  ObjectMeta meta;
  Selector selector;  ///< Null and broken selectors match nothing.
  bool selector_is_empty = false;
  std::int64_t disruptions_allowed = 0;
  std::int64_t healthy = 0, desired_healthy = 0;  ///< status
  bool always_allows_unhealthy = false;           ///< unhealthyPodEvictionPolicy: AlwaysAllow
  std::vector<std::string> disrupted_pods;        ///< Names, sorted: already counted as disrupted.
  bool is_v1beta1 = false;
  static PodDisruptionBudgetView parse(const json::Value& object);
  /// As pods/eviction and the disruption controller have it.
  [[nodiscard]] bool covers(std::string_view pod_ns, const Labels& pod) const;
  /// pods/eviction: a pod that is not ready goes without the budget's leave, while so many are healthy of so many wanted.
  [[nodiscard]] bool lets_unready_go(std::int64_t now_healthy, std::int64_t wanted) const {
    return always_allows_unhealthy || (wanted > 0 && now_healthy >= wanted);
  }
};

struct PriorityClassView {
  ObjectMeta meta;
  std::int64_t value = 0;
  bool global_default = false;
  std::string preemption_policy;
  static PriorityClassView parse(const json::Value& object);
};

}  // namespace berth::model
