#include "controllers/budget_ledger.h"

#include "controllers/common.h"

namespace berth::controllers {
namespace {

std::string owner_key(std::string_view ns, std::string_view kind, std::string_view name) { return fmt::format("{}/{}/{}", ns, kind, name); }

PodOwner owner_of(const PodInfo& pod) { return {std::string(pod.object->controller_kind()), std::string(pod.object->controller_name())}; }

void count(BudgetCounts& counts, const PodInfo& pod, int sign) {
  counts.pods += sign;
  if (is_healthy(pod)) counts.healthy += sign;
  if (pod.object->controller_kind().empty()) {
    counts.unmanaged += sign;
    return;
  }
  const auto owner = counts.owners.try_emplace(owner_of(pod)).first;
  owner->second += sign;
  if (owner->second == 0) counts.owners.erase(owner);
}

bool counts_the_same(const PodInfo& a, const PodInfo& b) { return is_healthy(a) == is_healthy(b) && owner_of(a) == owner_of(b); }

}  // namespace

bool counts_by_scale(const json::Value& budget) {
  const json::Value* minimum = json::find(budget, {"spec", "minAvailable"});
  return json::find(budget, {"spec", "maxUnavailable"}) != nullptr || (minimum != nullptr && minimum->is_string());
}

std::int64_t desired_healthy(const json::Value& budget, std::int64_t expected) {
  if (const json::Value* maximum = json::find(budget, {"spec", "maxUnavailable"}))
    return std::max<std::int64_t>(0, expected - scaled_value(maximum, expected, true, 0));
  return scaled_value(json::find(budget, {"spec", "minAvailable"}), expected, true, 0);
}

void BudgetLedger::add(const std::string& key, Budget& budget, const PodInfo& pod, int sign) {
  count(budget.counts, pod, sign);
  if (pod.object->controller_kind().empty()) return;
  const std::string owner = owner_key(pod.ns(), pod.object->controller_kind(), pod.object->controller_name());
  if (budget.counts.owners.contains(owner_of(pod))) {
    by_owner_[owner].insert(key);
  } else if (const auto found = by_owner_.find(owner); found != by_owner_.end()) {
    found->second.erase(key);
    if (found->second.empty()) by_owner_.erase(found);
  }
}

void BudgetLedger::take_budget(const Event& event, const Cache& cache) {
  const std::string key = event.object().key();
  const auto known = budgets_.find(key);
  const model::Selector selector =
      event.after ? selector_of(kinds().pod_disruption_budget, event.after->document()) : model::Selector::nothing();
  if (event.after && known != budgets_.end() && known->second.selector == selector) return;
  const auto drop_owners = [&](const Budget& budget) {
    for (const auto& [owner, pods] : budget.counts.owners) {
      const auto found = by_owner_.find(owner_key(event.object().ns(), owner.kind, owner.name));
      if (found == by_owner_.end()) continue;
      found->second.erase(key);
      if (found->second.empty()) by_owner_.erase(found);
    }
  };
  if (known != budgets_.end()) {
    drop_owners(known->second);
    budgets_.erase(known);
  }
  if (!event.after) return;
  Budget& budget = budgets_[key];
  budget.selector = selector;
  cache.for_each_matching(event.after->ns(), selector, [&](const PodRef& pod) { add(key, budget, *pod, 1); });
}

std::vector<ObjectRef> BudgetLedger::take_pod(const Event& event, const Cache& cache,
                                              const std::function<void(const std::string& key)>& moved) {
  std::vector<ObjectRef> was, is;
  const std::string& ns = event.object().ns();
  if (event.after) is = cache.selecting(kinds().pod_disruption_budget, ns, event.after->labels());
  if (event.before == event.after) return is;
  const bool same_labels = event.before && event.after && event.before->labels() == event.after->labels();
  if (same_labels && counts_the_same(*event.pod_before, *event.pod_after)) return is;
  if (event.before) was = same_labels ? is : cache.selecting(kinds().pod_disruption_budget, ns, event.before->labels());
  for (const auto& [budgets, pod, sign] : {std::tuple(&was, &event.pod_before, -1), std::tuple(&is, &event.pod_after, 1)})
    for (const ObjectRef& one : *budgets) {
      const auto budget = budgets_.find(one->key());
      if (budget == budgets_.end()) continue;  // Its own event is still to come, and counts what is there then.
      add(one->key(), budget->second, **pod, sign);
      moved(one->key());
    }
  return is;
}

std::vector<std::string> BudgetLedger::budgets_of(const std::string& ns, std::string_view owner_kind, std::string_view owner_name) const {
  const auto found = by_owner_.find(owner_key(ns, owner_kind, owner_name));
  return found == by_owner_.end() ? std::vector<std::string>() : std::vector<std::string>(found->second.begin(), found->second.end());
}

const BudgetCounts& BudgetLedger::counts(const std::string& key) const {
  static const BudgetCounts kNone;
  const auto found = budgets_.find(key);
  return found == budgets_.end() ? kNone : found->second.counts;
}

BudgetCounts BudgetLedger::recount(const ObjectRef& budget, const Cache& cache) {
  BudgetCounts counts;
  const model::Selector selector = selector_of(kinds().pod_disruption_budget, budget->document());
  for (const PodRef& pod : cache.pods_in(budget->ns()))
    if (selector.matches(pod->labels())) count(counts, *pod, 1);
  return counts;
}

}  // namespace berth::controllers
