#include "placement/simulation.h"

namespace berth::placement {

Simulation::Simulation(const Cluster& cluster, FrameworkPtr framework)
    : cluster_(std::make_unique<Cluster>(cluster.fork())),
      framework_(std::move(framework)),
      engine_(*cluster_, {.tie_break = EngineOptions::TieBreak::kFirstByName}) {}

Status Simulation::fits(const PodInfo& pod, NodeIndex node) const {
  const NodeInfo* info = cluster_->node(node);
  if (info == nullptr || info->node == nullptr) return Status::unresolvable("node is gone");
  if (Status gate = framework_->run_pre_enqueue(pod.view(), cluster_.get()); !gate.is_success()) return gate;
  CycleState state = framework_->new_cycle(*cluster_);
  PreFilterOutcome outcome = framework_->run_pre_filter(state, pod);
  if (!outcome.status.is_success() && !outcome.status.is_skip()) return std::move(outcome.status);
  if (outcome.node_names && !outcome.node_names->contains(info->name))
    return Status::unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]");
  return framework_->run_filter_with_nominated(state, pod, *info);
}

Status Simulation::place_on(const PodInfoPtr& pod, NodeIndex node) {
  Status status = fits(*pod, node);
  if (status.is_success()) cluster_->assume(pod, node);
  return status;
}

NodeIndex Simulation::place(const PodInfoPtr& pod) {
  if (!framework_->run_pre_enqueue(pod->view(), cluster_.get()).is_success()) return {};
  const Decision decision = engine_.schedule(framework_, pod);
  if (decision.outcome != Decision::Outcome::kScheduled) return {};
  cluster_->assume(pod, decision.node);
  return decision.node;
}

PodInfoPtr as_unplaced(const PodInfo& pod, Era era) {
  auto view = std::make_shared<model::PodView>(pod.view());
  view->node_name.clear();
  view->nominated_node_name.clear();
  view->phase = "Pending";
  view->start_time.clear();
  view->container_statuses.clear();
  view->pod_level_status.reset();
  view->terminating_by_preemption = false;
  view->meta.is_deleting = false;
  return PodInfo::make(std::move(view), era);
}

}  // namespace berth::placement
