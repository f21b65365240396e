// May this pod be moved so that its node can go (SPEC H3; the cluster autoscaler's drainability rules, in their order).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "autoscaler/options.h"
#include "autoscaler/snapshot.h"

namespace berth::autoscaler {

/// What disruption budgets still allow, while simulated removals use it up.
class Budgets {
 public:
  explicit Budgets(const placement::Cluster& cluster);
  [[nodiscard]] bool covers(const Pod& pod) const;
  /// False when a budget that covers the pod has nothing left.
  [[nodiscard]] bool allows(const Pod& pod) const;
  /// Takes the pods from their budgets; false when they could not all be evicted at once.
  bool take(const std::vector<PodPtr>& pods);

 private:
  struct Budget {
    std::shared_ptr<const model::PodDisruptionBudgetView> view;
    std::int64_t left = 0;
    [[nodiscard]] bool matches(const Pod& pod) const;
  };
  std::vector<Budget> budgets_;
};

struct Drainability {
  enum class Verdict {
    kMove,    ///< It must find a place elsewhere.
    kLeave,   ///< It goes with its node: daemons' pods, and those that have ended.
    kIgnore,  ///< As if it were not there: mirror pods, and those that are ending for too long already.
    kWait,    ///< The node waits until it has ended by itself.
    kBlock    ///< The node stays.
  };
  Verdict verdict = Verdict::kMove;
  std::string_view reason;  ///< Of kBlock: the cluster autoscaler's name of it, e.g. "NotReplicated".
  std::string message;      ///< Of kBlock.
};
Drainability drainability_of(const Pod& pod, const Budgets& budgets, const Snapshot& snapshot, const Options& options, TimePoint now);

}  // namespace berth::autoscaler
