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
  if (!pod.node.empty() || view.is_terminal() || view.meta.is_deleting || !view.scheduling_gates.empty() ||
      !view.nominated_node_name.empty())
    return std::nullopt;
  for (const PodCondition& one : pod.conditions)
    if (one.type == "PodScheduled" && one.status == "False" && one.reason == "Unschedulable")
      return one.last_transition ? *one.last_transition : pod.created.value_or(TimePoint{});
  return std::nullopt;
}

/// The pods that wait, gangs together; the most important first, then the oldest.
std::vector<std::vector<PodPtr>> waiting_gangs(const Context& ctx, const Plugin& plugin) {
  std::map<std::string, std::vector<PodPtr>> gangs;
  for (const auto& [key, pod] : ctx.snapshot().pods) {
    const auto since = waits_since(*pod);
    if (!since || ctx.now() - *since < std::chrono::seconds(plugin.min_pending_seconds) || !Context::selects(plugin, *pod)) continue;
    const std::string* gang = plugin.gang_label.empty() ? nullptr : pod->view().meta.labels.get(plugin.gang_label);
    gangs[gang == nullptr ? "pod " + key : fmt::format("gang {}/{}", pod->view().ns(), *gang)].push_back(pod);
  }
  std::vector<std::vector<PodPtr>> out;
  for (auto& [name, pods] : gangs) out.push_back(std::move(pods));
  std::ranges::stable_sort(out, [](const auto& a, const auto& b) {
    const auto left = a.front()->priority.value_or(0), right = b.front()->priority.value_or(0);
    return left != right ? left > right : a.front()->created < b.front()->created;
  });
  return out;
}

}  // namespace

void make_room_for_waiting(Context& ctx, const Plugin& plugin) {
  for (const std::vector<PodPtr>& gang : waiting_gangs(ctx, plugin)) ctx.make_room(gang, plugin);
}

std::string Context::why_not_moved(const placement::PodInfo& info, const Plugin& plugin) {
  const auto found = snapshot_.pods.find(info.key);
  if (found == snapshot_.pods.end() || found->second->node.empty()) return "it has only just got its place";
  const Pod& pod = *found->second;
  if (find(pod.node) == nullptr) return "its node is none of the policy's";
  if (std::string why = why_protected(pod); !why.empty()) return why;
  if (was_moved(pod)) return std::string(kMovedAlready);
  if (!plugin.namespaces.admits(pod.view().ns())) return "its namespace is left out";
  return pre_eviction_filter(pod) ? "" : "it does not pass the evictor's nodeFit or namespace selector";
}

std::string Context::why_beyond_limits(const RoomPlan& plan) {
  std::map<std::string, std::uint64_t> by_node, by_namespace;
  for (const Move& move : plan.moves) {
    ++by_node[move.from];
    ++by_namespace[move.pod->view().ns()];
  }
  if (policy_.max_evictions_total && evicted_total_ + plan.moves.size() > *policy_.max_evictions_total)
    return fmt::format("the limit of the cycle is {}", *policy_.max_evictions_total);
  for (const auto& [node, count] : by_node)
    if (policy_.max_evictions_per_node && evicted_by_node_[node] + count > *policy_.max_evictions_per_node)
      return fmt::format("the limit of a node is {}", *policy_.max_evictions_per_node);
  for (const auto& [ns, count] : by_namespace)
    if (policy_.max_evictions_per_namespace && evicted_by_namespace_[ns] + count > *policy_.max_evictions_per_namespace)
      return fmt::format("the limit of a namespace is {}", *policy_.max_evictions_per_namespace);
  return "";
}

void Context::make_room(const std::vector<PodPtr>& gang, const Plugin& plugin) {
  std::vector<placement::PodInfoPtr> wanting;
  std::vector<std::string> names;
  for (const PodPtr& pod : gang) {
    wanting.push_back(pod->info);
    names.push_back(pod->key());
  }
  const std::string who = fmt::format("{}", fmt::join(names, ", "));
  PackingRules rules;
  rules.why_it_stays = [&](const placement::PodInfo& info) { return why_not_moved(info, plugin); };
  rules.most_moves = plugin.max_moves;
  judge_->lift_waiting(wanting);
  const RoomPlan plan = judge_->room_for(wanting, rules);
  const auto note = [&](std::string_view why) {
    judge_->place_waiting(wanting);
    result_.notes.push_back(fmt::format("no room is made for {}: {}", who, why));
  };
  if (!plan.why_not.empty()) return note(plan.why_not);
  // What fits as it is needs the scheduler alone.
  if (plan.moves.empty()) return judge_->carry_out({}, plan.placed);
  if (options_.nodes_are_coming) return note("the autoscaler is adding nodes, which come first");
  if (const std::string why = why_beyond_limits(plan); !why.empty())
    return note(fmt::format("{} pods would have to go, and {}", plan.moves.size(), why));
  if (options_.nominate) {
    for (const RoomPlan::Place& place : plan.placed) {
      const Answer answer = options_.nominate(*snapshot_.pods.find(place.pod->key)->second, place.node);
      if (answer.outcome != Outcome::kEvicted)
        return note(fmt::format("the room on {} cannot be kept for {}: {}", place.node, place.pod->key, answer.message));
    }
  }
  std::size_t done = 0;
  while (done < plan.moves.size() && evict_moved(plan.moves[done], fmt::format("room for {}", who))) ++done;
  judge_->carry_out(std::span(plan.moves).first(done),
                    done == plan.moves.size() ? std::span(plan.placed) : std::span<const RoomPlan::Place>());
  if (done < plan.moves.size()) note(fmt::format("{} of {} pods went, then one could not", done, plan.moves.size()));
}

/// One after the other: without all of them none is of use.
bool Context::evict_moved(const Move& move, const std::string& why) {
  const PodPtr pod = snapshot_.pods.find(move.pod->key)->second;
  Eviction eviction{pod, profile_->name, strategy_, why, move.to};
  std::optional<Answer> answer;
  if (options_.counts_budgets) answer = ask_budgets(*pod);
  if (!answer && options_.begin_eviction)
    answer = options_.begin_eviction(eviction).get();
  else if (!answer && options_.evict)
    answer = options_.evict(eviction);
  if (answer && answer->outcome != Outcome::kEvicted) {
    (void)refuse(std::move(eviction), answer->outcome, std::move(answer->message), Verdict::kRefused);
    return false;
  }
  record(std::move(eviction));
  return true;
}

}  // namespace berth::descheduler
