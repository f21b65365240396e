#include "autoscaler/shrinking.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>

#include "autoscaler/advice.h"

namespace berth::autoscaler {

using placement::NodeInfo;
using placement::PodInfoPtr;
using placement::Trial;

namespace {

void untaint_all(Pass& pass) {
  if (pass.snapshot.totals->candidates == 0) return;
  for (const NodeInfo* node : pass.snapshot.cluster->nodes())
    if (has_taint(*node->node, kDeletionCandidateTaint)) pass.out.soft_taints.emplace_back(node->name, false);
}

}  // namespace

void Shrinking::begin(const placement::Cluster& cluster) {
  std::erase_if(removing_, [&](const auto& entry) { return cluster.find_node(entry.first) == nullptr; });
}

void Shrinking::run(Pass& pass, ClusterLimits limits, const std::optional<TimePoint>& last_growth) {
  if (!pass.options.scale_down_enabled) {
    unneeded_.clear();
    return untaint_all(pass);
  }
  place_leaving(pass);
  ScaleDownFindings found;
  pass.measure("findUnneeded", [&] { found = find_nodes_to_go(pass); });
  follow_unneeded(pass, found);
  tell_of_blocked(pass);
  const auto pauses = [&](const std::optional<TimePoint>& since, Duration length) { return since && *since + length > pass.now; };
  pass.out.status.is_scale_down_paused = pauses(last_growth, pass.options.delay_after_add) ||
                                         pauses(last_removal_, pass.options.delay_after_delete) ||
                                         pauses(last_failure_, pass.options.delay_after_failure);
  if (!pass.out.status.is_scale_down_paused) pass.measure("scaleDown", [&] { choose_removals(pass, found.removable, limits); });
  if (pass.out.remove.empty()) soft_taint(pass);
}

void Shrinking::follow_unneeded(Pass& pass, ScaleDownFindings& found) {
  std::map<std::string, TimePoint> unneeded;
  for (const Removable& removable : found.removable) {
    const auto since = unneeded_.find(removable.node);
    unneeded[removable.node] = since == unneeded_.end() ? pass.now : since->second;
  }
  // What was not looked at is as it was; it comes first the next time.
  left_ = found.left;
  for (const std::string& node : found.left)
    if (const auto since = unneeded_.find(node); since != unneeded_.end()) unneeded.insert(*since);
  unneeded_ = std::move(unneeded);
  pass.out.status.left_nodes = std::move(found.left);
  pass.out.status.unneeded = unneeded_;
  pass.out.status.unremovable = std::move(found.unremovable);
}

// Pods of nodes that are going need places before any other node's.
void Shrinking::place_leaving(Pass& pass) const {
  if (removing_.empty() && pass.snapshot.totals->to_be_deleted == 0) return;
  for (const NodeInfo* node : pass.snapshot.cluster->nodes()) {
    if (!has_taint(*node->node, kToBeDeletedTaint) && !removing_.contains(node->name)) continue;
    std::vector<placement::EvictedPod> evicted;
    for (const PodInfoPtr& info : node->pods)
      if (const auto pod = pass.snapshot.pods().find(info->key);
          pod != pass.snapshot.pods().end() && !model::counts_as_daemon(pod->second->view().meta) &&
          !model::is_mirror(pod->second->view().meta) && !is_expendable(pod->second->view(), pass.options))
        evicted.push_back(pass.thought.here().evict(pod->second->info));
    drop_node(pass.thought.here(), node->name);
    for (const placement::EvictedPod& eviction : evicted) (void)pass.thought.here().place(pass.thought.here().renew(eviction));
  }
}

ScaleDownFindings Shrinking::find_nodes_to_go(Pass& pass) const {
  return find_removable({.snapshot = &pass.snapshot,
                         .cluster = &pass.thought.cluster(),
                         .trial = [&]() -> Trial& { return pass.thought.here(); },
                         .memberships = &pass.memberships,
                         .candidates = candidates(pass),
                         .imagined = &pass.thought.imagined(),
                         .limit = pass.limit},
                        pass.options, pass.now);
}

std::vector<ScaleDownInput::Candidate> Shrinking::candidates(const Pass& pass) const {
  std::map<std::string_view, std::size_t> turn;
  for (const std::string& name : left_) turn.emplace(name, turn.size());
  const std::set<std::string_view> not_started(pass.state.not_started().begin(), pass.state.not_started().end());
  const auto left = left_in_groups(pass);
  std::vector<ScaleDownInput::Candidate> out;
  for (const auto& [name, member] : pass.memberships) {
    // A group at its minimum keeps all its nodes: thought away first, they would take the places of pods that could move.
    if (left.find(member.group->id)->second <= member.group->min || not_started.contains(name) || removing_.contains(name)) continue;
    const auto place = turn.find(name);
    out.push_back({name, place == turn.end() ? turn.size() : place->second, unneeded_.contains(name)});
  }
  return out;
}

// An event of each node that something holds, when that is new.
void Shrinking::tell_of_blocked(Pass& pass) {
  std::map<std::string, std::string> told;
  for (const Unremovable& one : pass.out.status.unremovable) {
    if (one.reason != "BlockedByPod" && one.reason != "NoPlaceToMovePods") continue;
    std::string text = to_string(one);
    const auto before = told_.find(one.node);
    if (before == told_.end() || before->second != text) {
      const std::string advice = advice_for(one);
      pass.note({}, one.node, false, "ScaleDownBlocked", advice.empty() ? text : fmt::format("{}; to free it: {}", text, advice));
    }
    told[one.node] = std::move(text);
  }
  told_ = std::move(told);
}

// Each group's target without the removals under way that it counts still.
Shrinking::Left Shrinking::left_in_groups(const Pass& pass) const {
  Left out;
  for (const NodeGroup& group : pass.snapshot.groups) out[group.id] = group.target;
  for (const auto& [node, is_drained] : removing_)
    if (const auto member = pass.memberships.find(node); member != pass.memberships.end() && !member->second.instance->is_leaving)
      --out[member->second.group->id];
  return out;
}

void Shrinking::choose_removals(Pass& pass, std::vector<Removable>& removable, ClusterLimits& limits) {
  // Empty nodes first, then those whose pods can all be evicted at once.
  std::ranges::stable_sort(removable, {}, [](const Removable& one) { return std::pair(!one.moved.empty(), one.is_risky); });
  Left left = left_in_groups(pass);
  int under_way = static_cast<int>(removing_.size());
  int drains = static_cast<int>(std::ranges::count(removing_ | std::views::values, true));
  std::vector<const Removable*> allowed;
  for (const Removable& one : removable) {
    const std::string_view reason = why_kept(pass, one, left, limits);
    if (reason.empty())
      allowed.push_back(&one);
    else
      pass.out.status.unremovable.push_back({.node = one.node, .reason = reason});
  }
  for (const Removable* one : allowed) {
    if (under_way >= pass.options.max_scale_down_parallelism || (!one->moved.empty() && drains >= pass.options.max_drain_parallelism))
      continue;
    ++under_way;
    drains += !one->moved.empty();
    remove(pass, *one);
  }
}

// Why a node that could go does not go now; empty when it may, and then it is taken off the group's and the cluster's sums.
std::string_view Shrinking::why_kept(const Pass& pass, const Removable& one, Left& left, ClusterLimits& limits) const {
  const NodeInfo* node = pass.snapshot.cluster->find_node(one.node);
  const auto& [group, instance] = pass.memberships.find(one.node)->second;
  if (instance->is_leaving) return "CurrentlyBeingDeleted";
  const auto facts = pass.snapshot.nodes->find(one.node);
  const bool is_ready = facts != pass.snapshot.nodes->end() && facts->second.is_working();
  const Duration threshold = is_ready ? group->overrides.unneeded_time.value_or(pass.options.unneeded_time)
                                      : group->overrides.unready_time.value_or(pass.options.unready_time);
  if (threshold > Duration::zero() && unneeded_.at(one.node) + threshold >= pass.now)
    return is_ready ? "NotUnneededLongEnough" : "NotUnreadyLongEnough";
  if (left[group->id] <= group->min) return "NodeGroupMinSizeReached";
  const Amounts cost = amounts_of(*node->node, pass.options);
  if (!limits.may_remove(cost)) return "MinimalResourceLimitExceeded";
  if (one.waits) return "BlockedByOnCompletionPod";
  --left[group->id];
  limits.add(cost, -1);
  return "";
}

void Shrinking::remove(Pass& pass, const Removable& one) {
  NodeRemoval removal = removal_of(one, *pass.snapshot.cluster->find_node(one.node), *pass.memberships.find(one.node)->second.instance,
                                   pass.snapshot, pass.now);
  if (removal.is_empty) {
    pass.note({}, {}, false, "ScaleDownEmpty", fmt::format("Scale-down: removing empty node \"{}\"", one.node));
  } else {
    std::vector<std::string> names;
    for (const PodPtr& pod : removal.evict) names.push_back(pod->view().name());
    pass.note({}, {}, false, "ScaleDown",
              fmt::format("Scale-down: removing node {}, utilization: {:.3g}, pods to reschedule: {}", one.node, one.utilization,
                          fmt::join(names, ",")));
  }
  removing_[one.node] = !removal.is_empty;
  unneeded_.erase(one.node);
  pass.out.remove.push_back(std::move(removal));
}

void Shrinking::soft_taint(Pass& pass) const {
  if (unneeded_.empty() && pass.snapshot.totals->candidates == 0) return;
  int budget = pass.options.max_bulk_soft_taints;
  for (const bool is_wanted : {false, true})
    for (const NodeInfo* node : pass.snapshot.cluster->nodes()) {
      if (has_taint(*node->node, kToBeDeletedTaint) || has_taint(*node->node, kDeletionCandidateTaint) == is_wanted) continue;
      if (unneeded_.contains(node->name) != is_wanted || budget-- <= 0) continue;
      pass.out.soft_taints.emplace_back(node->name, is_wanted);
    }
}

void Shrinking::removal_ended(const std::string& node, bool succeeded, TimePoint now) {
  removing_.erase(node);
  (succeeded ? last_removal_ : last_failure_) = now;
}

void Shrinking::shift_times(Duration jump) {
  for (auto& [node, since] : unneeded_) since += jump;
  for (auto* time : {&last_removal_, &last_failure_})
    if (*time) **time += jump;
}

}  // namespace berth::autoscaler
