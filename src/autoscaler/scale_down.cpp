#include "autoscaler/scale_down.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "autoscaler/actions.h"
#include "placement/attempt.h"
#include "placement/disruption_ledger.h"
#include "placement/groups/group_placement.h"

namespace berth::autoscaler {
namespace {

using placement::NodeIndex;
using placement::NodeInfo;
using placement::PodInfoPtr;

const Pod* facts_of(const PodMap& pods, const placement::PodInfo& info) {
  const auto found = pods.find(info.key);
  return found == pods.end() ? nullptr : found->second.get();
}

class Remover {
 public:
  Remover(const ScaleDownInput& input, const Options& options, TimePoint now)
      : input_(input), options_(options), now_(now), budgets_(*input.snapshot->cluster, placement::BudgetRule::kAutoscaler) {
    ignores_pods_ = options.ignore_daemonsets_utilization || options.ignore_mirror_pods_utilization;
    for (const auto& [key, pod] : input.snapshot->pod_sets->terminating) with_ending_pods_.insert(pod->view().node_name);
  }

  /// Nodes worth a trial, in the order of trying them: judged before any is tried.
  [[nodiscard]] std::vector<Removable> eligible(ScaleDownFindings& out) const {
    std::vector<std::tuple<std::size_t, bool, bool, std::string_view>> order;
    std::map<std::string_view, Removable> found;
    for (const auto& [name, turn, was_unneeded] : input_.candidates) {
      const NodeInfo* node = input_.cluster->find_node(name);
      const auto member = input_.memberships->find(name);
      const auto stays = [&](std::string_view reason) { out.unremovable.push_back({.node = name, .reason = reason}); };
      if (node == nullptr || node->node == nullptr) {
        stays("NoNodeInfo");
      } else if (has_taint(*node->node, kToBeDeletedTaint)) {
        stays("CurrentlyBeingDeleted");
      } else if (const std::string* off = node->node->meta.annotation(kScaleDownDisabled); off != nullptr && *off == "true") {
        stays("ScaleDownDisabledAnnotation");
      } else if (member == input_.memberships->end()) {
        stays("NotAutoscaled");
      } else if (const double used = utilization(*node); used >= threshold_of(*node->node, member->second.group->overrides)) {
        out.unremovable.push_back({.node = name, .reason = "NotUnderutilized", .utilization = used});
      } else {
        found.emplace(name, Removable{name, member->second.group->id, used, {}, false, false});
        order.emplace_back(turn, !was_unneeded, !is_empty(*node), name);
      }
    }
    std::ranges::sort(order);
    std::vector<Removable> out_in_order;
    for (const auto& entry : order) out_in_order.push_back(std::move(found.find(std::get<3>(entry))->second));
    return out_in_order;
  }

  void consider(Removable found, ScaleDownFindings& out) {
    const NodeInfo* node = input_.trial().cluster().find_node(found.node);
    if (auto blocked = sort_pods(*node, found)) return out.unremovable.push_back(std::move(*blocked));
    if (auto homeless = move_pods(*node, found.moved)) return out.unremovable.push_back(std::move(*homeless));
    for (const PodPtr& pod : found.moved) found.is_risky |= !budgets_.take(pod->view());
    out.removable.push_back(std::move(found));
  }

 private:
  [[nodiscard]] double utilization(const NodeInfo& node) const {
    return utilization_of(node, input_.snapshot->pods(), options_, now_, !ignores_pods_ && !with_ending_pods_.contains(node.name));
  }
  [[nodiscard]] bool is_empty(const NodeInfo& node) const {
    return std::ranges::all_of(node.pods, [&](const PodInfoPtr& info) {
      const Pod* pod = facts_of(input_.snapshot->pods(), *info);
      return pod != nullptr && (model::counts_as_daemon(pod->view().meta) || model::is_mirror(pod->view().meta));
    });
  }
  [[nodiscard]] double threshold_of(const model::NodeView& node, const GroupOverrides& group) const {
    return gpu_resource_of(node, options_.accelerator_label).empty()
               ? group.utilization_threshold.value_or(options_.utilization_threshold)
               : group.gpu_utilization_threshold.value_or(options_.gpu_utilization_threshold);
  }

  /// Finds the pods that must move; what holds the node, if anything does.
  std::optional<Unremovable> sort_pods(const NodeInfo& node, Removable& found) const {
    const placement::Moves* moves = input_.snapshot->moves;
    PodPtr moved_already;
    for (const PodInfoPtr& info : node.pods) {
      const auto entry = input_.snapshot->pods().find(info->key);
      if (entry == input_.snapshot->pods().end()) {
        if (const PodPtr* pod = imagined(info->key)) found.moved.push_back(*pod);
        continue;
      }
      // A waiting pod that was placed here only in thought finds another place by itself, but needs one.
      if (entry->second->view().node_name.empty()) {
        found.moved.push_back(entry->second);
        continue;
      }
      const Drainability verdict = drainability_of(*entry->second, budgets_, *input_.snapshot, options_, now_);
      if (verdict.verdict == Drainability::Verdict::kBlock)
        return Unremovable{found.node, "BlockedByPod", verdict.reason, entry->second, verdict.message};
      if (verdict.verdict == Drainability::Verdict::kWait) found.waits = true;
      if (verdict.verdict != Drainability::Verdict::kMove) continue;
      found.moved.push_back(entry->second);
      if (moves != nullptr && moves->is_moved(entry->second->view().meta.uid)) moved_already = entry->second;
    }
    if (moved_already == nullptr) return std::nullopt;
    return Unremovable{.node = found.node,
                       .reason = "HoldsMovedPod",
                       .blocking_pod = moved_already,
                       .detail = fmt::format("{} was moved here, and nothing has changed from outside since", moved_already->key())};
  }

  [[nodiscard]] const PodPtr* imagined(const std::string& key) const {
    if (input_.imagined == nullptr) return nullptr;
    const auto found = input_.imagined->find(key);
    return found == input_.imagined->end() ? nullptr : &found->second;
  }

  /// Moves the pods and takes the node away, or, when a pod finds no place, changes nothing and says which. Meanwhile the node stays,
  /// tainted, as it does while it is drained: spread constraints count it.
  std::optional<Unremovable> move_pods(const NodeInfo& node, const std::vector<PodPtr>& pods) {
    placement::Trial& trial = input_.trial();
    const std::string name = node.name;
    auto tainted = std::make_shared<model::NodeView>(*node.node);
    tainted->taints.push_back({std::string(kToBeDeletedTaint), "", "NoSchedule"});
    placement::Attempt attempt(trial);
    std::unordered_map<std::string_view, placement::EvictedPod> evicted;
    for (const PodInfoPtr& pod : std::vector<PodInfoPtr>(node.pods)) evicted.emplace(pod->key, trial.evict(pod));
    trial.cluster().upsert_node(std::move(tainted));
    std::map<std::string_view, std::vector<placement::PodInfoPtr>> gangs;
    for (const PodPtr& pod : pods)
      if (const placement::PodInfoPtr successor = trial.renew(evicted.at(pod->key())); is_in_gang(*pod))
        gangs[pod->facts.group].push_back(successor);
      else if (!trial.place(successor).is_placed())
        return Unremovable{.node = name,
                           .reason = "NoPlaceToMovePods",
                           .blocking_pod = pod,
                           .detail = fmt::format("{} fits on no other node", pod->key())};
    for (const auto& [key, members] : gangs)
      if (auto homeless = move_gang(key, members, pods, name)) return homeless;
    trial.cluster().remove_node(name);
    attempt.keep();
    return std::nullopt;
  }

  [[nodiscard]] bool is_in_gang(const Pod& pod) const {
    const placement::PodGroupPtr group = pod.facts.group.empty() ? nullptr : input_.snapshot->pod_sets->groups.find(pod.facts.group);
    return group != nullptr && (group->is_gang || !group->all_levels().empty());
  }

  /// Those of the gang that are on the node find places beside the others, in the others' domain: all of them.
  std::optional<Unremovable> move_gang(std::string_view key, const std::vector<placement::PodInfoPtr>& members,
                                       const std::vector<PodPtr>& pods, const std::string& node) {
    const placement::PodGroups& groups = input_.snapshot->pod_sets->groups;
    const placement::PodGroupPtr group = groups.find(key);
    const auto decision = placement::place_group(
        input_.trial(),
        {.group = group.get(), .members = members, .standing = placement::standing_of(groups, input_.trial().cluster(), key)});
    const bool is_whole = decision.outcome == placement::GroupDecision::Outcome::kScheduled;
    if (is_whole && placement::count_placed(decision) == members.size()) return std::nullopt;
    const std::string together = group->topology_key.empty() ? "" : fmt::format(" in one domain of {}", group->topology_key);
    return Unremovable{
        .node = node,
        .reason = "NoPlaceToMovePods",
        .blocking_pod = *std::ranges::find(pods, std::string(key), [](const PodPtr& pod) { return pod->facts.group; }),
        .detail =
            fmt::format("{} of the {} pods of gang {} are here, and the gang finds no other places{}: {} of them would have one",
                        members.size(), groups.count(std::string(key)), key, together, is_whole ? placement::count_placed(decision) : 0)};
  }

  const ScaleDownInput& input_;
  const Options& options_;
  TimePoint now_;
  placement::DisruptionLedger budgets_;
  bool ignores_pods_ = false;
  std::set<std::string_view> with_ending_pods_;  ///< Nodes.
};

}  // namespace

std::string gpu_resource_of(const model::NodeView& node, std::string_view accelerator_label) {
  for (const auto& [name, quantity] : node.allocatable)
    if (std::ranges::find(kGpuResources, name) != std::end(kGpuResources) && quantity.sign() > 0) return name;
  return node.labels().get(accelerator_label) == nullptr ? "" : "nvidia.com/gpu";
}

double utilization_of(const NodeInfo& node, const PodMap& pods, const Options& options, TimePoint now, bool counts_all) {
  const std::string gpu = gpu_resource_of(*node.node, options.accelerator_label);
  const auto share = [&](const std::function<std::int64_t(const placement::Resource&)>& amount) {
    std::int64_t requested = 0, outside = 0;
    const auto count = [&](const PodInfoPtr& info) {
      const Pod* pod = facts_of(pods, *info);
      const std::int64_t wants = amount(info->request.total);
      if (pod != nullptr && ((options.ignore_daemonsets_utilization && model::counts_as_daemon(pod->view().meta)) ||
                             (options.ignore_mirror_pods_utilization && model::is_mirror(pod->view().meta))))
        outside += wants;
      else if (pod == nullptr || !pod->facts.ends_too_long(now))
        requested += wants;
    };
    if (counts_all)
      requested = amount(node.requested);
    else
      std::ranges::for_each(node.pods, count);
    const std::int64_t all = amount(node.allocatable);
    // A node that offers none of it holds nothing by it.
    if (all == 0) return 0.0;
    return all > outside ? static_cast<double>(requested) / static_cast<double>(all - outside) : requested > 0 ? 1.0 : 0.0;
  };
  if (!gpu.empty()) return share([&](const placement::Resource& resource) { return resource.scalar(gpu); });
  return std::max(share([](const placement::Resource& resource) { return resource.cpu_milli; }),
                  share([](const placement::Resource& resource) { return resource.memory_bytes; }));
}

NodeRemoval removal_of(const Removable& one, const NodeInfo& node, const Instance& instance, const Snapshot& snapshot, TimePoint now) {
  NodeRemoval out{one.node, one.group, instance.id, one.utilization, {}, one.moved.empty(), {}};
  for (const PodInfoPtr& info : node.pods) {
    const auto pod = snapshot.pods().find(info->key);
    if (pod == snapshot.pods().end() || model::is_mirror(pod->second->view().meta) || pod->second->facts.is_finished) continue;
    if (pod->second->facts.ends_too_long(now)) continue;
    if (!model::counts_as_daemon(pod->second->view().meta))
      out.evict.push_back(pod->second);
    else if (const std::string* asked = info->view().meta.annotation(kEvictDaemon); asked == nullptr ? !out.is_empty : *asked == "true")
      out.daemons.push_back(pod->second);
  }
  std::ranges::sort(out.evict, {}, [](const PodPtr& pod) { return pod->key(); });
  return out;
}

std::string to_string(const Unremovable& node) {
  std::string out(node.reason);
  if (!node.blocking_reason.empty()) out += fmt::format(": {}", node.blocking_reason);
  if (!node.detail.empty()) out += ": " + node.detail;
  if (node.utilization > 0) out += fmt::format(": {:.3g}% requested", node.utilization * 100);
  return out;
}

ScaleDownFindings find_removable(const ScaleDownInput& input, const Options& options, TimePoint now) {
  ScaleDownFindings out;
  Remover remover(input, options, now);
  for (Removable& one : remover.eligible(out)) {
    if (input.limit.is_over())
      out.left.push_back(std::move(one.node));
    else
      remover.consider(std::move(one), out);
  }
  return out;
}

}  // namespace berth::autoscaler
