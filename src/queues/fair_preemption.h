// Preemption by shares, and what it has in common with preemption by quotas.
#pragma once
#include "queues/preemption.h"

namespace berth::queues {

bool uses_any(const Reservation& reservation, const std::set<FlavorResource>& resources);
/// By withinClusterQueue or reclaimWithinCohort.
bool may_preempt_by_policy(const Preemptor& preemptor, const Reservation& candidate);
/// Evicted ones first, then other queues', lower priorities, and those that have their quota for the shortest time.
bool goes_before(const Reservation& a, const Reservation& b, const std::string& preemptor_queue);
/// `tree` is without the targets.
bool fits_after(const QuotaTree& tree, const Preemptor& preemptor, bool may_borrow);
/// Puts those back that need not go, the last to be chosen first. All targets are taken out before; those that remain are, after.
void spare(Books& books, const Preemptor& preemptor, std::vector<Target>& targets, bool may_borrow);

/// Takes from the queue with the largest share, as long as the preemptor's new share is not above what the other's becomes; if that is not
/// enough, where it is below the other's share as it was (Kueue's strategies LessThanOrEqualToFinalShare, LessThanInitialShare).
std::vector<Target> by_shares(Books& books, const Preemptor& preemptor);

}  // namespace berth::queues
