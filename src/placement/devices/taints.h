// Taints of devices, by their driver or by DeviceTaintRules (KEP-5055).
#pragma once
#include <span>
#include <string>
#include <vector>

#include "placement/cluster.h"

namespace berth::placement::devices {

/// Whether the request takes devices in spite of the taint; always of one whose effect keeps nobody away.
[[nodiscard]] bool is_tolerated(const model::Taint& taint, const model::DeviceRequest& request);

/// What keeps the claims from devices that the node reaches and that their classes and selectors mean: "a toleration for broken:NoSchedule
/// on 2 devices (DeviceTaintRule maintenance)". For people: a taint and its origin once.
[[nodiscard]] std::vector<std::string> taints_in_the_way(const model::NodeView& node,
                                                         std::span<const std::shared_ptr<const model::ResourceClaimView>> claims,
                                                         const Cluster& cluster);

}  // namespace berth::placement::devices
