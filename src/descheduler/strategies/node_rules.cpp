// RemovePodsViolatingNodeAffinity (node_affinity.go) and RemovePodsViolatingNodeTaints (node_taint.go).
#include <fmt/format.h>

#include <algorithm>

#include "descheduler/context.h"

namespace berth::descheduler {
namespace {

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

/// The sum of the weights of the pod's preferences that the node meets. A preference without expressions matches nothing.
std::int64_t weight_of(const model::PodView& pod, const model::Labels& labels, std::string_view node_name) {
  std::int64_t out = 0;
  for (const auto& term : pod.node_affinity.preferred)
    if (!term.preference.is_empty() && term.preference.matches(labels, node_name)) out += term.weight;
  return out;
}

/// False: the cycle's limit is reached.
bool evict_all(Context& ctx, const std::vector<PodPtr>& pods, const std::string& why,
               const std::function<DestinationRule(const Pod&)>& rule) {
  for (const PodPtr& pod : pods) {
    const Verdict verdict = ctx.evict(pod, why, rule ? rule(*pod) : DestinationRule{});
    if (verdict == Verdict::kNodeLimit) return true;
    if (verdict == Verdict::kTotalLimit) return false;
  }
  return true;
}

bool remove_by_required(Context& ctx, const Plugin& plugin, const std::vector<const Node*>& all) {
  for (Node& node : ctx.nodes()) {
    std::vector<PodPtr> chosen;
    for (const PodPtr& pod : Context::running(node))
      if (pod->view().node_affinity.required && !pod->view().matches_node_selector(node.labels(), node.name()) &&
          ctx.may_evict(plugin, *pod) && ctx.fits_any(*pod, all, false))
        chosen.push_back(pod);
    sort_by_priority(chosen);
    if (!evict_all(ctx, chosen, "the node does not match its required node affinity", {})) return false;
  }
  return true;
}

bool remove_by_preferred(Context& ctx, const Plugin& plugin, const std::vector<const Node*>& all) {
  for (Node& node : ctx.nodes()) {
    std::vector<PodPtr> chosen;
    for (const PodPtr& pod : Context::running(node)) {
      if (pod->view().node_affinity.preferred.empty()) continue;
      const std::int64_t here = weight_of(pod->view(), node.labels(), node.name());
      const bool is_better_elsewhere =
          std::ranges::any_of(all, [&](const Node* other) { return weight_of(pod->view(), other->labels(), other->name()) > here; });
      if (is_better_elsewhere && ctx.may_evict(plugin, *pod) && ctx.fits_any(*pod, all, false)) chosen.push_back(pod);
    }
    sort_by_priority(chosen);
    const auto rule = [&node](const Pod& pod) -> DestinationRule {
      const std::int64_t here = weight_of(pod.view(), node.labels(), node.name());
      return [&pod, here](const placement::NodeInfo& to) -> std::string {
        return weight_of(pod.view(), to.labels(), to.name) > here ? "" : "which it prefers no more";
      };
    };
    if (!evict_all(ctx, chosen, "another node meets its preferred node affinity better", rule)) return false;
  }
  return true;
}

}  // namespace

void remove_node_affinity(Context& ctx, const Plugin& plugin) {
  std::vector<const Node*> all;
  for (const Node& node : ctx.nodes()) all.push_back(&node);
  for (const std::string& type : plugin.node_affinity_types) {
    if (type == kRequired && !remove_by_required(ctx, plugin, all)) return;
    if (type == kPreferred && !remove_by_preferred(ctx, plugin, all)) return;
  }
}

void remove_node_taints(Context& ctx, const Plugin& plugin) {
  const auto is_named = [](const std::set<std::string, std::less<>>& names, const model::Taint& taint) {
    return names.contains(taint.key) || (!taint.value.empty() && names.contains(taint.key + "=" + taint.value));
  };
  const auto counts = [&](const model::Taint& taint) {
    if (taint.effect != "NoSchedule" && !(plugin.include_prefer_no_schedule && taint.effect == "PreferNoSchedule")) return false;
    return !is_named(plugin.excluded_taints, taint) && (!plugin.included_taints || is_named(*plugin.included_taints, taint));
  };
  for (Node& node : ctx.nodes()) {
    std::vector<PodPtr> chosen;
    for (const PodPtr& pod : Context::running(node))
      if (!tolerates(pod->view().tolerations, node.view->taints, counts) && ctx.may_evict(plugin, *pod)) chosen.push_back(pod);
    sort_by_priority(chosen);
    const auto rule = [&counts](const Pod& pod) -> DestinationRule {
      return [&pod, &counts](const placement::NodeInfo& to) -> std::string {
        return tolerates(pod.view().tolerations, to.node->taints, counts) ? "" : "whose taints it does not tolerate either";
      };
    };
    if (!evict_all(ctx, chosen, "it does not tolerate the node's taints", rule)) return;
  }
}

}  // namespace berth::descheduler
