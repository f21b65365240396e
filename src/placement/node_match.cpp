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

bool ports_conflict(std::span<const model::HostPort> a, std::span<const model::HostPort> b) {
  constexpr std::string_view kAnyAddress = "0.0.0.0";
  return std::ranges::any_of(a, [&](const auto& x) {
    return std::ranges::any_of(b, [&](const auto& y) {
      return x.port == y.port && x.protocol == y.protocol &&
             (x.host_ip == y.host_ip || x.host_ip == kAnyAddress || y.host_ip == kAnyAddress);
    });
  });
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
