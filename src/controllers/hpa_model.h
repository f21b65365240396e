// How many replicas a load asks for, and how fast their number may change (pkg/controller/podautoscaler: replica_calculator.go,
// horizontal.go). Pure arithmetic: samples, times and options in, numbers and reasons out.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "controllers/workloads.h"

namespace berth::controllers::hpa {

/// What one pod uses of one resource.
struct Sample {
  std::int64_t milli = 0;  ///< Thousandths of a core or of a byte.
  TimePoint at{};          ///< The end of the window measured.
  Duration window{};
};

/// What the calculation asks of a pod.
struct Pod {
  std::string name;
  bool is_deleting = false, is_failed = false, is_pending = false;
  bool has_ready_condition = false, is_ready = false;
  TimePoint ready_changed{}, started{};       ///< Zero: not told.
  std::optional<std::int64_t> request_milli;  ///< Of the resource measured; nullopt: a container asks for none.
  std::string container_without_request;
};

/// One measured resource of the pods, and its target.
struct Load {
  std::string resource;  ///< "cpu": young pods count with care.
  std::vector<Pod> pods;
  std::unordered_map<std::string, Sample> samples;         ///< By pod.
  std::optional<std::int64_t> target_utilization_percent;  ///< Of the requests; else
  std::int64_t target_average_milli = 0;                   ///< a pod's share.
};

struct Tolerance {
  double down = 0.1, up = 0.1;
  [[nodiscard]] bool covers(double ratio) const { return ratio >= 1.0 - down && ratio <= 1.0 + up; }
};

struct Proposal {
  std::int64_t replicas = 0;
  std::int64_t utilization_percent = 0;  ///< Meaningful with a target utilization.
  std::int64_t average_milli = 0;        ///< What a measured pod uses.
};

/// GetResourceReplicas and GetRawResourceReplicas. The error has Kubernetes' words.
Result<Proposal> propose(const Load& load, std::int64_t current_replicas, const Tolerance& tolerance,
                         const HorizontalPodAutoscalerOptions& options, TimePoint now);

/// A change that was made, for the rates.
struct ScaleEvent {
  TimePoint at{};
  std::int64_t change = 0;  ///< At least 0.
};
struct Recommendation {
  TimePoint at{};
  std::int64_t replicas = 0;
};
/// What is remembered of one autoscaler.
struct History {
  std::vector<Recommendation> recommendations;
  std::vector<ScaleEvent> ups, downs;
};

/// Where the wish was bent, in conditions' words.
struct Limited {
  std::int64_t replicas = 0;
  bool is_stabilized = false;
  std::string stable_reason, stable_message;  ///< For AbleToScale.
  bool is_limited = false;
  std::string limit_reason, limit_message;  ///< For ScalingLimited.
};

/// Stabilization, then the limits of spec.behavior (or, without one, those of the flags). Records the recommendation in `history`.
Limited limit(const json::Value& spec, std::int64_t current, std::int64_t wanted, History& history,
              const HorizontalPodAutoscalerOptions& options, TimePoint now);
/// Remembers a change that was made, and forgets what no policy looks back to.
void record_change(const json::Value& spec, std::int64_t before, std::int64_t after, History& history, TimePoint now);

}  // namespace berth::controllers::hpa
