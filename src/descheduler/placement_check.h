// What is asked of the placement engine before an eviction (SPEC G4).
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace berth::placement {
struct NodeInfo;
}

namespace berth::descheduler {

/// How much the engine must show before a pod is evicted.
enum class PlacementCheck : std::uint8_t {
  kBetterPlace,  ///< The replacement goes elsewhere, whichever of the equally best nodes the scheduler takes.
  kFits,         ///< It fits on some node, perhaps on the one it came from.
  kOff,          ///< Nothing: as kubernetes-sigs/descheduler without nodeFit.
};

/// Says why a node is no better place by what the strategy is after; empty when it is one. An empty function accepts every node.
using DestinationRule = std::function<std::string(const placement::NodeInfo&)>;

}  // namespace berth::descheduler
