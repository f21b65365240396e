// Whose quota a Workload may take (Kueue: pkg/scheduler/preemption).
#pragma once
#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include "queues/books.h"

namespace berth::queues {

// Reasons of the condition Preempted.
inline constexpr std::string_view kInClusterQueue = "InClusterQueue";
inline constexpr std::string_view kInCohortReclamation = "InCohortReclamation";
inline constexpr std::string_view kInCohortFairSharing = "InCohortFairSharing";
inline constexpr std::string_view kInCohortReclaimWhileBorrowing = "InCohortReclaimWhileBorrowing";
/// "prioritization in the ClusterQueue": as the condition's message words it.
std::string_view preemption_words(std::string_view reason);

/// Who asks for room.
struct Preemptor {
  const ClusterQueue* queue = nullptr;
  QuotaNode node = QuotaNode::kNone;
  std::int64_t priority = 0;
  TimePoint queued{};
  FlavorAmounts usage;                ///< What it needs in all.
  std::set<FlavorResource> short_of;  ///< Of this there is too little.
};

struct Target {
  const Reservation* reservation = nullptr;
  std::string_view reason;
};

/// The reservations to evict so that the preemptor fits; empty where that is not allowed or does not help. None of them can be spared.
/// `fair_sharing`: by shares instead of by quotas alone. The books are as before.
std::vector<Target> find_targets(Books& books, const Preemptor& preemptor, bool fair_sharing);

/// What preemption could do for one resource of one flavor.
enum class Preemptible { kNobody, kWithinQueue, kReclaim };
struct PreemptionOutlook {
  Preemptible who = Preemptible::kNobody;
  int borrowing = 0;  ///< Height of the cohort that would have to lend then.
};
PreemptionOutlook look_for_preemption(Books& books, const Preemptor& preemptor, const FlavorResource& what, Amount amount,
                                      bool fair_sharing);

struct BorrowingHeight {
  int height = 0;            ///< 0: nothing is borrowed.
  bool may_reclaim = false;  ///< The whole cohort is larger than the part that has enough quota.
};
/// The height of the lowest cohort whose own quota is enough.
BorrowingHeight borrowing_height(const QuotaTree& tree, QuotaNode queue, const FlavorResource& what, Amount amount);
/// Whatever it lends it may take back, whoever has it.
bool can_always_reclaim(const ClusterQueue& queue);

}  // namespace berth::queues
