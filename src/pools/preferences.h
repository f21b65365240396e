// What pods prefer of one another, as if it were required: so that nodes are bought on which the scheduler can do as they like. It is kept
// where it costs nothing, and dropped in Karpenter's order (pkg/controllers/provisioning/scheduling/preferences.go): being beside others,
// the heaviest term first; being apart from others, likewise; then spreading (ScheduleAnyway), as it stands. Between the last two Karpenter
// drops what pods prefer of nodes, and after all of it keeping off PreferNoSchedule taints: packing keeps these by itself.
#pragma once
#include <cstddef>
#include <vector>

#include "placement/trial.h"

namespace berth::pools {

/// How many of a pod's preferences of each sort there are, in the order of being dropped.
struct WishCounts {
  std::size_t beside = 0, apart = 0, spread = 0;
  [[nodiscard]] std::size_t all() const { return beside + apart + spread; }
};
WishCounts wishes_of(const placement::PodInfo& pod);

/// The pod with its preferences required, but for the first `dropped` of them. Same key and uid.
placement::PodInfoPtr insisting(const placement::PodInfo& pod, std::size_t dropped, placement::Era era);

}  // namespace berth::pools
