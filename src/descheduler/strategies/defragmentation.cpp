// Defragmentation: room for pods that wait although there is enough of it in pieces (kubernetes#68036). berth's own; what is moved is
// make_room's choice (packing.h), under the evictor's protections and the cycle's limits.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "descheduler/context.h"
#include "descheduler/judge.h"

namespace berth::descheduler {
namespace {

/// Since when the scheduler has found no place; nullopt for a pod that it has not judged, or that waits for something else.
std::optional<TimePoint> waits_since(const Pod& pod) {
  const model::PodView& view = pod.view();
  if (!pod.node().empty() || view.is_terminal() || view.meta.is_deleting || !view.scheduling_gates.empty() ||
      !view.nominated_node_name.empty())
    return std::nullopt;
  for (const PodCondition& one : pod.status().conditions)
    if (one.type == "PodScheduled" && one.status == "False" && one.reason == "Unschedulable")
      return one.last_transition ? *one.last_transition : pod.facts.created.value_or(TimePoint{});
  return std::nullopt;
}

/// The pods that wait, gangs together; the most important first, then the oldest.
std::vector<std::vector<PodPtr>> waiting_gangs(const Context& ctx, const Plugin& plugin) {
  std::map<std::string, std::vector<PodPtr>> gangs;
  for (const auto& [key, pod] : ctx.snapshot().pods) {
    const auto since = waits_since(*pod);
    if (!since || ctx.now() - *since < std::chrono::seconds(plugin.min_pending_seconds) || !Context::selects(plugin, *pod)) continue;
    const std::string* gang = plugin.gang_label.empty() ? nullptr : pod->view().meta.labels.get(plugin.gang_label);
    if (const auto group = ctx.snapshot().groups.find(pod->facts.group); gang == nullptr && group != ctx.snapshot().groups.end()) {
      // Room in one domain is more than these moves look for.
      if (group->second->all_levels().empty()) gangs["gang " + pod->facts.group].push_back(pod);
      continue;
    }
    gangs[gang == nullptr ? "pod " + key : fmt::format("gang {}/{}", pod->view().ns(), *gang)].push_back(pod);
  }
  std::vector<std::vector<PodPtr>> out;
  for (auto& [name, pods] : gangs) out.push_back(std::move(pods));
  std::ranges::stable_sort(out, [](const auto& a, const auto& b) {
    const auto left = a.front()->facts.priority.value_or(0), right = b.front()->facts.priority.value_or(0);
    return left != right ? left > right : a.front()->facts.created < b.front()->facts.created;
  });
  return out;
}

}  // namespace

void make_room_for_waiting(Context& ctx, const Plugin& plugin) {
  for (const std::vector<PodPtr>& gang : waiting_gangs(ctx, plugin)) ctx.make_room(gang, plugin);
}

std::string Context::why_not_moved(const placement::PodInfo& info, const Plugin& plugin) {
  const auto found = snapshot_.pods.find(info.key);
  if (found == snapshot_.pods.end() || found->second->node().empty()) return "it has only just got its place";
  const Pod& pod = *found->second;
  if (find(pod.node()) == nullptr) return "its node is none of the policy's";
  if (std::string why = why_protected(pod); !why.empty()) return why;
  if (const auto known = known_.removals.find(info.key); known != known_.removals.end())
    return goes(known->second.outcome) ? "it went already" : known->second.message;
  if (was_moved(pod)) return std::string(kMovedAlready);
  if (!plugin.namespaces.admits(pod.view().ns())) return "its namespace is left out";
  return pre_eviction_filter(pod) ? "" : "it does not pass the evictor's nodeFit or namespace selector";
}

/// Beyond what the engine says: limits, budgets, rooms that cannot be kept. Asks for what is not known yet.
std::string Context::why_not_carried_out(const RoomPlan& plan, const std::string& why) {
  if (options_.nodes_are_coming) return "the autoscaler is adding nodes, which come first";
  std::vector<PodPtr> moved;
  for (const Move& move : plan.moves) moved.push_back(snapshot_.pods.find(move.pod->key)->second);
  if (const auto limit = limit_before(moved, true))
    return fmt::format("{} pods would have to go, and {}", plan.moves.size(), limit->message);
  placement::DisruptionLedger left = budgets_;
  for (const PodPtr& pod : moved) {
    if (auto held = options_.counts_budgets ? ask_budgets(left, *pod) : std::nullopt) {
      std::string message = fmt::format("{} would have to go: {}", pod->key(), held->message);
      (void)refuse(removal_of(pod, why), held->outcome, std::move(held->message), Verdict::kRefused);
      return message;
    }
    left.take(pod->view());
  }
  for (const RoomPlan::Place& place : plan.placed)
    if (const auto known = known_.rooms.find({place.pod->key, place.node}); known != known_.rooms.end() && !goes(known->second.outcome))
      return fmt::format("the room on {} cannot be kept for {}: {}", place.node, place.pod->key, known->second.message);
  budgets_ = left;
  return "";
}

/// What came of those that were to go for it by a plan that had to be made anew; how many went.
std::size_t Context::carry_out_earlier_moves(const std::string& why) {
  std::size_t out = 0;
  for (const auto& [key, removal] : known_.removals)
    if (removal.why == why && removal.strategy == strategy_ && !gone_.contains(key))
      out += evict_as_known(removal, removal) == Verdict::kEvicted ? 1 : 0;
  return out;
}

void Context::make_room(const std::vector<PodPtr>& gang, const Plugin& plugin) {
  if (!may_go_on()) return;
  std::vector<placement::PodInfoPtr> wanting;
  std::vector<std::string> names;
  for (const PodPtr& pod : gang) {
    wanting.push_back(pod->info);
    names.push_back(pod->key());
  }
  const std::string who = fmt::format("{}", fmt::join(names, ", "));
  const std::string why = "room for " + who;
  PackingRules rules;
  rules.why_it_stays = [&](const placement::PodInfo& info) { return why_not_moved(info, plugin); };
  rules.most_moves = plugin.max_moves;
  judge_->lift_waiting(wanting);
  const std::size_t went = carry_out_earlier_moves(why);
  const RoomPlan plan = judge_->room_for(wanting, rules);
  std::string why_not = plan.why_not;
  // What fits as it is needs the scheduler alone.
  if (why_not.empty() && !plan.moves.empty()) why_not = why_not_carried_out(plan, why);
  if (!why_not.empty()) {
    judge_->place_waiting(wanting);
    plan_.result.notes.push_back(went == 0
                                     ? fmt::format("no room is made for {}: {}", who, why_not)
                                     : fmt::format("no room is made for {}: {} pods went, then one could not, and {}", who, went, why_not));
    return;
  }
  judge_->carry_out(plan);
  if (plan.moves.empty()) return;
  // One after the other: without all of them none is of use.
  for (const RoomPlan::Place& place : plan.placed)
    if (options_.keeps_rooms && !known_.rooms.contains({place.pod->key, place.node}))
      add_step({.kind = Step::Kind::kKeepRoom,
                .removal = removal_of(snapshot_.pods.find(place.pod->key)->second, why),
                .node = place.node,
                .waits = true});
  for (const Move& move : plan.moves) {
    Removal removal = removal_of(snapshot_.pods.find(move.pod->key)->second, why);
    removal.destination = move.to;
    add_step({.kind = Step::Kind::kEvict, .removal = removal, .node = {}, .waits = true});
    record(std::move(removal));
  }
}

}  // namespace berth::descheduler
