// The plugins of volumes and devices, asked node by node for one pod.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "placement/columns/cluster_index.h"
#include "placement/framework.h"

namespace berth::placement {

/// For one choice: the cluster may not change meanwhile. What a plugin says of all nodes with the same labels (of a zone, say) is asked
/// once for all of them.
class NodeChecks {
 public:
  /// `state` has been through the PreFilter of these plugins; all outlive this. `of_many`: nodes will be asked for by the hundred.
  NodeChecks(const Framework& framework, const CycleState& state, const PodInfo& pod, ClusterIndex& index, bool of_many);
  /// No plugin has anything to say of any node.
  [[nodiscard]] bool empty() const { return checks_.empty(); }
  /// Success, or what the first plugin that objects says.
  [[nodiscard]] Status of(const NodeInfo& node);

 private:
  struct Check {
    const Plugin* plugin;
    std::vector<std::size_t> topologies{};          ///< Of the labels that decide.
    std::vector<std::optional<Status>> verdicts{};  ///< By their values; empty: every node is asked.
  };
  /// Beyond so many combinations of values, asking each node is as good.
  static constexpr std::size_t kMostVerdicts = 1024;
  [[nodiscard]] std::size_t place_of(const Check& check, std::uint32_t node) const;

  const CycleState& state_;
  const PodInfo& pod_;
  const ClusterIndex& index_;
  std::vector<Check> checks_;
};

}  // namespace berth::placement
