// One descheduling cycle: policy and snapshot in, evictions out (SPEC G2–G4). Pure: what is evicted is asked of a function, time is given.
#pragma once
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "descheduler/placement_check.h"
#include "descheduler/policy.h"
#include "descheduler/snapshot.h"

namespace berth::placement {
class Profiles;
}

namespace berth::descheduler {

/// A pod that a strategy wants away.
struct Eviction {
  PodPtr pod;
  std::string profile;
  Strategy strategy = Strategy::kRemoveDuplicates;
  std::string why;          ///< In the strategy's terms: "2 copies of ReplicaSet web here".
  std::string destination;  ///< Where its replacement goes by the engine; empty when nothing comes back or nobody was asked.
};

enum class Outcome : std::uint8_t {
  kEvicted,
  kNodeLimit,
  kNamespaceLimit,
  kTotalLimit,
  kNoBetterPlace,  ///< The placement engine refused.
  kProtected,      ///< A disruption budget holds it.
  kFailed,
};
/// The `result` label of the metrics: "success", "error", or the limit's words; kNoBetterPlace is "no better place".
std::string_view result_label(Outcome outcome);

struct Answer {
  Outcome outcome = Outcome::kEvicted;  ///< kEvicted, kProtected or kFailed.
  std::string message;
};

struct Attempt {
  Eviction eviction;
  Outcome outcome = Outcome::kEvicted;
  std::string message;  ///< Why not.
};

/// A pod that no strategy tried to evict.
struct Standing {
  PodPtr pod;
  std::string why;  ///< What protects it, or that nothing wants it away.
};

struct StrategyRun {
  std::string profile;
  Strategy strategy = Strategy::kRemoveDuplicates;
  double seconds = 0;  ///< 0 without a stopwatch.
  std::string error;   ///< The strategy could not run.
};

struct CycleOptions {
  TimePoint now;
  PlacementCheck check = PlacementCheck::kBetterPlace;
  /// Budgets are counted here, from the snapshot; otherwise `evict` asks whoever knows better.
  bool counts_budgets = true;
  /// Says of every other pod, too, why it stays.
  bool lists_everyone = false;
  /// Does it, or only pretends to. Empty: every eviction succeeds.
  std::function<Answer(const Eviction&)> evict;
  /// Instead of `evict`: begins it and answers later. At most `most_in_flight` are under way; the oldest is waited for first, and all of a
  /// strategy's before the next one begins. What fails is taken back then: the pod is where it was, and counts for no limit.
  std::function<std::future<Answer>(const Eviction&)> begin_eviction;
  std::size_t most_in_flight = 16;
  /// Keeps the room on the node for the waiting pod (status.nominatedNodeName) before others are evicted for it. Empty: nobody does.
  std::function<Answer(const Pod& pod, const std::string& node)> nominate;
  /// It was moved already and nothing has changed since: it stays, unless the engine's word is not asked either. Empty: nobody was.
  std::function<bool(const Pod&)> is_moved;
  /// The autoscaler waits for nodes that it asked for: until they are there nobody is moved to make room for a pod that waits.
  bool nodes_are_coming = false;
  /// Seconds since some start, for the runs' durations; may be empty.
  std::function<double()> stopwatch;
};

struct CycleResult {
  std::vector<Attempt> attempts;   ///< In the order tried.
  std::vector<Standing> standing;  ///< By node and name; empty unless asked for.
  std::vector<StrategyRun> runs;
  std::vector<std::string> notes;  ///< Why nothing was done, for people.
  [[nodiscard]] std::size_t evicted() const;
};

/// Runs every profile's Deschedule strategies, then every profile's Balance strategies. Deterministic. The error: a priority class that the
/// policy names is not there.
Result<CycleResult> run_cycle(const Policy& policy, const Snapshot& snapshot, const placement::Profiles& profiles,
                              const CycleOptions& options);

}  // namespace berth::descheduler
