// Nodes that are one to a class of pods but for what they have left: most of a cluster, to most classes.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "placement/columns/topology_part.h"

namespace berth::placement {

/// While a class is built, whose parts have been reset: which nodes need not be placed, since another one with the same labels was.
class AlikeNodes {
 public:
  static constexpr std::uint32_t kNoGroup = UINT32_MAX;

  /// Nullopt: each node is a case of its own to some part.
  static std::optional<AlikeNodes> of(std::span<const TopologySlot> parts, const ClusterIndex& index) {
    AlikeNodes out(index);
    for (const TopologySlot& slot : parts)
      if (!slot.part->describe_alike(out.nodes_)) return std::nullopt;
    std::size_t combinations = 1;
    for (const std::size_t topology : out.nodes_.by_value)
      if (combinations *= index.topology_column(topology).population.size() + 1; combinations > kMostCombinations) return std::nullopt;
    for (std::size_t i = 0; i < out.nodes_.by_presence.size(); ++i)
      if (combinations *= 2; combinations > kMostCombinations) return std::nullopt;
    out.groups_.resize(combinations, kNoGroup);
    return out;
  }
  [[nodiscard]] bool has(std::uint32_t node) const { return !nodes_.is_counted[node]; }
  /// The group of the nodes like this one; kNoGroup until it is written.
  [[nodiscard]] std::uint32_t& group_of(std::uint32_t node) {
    std::size_t at = 0;
    for (const std::size_t topology : nodes_.by_value) {
      const TopologyColumn& column = index_->topology_column(topology);
      at = at * (column.population.size() + 1) + static_cast<std::size_t>(column.value_of(node) + 1);
    }
    for (const std::size_t topology : nodes_.by_presence)
      at = at * 2 + static_cast<std::size_t>(index_->topology_column(topology).value_of(node) >= 0);
    return groups_[at];
  }

 private:
  static constexpr std::size_t kMostCombinations = 1024;
  explicit AlikeNodes(const ClusterIndex& index) : index_(&index) { nodes_.is_counted.resize(index.cluster().slot_count()); }

  const ClusterIndex* index_;
  TopologyPart::Alike nodes_;
  std::vector<std::uint32_t> groups_;  ///< By the values of the labels.
};

}  // namespace berth::placement
