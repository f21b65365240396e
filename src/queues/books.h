// Who holds what of which ClusterQueue.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "queues/quota_tree.h"

namespace berth::queues {

using WorkloadKey = std::pair<std::string, std::string>;  ///< Namespace, name.

/// A Workload that has its quota, with what preemption asks about it.
struct Reservation {
  WorkloadKey key;
  std::string queue, uid;
  FlavorAmounts usage;
  std::int64_t priority = 0;
  TimePoint queued{};    ///< By which it stands in the queue.
  TimePoint reserved{};  ///< Since when it has the quota.
  bool is_admitted = false;
  bool is_evicted = false;  ///< It is going already.
};

/// The tree with all reservations in it. What is taken out in thought is put back by whoever took it.
class Books {
 public:
  /// A new tree; the reservations stay. Those of queues that are not there count nowhere.
  void rebuild(QuotaTree tree);
  /// Replaces the one of this key.
  void put(Reservation reservation);
  void erase(const WorkloadKey& key);
  [[nodiscard]] const Reservation* find(const WorkloadKey& key) const;
  [[nodiscard]] const std::map<WorkloadKey, const Reservation*>& of_queue(const std::string& queue) const;

  [[nodiscard]] const QuotaTree& tree() const { return tree_; }
  /// In thought.
  void take_out(const Reservation& reservation);
  void put_back(const Reservation& reservation);
  void add(QuotaNode queue, const FlavorAmounts& amounts) { tree_.add(queue, amounts); }
  void remove(QuotaNode queue, const FlavorAmounts& amounts) { tree_.remove(queue, amounts); }

 private:
  QuotaTree tree_;
  std::map<WorkloadKey, Reservation> reservations_;
  std::map<std::string, std::map<WorkloadKey, const Reservation*>, std::less<>> by_queue_;
};

}  // namespace berth::queues
