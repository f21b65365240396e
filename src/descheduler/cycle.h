// One descheduling cycle: policy, snapshot and what came of it so far in, a plan out (SPEC G2–G4). Pure: time is given, nothing is asked.
//
//   plan_cycle ──▶ Plan: who goes where and why, and the steps to ask of the server
//       ▲             │ Execution (execution.h): within the limit of flights
//       └── Known ◀───┘ a refusal: planned again with all that is known by then
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "descheduler/placement_check.h"
#include "descheduler/policy.h"
#include "descheduler/snapshot.h"

namespace berth::placement {
class Profiles;
}

namespace berth::descheduler {

enum class Outcome : std::uint8_t {
  kPlanned,  ///< Nobody has answered yet.
  kEvicted,
  kNodeLimit,
  kNamespaceLimit,
  kTotalLimit,
  kNoBetterPlace,  ///< The placement engine refused.
  kProtected,      ///< A disruption budget holds it.
  kFailed,
};
/// It goes, or has gone.
constexpr bool goes(Outcome outcome) { return outcome <= Outcome::kEvicted; }
/// The `result` label of the metrics: "success", "error", or the limit's words; kNoBetterPlace is "no better place".
std::string_view result_label(Outcome outcome);

/// A pod that a strategy wants away, and what came of it.
struct Removal {
  PodPtr pod;
  std::string profile;
  Strategy strategy = Strategy::kRemoveDuplicates;
  std::string why;          ///< In the strategy's terms: "2 copies of ReplicaSet web here".
  std::string destination;  ///< Where its replacement goes by the engine; empty when nothing comes back or nobody was asked.
  Outcome outcome = Outcome::kPlanned;
  std::string message;  ///< Why it stays.
};

struct Answer {
  Outcome outcome = Outcome::kEvicted;  ///< kEvicted, kProtected or kFailed.
  std::string message;
};

/// What the server is asked for.
struct Step {
  enum class Kind : std::uint8_t {
    kEvict,
    kKeepRoom,  ///< The node's room is the waiting pod's (status.nominatedNodeName), before others are evicted for it.
  };
  Kind kind = Kind::kEvict;
  Removal removal;     ///< Of kKeepRoom: the pod that waits alone.
  std::string node;    ///< Of kKeepRoom.
  bool waits = false;  ///< For the answers to all steps before it, which it counts on.
};

/// What was asked for in this cycle, and what came of it. The next cycle knows nothing of it.
struct Known {
  /// By the pod's key: the kPlanned ones are on their way, and count as done.
  std::map<std::string, Removal, std::less<>> removals;
  std::map<std::pair<std::string, std::string>, Answer> rooms;  ///< By the waiting pod's key and the node.
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
  /// Budgets are counted here, from the snapshot; otherwise whoever answers knows better.
  bool counts_budgets = true;
  /// Says of every other pod, too, why it stays.
  bool lists_everyone = false;
  /// Rooms for pods that wait are kept for them before anybody goes for it.
  bool keeps_rooms = true;
  /// By uid: moved already and nothing has changed since. They stay, unless the engine's word is not asked either.
  std::set<std::string, std::less<>> moved;
  /// The autoscaler waits for nodes that it asked for: until they are there nobody is moved to make room for a pod that waits.
  bool nodes_are_coming = false;
  /// A plan ends after so many steps that are not known, to be gone on with later.
  std::size_t most_new = SIZE_MAX;
  /// Seconds since some start, for the runs' durations alone; may be empty.
  std::function<double()> stopwatch;
};

struct CycleResult {
  std::vector<Removal> removals;   ///< In the order tried.
  std::vector<Standing> standing;  ///< By node and name; empty unless asked for.
  std::vector<StrategyRun> runs;
  std::vector<std::string> notes;  ///< Why nothing was done, for people.
  /// Those that go or went.
  [[nodiscard]] std::size_t evicted() const;
};

struct Plan {
  CycleResult result;
  std::vector<Step> steps;  ///< What is not known yet, in the order to be asked for.
  bool is_cut = false;      ///< There may be more after these.
};

/// Runs every profile's Deschedule strategies, then every profile's Balance strategies. Where a strategy comes to a pod that is known, what
/// is known came of it; the others are chosen as if that had been clear before. Deterministic. The error: a priority class that the policy
/// names is not there.
Result<Plan> plan_cycle(const Policy& policy, const Snapshot& snapshot, const placement::Profiles& profiles, const CycleOptions& options,
                        const Known& known = {});

}  // namespace berth::descheduler
