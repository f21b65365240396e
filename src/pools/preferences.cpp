#include "pools/preferences.h"

#include <algorithm>

namespace berth::pools {
namespace {

/// All terms but the `dropped` heaviest, as required ones.
void require(std::vector<model::WeightedPodAffinityTerm> terms, std::size_t dropped, std::vector<model::PodAffinityTerm>& required) {
  std::ranges::stable_sort(terms, std::greater{}, &model::WeightedPodAffinityTerm::weight);
  for (std::size_t i = std::min(dropped, terms.size()); i < terms.size(); ++i) required.push_back(std::move(terms[i].term));
}

}  // namespace

WishCounts wishes_of(const placement::PodInfo& pod) {
  const model::PodView& view = pod.view();
  const auto soft = std::ranges::count_if(view.spread_constraints, [](const auto& one) { return !one.is_hard; });
  return {view.preferred_affinity.size(), view.preferred_anti_affinity.size(), static_cast<std::size_t>(soft)};
}

placement::PodInfoPtr insisting(const placement::PodInfo& pod, std::size_t dropped, placement::Era era) {
  const WishCounts counts = wishes_of(pod);
  auto view = std::make_shared<model::PodView>(pod.view());
  require(std::move(view->preferred_affinity), dropped, view->required_affinity);
  require(std::move(view->preferred_anti_affinity), dropped - std::min(dropped, counts.beside), view->required_anti_affinity);
  view->preferred_affinity.clear();
  view->preferred_anti_affinity.clear();
  std::size_t to_drop = dropped - std::min(dropped, counts.beside + counts.apart);
  for (model::TopologySpreadConstraint& one : view->spread_constraints) {
    if (one.is_hard) continue;
    if (to_drop > 0)
      --to_drop;
    else
      one.is_hard = true;
  }
  return placement::PodInfo::make(std::move(view), era);
}

}  // namespace berth::pools
