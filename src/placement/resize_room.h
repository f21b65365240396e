// Whether a pod that runs can have other amounts where it is (in-place resize), and what would have to go before it can: the node's own
// question (kubelet's allocation manager), asked beforehand. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "placement/lacks.h"

namespace berth::placement {

struct ResizeRoom {
  std::string pod, node;
  std::vector<Shortage> lacks;  ///< Empty: there is room now.
  bool is_too_large = false;    ///< The node would not have that much if it were empty: nothing helps there.
  std::vector<std::string>
      after;  ///< "namespace/name (priority 0)": once these are gone there is room; the least important ones, no more than needed.
};

/// What the node has granted the pod: of one under resize what its status says is allocated, of others what its spec asks for.
Resource granted_request(const model::PodView& pod, Era era);

/// Room for `wanted`; without it for what the pod's spec asks for. Nullopt: the pod has no node, or is granted just that.
std::optional<ResizeRoom> room_for_resize(const Cluster& cluster, const PodInfo& pod, const Resource* wanted = nullptr);

/// A sentence or two, for people.
std::string words_of(const ResizeRoom& room);
json::Value to_json(const ResizeRoom& room);

}  // namespace berth::placement
