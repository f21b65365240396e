#include "descheduler/cycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "descheduler/context.h"

namespace berth::descheduler {
namespace {

Result<void> run_strategy(Context& ctx, const Plugin& plugin) {
  switch (plugin.strategy) {
    case Strategy::kRemoveDuplicates:
      remove_duplicates(ctx, plugin);
      break;
    case Strategy::kLowNodeUtilization:
      return low_node_utilization(ctx, plugin);
    case Strategy::kHighNodeUtilization:
      return high_node_utilization(ctx, plugin);
    case Strategy::kRemovePodsViolatingInterPodAntiAffinity:
      remove_interpod_anti_affinity(ctx, plugin);
      break;
    case Strategy::kRemovePodsViolatingNodeAffinity:
      remove_node_affinity(ctx, plugin);
      break;
    case Strategy::kRemovePodsViolatingNodeTaints:
      remove_node_taints(ctx, plugin);
      break;
    case Strategy::kRemovePodsViolatingTopologySpreadConstraint:
      remove_topology_spread(ctx, plugin);
      break;
    case Strategy::kRemovePodsHavingTooManyRestarts:
      remove_too_many_restarts(ctx, plugin);
      break;
    case Strategy::kRemoveFailedPods:
      remove_failed(ctx, plugin);
      break;
    case Strategy::kPodLifeTime:
      remove_by_life_time(ctx, plugin);
      break;
    case Strategy::kDefragmentation:
      make_room_for_waiting(ctx, plugin);
      break;
  }
  return {};
}

/// Of the pods that were not tried: protected by every profile, or out of no strategy's place.
Result<void> list_standing(const Policy& policy, Context& ctx, CycleResult& result) {
  std::set<std::string, std::less<>> tried;
  for (const Removal& removal : result.removals) tried.insert(removal.pod->key());
  for (const Node& node : ctx.nodes())
    for (const PodPtr& pod : node.pods) {
      if (tried.contains(pod->key())) continue;
      std::string why;
      for (const Profile& profile : policy.profiles) {
        if (auto entered = ctx.enter(profile); !entered) return entered;
        why = ctx.why_protected(*pod);
        if (why.empty()) break;
      }
      result.standing.push_back({pod, why.empty() ? "no strategy wants it away" : std::move(why)});
    }
  return {};
}

}  // namespace

std::string_view result_label(Outcome outcome) {
  switch (outcome) {
    case Outcome::kEvicted:
      return "success";
    case Outcome::kNodeLimit:
      return "maximum number of evicted pods per node reached";
    case Outcome::kNamespaceLimit:
      return "maximum number of evicted pods per namespace reached";
    case Outcome::kTotalLimit:
      return "maximum number of evicted pods per a descheduling cycle reached";
    case Outcome::kNoBetterPlace:
      return "no better place";
    case Outcome::kPlanned:
    case Outcome::kProtected:
    case Outcome::kFailed:
      break;
  }
  return "error";
}

std::size_t CycleResult::evicted() const {
  return static_cast<std::size_t>(std::ranges::count_if(removals, [](const Removal& one) { return goes(one.outcome); }));
}

Result<Plan> plan_cycle(const Policy& policy, const Snapshot& snapshot, const placement::Profiles& profiles, const CycleOptions& options,
                        const Known& known) {
  Plan plan;
  CycleResult& result = plan.result;
  Context ctx(policy, snapshot, profiles, options, known, plan);
  for (const Profile& profile : policy.profiles)
    if (auto entered = ctx.enter(profile); !entered) return std::unexpected(entered.error());
  if (ctx.nodes().size() <= 1) {
    result.notes.push_back(fmt::format("nothing is done: two ready nodes or more are needed, there {} {}",
                                       ctx.nodes().size() == 1 ? "is" : "are", ctx.nodes().size()));
    return plan;
  }
  // Balancing comes after everything that has to go, of all profiles.
  for (const bool balances : {false, true}) {
    for (const Profile& profile : policy.profiles) {
      if (auto entered = ctx.enter(profile); !entered) return std::unexpected(entered.error());
      for (const Plugin& plugin : balances ? profile.balance : profile.deschedule) {
        if (plan.is_cut) continue;
        ctx.enter(plugin.strategy);
        const double start = options.stopwatch ? options.stopwatch() : 0;
        const auto ran = run_strategy(ctx, plugin);
        result.runs.push_back(
            {profile.name, plugin.strategy, options.stopwatch ? options.stopwatch() - start : 0, ran ? "" : ran.error().message});
      }
    }
  }
  ctx.list_unmet();
  if (options.lists_everyone)
    if (auto listed = list_standing(policy, ctx, result); !listed) return std::unexpected(listed.error());
  return plan;
}

}  // namespace berth::descheduler
