#include "descheduler/packing.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/views/pod_facts.h"
#include "placement/disruption_ledger.h"

namespace berth::descheduler {

std::string why_it_stays(const placement::PodInfo& pod) {
  const model::ObjectMeta& meta = pod.view().meta;
  constexpr std::int64_t kSystemCritical = 2'000'000'000;
  const std::string* safe = meta.annotation(model::kSafeToEvict);
  if (meta.is_deleting) return "it is terminating";
  if (meta.controller() == nullptr) return "nothing would make it again: it has no controller";
  if (pod.view().priority >= kSystemCritical) return "it is critical to the system";
  if (safe != nullptr && *safe == "false") return "its annotation safe-to-evict is \"false\"";
  return "";
}

std::string why_budgets_hold(const placement::DisruptionLedger& budgets, const placement::PodInfo& pod) {
  using Answer = placement::DisruptionLedger::Answer;
  const auto [answer, budget] = budgets.ask(pod.view());
  if (answer == Answer::kAllowed) return "";
  if (answer == Answer::kSeveral) return "it has more than one PodDisruptionBudget, which the eviction subresource does not support";
  return fmt::format("PodDisruptionBudget {} allows no disruption", budget->meta.name);
}

}  // namespace berth::descheduler
