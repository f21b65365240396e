#include "descheduler/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "placement/attempt.h"

namespace berth::descheduler {
namespace {

bool is_unneeded(const placement::NodeInfo& node) {
  return std::ranges::any_of(node.node->taints, [](const model::Taint& taint) {
    return taint.key == "DeletionCandidateOfClusterAutoscaler" || taint.key == "ToBeDeletedByClusterAutoscaler";
  });
}

bool is_going(const placement::NodeInfo& node) {
  return std::ranges::any_of(node.node->taints, [](const model::Taint& taint) { return taint.key == "ToBeDeletedByClusterAutoscaler"; });
}

bool waits_for_a_place(const Pod& pod) {
  return pod.node.empty() && !pod.view().is_terminal() && !pod.view().meta.is_deleting && pod.view().scheduling_gates.empty();
}

/// Holds a pod's room and is on its way out.
placement::PodInfoPtr stand_in_for(const placement::PodInfo& pod, placement::Era era) {
  auto view = std::make_shared<model::PodView>(pod.view());
  view->meta.name += "-leaving";
  view->meta.uid += "-leaving";
  view->meta.is_deleting = true;
  // Devices and volumes go over to the replacement: it holds room alone.
  view->resource_claims.clear();
  view->volumes.clear();
  return placement::PodInfo::make(std::move(view), era);
}

}  // namespace

Judge::Judge(const Snapshot& snapshot, const placement::Profiles& profiles, PlacementCheck check)
    : snapshot_(snapshot),
      trial_(placement::Trial::on_fork(snapshot.cluster, profiles,
                                       {.engine = {.tie_break = placement::EngineOptions::TieBreak::kFirstByName}, .preemption = {}})),
      check_(check) {
  if (check_ == PlacementCheck::kBetterPlace) place_all_waiting();
}

/// What the scheduler is about to place has its room before any replacement: pods that wait, and those of nodes that the autoscaler
/// empties.
void Judge::place_all_waiting() {
  std::vector<placement::PodInfoPtr> waiting;
  for (const placement::NodeInfo* node : snapshot_.cluster.nodes()) {
    if (node->node == nullptr || !is_going(*node)) continue;
    for (const placement::PodInfoPtr& info : node->pods) {
      const auto found = snapshot_.pods.find(info->key);
      const model::OwnerReference* owner = info->view().meta.controller();
      if (found == snapshot_.pods.end() || owner == nullptr || owner->kind == "DaemonSet" || owner->kind == "Node") continue;
      if (found->second->is_mirror || info->view().is_terminal()) continue;
      // Of one on its way out the successor is there already.
      if (!info->view().meta.is_deleting) waiting.push_back(trial_.renew(trial_.evict(info)));
    }
  }
  std::vector<PodPtr> new_ones;
  for (const auto& [key, pod] : snapshot_.pods)
    if (waits_for_a_place(*pod)) new_ones.push_back(pod);
  std::ranges::stable_sort(new_ones, {}, &Pod::created);
  for (const PodPtr& pod : new_ones) waiting.push_back(pod->info);
  std::ranges::stable_sort(waiting, std::greater{}, [](const placement::PodInfoPtr& pod) { return pod->view().priority; });
  place_waiting(waiting);
}

void Judge::place_waiting(const std::vector<placement::PodInfoPtr>& gang) {
  if (check_ != PlacementCheck::kBetterPlace) return;
  std::set<std::pair<std::string, placement::Signature>> hopeless;
  for (const placement::PodInfoPtr& pod : gang) {
    const model::PodView& view = pod->view();
    const placement::NodeInfo* kept = trial_.cluster().find_node(view.nominated_node_name);
    placement::NodeIndex on;
    if (kept != nullptr && kept->node != nullptr) {
      trial_.hold(pod, on = kept->index);
    } else {
      const std::pair kind{view.scheduler_name, trial_.sign(*pod)};
      if (hopeless.contains(kind)) continue;
      on = trial_.place(pod).node;
      if (!on.is_valid()) {
        hopeless.insert(kind);
        continue;
      }
    }
    placed_waiting_.insert(pod->key);
    if (meanwhile_) meanwhile_->hold(pod, on);
  }
}

void Judge::lift_waiting(const std::vector<placement::PodInfoPtr>& gang) {
  for (const placement::PodInfoPtr& pod : gang)
    if (placed_waiting_.erase(pod->key) > 0) {
      trial_.evict(pod);
      if (meanwhile_) meanwhile_->evict(pod);
    }
}

Judgement Judge::judge(const Pod& pod, const DestinationRule& rule) {
  // A finished pod takes no room and its controller has made another one long since: nothing comes back.
  if (pod.view().is_terminal()) return {true, "", "", false};
  const RefusalKey key = {pod.view().scheduler_name, trial_.sign(*pod.info), pod.node};
  if (const auto known = refusals_.find(key); known != refusals_.end() && check_ != PlacementCheck::kOff) return known->second;
  if (!meanwhile_ && check_ == PlacementCheck::kBetterPlace) meanwhile_.emplace(trial_.fork());
  placement::Eviction eviction = trial_.evict(pod.info);
  if (check_ == PlacementCheck::kOff) {
    evicted_.insert_or_assign(pod.key(), std::move(eviction));
    return {true, "", "", false};
  }
  placement::PodInfoPtr replacement = trial_.renew(eviction);
  Judgement out = decide(trial_, pod, replacement, {.rule = &rule});
  if (!out.is_accepted && !out.is_by_rule) refusals_.emplace(key, out);
  // A pod that was labelled by hand is judged as it is; where its replacement goes is its template's matter. Without the labels that made
  // it leave, the old node may be as good as others, but not the best.
  const auto labels = snapshot_.replacement_labels(pod.view());
  const bool is_relabelled = labels && *labels != pod.view().meta.labels;
  if (out.is_accepted && is_relabelled) {
    replacement = trial_.renew(eviction, &*labels);
    out = decide(trial_, pod, replacement, {.may_be_equal = true});
  }
  if (out.is_accepted && meanwhile_) {
    out = decide_meanwhile(pod, rule, is_relabelled ? &*labels : nullptr, std::move(out.destination));
    if (!out.is_accepted && !out.is_by_rule) refusals_.emplace(key, out);
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
    if (const auto left = leaving_.find(pod.key()); left != leaving_.end()) {
      come_back(left->second);
      leaving_.erase(left);
    }
  }
  return out;
}

Judge::Leaving Judge::leave(const placement::PodInfoPtr& pod) {
  placement::Trial& trial = *meanwhile_;
  Leaving out{trial.evict(pod), {}};
  if (!out.eviction.node.is_valid()) return out;
  const placement::PodInfoPtr stand_in = stand_in_for(*pod, trial.cluster().era());
  trial.hold(stand_in, out.eviction.node);
  out.stand_in = stand_in->key;
  return out;
}

void Judge::come_back(const Leaving& leaving) {
  if (!leaving.stand_in.empty()) meanwhile_->cluster().remove_pod(leaving.stand_in);
  meanwhile_->undo(leaving.eviction);
}

Judgement Judge::decide_meanwhile(const Pod& pod, const DestinationRule& rule, const model::Labels* labels, std::string preferred) {
  placement::Trial& trial = *meanwhile_;
  Leaving leaving = leave(pod.info);
  const placement::PodInfoPtr replacement = trial.renew(leaving.eviction, labels);
  Terms terms{.preferred = std::move(preferred)};
  if (labels == nullptr)
    terms.rule = &rule;
  else
    terms.may_be_equal = true;
  Judgement out = decide(trial, pod, replacement, terms);
  if (out.is_accepted) {
    const placement::Status status = trial.place_on(replacement, trial.cluster().find_node(out.destination)->index);
    if (!status.is_success()) out = {false, "", fmt::format("{} could not be given what it needs: {}", out.destination, status.message())};
  }
  if (out.is_accepted) {
    leaving_.insert_or_assign(pod.key(), std::move(leaving));
  } else {
    out.reason = "before those that leave have ended, " + out.reason;
    come_back(leaving);
  }
  return out;
}

Judgement Judge::decide(placement::Trial& trial, const Pod& pod, const placement::PodInfoPtr& replacement, const Terms& terms) {
  const placement::BestNodes best = trial.best(replacement);
  const placement::Decision& decision = best.decision;
  if (decision.outcome == placement::Decision::Outcome::kError) return {false, "", decision.error};
  if (decision.outcome == placement::Decision::Outcome::kUnschedulable) {
    const std::string why =
        decision.diagnosis == nullptr ? "" : placement::fit_error_message(*decision.diagnosis, trial.cluster().era(), "");
    return {false, "", "it would fit nowhere: " + why};
  }
  if (check_ == PlacementCheck::kFits) return {true, std::string(decision.node_name), ""};
  const placement::Cluster& cluster = trial.cluster();
  const placement::NodeInfo* old = cluster.find_node(pod.node);
  const placement::NodeIndex here = old == nullptr ? placement::NodeIndex{} : old->index;
  const placement::NodeInfo* preferred = cluster.find_node(terms.preferred);
  placement::NodeIndex destination;
  for (const placement::NodeIndex index : best.nodes) {
    if (index == here) {
      if (terms.may_be_equal && best.nodes.size() > 1) continue;
      return {false, "", fmt::format("it {} come back to {}", best.nodes.size() == 1 ? "would" : "could", pod.node)};
    }
    if (!destination.is_valid() || (preferred != nullptr && index == preferred->index)) destination = index;
    const placement::NodeInfo& node = *cluster.node(index);
    // What goes there keeps the node, or moves once more with it.
    if (is_unneeded(node))
      return {false, "",
              fmt::format("it {} go to {}, which the autoscaler wants to remove", best.nodes.size() == 1 ? "would" : "could", node.name)};
    if (terms.rule == nullptr || !*terms.rule) continue;
    if (const std::string why = (*terms.rule)(node); !why.empty())
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
  if (!meanwhile_) meanwhile_.emplace(trial_.fork());
  std::vector<placement::Eviction> evicted, leaving;
  for (const Move& move : moves) {
    evicted.push_back(trial_.evict(move.pod));
    leaving.push_back(leave(move.pod).eviction);
  }
  const auto put = [&](placement::Trial& trial, const placement::PodInfoPtr& pod, const std::string& on) {
    if (const placement::NodeInfo* node = trial.cluster().find_node(on)) trial.hold(pod, node->index);
  };
  // Where room is made for a pod nobody else comes, though those who make it have not ended.
  for (const RoomPlan::Place& place : placed)
    for (placement::Trial* trial : {&trial_, &*meanwhile_}) put(*trial, place.pod, place.node);
  for (std::size_t i = 0; i < moves.size(); ++i) {
    put(trial_, trial_.renew(evicted[i]), moves[i].to);
    put(*meanwhile_, meanwhile_->renew(leaving[i]), moves[i].to);
  }
}

void Judge::undo(const Pod& pod) {
  const auto found = evicted_.find(pod.key());
  if (found == evicted_.end()) return;
  refusals_.clear();
  trial_.undo(found->second);
  evicted_.erase(found);
  const auto left = leaving_.find(pod.key());
  if (left == leaving_.end()) return;
  come_back(left->second);
  leaving_.erase(left);
}

}  // namespace berth::descheduler
