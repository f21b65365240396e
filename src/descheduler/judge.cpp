#include "descheduler/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>

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
  return pod.node().empty() && !pod.view().is_terminal() && !pod.view().meta.is_deleting && pod.view().scheduling_gates.empty();
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
    : snapshot_(snapshot), check_(check), has_unneeded_(std::ranges::any_of(snapshot.cluster.nodes(), [](const placement::NodeInfo* node) {
        return node->node != nullptr && is_unneeded(*node);
      })) {
  stages_.push_back({placement::Trial::on_fork(
      snapshot.cluster, profiles, {.engine = {.tie_break = placement::EngineOptions::TieBreak::kFirstByName}, .preemption = {}})});
  if (check_ == PlacementCheck::kBetterPlace) place_all_waiting();
}

std::vector<Judge::Stage>& Judge::stages() {
  if (stages_.size() == 1 && check_ == PlacementCheck::kBetterPlace) stages_.push_back({stages_[0].trial.fork(), true});
  return stages_;
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
      if (model::is_mirror(found->second->view().meta) || info->view().is_terminal()) continue;
      // Of one on its way out the successor is there already.
      if (!info->view().meta.is_deleting) waiting.push_back(stages_[0].trial.renew(stages_[0].trial.evict(info)));
    }
  }
  std::vector<PodPtr> new_ones;
  for (const auto& [key, pod] : snapshot_.pods)
    if (waits_for_a_place(*pod)) new_ones.push_back(pod);
  std::ranges::stable_sort(new_ones, {}, [](const PodPtr& pod) { return pod->facts.created; });
  for (const PodPtr& pod : new_ones) waiting.push_back(pod->info);
  std::ranges::stable_sort(waiting, std::greater{}, [](const placement::PodInfoPtr& pod) { return pod->view().priority; });
  place_waiting(waiting);
}

void Judge::place_waiting(const std::vector<placement::PodInfoPtr>& gang) {
  if (check_ != PlacementCheck::kBetterPlace) return;
  placement::Trial& first = stages_[0].trial;
  std::set<std::pair<std::string, placement::Signature>> hopeless;
  for (const placement::PodInfoPtr& pod : gang) {
    const model::PodView& view = pod->view();
    const placement::NodeInfo* kept = first.cluster().find_node(view.nominated_node_name);
    placement::NodeIndex on;
    if (kept != nullptr && kept->node != nullptr) {
      first.hold(pod, on = kept->index);
    } else {
      const std::pair kind{view.scheduler_name, first.sign(*pod)};
      if (hopeless.contains(kind)) continue;
      on = first.place(pod).node;
      if (!on.is_valid()) {
        hopeless.insert(kind);
        continue;
      }
    }
    placed_waiting_.insert(pod->key);
    for (Stage& stage : std::span(stages_).subspan(1)) stage.trial.hold(pod, on);
  }
}

void Judge::lift_waiting(const std::vector<placement::PodInfoPtr>& gang) {
  for (const placement::PodInfoPtr& pod : gang)
    if (placed_waiting_.erase(pod->key) > 0)
      for (Stage& stage : stages_) stage.trial.evict(pod);
}

Judgement Judge::judge(const Pod& pod, const DestinationRule& rule, bool goes) {
  // A finished pod takes no room and its controller has made another one long since: nothing comes back.
  if (pod.view().is_terminal()) return {true, "", "", false};
  if (check_ == PlacementCheck::kOff) {
    if (goes) carry_out(pod, "");
    return {true, "", "", false};
  }
  const RefusalKey key = {pod.view().scheduler_name, stages_[0].trial.sign(*pod.info), pod.node()};
  if (const auto known = refusals_.find(key); known != refusals_.end()) return known->second;
  const auto labels = other_labels(pod);
  std::array<std::optional<placement::Attempt>, 2> attempts;
  std::array<placement::PodInfoPtr, 2> replacements;
  Judgement out{.is_accepted = true, .destination = {}, .reason = {}};
  const std::size_t count = stages().size();
  for (std::size_t i = 0; i < count && out.is_accepted; ++i) {
    Stage& stage = stages_[i];
    attempts[i].emplace(stage.trial);
    const placement::EvictedPod eviction = leave(stage, pod.info);
    replacements[i] = stage.trial.renew(eviction);
    if (i == 0 || !labels) out = decide(stage, pod, replacements[i], {.rule = &rule, .preferred = out.destination});
    // A pod that was labelled by hand is judged as it is; where its replacement goes is its template's matter. Without the labels that made
    // it leave, the old node may be as good as others, but not the best.
    if (!out.is_accepted || !labels) continue;
    replacements[i] = stage.trial.renew(eviction, &*labels);
    out = decide(stage, pod, replacements[i], {.may_be_equal = true, .preferred = i == 0 ? "" : out.destination});
  }
  for (std::size_t i = 0; i < count && out.is_accepted; ++i) {
    placement::Trial& trial = stages_[i].trial;
    const placement::Status status = trial.place_on(replacements[i], trial.cluster().find_node(out.destination)->index);
    if (!status.is_success()) out = {false, "", fmt::format("{} could not be given what it needs: {}", out.destination, status.message())};
  }
  if (!out.is_accepted && !out.is_by_rule && !labels) refusals_.emplace(key, out);
  if (out.is_accepted && goes) {
    for (std::size_t i = 0; i < count; ++i) attempts[i]->keep();
    refusals_.clear();
  }
  return out;
}

std::optional<model::Labels> Judge::other_labels(const Pod& pod) const {
  auto labels = snapshot_.replacement_labels(pod.view());
  return labels && *labels != pod.view().meta.labels ? labels : std::nullopt;
}

placement::EvictedPod Judge::leave(Stage& stage, const placement::PodInfoPtr& pod) {
  placement::EvictedPod out = stage.trial.evict(pod);
  if (stage.has_everybody && out.node.is_valid()) stage.trial.hold(stand_in_for(*pod, stage.trial.cluster().era()), out.node);
  return out;
}

void Judge::put(Stage& stage, const placement::PodInfoPtr& pod, const std::string& node) {
  if (const placement::NodeInfo* there = stage.trial.cluster().find_node(node)) stage.trial.hold(pod, there->index);
}

void Judge::carry_out(const Pod& pod, const std::string& destination) {
  if (pod.view().is_terminal()) return;
  refusals_.clear();
  const auto labels = other_labels(pod);
  for (Stage& stage : stages()) {
    const placement::EvictedPod eviction = leave(stage, pod.info);
    const placement::NodeInfo* to = stage.trial.cluster().find_node(destination);
    if (to == nullptr) continue;
    const placement::PodInfoPtr replacement = stage.trial.renew(eviction, labels ? &*labels : nullptr);
    if (!stage.trial.place_on(replacement, to->index).is_success()) stage.trial.hold(replacement, to->index);
  }
}

Judgement Judge::decide(Stage& stage, const Pod& pod, const placement::PodInfoPtr& replacement, const Terms& terms) {
  placement::Trial& trial = stage.trial;
  const auto refuse = [&stage](std::string why, bool is_by_rule = false) {
    return Judgement{false, "", (stage.has_everybody ? "before those that leave have ended, " : "") + why, is_by_rule};
  };
  const placement::BestNodes best = trial.best(replacement);
  const placement::Decision& decision = best.decision;
  if (decision.outcome == placement::Decision::Outcome::kError) return refuse(decision.error);
  if (decision.outcome == placement::Decision::Outcome::kUnschedulable) {
    const std::string why =
        decision.diagnosis == nullptr ? "" : placement::fit_error_message(*decision.diagnosis, trial.cluster().era(), "");
    return refuse("it would fit nowhere: " + why);
  }
  if (check_ == PlacementCheck::kFits) return {true, std::string(decision.node_name), ""};
  const placement::Cluster& cluster = trial.cluster();
  const placement::NodeInfo* old = cluster.find_node(pod.node());
  const placement::NodeIndex here = old == nullptr ? placement::NodeIndex{} : old->index;
  const placement::NodeInfo* preferred = cluster.find_node(terms.preferred);
  placement::NodeIndex destination;
  for (const placement::NodeIndex index : best.nodes) {
    if (index == here) {
      if (terms.may_be_equal && best.nodes.size() > 1) continue;
      return refuse(fmt::format("it {} come back to {}", best.nodes.size() == 1 ? "would" : "could", pod.node()));
    }
    if (!destination.is_valid() || (preferred != nullptr && index == preferred->index)) destination = index;
    // Thousands may be equally good: they are looked at where something could be said against them.
    const bool has_rule = terms.rule != nullptr && *terms.rule;
    if (!has_unneeded_ && !has_rule) continue;
    const placement::NodeInfo& node = *cluster.node(index);
    // What goes there keeps the node, or moves once more with it.
    if (has_unneeded_ && is_unneeded(node))
      return refuse(
          fmt::format("it {} go to {}, which the autoscaler wants to remove", best.nodes.size() == 1 ? "would" : "could", node.name));
    if (!has_rule) continue;
    if (const std::string why = (*terms.rule)(node); !why.empty())
      return refuse(fmt::format("it {} go to {}, {}", best.nodes.size() == 1 ? "would" : "could", node.name, why), true);
  }
  return {true, destination.is_valid() ? cluster.node(destination)->name : "", ""};
}

RoomPlan Judge::room_for(const std::vector<placement::PodInfoPtr>& gang, const PackingRules& rules) {
  const placement::Attempt attempt(stages_[0].trial);
  return make_room(stages_[0].trial, gang, rules);
}

void Judge::carry_out(const RoomPlan& plan) {
  refusals_.clear();
  for (Stage& stage : stages()) {
    std::vector<placement::EvictedPod> gone;
    for (const Move& move : plan.moves) gone.push_back(leave(stage, move.pod));
    // Where room is made for a pod nobody else comes, though those who make it have not ended.
    for (const RoomPlan::Place& place : plan.placed) put(stage, place.pod, place.node);
    for (std::size_t i = 0; i < gone.size(); ++i) put(stage, stage.trial.renew(gone[i]), plan.moves[i].to);
  }
}

}  // namespace berth::descheduler
