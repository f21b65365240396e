#include "queues/preemption.h"

#include <algorithm>
#include <tuple>

#include "queues/fair_preemption.h"

namespace berth::queues {
namespace {

/// By what right a candidate may be evicted.
enum class Right { kNone, kSameQueue, kHierarchy, kReclaim, kReclaimWhileBorrowing };

struct Candidate {
  const Reservation* reservation = nullptr;
  Right right = Right::kNone;
  QuotaNode common = QuotaNode::kNone;  ///< The cohort in which it meets the preemptor.
};

std::string_view reason_of(Right right) {
  switch (right) {
    case Right::kSameQueue:
      return kInClusterQueue;
    case Right::kReclaimWhileBorrowing:
      return kInCohortReclaimWhileBorrowing;
    default:
      return kInCohortReclamation;
  }
}

bool is_above_threshold(const Preemptor& preemptor, const Reservation& candidate) {
  if (candidate.priority >= preemptor.priority) return true;
  return preemptor.queue->borrow_threshold && candidate.priority > *preemptor.queue->borrow_threshold;
}

Right right_over(const Preemptor& preemptor, const Reservation& candidate, bool has_hierarchical_advantage) {
  if (!uses_any(candidate, preemptor.short_of) || !may_preempt_by_policy(preemptor, candidate)) return Right::kNone;
  if (candidate.queue == preemptor.queue->name) return Right::kSameQueue;
  if (has_hierarchical_advantage) return Right::kHierarchy;
  if (!preemptor.queue->may_borrow_and_preempt || is_above_threshold(preemptor, candidate)) return Right::kReclaim;
  return Right::kReclaimWhileBorrowing;
}

bool is_within_nominal(const QuotaTree& tree, QuotaNode node, const std::set<FlavorResource>& resources) {
  return std::ranges::none_of(resources, [&](const FlavorResource& what) { return tree.used(node, what) > tree.nominal(node, what); });
}

/// Whether the node's own quota is enough; takes what it keeps for itself from the amounts.
bool is_enough(const QuotaTree& tree, QuotaNode node, FlavorAmounts& amounts) {
  bool out = true;
  for (auto& [what, amount] : amounts) {
    out = out && plus(tree.used(node, what), amount) <= tree.nominal(node, what);
    amount = std::max<Amount>(0, amount - tree.locally_available(node, what));
  }
  return out;
}

/// Candidates of one attempt, in the order in which they go.
class Candidates {
 public:
  Candidates(const Books& books, const Preemptor& preemptor) : books_(books), preemptor_(preemptor) {
    if (preemptor.queue->within_queue != PreemptionPolicy::kNever) collect_queue(preemptor.node, QuotaNode::kNone, false, own_);
    collect_cohort();
    for (auto* list : {&hierarchy_, &by_priority_, &own_})
      std::ranges::sort(*list, [&](const Candidate& a, const Candidate& b) {
        return goes_before(*a.reservation, *b.reservation, preemptor.queue->name);
      });
    for (const bool evicted : {true, false})
      for (const auto* list : {&hierarchy_, &by_priority_, &own_})
        for (const Candidate& one : *list)
          if (one.reservation->is_evicted == evicted) all_.push_back(one);
  }
  [[nodiscard]] const std::vector<Candidate>& all() const { return all_; }
  [[nodiscard]] bool has_others() const { return !hierarchy_.empty() || !by_priority_.empty(); }
  [[nodiscard]] bool has_hierarchy() const { return !hierarchy_.empty(); }

 private:
  void collect_queue(QuotaNode queue, QuotaNode common, bool advantage, std::vector<Candidate>& to) const {
    for (const auto& [key, reservation] : books_.of_queue(books_.tree().name(queue)))
      if (const Right right = right_over(preemptor_, *reservation, advantage); right != Right::kNone)
        to.push_back({reservation, right, common});
  }
  void collect_below(QuotaNode cohort, QuotaNode common, QuotaNode left_out, bool advantage, std::vector<Candidate>& to) const {
    const QuotaTree& tree = books_.tree();
    for (const QuotaNode child : tree.cohorts_of(cohort))
      if (child != left_out && !is_within_nominal(tree, child, preemptor_.short_of)) collect_below(child, common, left_out, advantage, to);
    for (const QuotaNode child : tree.queues_of(cohort))
      if (child != preemptor_.node && !is_within_nominal(tree, child, preemptor_.short_of)) collect_queue(child, common, advantage, to);
  }
  void collect_cohort() {
    const QuotaTree& tree = books_.tree();
    if (preemptor_.queue->reclaim == PreemptionPolicy::kNever) return;
    FlavorAmounts rest = preemptor_.usage;
    bool advantage = is_enough(tree, preemptor_.node, rest);
    QuotaNode below = QuotaNode::kNone;
    for (QuotaNode cohort = tree.parent(preemptor_.node); cohort != QuotaNode::kNone; cohort = tree.parent(cohort)) {
      collect_below(cohort, cohort, below, advantage, advantage ? hierarchy_ : by_priority_);
      const bool enough = is_enough(tree, cohort, rest);
      advantage = advantage || enough;
      below = cohort;
    }
  }

  const Books& books_;
  const Preemptor& preemptor_;
  std::vector<Candidate> own_, hierarchy_, by_priority_, all_;
};

/// Looked at in its turn: whoever borrows no longer, because others of it went, stays.
bool is_still_borrowing(const QuotaTree& tree, const Preemptor& preemptor, const Candidate& candidate) {
  QuotaNode node = tree.queue(candidate.reservation->queue);
  if (is_within_nominal(tree, node, preemptor.short_of)) return false;
  for (node = tree.parent(node); node != QuotaNode::kNone && node != candidate.common; node = tree.parent(node))
    if (is_within_nominal(tree, node, preemptor.short_of)) return false;
  return true;
}

std::vector<Target> try_candidates(Books& books, const Preemptor& preemptor, const Candidates& candidates, bool may_borrow) {
  std::vector<Target> targets;
  for (const Candidate& one : candidates.all()) {
    if (one.right != Right::kSameQueue) {
      if (may_borrow && one.right == Right::kReclaim) continue;
      if (!is_still_borrowing(books.tree(), preemptor, one)) continue;
    }
    books.take_out(*one.reservation);
    targets.push_back({one.reservation, reason_of(one.right)});
    if (!fits_after(books.tree(), preemptor, may_borrow)) continue;
    spare(books, preemptor, targets, may_borrow);
    for (const Target& target : targets) books.put_back(*target.reservation);
    return targets;
  }
  for (const Target& target : targets) books.put_back(*target.reservation);
  return {};
}

bool is_below_nominal(const QuotaTree& tree, const Preemptor& preemptor) {
  return std::ranges::none_of(preemptor.short_of, [&](const FlavorResource& what) {
    return tree.used(preemptor.node, what) >= tree.nominal(preemptor.node, what);
  });
}

std::vector<Target> by_quotas(Books& books, const Preemptor& preemptor) {
  const Candidates candidates(books, preemptor);
  const bool forbidden = !preemptor.queue->may_borrow_and_preempt;
  std::vector<bool> attempts = {true, false};
  if (!candidates.has_others() || (forbidden && !is_below_nominal(books.tree(), preemptor)))
    attempts = {true};
  else if (forbidden && !candidates.has_hierarchy())
    attempts = {false, true};
  for (const bool may_borrow : attempts)
    if (auto targets = try_candidates(books, preemptor, candidates, may_borrow); !targets.empty()) return targets;
  return {};
}

}  // namespace

std::string_view preemption_words(std::string_view reason) {
  if (reason == kInClusterQueue) return "prioritization in the ClusterQueue";
  if (reason == kInCohortFairSharing) return "Fair Sharing within the cohort";
  if (reason == kInCohortReclaimWhileBorrowing) return "reclamation within the cohort while borrowing";
  return "reclamation within the cohort";
}

bool uses_any(const Reservation& reservation, const std::set<FlavorResource>& resources) {
  return std::ranges::any_of(reservation.usage, [&](const auto& one) { return resources.contains(one.first); });
}

bool may_preempt_by_policy(const Preemptor& preemptor, const Reservation& candidate) {
  const bool is_own = candidate.queue == preemptor.queue->name;
  switch (is_own ? preemptor.queue->within_queue : preemptor.queue->reclaim) {
    case PreemptionPolicy::kNever:
      return false;
    case PreemptionPolicy::kLowerPriority:
      return candidate.priority < preemptor.priority;
    case PreemptionPolicy::kLowerOrNewerEqualPriority:
      return candidate.priority < preemptor.priority || (candidate.priority == preemptor.priority && preemptor.queued < candidate.queued);
    case PreemptionPolicy::kAny:
      return true;
  }
  return false;
}

bool goes_before(const Reservation& a, const Reservation& b, const std::string& preemptor_queue) {
  if (a.is_evicted != b.is_evicted) return a.is_evicted;
  const bool a_own = a.queue == preemptor_queue, b_own = b.queue == preemptor_queue;
  if (a_own != b_own) return b_own;
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.reserved != b.reserved) return a.reserved > b.reserved;
  return std::tie(a.uid, a.key) < std::tie(b.uid, b.key);
}

bool fits_after(const QuotaTree& tree, const Preemptor& preemptor, bool may_borrow) {
  return std::ranges::all_of(preemptor.usage, [&](const auto& one) {
    return (may_borrow || !tree.borrows_with(preemptor.node, one.first, one.second)) &&
           one.second <= tree.available(preemptor.node, one.first);
  });
}

void spare(Books& books, const Preemptor& preemptor, std::vector<Target>& targets, bool may_borrow) {
  // The last one made it fit: it goes in any case.
  for (std::size_t i = targets.size() - 1; i-- > 0;) {
    books.put_back(*targets[i].reservation);
    if (fits_after(books.tree(), preemptor, may_borrow))
      targets.erase(targets.begin() + static_cast<std::ptrdiff_t>(i));
    else
      books.take_out(*targets[i].reservation);
  }
}

std::vector<Target> find_targets(Books& books, const Preemptor& preemptor, bool fair_sharing) {
  return fair_sharing ? by_shares(books, preemptor) : by_quotas(books, preemptor);
}

PreemptionOutlook look_for_preemption(Books& books, const Preemptor& preemptor, const FlavorResource& what, Amount amount,
                                      bool fair_sharing) {
  Preemptor one = preemptor;
  one.usage = {{what, amount}};
  one.short_of = {what};
  const auto targets = find_targets(books, one, fair_sharing);
  for (const Target& target : targets) books.take_out(*target.reservation);
  PreemptionOutlook out{.borrowing = borrowing_height(books.tree(), preemptor.node, what, amount).height};
  for (const Target& target : targets) books.put_back(*target.reservation);
  if (targets.empty()) return out;
  const bool is_own =
      std::ranges::any_of(targets, [&](const Target& target) { return target.reservation->queue == preemptor.queue->name; });
  out.who = is_own ? Preemptible::kWithinQueue : Preemptible::kReclaim;
  return out;
}

BorrowingHeight borrowing_height(const QuotaTree& tree, QuotaNode queue, const FlavorResource& what, Amount amount) {
  const bool has_parent = tree.parent(queue) != QuotaNode::kNone;
  if (!has_parent || !tree.borrows_with(queue, what, amount)) return {0, has_parent};
  Amount rest = amount - tree.locally_available(queue, what);
  for (QuotaNode cohort = tree.parent(queue); cohort != QuotaNode::kNone; cohort = tree.parent(cohort)) {
    if (!tree.borrows_with(cohort, what, rest)) return {tree.height(cohort), tree.parent(cohort) != QuotaNode::kNone};
    rest -= tree.locally_available(cohort, what);
  }
  return {tree.height(tree.root(queue)), false};
}

bool can_always_reclaim(const ClusterQueue& queue) { return queue.reclaim == PreemptionPolicy::kAny; }

}  // namespace berth::queues
