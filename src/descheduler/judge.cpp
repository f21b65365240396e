#include "descheduler/judge.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::descheduler {

placement::PodInfoPtr replacement_of(const placement::PodInfo& pod, placement::Era era, const model::Labels* labels) {
  auto view = std::make_shared<model::PodView>(pod.view());
  if (labels != nullptr) view->meta.labels = *labels;
  view->meta.uid += "-next";
  view->meta.is_deleting = false;
  view->node_name.clear();
  view->nominated_node_name.clear();
  view->phase = "Pending";
  view->start_time.clear();
  view->pod_level_status.reset();
  view->container_statuses.clear();
  view->resize_infeasible = false;
  view->terminating_by_preemption = false;
  return placement::PodInfo::make(std::move(view), era);
}

Judge::Judge(const Snapshot& snapshot, const Frameworks& frameworks, PlacementCheck check)
    : snapshot_(snapshot),
      cluster_(std::make_unique<placement::Cluster>(snapshot.cluster.fork())),
      frameworks_(frameworks),
      check_(check),
      engine_(*cluster_, {.tie_break = placement::EngineOptions::TieBreak::kFirstByName}) {}

const Judgement* Judge::known_refusal(const Pod& pod) const {
  const auto found = refusals_.find({pod.info->class_hash, pod.node});
  if (found == refusals_.end()) return nullptr;
  const placement::PodInfo& other = *found->second.pod;
  const bool is_alike =
      placement::same_class(other, *pod.info) && placement::same_traits(other, *pod.info) && other.request == pod.info->request;
  return is_alike ? &found->second.judgement : nullptr;
}

Judgement Judge::judge(const Pod& pod, const DestinationRule& rule) {
  // A finished pod takes no room and its controller has made another one long since: nothing comes back.
  if (pod.view().is_terminal()) return {true, "", "", false};
  // Volumes and claims are a pod's own.
  const bool is_like_others = pod.view().volumes.empty() && pod.view().resource_claims.empty();
  if (is_like_others && check_ != PlacementCheck::kOff)
    if (const Judgement* refusal = known_refusal(pod)) return *refusal;
  cluster_->remove_pod(pod.key());
  if (check_ == PlacementCheck::kOff) return {true, "", "", false};
  auto replacement = replacement_of(*pod.info, cluster_->era());
  Judgement out = decide(pod, replacement, rule, false);
  if (!out.is_accepted && !out.is_by_rule && is_like_others) refusals_[{pod.info->class_hash, pod.node}] = {pod.info, out};
  // A pod that was labelled by hand is judged as it is; where its replacement goes is its template's matter. Without the labels that made
  // it leave, the old node may be as good as others, but not the best.
  const auto labels = snapshot_.replacement_labels(pod.view());
  if (out.is_accepted && labels && *labels != pod.view().meta.labels) {
    replacement = replacement_of(*pod.info, cluster_->era(), &*labels);
    out = decide(pod, replacement, {}, true);
  }
  if (out.is_accepted) {
    cluster_->assume(replacement, cluster_->find_node(out.destination)->index);
    refusals_.clear();
  } else {
    cluster_->upsert_pod(pod.info);
  }
  return out;
}

Judgement Judge::decide(const Pod& pod, const placement::PodInfoPtr& replacement, const DestinationRule& rule, bool may_be_equal) const {
  const std::string& scheduler = pod.view().scheduler_name;
  const auto found = frameworks_.find(scheduler.empty() ? std::string_view("default-scheduler") : std::string_view(scheduler));
  if (found == frameworks_.end())
    return {false, "", fmt::format("no profile is known of its scheduler \"{}\": give that scheduler's configuration", scheduler)};
  const placement::Decision decision = engine_.schedule(found->second, replacement);
  if (decision.outcome == placement::Decision::Outcome::kError) return {false, "", decision.error};
  if (decision.outcome == placement::Decision::Outcome::kUnschedulable) {
    const std::string why = decision.diagnosis == nullptr ? "" : placement::fit_error_message(*decision.diagnosis, cluster_->era(), "");
    return {false, "", "it would fit nowhere: " + why};
  }
  const std::string destination(decision.node_name);
  if (check_ == PlacementCheck::kFits) return {true, destination, ""};
  std::vector<placement::NodeIndex> best = {decision.node};
  if (decision.tied_nodes > 1) {
    const auto evaluation = engine_.evaluate(*found->second, *replacement);
    if (!evaluation.tied.empty()) best = evaluation.tied;
  }
  for (const placement::NodeIndex index : best) {
    const placement::NodeInfo* node = cluster_->node(index);
    if (node == nullptr) continue;
    if (node->name == pod.node) return {false, "", fmt::format("it {} come back to {}", best.size() == 1 ? "would" : "could", pod.node)};
    if (!rule) continue;
    if (const std::string why = rule(*node); !why.empty())
      return {false, "", fmt::format("it {} go to {}, {}", best.size() == 1 ? "would" : "could", node->name, why), true};
  }
  return {true, destination, ""};
}

void Judge::undo(const Pod& pod) {
  if (pod.view().is_terminal()) return;
  refusals_.clear();
  cluster_->remove_pod(pod.key());
  cluster_->upsert_pod(pod.info);
}

}  // namespace berth::descheduler
