#include "queues/fair_preemption.h"

#include <algorithm>

namespace berth::queues {
namespace {

using List = std::vector<const Reservation*>;

List candidates_of(const Books& books, const Preemptor& preemptor) {
  const QuotaTree& tree = books.tree();
  List out;
  for (const QuotaNode node : tree.queues_below(tree.root(preemptor.node))) {
    const bool is_borrowing =
        std::ranges::any_of(preemptor.short_of, [&](const FlavorResource& what) { return tree.borrows_with(node, what, 0); });
    if (node != preemptor.node && !is_borrowing) continue;
    for (const auto& [key, reservation] : books.of_queue(tree.name(node)))
      if (uses_any(*reservation, preemptor.short_of) && may_preempt_by_policy(preemptor, *reservation)) out.push_back(reservation);
  }
  std::ranges::sort(out, [&](const Reservation* a, const Reservation* b) { return goes_before(*a, *b, preemptor.queue->name); });
  return out;
}

/// Which queue loses something next: down the tree, the child with the largest share.
class Losers {
 public:
  Losers(const QuotaTree& tree, const Preemptor& preemptor, const List& candidates) : tree_(tree), preemptor_(preemptor) {
    for (const Reservation* one : candidates) waiting_[tree.queue(one->queue)].push_back(one);
    for (QuotaNode node = tree.parent(preemptor.node); node != QuotaNode::kNone; node = tree.parent(node)) ancestors_.insert(node);
  }
  /// kNone: nobody is left.
  QuotaNode next() {
    const QuotaNode root = tree_.root(preemptor_.node);
    if (root == preemptor_.node) return has_any(root) ? root : QuotaNode::kNone;
    while (!dropped_.contains(root))
      if (const QuotaNode found = next_below(root); found != QuotaNode::kNone) return found;
    return QuotaNode::kNone;
  }
  [[nodiscard]] bool has_any(QuotaNode queue) const {
    const auto found = waiting_.find(queue);
    return found != waiting_.end() && !found->second.empty() && !dropped_.contains(queue);
  }
  const Reservation* pop(QuotaNode queue) {
    List& list = waiting_[queue];
    const Reservation* out = list.front();
    list.erase(list.begin());
    return out;
  }
  void drop(QuotaNode queue) { dropped_.insert(queue); }
  /// The nodes below the lowest cohort that both belong to: (the preemptor's, the other's).
  [[nodiscard]] std::pair<QuotaNode, QuotaNode> rivals(QuotaNode queue) const {
    QuotaNode other = queue;
    while (!ancestors_.contains(tree_.parent(other))) other = tree_.parent(other);
    QuotaNode own = preemptor_.node;
    while (tree_.parent(own) != tree_.parent(other)) own = tree_.parent(own);
    return {own, other};
  }

 private:
  QuotaNode next_below(QuotaNode cohort) {
    QuotaNode queue = QuotaNode::kNone, below = QuotaNode::kNone;
    std::int64_t queue_share = -1, below_share = -1;
    for (const QuotaNode child : tree_.queues_of(cohort)) {
      if (dropped_.contains(child)) continue;
      const std::int64_t share = tree_.share(child);
      if ((share == 0 && child != preemptor_.node) || !has_any(child)) {
        dropped_.insert(child);
      } else if (share >= queue_share) {
        queue_share = share;
        queue = child;
      }
    }
    for (const QuotaNode child : tree_.cohorts_of(cohort)) {
      if (dropped_.contains(child)) continue;
      const std::int64_t share = tree_.share(child);
      if (share == 0 && !ancestors_.contains(child)) {
        dropped_.insert(child);
      } else if (share >= below_share) {
        below_share = share;
        below = child;
      }
    }
    if (queue == QuotaNode::kNone && below == QuotaNode::kNone) dropped_.insert(cohort);
    return below_share >= queue_share && below != QuotaNode::kNone ? next_below(below) : queue;
  }

  const QuotaTree& tree_;
  const Preemptor& preemptor_;
  std::map<QuotaNode, List> waiting_;
  std::set<QuotaNode> ancestors_, dropped_;
};

/// One search; the preemptor's usage is in the tree throughout, so that shares count it.
class FairSearch {
 public:
  FairSearch(Books& books, const Preemptor& preemptor) : books_(books), preemptor_(preemptor) {
    books.add(preemptor.node, preemptor.usage);
  }
  ~FairSearch() { books_.remove(preemptor_.node, preemptor_.usage); }
  FairSearch(const FairSearch&) = delete;
  FairSearch& operator=(const FairSearch&) = delete;

  bool by_final_share(const List& candidates, List& left) {
    Losers losers(books_.tree(), preemptor_, candidates);
    for (QuotaNode queue = losers.next(); queue != QuotaNode::kNone; queue = losers.next()) {
      if (queue == preemptor_.node) {
        if (take(losers.pop(queue), kInClusterQueue)) return true;
        continue;
      }
      const auto [own, other] = losers.rivals(queue);
      const std::int64_t own_share = books_.tree().share(own);
      while (losers.has_any(queue)) {
        const Reservation* one = losers.pop(queue);
        books_.take_out(*one);
        const std::int64_t share_after = books_.tree().share(other);
        books_.put_back(*one);
        if (own_share <= share_after) {
          if (take(one, kInCohortFairSharing)) return true;
          break;  // Another queue may have the largest share now.
        }
        left.push_back(one);
      }
    }
    return false;
  }
  bool by_initial_share(const List& candidates) {
    Losers losers(books_.tree(), preemptor_, candidates);
    for (QuotaNode queue = losers.next(); queue != QuotaNode::kNone; queue = losers.next()) {
      if (queue != preemptor_.node) {
        const auto [own, other] = losers.rivals(queue);
        if (books_.tree().share(own) < books_.tree().share(other) && take(losers.pop(queue), kInCohortFairSharing)) return true;
      }
      losers.drop(queue);
    }
    return false;
  }
  std::vector<Target> targets;

 private:
  bool take(const Reservation* one, std::string_view reason) {
    books_.take_out(*one);
    targets.push_back({one, reason});
    books_.remove(preemptor_.node, preemptor_.usage);
    const bool fits = fits_after(books_.tree(), preemptor_, true);
    books_.add(preemptor_.node, preemptor_.usage);
    return fits;
  }
  Books& books_;
  const Preemptor& preemptor_;
};

}  // namespace

std::vector<Target> by_shares(Books& books, const Preemptor& preemptor) {
  const List candidates = candidates_of(books, preemptor);
  if (candidates.empty()) return {};
  std::vector<Target> targets;
  bool fits = false;
  {
    FairSearch search(books, preemptor);
    List left;
    fits = search.by_final_share(candidates, left) || search.by_initial_share(left);
    targets = std::move(search.targets);
  }
  if (fits) spare(books, preemptor, targets, true);
  for (const Target& target : targets) books.put_back(*target.reservation);
  return fits ? targets : std::vector<Target>();
}

}  // namespace berth::queues
