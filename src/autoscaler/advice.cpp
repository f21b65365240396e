#include "autoscaler/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

namespace berth::autoscaler {
namespace {

std::string advice_for_pod(std::string_view reason, const std::string& pod) {
  const std::string safe = fmt::format("annotate it with {}: \"true\"", kSafeToEvict);
  if (reason == "NotReplicated") return fmt::format("give pod {} a controller that makes it again, or {}", pod, safe);
  if (reason == "UnmovableKubeSystemPod") return fmt::format("give pod {} a PodDisruptionBudget that lets it go, or {}", pod, safe);
  if (reason == "LocalStorageRequested")
    return fmt::format("name the volumes of pod {} in its annotation {}, or {}, or set skipNodesWithLocalStorage: false", pod,
                       model::kSafeToEvictLocalVolumes, safe);
  if (reason == "NotSafeToEvictAnnotation") return fmt::format("take the annotation {}: \"false\" from pod {}", kSafeToEvict, pod);
  if (reason == "NotEnoughPdb") return fmt::format("let the PodDisruptionBudget of pod {} allow one disruption more", pod);
  if (reason == "ControllerNotFound") return fmt::format("delete pod {}: its controller is gone", pod);
  return {};
}

const Membership* membership_of(const Snapshot& snapshot, std::string_view node, Membership& found) {
  for (const NodeGroup& group : snapshot.groups)
    for (const Instance& instance : group.instances)
      if (instance.node == node) {
        found = {&group, &instance};
        return &found;
      }
  return nullptr;
}

/// A node that nothing holds: goes now, or after which time.
std::string when_it_goes(const Snapshot& snapshot, const Membership& member, std::string_view name, const Patience& patience) {
  const auto facts = snapshot.nodes->find(name);
  const bool is_working = facts != snapshot.nodes->end() && facts->second.is_working();
  const GroupOverrides& own = member.group->overrides;
  const Duration wanted =
      is_working ? own.unneeded_time.value_or(patience.unneeded_time) : own.unready_time.value_or(patience.unready_time);
  const placement::NodeInfo* node = snapshot.cluster->find_node(name);
  if (patience.now == TimePoint{} || wanted == Duration::zero() || node == nullptr || node->node == nullptr) return "would go now";
  const std::string rule = fmt::format("{} ({})", format_go_duration(wanted), is_working ? "unneededTime" : "for nodes that are not ready");
  // An unneeded node carries the time at which it became one.
  for (const model::Taint& taint : node->node->taints) {
    std::int64_t since = 0;
    const auto [end, wrong] = std::from_chars(taint.value.data(), taint.value.data() + taint.value.size(), since);
    if (taint.key != kDeletionCandidateTaint || wrong != std::errc()) continue;
    const Duration passed = std::max(patience.now - TimePoint(std::chrono::seconds(since)), Duration::zero());
    if (passed >= wanted) return "would go now";
    const Duration whole = std::chrono::duration_cast<std::chrono::seconds>(passed);
    return fmt::format("is not needed: since {}, and goes after {}", format_go_duration(whole), rule);
  }
  return fmt::format("is not needed now, and goes after {} in which it is not", rule);
}

/// Why the autoscaler adds no node for a pod that it does not ask its groups about.
std::string why_not_asked(const Pod& pod, const Snapshot& snapshot, const Options& options) {
  const model::PodView& view = pod.view();
  if (model::counts_as_daemon(pod.view().meta)) return "it belongs to a DaemonSet: nodes are not added for those";
  if (view.meta.is_deleting) return "it is being deleted";
  if (!pod.facts.is_unschedulable) return "the scheduler has not said that it fits nowhere";
  if (!options.may_add_nodes(view.priority))
    return fmt::format("its priority {} {} podPriorityThreshold ({})", view.priority,
                       options.must_exceed_threshold ? "does not exceed" : "is below", options.pod_priority_threshold);
  if (!view.nominated_node_name.empty() && snapshot.cluster->find_node(view.nominated_node_name) != nullptr)
    return fmt::format("it waits for the end of other pods on node {}", view.nominated_node_name);
  constexpr std::string_view kHasRoom = "there is room for it on a node that is there or on its way";
  const Duration delay = std::max(scale_up_delay(pod).value_or(Duration::zero()), options.new_pod_scale_up_delay);
  if (delay <= Duration::zero()) return std::string(kHasRoom);
  return fmt::format("{}, or it is not yet {} old ({})", kHasRoom, format_go_duration(delay),
                     delay == scale_up_delay(pod) ? fmt::format("its annotation {}", kPodScaleUpDelay) : "newPodScaleUpDelay");
}

}  // namespace

std::string advice_for(const Unremovable& node) {
  if (node.reason == "BlockedByPod" && node.blocking_pod != nullptr) return advice_for_pod(node.blocking_reason, node.blocking_pod->key());
  if (node.reason == "NoPlaceToMovePods" && node.blocking_pod != nullptr)
    return fmt::format("make room for pod {} on another node (`berth explain pod {} -n {}` says where it lacks)", node.blocking_pod->key(),
                       node.blocking_pod->view().name(), node.blocking_pod->view().ns());
  if (node.reason == "HoldsMovedPod") return "wait until a pod comes or ends, or a node changes: no pod is moved twice without that";
  if (node.reason == "NotUnderutilized") return "let its pods request less, or raise utilizationThreshold";
  if (node.reason == "ScaleDownDisabledAnnotation") return fmt::format("take the annotation {} from it", kScaleDownDisabled);
  if (node.reason == "NodeGroupMinSizeReached") return "lower the minimum of its group";
  if (node.reason == "MinimalResourceLimitExceeded") return "lower the minima in resourceLimits";
  return {};
}

std::string explain_node(const Snapshot& snapshot, const Actions& actions, std::string_view node, const Patience& patience) {
  if (snapshot.nodes->find(node) == snapshot.nodes->end()) return {};
  Membership member;
  if (membership_of(snapshot, node, member) == nullptr) return fmt::format("Node {} stays: it belongs to no group that is scaled.\n", node);
  const std::string head = fmt::format("Node {} of {}", node, member.group->id);
  if (member.instance->is_leaving) return head + " is being deleted: its machine is marked.\n";
  for (const NodeRemoval& removal : actions.remove)
    if (removal.node == node)
      return fmt::format("{} {}{}.\n", head, when_it_goes(snapshot, member, node, patience),
                         removal.is_empty ? "" : fmt::format(": {} pods move to other nodes", removal.evict.size()));
  for (const Unremovable& one : actions.status.unremovable) {
    if (one.node != node) continue;
    const std::string advice = advice_for(one);
    return fmt::format("{} stays: {}.\n{}", head, to_string(one), advice.empty() ? "" : fmt::format("To free it: {}.\n", advice));
  }
  if (actions.status.unneeded.contains(std::string(node))) return head + " is not needed, and goes when others before it are gone.\n";
  if (std::ranges::find(actions.status.left_nodes, node) != actions.status.left_nodes.end())
    return head + " was not looked at: the pass' time was over.\n";
  if (!actions.grow.empty()) return head + " stays for now: the cluster grows, and nothing is removed while it does.\n";
  if (member.group->target <= member.group->min)
    return fmt::format("{} stays: the group is at its minimum ({}).\nTo free it: lower the minimum of its group.\n", head,
                       member.group->min);
  return head + " stays: it has not started yet, or removals are switched off.\n";
}

std::string explain_growth(const Snapshot& snapshot, const Actions& actions, const Options& options, std::string_view pod) {
  const auto found = snapshot.pods().find(pod);
  if (found == snapshot.pods().end() || !found->second->view().node_name.empty()) return {};
  if (snapshot.groups.empty()) return "No group of nodes is scaled: no MachineSet has bounds.\n";
  const ScaleUpPlan& plan = actions.status.plan;
  const auto is_it = [&](const PodPtr& one) { return one->key() == pod; };
  std::string out = "Groups of nodes that could grow for it:\n";
  if (const auto refused = std::ranges::find_if(plan.not_helped, is_it, &ScaleUpPlan::Refused::pod); refused != plan.not_helped.end()) {
    for (const auto& [group, refusal] : *refused->why) out += fmt::format("  {}: {}\n", group, fmt::join(refusal.reasons, ", "));
    return out;
  }
  if (std::ranges::any_of(plan.helped, is_it)) return out + fmt::format("  grows: {}\n", to_string(actions.grow));
  if (std::ranges::any_of(plan.awaiting, is_it)) return out + "  another group grows first; this pod is asked about in the next pass\n";
  const bool is_asked = std::ranges::any_of(plan.estimated, is_it);
  if (is_asked) return out + "  a group would help, but not all its pods have room within the limits\n";
  return fmt::format("No node is added for it: {}.\n", why_not_asked(*found->second, snapshot, options));
}

}  // namespace berth::autoscaler
