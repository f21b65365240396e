#include "pools/preferences.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace berth::pools {

using placement::PodInfoPtr;

namespace {

/// All terms but the `dropped` heaviest, as required ones.
void require(std::vector<model::WeightedPodAffinityTerm> terms, std::size_t dropped, SharedList<model::PodAffinityTerm>& required) {
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
  view->spread_constraints.change_each([&](model::TopologySpreadConstraint& one) {
    if (one.is_hard) return;
    if (to_drop > 0)
      --to_drop;
    else
      one.is_hard = true;
  });
  return placement::PodInfo::make(std::move(view), era);
}

std::int64_t more_refused(const ProvisionPlan& a, const ProvisionPlan& b) {
  std::map<std::int64_t, std::int64_t, std::greater<>> difference;
  for (const auto& one : a.refused) ++difference[one.pod->view().priority];
  for (const auto& one : b.refused) --difference[one.pod->view().priority];
  for (const auto& [priority, more] : difference)
    if (more != 0) return more;
  return 0;
}

namespace {

/// Looks for a plan that costs no more than one that takes no heed of what pods prefer of one another, and keeps as much of it as it can.
class Wishing {
 public:
  Wishing(std::vector<PodKind> kinds, placement::Era era, const std::function<bool()>& is_over, const AskForPlan& ask)
      : kinds_(std::move(kinds)), era_(era), is_over_(is_over), ask_(ask) {
    for (const PodKind& kind : kinds_) {
      counts_.push_back(wishes_of(kind.first()));
      if (counts_.back().all() > 0) wishing_.push_back(counts_.size() - 1);
    }
  }

  ProvisionPlan run(ProvisionPlan plain) {
    best_ = std::move(plain);
    best_dropped_ = all_dropped();
    if (wishing_.empty()) return std::move(best_);
    // What pods prefer of nodes is dropped before spreading is, and after the rest.
    bool all_keep = try_all([](const WishCounts& one) { return one.beside + one.apart; });
    if (all_keep)
      all_keep = try_all([](const WishCounts&) { return std::size_t{0}; }) || try_all([](const WishCounts& one) { return one.beside; });
    std::size_t pods = 0;
    for (const PodKind& kind : kinds_) pods += kind.pods.size();
    if (pods > kMostPods) return std::move(best_);
    for (const std::size_t k : wishing_)
      for (std::size_t dropped = 0; dropped < best_dropped_[k] && tries_ < kMostTries; ++dropped) {
        std::vector<std::size_t> wanted = best_dropped_;
        wanted[k] = dropped;
        if (keep(wanted)) break;
      }
    return std::move(best_);
  }

 private:
  static constexpr int kMostTries = 16;
  static constexpr std::size_t kMostPods = 2000;  ///< For looking at one kind after the other.

  [[nodiscard]] std::vector<std::size_t> all_dropped() const {
    std::vector<std::size_t> out;
    for (const WishCounts& one : counts_) out.push_back(one.all());
    return out;
  }
  bool try_all(std::size_t (*dropped)(const WishCounts&)) {
    std::vector<std::size_t> wanted;
    for (const WishCounts& one : counts_) wanted.push_back(std::min(dropped(one), one.all()));
    return wanted == best_dropped_ || keep(wanted);
  }
  bool keep(const std::vector<std::size_t>& dropped) {
    ++tries_;
    if (is_over_ && is_over_()) return false;
    bool is_dropped_first = false;  // Something that is dropped before what they prefer of nodes.
    std::vector<PodInfoPtr> pods;
    std::map<const placement::PodInfo*, PodInfoPtr> as_they_are;
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      is_dropped_first |= dropped[k] < counts_[k].beside + counts_[k].apart;
      for (const PodInfoPtr& pod : kinds_[k].pods) {
        pods.push_back(dropped[k] == counts_[k].all() ? pod : insisting(*pod, dropped[k], era_));
        as_they_are.emplace(pods.back().get(), pod);
      }
    }
    ProvisionPlan plan = ask_(pods);
    if (more_refused(plan, best_) > 0 || plan.cost > best_.cost + 1e-9) return false;
    if (is_dropped_first && best_.keeps_node_wishes && !plan.keeps_node_wishes) return false;
    for (NewClaim& claim : plan.claims)
      for (PodInfoPtr& pod : claim.pods) pod = as_they_are.at(pod.get());
    for (auto& one : plan.refused) one.pod = as_they_are.at(one.pod.get());
    plan.greedy_cost = std::max(best_.greedy_cost, plan.cost);
    plan.bound = best_.bound;
    best_ = std::move(plan);
    best_dropped_ = dropped;
    return true;
  }

  std::vector<PodKind> kinds_;
  placement::Era era_;
  const std::function<bool()>& is_over_;
  const AskForPlan& ask_;
  std::vector<WishCounts> counts_;
  std::vector<std::size_t> wishing_, best_dropped_;
  ProvisionPlan best_;
  int tries_ = 0;
};

}  // namespace

ProvisionPlan keep_wishes(ProvisionPlan plain, std::vector<PodKind> kinds, placement::Era era, const std::function<bool()>& is_over,
                          const AskForPlan& ask) {
  return Wishing(std::move(kinds), era, is_over, ask).run(std::move(plain));
}

}  // namespace berth::pools
