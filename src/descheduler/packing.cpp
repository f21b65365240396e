#include "descheduler/packing.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::descheduler {

bool goes_with_its_node(const placement::PodInfo& pod) {
  const model::ObjectMeta& meta = pod.view().meta;
  const model::OwnerReference* controller = meta.controller();
  return meta.annotation("kubernetes.io/config.mirror") != nullptr || (controller != nullptr && controller->kind == "DaemonSet");
}

std::string why_it_stays(const placement::PodInfo& pod) {
  const model::ObjectMeta& meta = pod.view().meta;
  constexpr std::int64_t kSystemCritical = 2'000'000'000;
  const std::string* safe = meta.annotation("cluster-autoscaler.kubernetes.io/safe-to-evict");
  if (meta.is_deleting) return "it is terminating";
  if (meta.controller() == nullptr) return "nothing would make it again: it has no controller";
  if (pod.view().priority >= kSystemCritical) return "it is critical to the system";
  if (safe != nullptr && *safe == "false") return "its annotation safe-to-evict is \"false\"";
  return "";
}

BudgetLedger::BudgetLedger(const placement::Cluster& cluster) {
  for (const auto& [key, view] : cluster.disruption_budgets()) entries_.push_back({view, view->disruptions_allowed});
}

std::string BudgetLedger::why_not(const placement::PodInfo& pod) const {
  const Entry* held = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.view->meta.ns != pod.view().ns() || !entry.view->selector.matches(pod.view().meta.labels)) continue;
    if (held != nullptr) return "it has more than one PodDisruptionBudget, which the eviction subresource does not support";
    held = &entry;
  }
  if (held == nullptr || held->left > 0) return "";
  return fmt::format("PodDisruptionBudget {} allows no disruption", held->view->meta.name);
}

void BudgetLedger::take(const placement::PodInfo& pod) {
  for (Entry& entry : entries_)
    if (entry.view->meta.ns == pod.view().ns() && entry.view->selector.matches(pod.view().meta.labels)) --entry.left;
}

}  // namespace berth::descheduler
