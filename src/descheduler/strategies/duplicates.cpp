// RemoveDuplicates: pods of one owner with the same images, several on a node, while other nodes have fewer (removeduplicates.go).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "descheduler/context.h"

namespace berth::descheduler {
namespace {

struct OwnerKey {
  std::string ns, kind, name, images;
  friend auto operator<=>(const OwnerKey&, const OwnerKey&) = default;
};

std::string images_of(const model::PodView& pod) {
  std::vector<std::string> images;
  for (const auto& container : pod.containers) images.push_back(container.image);
  std::ranges::sort(images);
  return fmt::format("{}", fmt::join(images, "#"));
}

std::vector<OwnerKey> keys_of(const model::PodView& pod) {
  const std::string images = images_of(pod);
  std::vector<OwnerKey> out;
  for (const auto& owner : pod.meta.owner_references) out.push_back({pod.ns(), owner.kind, owner.name, images});
  std::ranges::sort(out);
  return out;
}

/// Whoever comes first stays: high priority and Guaranteed before what gives way, the older before the younger.
void sort_by_right_to_stay(std::vector<PodPtr>& pods) {
  std::ranges::stable_sort(pods, {}, [](const PodPtr& pod) {
    return std::tuple(-pod->facts.priority.value_or(INT64_MIN + 1), -static_cast<int>(pod->facts.qos), !prefers_no_eviction(*pod),
                      pod->facts.created.value_or(TimePoint::max()));
  });
}

using ByNode = std::map<std::string, std::vector<PodPtr>>;

/// Nodes on which the duplicates could be: taints, selectors and affinity alone. A pod that has but one such node does not count.
std::size_t count_target_nodes(Context& ctx, const ByNode& duplicates) {
  std::vector<PodPtr> distinct;
  std::set<std::string> targets;
  for (const auto& [node, pods] : duplicates) {
    for (const PodPtr& pod : pods) {
      const bool is_known = std::ranges::any_of(distinct, [&](const PodPtr& other) {
        return pod->view().tolerations == other->view().tolerations && pod->view().node_selector == other->view().node_selector &&
               pod->view().node_affinity.required == other->view().node_affinity.required;
      });
      if (is_known) continue;
      distinct.push_back(pod);
      std::set<std::string> own;
      for (const Node& candidate : ctx.nodes())
        if (tolerates(pod->view().tolerations, candidate.view->taints, is_hard_taint) &&
            pod->view().matches_node_selector(candidate.labels(), candidate.name()))
          own.insert(candidate.name());
      if (own.size() > 1) targets.merge(own);
    }
  }
  return targets.size();
}

std::size_t copies_on(const placement::NodeInfo& node, const OwnerKey& key) {
  return static_cast<std::size_t>(std::ranges::count_if(node.pods, [&](const placement::PodInfoPtr& pod) {
    const auto keys = keys_of(pod->view());
    return std::ranges::find(keys, key) != keys.end();
  }));
}

}  // namespace

void remove_duplicates(Context& ctx, const Plugin& plugin) {
  std::map<OwnerKey, ByNode> duplicates;
  std::map<OwnerKey, std::int64_t> occurrences;
  for (Node& node : ctx.nodes()) {
    std::vector<PodPtr> pods = Context::running(node);
    sort_by_right_to_stay(pods);
    std::set<std::vector<OwnerKey>> seen;
    for (const PodPtr& pod : pods) {
      if (pod->owners().empty() || !ctx.may_evict(plugin, *pod)) continue;
      if (std::ranges::any_of(pod->owners(), [&](const auto& owner) {
            return std::ranges::find(plugin.exclude_owner_kinds, owner.kind) != plugin.exclude_owner_kinds.end();
          }))
        continue;
      auto keys = keys_of(pod->view());
      for (const OwnerKey& key : keys) ++occurrences[key];
      if (seen.contains(keys)) {
        for (const OwnerKey& key : keys) duplicates[key][node.name()].push_back(pod);
      } else {
        seen.insert(std::move(keys));
      }
    }
  }
  for (const auto& [key, by_node] : duplicates) {
    const std::size_t targets = count_target_nodes(ctx, by_node);
    if (targets < 2) continue;
    const auto most = static_cast<std::size_t>(std::ceil(static_cast<double>(occurrences[key]) / static_cast<double>(targets)));
    const DestinationRule rule = [&key, most](const placement::NodeInfo& node) -> std::string {
      const std::size_t copies = copies_on(node, key);
      return copies + 1 <= most ? "" : fmt::format("which has {} already", copies);
    };
    for (const auto& [node, pods] : by_node) {
      // The first pod of each node is not among its duplicates.
      if (pods.size() + 1 <= most) continue;
      for (std::size_t i = pods.size(); i-- > most - 1;) {
        const Verdict verdict = ctx.evict(
            pods[i], fmt::format("{} of {} {} on the node, {} a node would be even", pods.size() + 1, key.kind, key.name, most), rule);
        if (verdict == Verdict::kNodeLimit) break;
        if (verdict == Verdict::kTotalLimit) return;
      }
    }
  }
}

}  // namespace berth::descheduler
