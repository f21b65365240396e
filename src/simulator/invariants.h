// What must hold of a cluster beyond its counts: the names `broken.…` of assertions (docs/simulate.md).
#pragma once
#include <map>
#include <string>

#include "base/json.h"
#include "net/http.h"
#include "simulator/cluster.h"

namespace berth::simulator {

/// Watches what the node controller asks the server for, and looks at everything when it is asked. For the loop's thread; the cluster
/// outlives it.
class Invariants {
 public:
  /// `eviction_rate`: nodes a second that one zone may lose at most (--node-eviction-rate); not above zero: any number.
  Invariants(Cluster& cluster, double eviction_rate);
  ~Invariants();
  Invariants(const Invariants&) = delete;
  Invariants& operator=(const Invariants&) = delete;

  /// {"zoneRates", "budgets", "orphans", "onMissingNodes", "unready", "leaving", "counts", "total", "first"}: how often each is broken,
  /// zoneRates and budgets since the start and the others at this moment; `first` says the first few in words. Reads every pod and
  /// workload.
  [[nodiscard]] json::Value now() const;

 private:
  void see(const net::HttpRequest& request);
  /// Judges an eviction that is asked for; what is given back counts it.
  std::function<void()> see_eviction(const std::string& path);

  Cluster& cluster_;
  Duration least_between_turns_;
  std::map<std::string, TimePoint> last_turn_;  ///< By zone: when the last of its nodes was given up.
  std::int64_t starts_seen_ = 0;                ///< Of the controllers: those that start anew know nothing of turns before.
  std::int64_t hasty_turns_ = 0;
  std::string first_hasty_;
  std::int64_t broken_budgets_ = 0;
  std::string first_broken_budget_;
};

}  // namespace berth::simulator
