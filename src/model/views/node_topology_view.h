// What placement reads of a NodeResourceTopology (topology.node.k8s.io/v1alpha2): the NUMA nodes of the node of its name, and how that
// node aligns what it gives to them.
#pragma once
#include <map>
#include <memory>

#include "model/views/common.h"

namespace berth::model {

/// Beside what others publish, on the topology as a whole: how berth's own nodes decide, and who has what of them.
inline constexpr std::string_view kCpuManagerPolicy = "berth.dev/cpuManagerPolicy";
inline constexpr std::string_view kMemoryManagerPolicy = "berth.dev/memoryManagerPolicy";
/// "true": of sets of as many NUMA nodes those that are nearer to each other.
inline constexpr std::string_view kPrefersClosest = "berth.dev/preferClosestNUMANodes";
/// How many threads a core has, where only whole cores are given (full-pcpus-only).
inline constexpr std::string_view kThreadsOfWholeCores = "berth.dev/fullPCPUsOnly";
/// Processors are as good anywhere in a socket (align-by-socket): the NUMA nodes of each, "0-1 2-3".
inline constexpr std::string_view kSockets = "berth.dev/alignBySocket";
/// Is there: who has what is told, pod by pod, by attributes whose names begin with kHoldsPrefix; others have nothing.
inline constexpr std::string_view kTellsHolders = "berth.dev/tellsHolders";
inline constexpr std::string_view kHoldsPrefix = "berth.dev/holds.";  ///< The pod's uid follows.

struct ZoneResource {
  std::string name;
  Quantity capacity, allocatable, available;
};

struct NumaZone {
  int number = 0;
  std::map<int, std::int64_t> costs;  ///< To each zone.
  std::vector<ZoneResource> resources;
};

struct NodeTopologyView {
  ObjectMeta meta;
  std::string policy = "none", scope = "container";  ///< In the kubelet's words.
  std::map<std::string, std::string, std::less<>> attributes;
  std::vector<NumaZone> zones;  ///< Those of type Node that are called node-0 to node-63, by number, each once.

  static NodeTopologyView parse(const json::Value& object);
  /// Empty: it is not there.
  [[nodiscard]] std::string_view attribute(std::string_view name) const;
};
using NodeTopologyViewPtr = std::shared_ptr<const NodeTopologyView>;

}  // namespace berth::model
