// Which pods each disruption budget selects and how they are, kept by differences: a pod's event costs one look at the budgets that select
// it, and a budget's step does not read its pods.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controllers/cache.h"

namespace berth::controllers {

/// Who controls a pod.
struct PodOwner {
  std::string kind, name;
  friend auto operator<=>(const PodOwner&, const PodOwner&) = default;
};

/// The pods that one budget selects.
struct BudgetCounts {
  std::int64_t pods = 0, healthy = 0, unmanaged = 0;
  std::map<PodOwner, std::int64_t> owners;  ///< To the number of pods; those that nobody controls are not among them.
  friend bool operator==(const BudgetCounts&, const BudgetCounts&) = default;
};

/// A budget with maxUnavailable or a percentage is about what its pods' controllers want; another about the pods that there are.
[[nodiscard]] bool counts_by_scale(const json::Value& budget);
/// How many pods the budget wants healthy of so many.
[[nodiscard]] std::int64_t desired_healthy(const json::Value& budget, std::int64_t expected);

/// Healthy: ready, and not being deleted.
[[nodiscard]] inline bool is_healthy(const PodInfo& pod) { return pod.ready && !pod.deleting; }

/// Invariant: counts equal a recount over the cache that the events are about. Single-threaded, no I/O.
class BudgetLedger {
 public:
  /// Takes an event of a PodDisruptionBudget, which `cache` has already.
  void take_budget(const Event& event, const Cache& cache);
  /// Takes a pod's event. Calls `moved` with the key of each budget for which something differs, and returns the budgets that select the
  /// pod now, in order of name.
  std::vector<ObjectRef> take_pod(const Event& event, const Cache& cache, const std::function<void(const std::string& key)>& moved);
  /// Keys of the budgets that select a pod of this controller.
  [[nodiscard]] std::vector<std::string> budgets_of(const std::string& ns, std::string_view owner_kind, std::string_view owner_name) const;
  /// All zero for a budget that is not there.
  [[nodiscard]] const BudgetCounts& counts(const std::string& key) const;
  [[nodiscard]] static BudgetCounts recount(const ObjectRef& budget, const Cache& cache);

 private:
  struct Budget {
    model::Selector selector;
    BudgetCounts counts;
  };
  void add(const std::string& key, Budget& budget, const PodInfo& pod, int sign);
  std::map<std::string, Budget, std::less<>> budgets_;
  std::map<std::string, std::set<std::string>, std::less<>> by_owner_;  ///< "namespace/Kind/name" to keys of budgets.
};

}  // namespace berth::controllers
