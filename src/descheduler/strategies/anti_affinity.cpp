// RemovePodsViolatingInterPodAntiAffinity (pod_antiaffinity.go), and the OpenShift documents' case: the one pod that others cannot stand
// goes instead of the several that cannot stand it.
#include <fmt/format.h>

#include <algorithm>

#include "descheduler/context.h"

namespace berth::descheduler {
namespace {

/// The selected pods by node, and nodes by what their labels say.
class Neighbours {
 public:
  Neighbours(Context& ctx, const Plugin& plugin) : ctx_(ctx) {
    for (Node& node : ctx.nodes()) {
      auto& pods = pods_[node.name()];
      for (const PodPtr& pod : Context::running(node))
        if (Context::selects(plugin, *pod)) pods.push_back(pod);
      sort_by_priority(pods);
    }
  }

  [[nodiscard]] const std::vector<PodPtr>& on(const std::string& node) { return pods_[node]; }
  void remove(const PodPtr& pod) { std::erase(pods_[pod->node()], pod); }

  /// Pods whose presence a required anti-affinity term of `holder` forbids; stops after `limit`.
  std::vector<PodPtr> forbidden_by(const Pod& holder, std::size_t limit) {
    std::vector<PodPtr> out;
    const Node* own = ctx_.find(holder.node());
    if (own == nullptr) return out;
    for (const auto& term : holder.info->required_anti_affinity) {
      for (const std::string* node : domain(*own, term.topology_key)) {
        for (const PodPtr& pod : pods_[*node]) {
          if (pod->view().name() == holder.view().name() ||
              !term.matches(pod->view(), ctx_.snapshot().cluster.namespace_labels(pod->view().ns())))
            continue;
          if (std::ranges::find(out, pod) == out.end()) out.push_back(pod);
          if (out.size() >= limit) return out;
        }
      }
    }
    return out;
  }

 private:
  /// The node itself, and those with the same value of the label.
  const std::vector<const std::string*>& domain(const Node& node, const std::string& key) {
    auto& by_node = domains_[key];
    if (by_node.empty()) {
      std::map<std::string_view, std::vector<const std::string*>> by_value;
      for (const Node& one : ctx_.nodes())
        if (const std::string* value = one.labels().get(key)) by_value[*value].push_back(&one.name());
      for (const Node& one : ctx_.nodes()) {
        const std::string* value = one.labels().get(key);
        by_node[one.name()] = value == nullptr ? std::vector<const std::string*>{&one.name()} : by_value[*value];
      }
    }
    return by_node[node.name()];
  }

  Context& ctx_;
  std::map<std::string, std::vector<PodPtr>> pods_;
  std::map<std::string, std::map<std::string, std::vector<const std::string*>>> domains_;
};

/// Pods that two others or more cannot stand, and that alone, while they themselves mind nobody: evicting one of them does what evicting
/// all of those would. Never for pods of a lower priority.
std::vector<std::pair<PodPtr, std::size_t>> single_causes(Context& ctx, Neighbours& neighbours) {
  struct Cause {
    PodPtr pod;
    std::size_t holders = 0;
    std::int64_t lowest_priority = INT64_MAX;
  };
  std::map<std::string, Cause> causes;
  for (Node& node : ctx.nodes()) {
    for (const PodPtr& holder : neighbours.on(node.name())) {
      if (holder->info->required_anti_affinity.empty()) continue;
      const auto forbidden = neighbours.forbidden_by(*holder, 2);
      if (forbidden.size() != 1) continue;
      Cause& cause = causes[forbidden[0]->key()];
      cause.pod = forbidden[0];
      ++cause.holders;
      cause.lowest_priority = std::min(cause.lowest_priority, holder->facts.priority.value_or(INT64_MIN));
    }
  }
  std::vector<std::pair<PodPtr, std::size_t>> out;
  for (const auto& [key, cause] : causes)
    if (cause.holders >= 2 && cause.pod->facts.priority.value_or(INT64_MIN) <= cause.lowest_priority &&
        neighbours.forbidden_by(*cause.pod, 1).empty())
      out.emplace_back(cause.pod, cause.holders);
  return out;
}

}  // namespace

void remove_interpod_anti_affinity(Context& ctx, const Plugin& plugin) {
  Neighbours neighbours(ctx, plugin);
  const auto causes = ctx.chooses_as_kubernetes() ? std::vector<std::pair<PodPtr, std::size_t>>{} : single_causes(ctx, neighbours);
  for (const auto& [pod, holders] : causes) {
    if (!ctx.filter(*pod) || !ctx.pre_eviction_filter(*pod)) continue;
    const Verdict verdict = ctx.evict(pod, fmt::format("{} pods have anti-affinity to it", holders));
    if (verdict == Verdict::kTotalLimit) return;
    if (verdict == Verdict::kEvicted) neighbours.remove(pod);
  }
  for (Node& node : ctx.nodes()) {
    const std::vector<PodPtr> pods = neighbours.on(node.name());
    for (const PodPtr& pod : pods) {
      if (pod->info->required_anti_affinity.empty()) continue;
      const auto forbidden = neighbours.forbidden_by(*pod, 1);
      if (forbidden.empty() || !ctx.filter(*pod) || !ctx.pre_eviction_filter(*pod)) continue;
      const Verdict verdict = ctx.evict(pod, "its anti-affinity forbids " + forbidden[0]->key());
      if (verdict == Verdict::kNodeLimit) break;
      if (verdict == Verdict::kTotalLimit) return;
      if (verdict == Verdict::kEvicted) neighbours.remove(pod);
    }
  }
}

}  // namespace berth::descheduler
