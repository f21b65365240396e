// Which of many nodes comes first by name, without comparing names each time: thousands of equals are asked about for every pod.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "placement/cluster.h"

namespace berth::placement {

/// Names as ranks, learned once names have been compared often enough for that to pay. What comes later is compared by its name until the
/// ranks are made anew. Copies share what they have learned.
///
/// A node that an attempt has removed comes back as it was, and has to be known then: what is learned within an attempt ends with it.
class NameOrder {
 public:
  /// Names were compared often enough. `attempts`: how many are open, within each other.
  void learn_if_due(const Cluster& cluster, std::size_t attempts) {
    if (spent_ <= 4UL * cluster.slot_count()) return;
    learn(cluster);
    learned_in_ = attempts;
  }
  /// The innermost attempt is over; so many are open still.
  void attempt_ended(std::size_t attempts) {
    if (learned_in_ <= attempts) return;
    learned_in_ = 0;
    ranks_ = nullptr;
    spent_ = SIZE_MAX / 2;  // It paid, and is due again.
  }

  /// Of the nodes, which are there; invalid when there are none.
  [[nodiscard]] NodeIndex first(const Cluster& cluster, std::span<const NodeIndex> nodes) {
    if (nodes.empty()) return {};
    if (knows_all(cluster)) {
      std::uint32_t best = kUnknown;
      for (const NodeIndex node : nodes) best = std::min(best, ranks_->rank_of[node.value]);
      return NodeIndex{ranks_->nodes[best]};
    }
    spent_ += nodes.size();
    return *std::ranges::min_element(nodes, [&](NodeIndex a, NodeIndex b) { return is_before(cluster, a, b); });
  }

  void sort(const Cluster& cluster, std::vector<NodeIndex>& nodes) {
    if (knows_all(cluster)) return sort_by_rank(nodes);
    spent_ += nodes.size();
    std::ranges::sort(nodes, [&](NodeIndex a, NodeIndex b) { return is_before(cluster, a, b); });
  }

 private:
  static constexpr std::uint32_t kUnknown = UINT32_MAX;
  struct Ranks {
    std::vector<std::uint32_t> rank_of;  ///< By slot; of slots that held a node when this was learned.
    std::vector<std::uint32_t> nodes;    ///< By rank.
    std::uint64_t end = 0;               ///< Of nodes that arrived before this.
  };

  /// No node came since: of nodes that are there, all are known.
  [[nodiscard]] bool knows_all(const Cluster& cluster) const { return ranks_ != nullptr && ranks_->end == cluster.next_arrival(); }
  [[nodiscard]] std::uint32_t rank_of(const Cluster& cluster, NodeIndex node) const {
    return ranks_ != nullptr && cluster.arrival(node) < ranks_->end ? ranks_->rank_of[node.value] : kUnknown;
  }
  [[nodiscard]] bool is_before(const Cluster& cluster, NodeIndex a, NodeIndex b) const {
    const std::uint32_t left = rank_of(cluster, a), right = rank_of(cluster, b);
    return left != kUnknown && right != kUnknown ? left < right : cluster.node(a)->name < cluster.node(b)->name;
  }
  void sort_by_rank(std::vector<NodeIndex>& nodes) const {
    if (nodes.size() < ranks_->nodes.size() / 64) {
      std::ranges::sort(nodes, {}, [&](NodeIndex node) { return ranks_->rank_of[node.value]; });
      return;
    }
    // Many of all: each has its place in a row of bits.
    std::vector<std::uint64_t> row(ranks_->nodes.size() / 64 + 1);
    for (const NodeIndex node : nodes) row[ranks_->rank_of[node.value] / 64] |= 1ULL << (ranks_->rank_of[node.value] % 64);
    std::size_t at = 0;
    for (std::size_t i = 0; i < row.size(); ++i)
      for (std::uint64_t left = row[i]; left != 0; left &= left - 1)
        nodes[at++] = NodeIndex{ranks_->nodes[i * 64 + static_cast<std::size_t>(std::countr_zero(left))]};
  }
  void learn(const Cluster& cluster) {
    spent_ = 0;
    auto made = std::make_shared<Ranks>();
    made->rank_of.assign(cluster.slot_count(), kUnknown);
    made->end = cluster.next_arrival();
    for (const NodeInfo* node : cluster.nodes()) made->nodes.push_back(node->index.value);
    std::ranges::sort(made->nodes, {}, [&](std::uint32_t node) -> const std::string& { return cluster.node(NodeIndex{node})->name; });
    for (std::uint32_t i = 0; i < made->nodes.size(); ++i) made->rank_of[made->nodes[i]] = i;
    ranks_ = std::move(made);
  }

  std::shared_ptr<const Ranks> ranks_;
  std::size_t spent_ = 0;       ///< Names compared since.
  std::size_t learned_in_ = 0;  ///< So many attempts, which may have removed nodes.
};

}  // namespace berth::placement
