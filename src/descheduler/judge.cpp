#include "descheduler/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/attempt.h"

namespace berth::descheduler {
namespace {

bool is_unneeded(const placement::NodeInfo& node) {
  return std::ranges::any_of(node.node->taints, [](const model::Taint& taint) {
    return taint.key == "DeletionCandidateOfClusterAutoscaler" || taint.key == "ToBeDeletedByClusterAutoscaler";
  });
}

}  // namespace

Judge::Judge(const Snapshot& snapshot, const placement::Profiles& profiles, PlacementCheck check)
    : snapshot_(snapshot),
      trial_(placement::Trial::on_fork(snapshot.cluster, profiles,
                                       {.engine = {.tie_break = placement::EngineOptions::TieBreak::kFirstByName}, .preemption = {}})),
      check_(check) {}

Judgement Judge::judge(const Pod& pod, const DestinationRule& rule) {
  // A finished pod takes no room and its controller has made another one long since: nothing comes back.
  if (pod.view().is_terminal()) return {true, "", "", false};
  const RefusalKey key = {pod.view().scheduler_name, trial_.sign(*pod.info), pod.node};
  if (const auto known = refusals_.find(key); known != refusals_.end() && check_ != PlacementCheck::kOff) return known->second;
  placement::Eviction eviction = trial_.evict(pod.info);
  if (check_ == PlacementCheck::kOff) {
    evicted_.insert_or_assign(pod.key(), std::move(eviction));
    return {true, "", "", false};
  }
  placement::PodInfoPtr replacement = trial_.renew(eviction);
  Judgement out = decide(pod, replacement, rule, false);
  if (!out.is_accepted && !out.is_by_rule) refusals_.emplace(key, out);
  // A pod that was labelled by hand is judged as it is; where its replacement goes is its template's matter. Without the labels that made
  // it leave, the old node may be as good as others, but not the best.
  const auto labels = snapshot_.replacement_labels(pod.view());
  if (out.is_accepted && labels && *labels != pod.view().meta.labels) {
    replacement = trial_.renew(eviction, &*labels);
    out = decide(pod, replacement, {}, true);
  }
  if (out.is_accepted) {
    const placement::Status status = trial_.place_on(replacement, trial_.cluster().find_node(out.destination)->index);
    if (!status.is_success()) out = {false, "", fmt::format("{} could not be given what it needs: {}", out.destination, status.message())};
  }
  if (out.is_accepted) {
    refusals_.clear();
    evicted_.insert_or_assign(pod.key(), std::move(eviction));
  } else {
    trial_.undo(eviction);
  }
  return out;
}

Judgement Judge::decide(const Pod& pod, const placement::PodInfoPtr& replacement, const DestinationRule& rule, bool may_be_equal) {
  const placement::BestNodes best = trial_.best(replacement);
  const placement::Decision& decision = best.decision;
  if (decision.outcome == placement::Decision::Outcome::kError) return {false, "", decision.error};
  if (decision.outcome == placement::Decision::Outcome::kUnschedulable) {
    const std::string why =
        decision.diagnosis == nullptr ? "" : placement::fit_error_message(*decision.diagnosis, trial_.cluster().era(), "");
    return {false, "", "it would fit nowhere: " + why};
  }
  if (check_ == PlacementCheck::kFits) return {true, std::string(decision.node_name), ""};
  const placement::Cluster& cluster = trial_.cluster();
  const placement::NodeInfo* old = cluster.find_node(pod.node);
  const placement::NodeIndex here = old == nullptr ? placement::NodeIndex{} : old->index;
  placement::NodeIndex destination;
  for (const placement::NodeIndex index : best.nodes) {
    if (index == here) {
      if (may_be_equal && best.nodes.size() > 1) continue;
      return {false, "", fmt::format("it {} come back to {}", best.nodes.size() == 1 ? "would" : "could", pod.node)};
    }
    if (!destination.is_valid()) destination = index;
    const placement::NodeInfo& node = *cluster.node(index);
    // What goes there keeps the node, or moves once more with it.
    if (is_unneeded(node))
      return {false, "",
              fmt::format("it {} go to {}, which the autoscaler wants to remove", best.nodes.size() == 1 ? "would" : "could", node.name)};
    if (!rule) continue;
    if (const std::string why = rule(node); !why.empty())
      return {false, "", fmt::format("it {} go to {}, {}", best.nodes.size() == 1 ? "would" : "could", node.name, why), true};
  }
  return {true, destination.is_valid() ? cluster.node(destination)->name : "", ""};
}

RoomPlan Judge::room_for(const std::vector<placement::PodInfoPtr>& gang, const PackingRules& rules) {
  const placement::Attempt attempt(trial_);
  return make_room(trial_, gang, rules);
}

void Judge::carry_out(std::span<const Move> moves, std::span<const RoomPlan::Place> placed) {
  refusals_.clear();
  std::vector<placement::Eviction> evicted;
  for (const Move& move : moves) evicted.push_back(trial_.evict(move.pod));
  const auto put = [&](const placement::PodInfoPtr& pod, const std::string& on) {
    if (const placement::NodeInfo* node = trial_.cluster().find_node(on)) trial_.hold(pod, node->index);
  };
  for (const RoomPlan::Place& place : placed) put(place.pod, place.node);
  for (std::size_t i = 0; i < moves.size(); ++i) put(trial_.renew(evicted[i]), moves[i].to);
}

void Judge::undo(const Pod& pod) {
  const auto found = evicted_.find(pod.key());
  if (found == evicted_.end()) return;
  refusals_.clear();
  trial_.undo(found->second);
  evicted_.erase(found);
}

}  // namespace berth::descheduler
