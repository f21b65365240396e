#include "placement/node_match.h"

#include <algorithm>
#include <array>

namespace berth::placement {

const model::Taint* find_untolerated_taint(std::span<const model::Taint> taints, std::span<const model::Toleration> tolerations,
                                           std::span<const std::string_view> effects) {
  const auto found = std::ranges::find_if(taints, [&](const model::Taint& taint) {
    return std::ranges::find(effects, taint.effect) != effects.end() &&
           std::ranges::none_of(tolerations, [&](const auto& toleration) { return toleration.tolerates(taint); });
  });
  return found == taints.end() ? nullptr : &*found;
}

NodeMatch match_node(const model::PodView& pod, std::string_view node_name, const model::Labels& node_labels,
                     std::span<const model::Taint> taints) {
  constexpr std::array<std::string_view, 2> kKeepAway = {"NoExecute", "NoSchedule"};
  if (!pod.node_name.empty() && pod.node_name != node_name) return {};
  if (!pod.matches_node_selector(node_labels, node_name)) return {};
  return {find_untolerated_taint(taints, pod.tolerations, kKeepAway) == nullptr,
          find_untolerated_taint(taints, pod.tolerations, std::span(kKeepAway).first(1)) == nullptr};
}

}  // namespace berth::placement
