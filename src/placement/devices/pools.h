// The pools of devices that a node can reach (structured allocator, pools.go).
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/views/device_views.h"
#include "model/views/node_view.h"
#include "placement/devices/device_id.h"

namespace berth::placement::devices {

/// One pool in its newest generation, as one node sees it. Points into the slices.
struct Pool {
  PoolId id;
  bool is_incomplete = false;                           ///< Slices are missing: it is being published.
  bool is_invalid = false;                              ///< Its slices contradict each other.
  std::vector<const model::ResourceSliceView*> slices;  ///< With devices for the node, by name.
  std::vector<const model::ResourceSliceView*> others;  ///< Of the same pool with devices for other nodes.
  std::vector<const model::CounterSet*> counter_sets;
};

/// Whether what says nodeName, allNodes or nodeSelector reaches the node.
[[nodiscard]] bool reaches(const model::NodeView& node, const std::optional<std::string>& node_name, bool all_nodes,
                           const std::optional<model::NodeSelector>& selector);

/// Sorted by driver and pool; those with binding conditions come last. `all` is every slice of the cluster, `candidates` those that may
/// concern the node: its own, and those of no node.
[[nodiscard]] std::vector<Pool> gather_pools(std::span<const model::ResourceSliceView* const> candidates, const model::NodeView& node,
                                             std::span<const model::ResourceSliceView* const> all);

}  // namespace berth::placement::devices
