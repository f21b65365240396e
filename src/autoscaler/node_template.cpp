#include "autoscaler/node_template.h"

#include <algorithm>
#include <cmath>

namespace berth::autoscaler {
namespace {

constexpr std::string_view kHostname = "kubernetes.io/hostname";

/// Taints that a node has for what happens to it, not for what it is.
bool is_passing(const model::Taint& taint) {
  return taint.key == kToBeDeletedTaint || taint.key == kDeletionCandidateTaint || taint.key.starts_with("node.kubernetes.io/") ||
         taint.key == "node.cloudprovider.kubernetes.io/uninitialized" ||
         taint.key.starts_with("ignore-taint.cluster-autoscaler.kubernetes.io/") ||
         taint.key.starts_with("startup-taint.cluster-autoscaler.kubernetes.io/");
}

std::shared_ptr<model::NodeView> cleaned(const model::NodeView& node) {
  auto out = std::make_shared<model::NodeView>(node);
  std::erase_if(out->taints, is_passing);
  out->unschedulable = false;
  out->meta.uid.clear();
  out->meta.annotations.clear();
  out->meta.is_deleting = false;
  return out;
}

model::NodeViewPtr model_node(const NodeGroup& group, const Snapshot& snapshot, TimePoint now) {
  for (const Instance& instance : group.instances) {
    if (instance.node.empty() || instance.is_leaving) continue;
    const placement::NodeInfo* node = snapshot.cluster->find_node(instance.node);
    if (node == nullptr || node->node == nullptr || readiness_of(*node->node, now) != Readiness::kReady) continue;
    return cleaned(*node->node);
  }
  return group.template_node == nullptr ? nullptr : cleaned(*group.template_node);
}

model::NodeViewPtr named(const model::NodeView& node, const std::string& name) {
  auto out = std::make_shared<model::NodeView>(node);
  out->meta.name = name;
  auto labels = node.meta.labels.pairs();
  std::erase_if(labels, [](const auto& pair) { return pair.first == kHostname; });
  labels.emplace_back(kHostname, name);
  std::ranges::sort(labels);
  out->meta.labels = model::Labels(std::move(labels));
  return out;
}

placement::PodInfoPtr named(const placement::PodInfo& pod, const std::string& node, placement::Era era) {
  auto view = std::make_shared<model::PodView>(pod.view());
  view->meta.name += "-" + node;
  view->meta.uid = view->meta.ns + "/" + view->meta.name;
  return placement::PodInfo::make(std::move(view), era);
}

bool within(const model::ResourceList& a, const model::ResourceList& b, double tolerance) {
  if (a.size() != b.size()) return false;
  return std::ranges::all_of(a, [&](const auto& entry) {
    const model::Quantity* other = model::find_resource(b, entry.first);
    if (other == nullptr) return false;
    const double one = entry.second.as_double(), two = other->as_double();
    return std::max(one, two) - std::min(one, two) <= std::max(one, two) * tolerance;
  });
}

}  // namespace

NodeTemplate make_template(const NodeGroup& group, const Snapshot& snapshot, placement::Trial& base, TimePoint now) {
  NodeTemplate out{model_node(group, snapshot, now), {}};
  if (out.node == nullptr || snapshot.daemons.empty()) return out;
  placement::Trial trial = base.fork();
  const auto index = add_node(trial, out, "template-node-for-" + group.id);
  for (const placement::PodInfoPtr& daemon : snapshot.daemons)
    if (trial.place_on(named(*daemon, "template", snapshot.cluster->era()), index).is_success()) out.daemons.push_back(daemon);
  return out;
}

placement::NodeIndex add_node(placement::Trial& trial, const NodeTemplate& node_template, const std::string& name) {
  placement::Cluster& cluster = trial.cluster();
  const auto index = cluster.upsert_node(named(*node_template.node, name));
  for (const placement::PodInfoPtr& daemon : node_template.daemons) {
    // What was found to fit on the template; a daemon that a node of its own would refuse stays away from it.
    (void)trial.reserve(named(*daemon, name, cluster.era()), index);
  }
  return index;
}

bool are_similar(const NodeTemplate& a, const NodeTemplate& b, const std::vector<std::string>& ignored_labels) {
  if (a.node == nullptr || b.node == nullptr) return false;
  constexpr double kMemoryTolerance = 0.015, kAllocatableTolerance = 0.05;
  if (a.node->capacity.size() != b.node->capacity.size()) return false;
  for (const auto& [name, quantity] : a.node->capacity) {
    const model::Quantity* other = model::find_resource(b.node->capacity, name);
    if (other == nullptr) return false;
    if (name == "memory" ? !within({{name, quantity}}, {{name, *other}}, kMemoryTolerance) : quantity != *other) return false;
  }
  if (!within(a.node->allocatable, b.node->allocatable, kAllocatableTolerance)) return false;
  static constexpr std::string_view kAlwaysDiffer[] = {kHostname,
                                                       "failure-domain.beta.kubernetes.io/zone",
                                                       "failure-domain.beta.kubernetes.io/region",
                                                       "topology.kubernetes.io/zone",
                                                       "topology.kubernetes.io/region",
                                                       "beta.kubernetes.io/fluentd-ds-ready",
                                                       "kops.k8s.io/instancegroup"};
  const auto relevant = [&](const NodeTemplate& one) {
    auto pairs = one.node->meta.labels.pairs();
    std::erase_if(pairs, [&](const auto& pair) {
      return std::ranges::find(kAlwaysDiffer, pair.first) != std::end(kAlwaysDiffer) ||
             std::ranges::find(ignored_labels, pair.first) != ignored_labels.end();
    });
    return pairs;
  };
  return relevant(a) == relevant(b);
}

}  // namespace berth::autoscaler
