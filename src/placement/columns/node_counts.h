// A count per node, of which most are zero more often than not.
#pragma once
#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>

#include "base/check.h"
#include "placement/pages.h"

namespace berth::placement {

/// By node slot. Few nodes with a count are kept as a map, many as a column: what is held for a thousand kinds of pods grows with the pods,
/// not with kinds times nodes.
class NodeCounts {
 public:
  [[nodiscard]] std::uint32_t operator[](std::uint32_t node) const {
    if (!dense_.empty()) return node < dense_.size() ? dense_[node] : 0;
    if (sparse_.empty()) return 0;
    const auto at = sparse_.find(node);
    return at == sparse_.end() ? 0 : at->second;
  }

  /// Requires that the count does not fall below zero. `slots`: how many nodes there may be.
  void add(std::uint32_t node, std::int32_t delta, std::uint32_t slots) {
    BERTH_CHECK(delta >= 0 || (*this)[node] >= static_cast<std::uint32_t>(-delta), "node {} has {} of what {} go", node, (*this)[node],
                -delta);
    if (dense_.empty()) {
      std::uint32_t& count = sparse_[node];
      count += static_cast<std::uint32_t>(delta);
      if (count == 0) sparse_.erase(node);
      if (sparse_.size() > slots / kPlacesOfEntry) make_dense(slots);
      return;
    }
    if (node >= dense_.size()) dense_.resize(std::max(node + 1, slots));
    dense_.edit(node) += static_cast<std::uint32_t>(delta);
  }

  /// Calls visit(node, count) for each node with a count, in no order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [node, count] : sparse_) visit(node, count);
    for (std::uint32_t node = 0; node < dense_.size(); ++node)
      if (dense_[node] != 0) visit(node, dense_[node]);
  }

  [[nodiscard]] std::size_t memory_bytes() const { return dense_.memory_bytes() + sparse_.size() * 4UL * kPlacesOfEntry; }

 private:
  /// An entry of the map takes about as much as this many places of the column.
  static constexpr std::uint32_t kPlacesOfEntry = 5;

  void make_dense(std::uint32_t slots) {
    std::uint32_t size = slots;
    for (const auto& [node, count] : sparse_) size = std::max(size, node + 1);
    dense_.renew(std::max(size, 1U));
    for (const auto& [node, count] : sparse_) dense_.edit(node) = count;
    sparse_ = {};
  }

  boost::unordered_flat_map<std::uint32_t, std::uint32_t> sparse_;
  Pages<std::uint32_t> dense_;
};

}  // namespace berth::placement
