// Amounts of resources as the scheduler counts them (framework.Resource), and a pod's request by the release's rules.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/views/pod_view.h"
#include "placement/status.h"

namespace berth::placement {

/// Saturating: absurd quantities stay absurd instead of wrapping around.
inline std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) return b < 0 ? INT64_MIN : INT64_MAX;
  return out;
}
inline std::int64_t saturating_sub(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (__builtin_sub_overflow(a, b, &out)) return b < 0 ? INT64_MAX : INT64_MIN;
  return out;
}

/// How one amount of a request goes with what is taken and what there is (noderesources/fit.go).
struct AmountVerdict {
  bool is_short = false;      ///< It does not fit beside what is taken,
  bool exceeds_node = false;  ///< nor on the node alone.
};
/// 1.20 looks at every native resource as soon as the pod asks for any: an overcommitted one rejects even a request of zero.
inline AmountVerdict fit_amount(std::int64_t wanted, std::int64_t used, std::int64_t allocatable, Era era) {
  if (wanted == 0 && era != Era::k120) return {};
  if (saturating_add(wanted, used) <= allocatable) return {};
  return {true, wanted > allocatable};
}

struct Resource {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t ephemeral_storage_bytes = 0;
  std::int64_t allowed_pods = 0;  ///< Of nodes only.
  /// Extended resources, hugepages, attachable volumes; sorted by name.
  std::vector<std::pair<std::string, std::int64_t>> scalars;

  static Resource from_list(const model::ResourceList& list);
  [[nodiscard]] std::int64_t scalar(std::string_view name) const;
  void add(const Resource& other);
  void subtract(const Resource& other);
  friend bool operator==(const Resource&, const Resource&) = default;
};

/// What a pod takes from its node.
struct PodRequest {
  Resource total;
  /// With 100m CPU and 200 MB for containers that ask for nothing: what the resource scorers count.
  std::int64_t nonzero_cpu_milli = 0;
  std::int64_t nonzero_memory_bytes = 0;
  friend bool operator==(const PodRequest&, const PodRequest&) = default;
};

/// 1.36: sum of containers and sidecars, maximum over init steps, pod-level requests, overhead; with `use_status` (bound pods) the
/// larger of spec and what runs (in-place resize). 1.20: per-container sums rounded up, maximum over init containers, overhead.
/// (component-helpers resource.PodRequests; 1.20 framework/types.go calculateResource.)
PodRequest pod_request(const model::PodView& pod, Era era, bool use_status);

/// What the resource scorers count for a pod that is to be placed, with defaults for containers that ask for nothing. 1.36: by the
/// spec, without pod-level requests (that scorer is not told of them). 1.20: overhead in whole units, CPU too (250m of it count as 1).
Resource scoring_request(const model::PodView& pod, Era era);

/// Native names and *.kubernetes.io/ names excluded; hugepages and attachable volumes are scalar but not extended (v1helper).
bool is_extended_resource_name(std::string_view name);
bool is_scalar_resource_name(std::string_view name);

}  // namespace berth::placement
