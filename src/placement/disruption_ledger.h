// What disruption budgets still allow, while pods are evicted in thought.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "placement/cluster.h"

namespace berth::placement {

/// Whose reading of budgets counts: they differ in which budgets a pod has, and in what its going takes from them.
enum class BudgetRule : std::uint8_t {
  kEviction,    ///< pods/eviction: pods that keep nothing up, and by a budget's policy unready ones, go without its leave; one budget at
                ///< most.
  kPreemption,  ///< kube-scheduler: an empty selector selects nobody, nor is a pod without labels selected.
  kAutoscaler,  ///< cluster-autoscaler: every budget that selects the pod has to allow it.
};

/// Starts with what the budgets' status allows. The cluster must outlive it, and its budgets may not change meanwhile. Costs what it is
/// asked: a pod is held against the budgets of its namespace alone.
class DisruptionLedger {
 public:
  using View = model::PodDisruptionBudgetView;
  DisruptionLedger(const Cluster& cluster, BudgetRule rule) : cluster_(&cluster), rule_(rule) {}

  enum class Answer : std::uint8_t {
    kAllowed,
    kNothingLeft,
    kSeveral,  ///< More than one budget, which pods/eviction does not support.
  };
  struct Leave {
    Answer answer = Answer::kAllowed;
    const View* budget = nullptr;  ///< Of kNothingLeft.
  };
  /// Whether the pod could go now.
  [[nodiscard]] Leave ask(const model::PodView& pod) const;
  /// The pod goes, allowed or not. False when a budget had nothing left for it.
  bool take(const model::PodView& pod);
  /// The same for one budget that is known to cover the pod.
  bool take_from(const View& budget, const model::PodView& pod);
  [[nodiscard]] bool covers(const model::PodView& pod) const;

  /// The budget is one of the pod's, by the rule.
  [[nodiscard]] static bool covers(const View& budget, const model::PodView& pod, BudgetRule rule);

 private:
  template <typename Each>
  void for_each_of(const model::PodView& pod, Each each) const;
  [[nodiscard]] bool needs_no_leave(const View& budget, const model::PodView& pod) const;
  [[nodiscard]] std::int64_t left(const View& budget) const;

  const Cluster* cluster_;
  BudgetRule rule_;
  std::vector<std::pair<const View*, std::int64_t>> taken_;
};

}  // namespace berth::placement
