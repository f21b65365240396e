// DefaultEvictor: which pods may be evicted at all (SPEC G3; pkg/framework/plugins/defaultevictor), and nodeFit (pkg/descheduler/node).
#include <fmt/format.h>

#include <algorithm>

#include "descheduler/context.h"

namespace berth::descheduler {
namespace {

/// As the OpenShift documents mark them.
constexpr std::string_view kCriticalPod = "scheduler.alpha.kubernetes.io/critical-pod";

bool is_daemon_pod(const Pod& pod) {
  return std::ranges::any_of(pod.owners(), [](const auto& owner) { return owner.kind == "DaemonSet"; });
}

/// Empty when none of the pod's claims is of a protected class.
std::string why_claims_protect(const Pod& pod, const std::set<std::string, std::less<>>& classes, const placement::Cluster& cluster) {
  constexpr auto kClaim = model::VolumeView::Kind::kPersistentVolumeClaim;
  if (std::ranges::find(pod.view().volumes, kClaim, &model::VolumeView::kind) == pod.view().volumes.end()) return "";
  if (classes.empty()) return "pod with PVC is protected against eviction";
  for (const model::VolumeView& volume : pod.view().volumes) {
    if (volume.kind != kClaim) continue;
    const std::string& name = volume.id;
    const auto found = cluster.claims().find(pod.view().ns() + "/" + name);
    if (found == cluster.claims().end()) return fmt::format("failed to get persistent volume claim \"{}\"/\"{}\"", pod.view().ns(), name);
    const std::string storage_class = found->second->class_name();
    if (storage_class.empty()) return fmt::format("failed to resolve storage class for pod \"{}\"/\"{}\"", pod.view().ns(), name);
    if (classes.contains(storage_class)) return fmt::format("pod using protected storage class \"{}\"", storage_class);
  }
  return "";
}

}  // namespace

std::string Context::why_protected(const Pod& pod) const {
  const EvictorArgs& args = profile_->evictor;
  const model::ObjectMeta& meta = pod.view().meta;
  // Whatever an annotation says: the pod goes anyway, or comes back at once where it was.
  if (gone_.contains(pod.key()) || meta.is_deleting) return "pod is terminating";
  if (model::is_mirror(meta)) return "pod is a mirror pod";
  if (model::is_static(meta)) return "pod is a static pod";
  if (meta.annotation("descheduler.alpha.kubernetes.io/evict") != nullptr) return "";
  if (args.no_eviction_is_mandatory && prefers_no_eviction(pod)) return "pod asks for no eviction";
  if (pod.owners().empty() && (args.protects_failed_bare || pod.view().phase != "Failed"))
    return args.protects_failed_bare ? "pod does not have any ownerRefs" : "pod does not have any ownerRefs and is not in failed phase";
  if (args.protects_system_critical) {
    if (pod.facts.priority.value_or(0) >= kSystemCriticalPriority || meta.annotation(kCriticalPod) != nullptr)
      return "pod has system critical priority and is protected against eviction";
    if (pod.facts.priority && priority_threshold_ && *pod.facts.priority >= *priority_threshold_)
      return "pod has higher priority than specified priority class threshold";
  }
  if (args.protects_local_storage && model::has_local_storage(pod.facts, meta, model::LocalStorageRule::kDescheduler))
    return "pod has local storage and is protected against eviction";
  if (args.protects_daemon_sets && is_daemon_pod(pod)) return "daemonset pods are protected against eviction";
  if (args.protects_pvc)
    if (auto why = why_claims_protect(pod, args.protected_storage_classes, snapshot_.cluster); !why.empty()) return why;
  if (args.protects_without_budget && !budgets_.covers(pod.view()))
    return "pod does not have a PodDisruptionBudget and is protected against eviction";
  if (args.protects_resource_claims && !pod.view().resource_claims.empty())
    return "pod has ResourceClaims and descheduler is configured to protect ResourceClaims pods";
  if (args.labels && !args.labels->matches(meta.labels)) return "pod labels do not match the labelSelector filter in the policy parameter";
  if (std::string why = why_too_few(pod, false); !why.empty()) return why;
  if (std::string why = why_gang_needs(pod); !why.empty()) return why;
  if (args.min_pod_age && (!pod.facts.started || options_.now - *pod.facts.started < *args.min_pod_age))
    return fmt::format("pod age is not older than MinPodAge: {} seconds", format_go_duration(*args.min_pod_age));
  return "";
}

std::string Context::why_gang_needs(const Pod& pod) const {
  if (pod.facts.group.empty() || pod.node().empty() || pod.view().is_terminal() || chooses_as_kubernetes()) return "";
  const auto group = snapshot_.groups.find(pod.facts.group);
  const auto placed = snapshot_.members_placed.find(pod.facts.group);
  if (group == snapshot_.groups.end() || placed == snapshot_.members_placed.end() || !group->second->is_gang) return "";
  const auto left = std::ranges::count_if(placed->second, [&](const PodPtr& one) { return !gone_.contains(one->key()); });
  return left > group->second->min_count
             ? ""
             : fmt::format("its gang {} has {} pods on nodes and is of use with {} only", pod.facts.group, left, group->second->min_count);
}

std::string Context::why_too_few(const Pod& pod, bool with_unmet) const {
  const std::uint64_t least = profile_->evictor.min_replicas;
  if (least <= 1 || pod.owners().size() != 1) return "";
  const std::string& uid = pod.owners()[0].uid;
  const auto all = snapshot_.pods_by_owner.find(uid);
  std::uint64_t count = all == snapshot_.pods_by_owner.end() ? 0 : all->second.size();
  for (const Counts* gone : {&counts_, &unmet_})
    if (const auto found = gone->by_owner.find(uid); found != gone->by_owner.end() && (gone == &counts_ || with_unmet))
      count -= found->second;
  return count < least ? fmt::format("owner has {} replicas which is less than minReplicas of {}", count, least) : "";
}

bool Context::pre_eviction_filter(const Pod& pod) {
  const EvictorArgs& args = profile_->evictor;
  if (args.node_fit) {
    // Of all ready nodes that nodeFit's own selector picks, not only those that the policy operates on.
    std::vector<const Node*> candidates;
    for (const std::vector<Node>* group : {&nodes_, &other_nodes_})
      for (const Node& node : *group)
        if (args.node_selector_parsed.matches(node.labels())) candidates.push_back(&node);
    if (!fits_any(pod, candidates, true)) return false;
  }
  if (!args.namespace_labels || args.namespace_labels->is_everything()) return true;
  const auto& namespaces = snapshot_.cluster.namespaces();
  const auto found = namespaces.find(pod.view().ns());
  return found != namespaces.end() && args.namespace_labels->matches(found->second->meta.labels);
}

bool Context::fits(const Pod& pod, const Node& node) const {
  const model::PodView& view = pod.view();
  if (node.view->unschedulable || !view.matches_node_selector(node.labels(), node.name())) return false;
  if (!tolerates(view.tolerations, node.view->taints, is_hard_taint)) return false;
  for (const auto& term : pod.info->required_anti_affinity) {
    if (node.labels().get(term.topology_key) == nullptr) continue;
    for (const PodPtr& other : node.pods)
      if (!other->view().is_terminal() && other->view().name() != view.name() &&
          term.matches(other->view(), snapshot_.cluster.namespace_labels(other->view().ns())))
        return false;
  }
  if (pod.node() == node.name()) return true;
  const auto available = [&](std::string_view resource) {
    const auto capacity = node.capacity.find(resource);
    const auto used = node.used.find(resource);
    return (capacity == node.capacity.end() ? 0 : capacity->second) - (used == node.used.end() ? 0 : used->second);
  };
  for (const auto& [resource, amount] : requests_of(*pod.info))
    if (amount > 0 && amount > available(resource)) return false;
  return available("pods") > 0;
}

bool Context::fits_any(const Pod& pod, std::span<const Node* const> nodes, bool other_than_its_own) const {
  return std::ranges::any_of(nodes,
                             [&](const Node* node) { return !(other_than_its_own && node->name() == pod.node()) && fits(pod, *node); });
}

}  // namespace berth::descheduler
