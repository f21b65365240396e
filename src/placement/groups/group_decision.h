// Where a group of pods goes: several pods, one decision (kube-scheduler's pkg/scheduler/schedule_one_podgroup.go).
//
//   members, one after the other --> each takes its place in a trial, as the next one will find it
//        enough of them stand?  --> all that have a place keep it; the others wait by themselves
//        too few?               --> nobody keeps one
//
// With a topology key this is asked of one domain after the other, each as if there were no other nodes, and the best domain is taken.
// Beyond the real one: where that order places too few, others are searched for, with a bound (group_search.h); domains are taken by best
// fit, on several levels (group_levels.h).
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "placement/groups/pod_groups.h"
#include "placement/trial.h"

namespace berth::placement {

/// What became of one member.
struct MemberDecision {
  Decision decision;  ///< With a node of the trial that was asked; `node_name` is empty.
  [[nodiscard]] bool has_place() const { return decision.outcome == Decision::Outcome::kScheduled; }
};

struct GroupDecision {
  enum class Outcome : std::uint8_t { kScheduled, kUnschedulable, kError };
  Outcome outcome = Outcome::kUnschedulable;
  /// Parallel to those asked about; after an error the last ones may be missing. Of a group that does not fit: what the first domain said.
  std::vector<MemberDecision> members;
  std::string message;  ///< Unless it is scheduled: why, in the words of the PodGroup's condition.
  /// Of a group with a topology: the values of its levels in the domain that took it, or that came nearest, with "/" between; else empty.
  std::string domain = {};
  bool was_searched = false;  ///< The greedy order alone would have placed too few.
  /// Of a group that fits in none of its domains: the plugins that reject members in any of them.
  std::set<std::string_view> rejected_by = {};
  [[nodiscard]] std::int64_t placed_count() const;
};

/// Steps of a search beyond the greedy order: about 50 ms at most.
inline constexpr std::size_t kGroupSearchSteps = 50'000;

struct GroupQuestion {
  const PodGroup* group = nullptr;
  std::span<const PodInfoPtr> members;  ///< Without a place, in the order in which they choose.
  std::vector<NodeIndex> standing;      ///< Where the others are: they count, and hold the domain.
  bool by_topology = true;              ///< Domains count (the gate TopologyAwareWorkloadScheduling).
  /// Takes one of so many domains that are as good (replays do as was recorded); empty: the first by name.
  std::function<std::size_t(std::size_t count)> pick = {};
  /// By the rules of kube-scheduler 1.36 and no others: no search, no levels of annotations, no preemption with a topology.
  bool as_kubernetes = false;
  std::size_t search_steps = kGroupSearchSteps;
  bool budgets_are_hard = false;  ///< Nobody is a victim whose going breaks a disruption budget.
};

/// Decides for all of them; afterwards the trial is as it was.
[[nodiscard]] GroupDecision decide_group(Trial& trial, const GroupQuestion& question);

/// Why a member that has its place does not get it, as its condition says.
inline constexpr std::string_view kWaitsForOthers =
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more plugins asked to wait and no plugin "
    "rejected pod";

}  // namespace berth::placement
