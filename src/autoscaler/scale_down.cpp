#include "autoscaler/scale_down.h"

#include <algorithm>

namespace berth::autoscaler {
namespace {

using placement::NodeIndex;
using placement::NodeInfo;
using placement::PodInfoPtr;

/// A GPU resource of a node, or empty.
std::string gpu_resource(const model::NodeView& node) {
  for (const auto& [name, quantity] : node.allocatable)
    if ((name == "nvidia.com/gpu" || name == "amd.com/gpu") && quantity.sign() > 0) return name;
  return {};
}

const Pod* facts_of(const PodMap& pods, const placement::PodInfo& info) {
  const auto found = pods.find(info.key);
  return found == pods.end() ? nullptr : found->second.get();
}

class Remover {
 public:
  Remover(const ScaleDownInput& input, const Options& options, TimePoint now)
      : input_(input), options_(options), now_(now), budgets_(*input.snapshot->cluster) {}

  /// Nodes worth a simulation, judged before any is simulated.
  [[nodiscard]] std::vector<Removable> eligible(ScaleDownFindings& out) const {
    std::vector<Removable> found;
    for (const std::string& name : input_.candidates) {
      const NodeInfo* node = input_.trial->cluster().find_node(name);
      const auto group = input_.group_of.find(name);
      const auto stays = [&](std::string_view reason) { out.unremovable.push_back({name, reason, {}}); };
      if (node == nullptr || node->node == nullptr) {
        stays("NoNodeInfo");
      } else if (has_taint(*node->node, kToBeDeletedTaint)) {
        stays("CurrentlyBeingDeleted");
      } else if (const std::string* off = node->node->meta.annotation(kScaleDownDisabled); off != nullptr && *off == "true") {
        stays("ScaleDownDisabledAnnotation");
      } else if (group == input_.group_of.end()) {
        stays("NotAutoscaled");
      } else if (const double used = utilization_of(*node, *input_.snapshot->pods, options_, now_); used > options_.utilization_threshold) {
        stays("NotUnderutilized");
      } else {
        found.push_back({name, group->second->id, used, {}, false, false});
      }
    }
    return found;
  }

  void consider(Removable found, ScaleDownFindings& out) {
    const NodeInfo* node = input_.trial->cluster().find_node(found.node);
    const auto stays = [&](std::string_view reason, std::string detail = {}) {
      out.unremovable.push_back({found.node, reason, std::move(detail)});
    };
    if (std::string blocker = sort_pods(*node, found); !blocker.empty()) return stays("BlockedByPod", std::move(blocker));
    if (!move_pods(*node, found.moved)) return stays("NoPlaceToMovePods");
    found.is_risky = !budgets_.take(found.moved);
    out.removable.push_back(std::move(found));
  }

 private:
  /// Finds the pods that must move; the message of what holds the node, if anything does.
  std::string sort_pods(const NodeInfo& node, Removable& found) const {
    for (const PodInfoPtr& info : node.pods) {
      const auto entry = input_.snapshot->pods->find(info->key);
      if (entry == input_.snapshot->pods->end()) continue;
      // A waiting pod that was placed here only in thought finds another place by itself, but needs one.
      if (entry->second->view().node_name.empty()) {
        found.moved.push_back(entry->second);
        continue;
      }
      const Drainability verdict = drainability_of(*entry->second, budgets_, *input_.snapshot, options_, now_);
      if (verdict.verdict == Drainability::Verdict::kBlock) return fmt::format("{}: {}", verdict.reason, verdict.message);
      if (verdict.verdict == Drainability::Verdict::kWait) found.waits = true;
      if (verdict.verdict == Drainability::Verdict::kMove) found.moved.push_back(entry->second);
    }
    return {};
  }

  /// On success the node is gone and its pods are elsewhere; otherwise nothing has changed. Meanwhile the node stays, tainted, as it does
  /// while it is drained: spread constraints count it.
  bool move_pods(const NodeInfo& node, const std::vector<PodPtr>& pods) {
    // Most nodes cannot go: what their pods ask is worked out once, not on each fork.
    for (const PodPtr& pod : pods) input_.trial->prepare(placement::successor_of(*pod->info, input_.trial->cluster().era()));
    placement::Trial drained = input_.trial->fork();
    const std::string name = node.name;
    auto tainted = std::make_shared<model::NodeView>(*node.node);
    tainted->taints.push_back({std::string(kToBeDeletedTaint), "", "NoSchedule"});
    std::map<std::string, placement::Eviction, std::less<>> evicted;
    for (const PodInfoPtr& pod : std::vector<PodInfoPtr>(node.pods)) evicted.emplace(pod->key, drained.evict(pod));
    drained.cluster().upsert_node(std::move(tainted));
    for (const PodPtr& pod : pods)
      if (!drained.place(drained.renew(evicted.at(pod->key()))).is_placed()) return false;
    drained.cluster().remove_node(name);
    *input_.trial = std::move(drained);
    return true;
  }

  const ScaleDownInput& input_;
  const Options& options_;
  TimePoint now_;
  Budgets budgets_;
};

}  // namespace

double utilization_of(const NodeInfo& node, const PodMap& pods, const Options& options, TimePoint now) {
  const std::string gpu = gpu_resource(*node.node);
  const auto share = [&](const std::function<std::int64_t(const placement::Resource&)>& amount) {
    std::int64_t requested = 0, outside = 0;
    for (const PodInfoPtr& info : node.pods) {
      const Pod* pod = facts_of(pods, *info);
      const std::int64_t wants = amount(info->request.total);
      constexpr auto kEndingTooLong = std::chrono::seconds(30);
      if (pod != nullptr && ((options.ignore_daemonsets_utilization && pod->facts.is_daemon) ||
                             (options.ignore_mirror_pods_utilization && pod->facts.is_mirror)))
        outside += wants;
      else if (pod == nullptr || !pod->facts.deletion_time || *pod->facts.deletion_time + kEndingTooLong >= now)
        requested += wants;
    }
    const std::int64_t all = amount(node.allocatable) - outside;
    return all > 0 ? static_cast<double>(requested) / static_cast<double>(all) : requested > 0 ? 1.0 : 0.0;
  };
  if (!gpu.empty()) return share([&](const placement::Resource& resource) { return resource.scalar(gpu); });
  return std::max(share([](const placement::Resource& resource) { return resource.cpu_milli; }),
                  share([](const placement::Resource& resource) { return resource.memory_bytes; }));
}

ScaleDownFindings find_removable(const ScaleDownInput& input, const Options& options, TimePoint now) {
  ScaleDownFindings out;
  Remover remover(input, options, now);
  for (Removable& one : remover.eligible(out)) remover.consider(std::move(one), out);
  return out;
}

}  // namespace berth::autoscaler
