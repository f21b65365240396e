// What pods prefer of one another, as if it were required: so that nodes are bought on which the scheduler can do as they like. It is kept
// where it costs nothing, and dropped in Karpenter's order (pkg/controllers/provisioning/scheduling/preferences.go): being beside others,
// the heaviest term first; being apart from others, likewise; then spreading (ScheduleAnyway), as it stands. Between the last two Karpenter
// drops what pods prefer of nodes, and after all of it keeping off PreferNoSchedule taints: packing keeps these by itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "pools/kinds.h"
#include "pools/plan.h"

namespace berth::pools {

/// How many of a pod's preferences of each sort there are, in the order of being dropped.
struct WishCounts {
  std::size_t beside = 0, apart = 0, spread = 0;
  [[nodiscard]] std::size_t all() const { return beside + apart + spread; }
};
WishCounts wishes_of(const placement::PodInfo& pod);

/// The pod with its preferences required, but for the first `dropped` of them. Same key and uid.
placement::PodInfoPtr insisting(const placement::PodInfo& pod, std::size_t dropped, placement::Era era);

/// How many more `a` leaves out, of the highest priority in which they differ.
std::int64_t more_refused(const ProvisionPlan& a, const ProvisionPlan& b);

/// Plans for these pods.
using AskForPlan = std::function<ProvisionPlan(const std::vector<placement::PodInfoPtr>&)>;
/// A plan that costs no more than `plain`, which takes no heed of what pods prefer of one another, and keeps as much of it as it can.
ProvisionPlan keep_wishes(ProvisionPlan plain, std::vector<PodKind> kinds, placement::Era era, const std::function<bool()>& is_over,
                          const AskForPlan& ask);

}  // namespace berth::pools
