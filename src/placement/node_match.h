// The node checks that need nothing but a pod and a node: what the plugins NodeName, NodeAffinity and TaintToleration decide by, lent to
// whoever must know whether a pod belongs on a node without scheduling it (Kubernetes' component-helpers; the DaemonSet controller).
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "model/views/pod_view.h"

namespace berth::placement {

/// The first taint of these effects that no toleration covers; null when there is none.
const model::Taint* find_untolerated_taint(std::span<const model::Taint> taints, std::span<const model::Toleration> tolerations,
                                           std::span<const std::string_view> effects);

/// Some port of the one cannot be had beside some port of the other: the same protocol and number, and addresses that overlap.
bool ports_conflict(std::span<const model::HostPort> a, std::span<const model::HostPort> b);

struct NodeMatch {
  bool belongs = false;   ///< By name, node selector and required node affinity, and no taint keeps it away.
  bool may_stay = false;  ///< The same, but for taints that only keep new pods away.
};
/// Whether a pod belongs on a node that has nothing on it (pkg/controller/daemon NodeShouldRunDaemonPod).
NodeMatch match_node(const model::PodView& pod, std::string_view node_name, const model::Labels& node_labels,
                     std::span<const model::Taint> taints);

}  // namespace berth::placement
