#include "placement/disruption_ledger.h"

#include <algorithm>

namespace berth::placement {

bool DisruptionLedger::covers(const View& budget, const model::PodView& pod, BudgetRule rule) {
  if (rule == BudgetRule::kPreemption && (budget.selector_is_empty || pod.meta.labels.empty())) return false;
  return budget.covers(pod.ns(), pod.meta.labels);
}

template <typename Each>
void DisruptionLedger::for_each_of(const model::PodView& pod, Each each) const {
  const auto& budgets = cluster_->disruption_budgets();
  if (budgets.empty()) return;
  for (auto at = budgets.lower_bound(pod.ns() + "/"); at != budgets.end() && at->second->meta.ns == pod.ns(); ++at)
    if (covers(*at->second, pod, rule_)) each(*at->second);
}

/// Of a budget of the pod's.
bool DisruptionLedger::needs_no_leave(const View& budget, const model::PodView& pod) const {
  switch (rule_) {
    case BudgetRule::kEviction:
      if (pod.is_terminal() || pod.phase == "Pending" || pod.meta.is_deleting) return true;
      return pod.is_unready && budget.lets_unready_go(budget.healthy, budget.desired_healthy);
    case BudgetRule::kPreemption:
      return std::ranges::binary_search(budget.disrupted_pods, pod.name());  // It is counted already.
    case BudgetRule::kAutoscaler:
      return false;
  }
  return false;
}

std::int64_t DisruptionLedger::left(const View& budget) const {
  const auto found = std::ranges::find(taken_, &budget, &std::pair<const View*, std::int64_t>::first);
  return budget.disruptions_allowed - (found == taken_.end() ? 0 : found->second);
}

DisruptionLedger::Leave DisruptionLedger::ask(const model::PodView& pod) const {
  Leave out;
  std::size_t count = 0;
  for_each_of(pod, [&](const View& budget) {
    ++count;
    if (out.answer == Answer::kAllowed && !needs_no_leave(budget, pod) && left(budget) < 1) out = {Answer::kNothingLeft, &budget};
  });
  const bool is_asked = !pod.is_terminal() && pod.phase != "Pending" && !pod.meta.is_deleting;
  if (rule_ == BudgetRule::kEviction && count > 1 && is_asked) return {Answer::kSeveral, nullptr};
  return out;
}

bool DisruptionLedger::take_from(const View& budget, const model::PodView& pod) {
  if (needs_no_leave(budget, pod)) return true;
  auto taken = std::ranges::find(taken_, &budget, &std::pair<const View*, std::int64_t>::first);
  if (taken == taken_.end()) taken = taken_.insert(taken, {&budget, 0});
  return ++taken->second <= budget.disruptions_allowed;
}

bool DisruptionLedger::take(const model::PodView& pod) {
  bool out = true;
  for_each_of(pod, [&](const View& budget) { out &= take_from(budget, pod); });
  return out;
}

bool DisruptionLedger::covers(const model::PodView& pod) const {
  bool out = false;
  for_each_of(pod, [&](const View&) { out = true; });
  return out;
}

}  // namespace berth::placement
