// Which of many nodes comes first by name, without comparing names each time: thousands of equals are asked about for every pod.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "placement/cluster.h"

namespace berth::placement {

/// Names as ranks, learned once names have been compared often enough for that to pay. A node is known by its slot and arrival: what comes
/// later is compared by its name until the ranks are made anew. Copies share what they have learned.
class NameOrder {
 public:
  /// Adds nodes; the first by name of all of them wins. Requires that they are there.
  class First {
   public:
    First(NameOrder& order, const Cluster& cluster) : order_(order), cluster_(cluster) {}
    void add(std::uint32_t node) {
      const std::uint32_t rank = order_.rank_of(cluster_, node);
      if (rank == kUnknown) return add_unknown(node);
      if (rank >= best_rank_) return;
      best_rank_ = rank;
      ranked_ = node;
    }
    /// Invalid when none was added.
    [[nodiscard]] NodeIndex result() {
      order_.spend(cluster_, unknown_count_);
      if (!ranked_ || !unranked_) return NodeIndex{ranked_ ? *ranked_ : unranked_.value_or(UINT32_MAX)};
      return NodeIndex{name_of(*ranked_) < name_of(*unranked_) ? *ranked_ : *unranked_};
    }

   private:
    [[nodiscard]] const std::string& name_of(std::uint32_t node) const { return cluster_.node(NodeIndex{node})->name; }
    void add_unknown(std::uint32_t node) {
      ++unknown_count_;
      if (!unranked_ || name_of(node) < name_of(*unranked_)) unranked_ = node;
    }

    NameOrder& order_;
    const Cluster& cluster_;
    std::uint32_t best_rank_ = kUnknown;
    std::optional<std::uint32_t> ranked_, unranked_;
    std::size_t unknown_count_ = 0;
  };

  void sort(const Cluster& cluster, std::vector<NodeIndex>& nodes) {
    const bool are_known = std::ranges::all_of(nodes, [&](NodeIndex node) { return rank_of(cluster, node.value) != kUnknown; });
    if (are_known) {
      std::ranges::sort(nodes, {}, [&](NodeIndex node) { return rank_of(cluster, node.value); });
      return;
    }
    std::ranges::sort(nodes, {}, [&](NodeIndex node) -> const std::string& { return cluster.node(node)->name; });
    spend(cluster, nodes.size());
  }

 private:
  static constexpr std::uint32_t kUnknown = UINT32_MAX;
  struct Rank {
    std::uint64_t arrival = UINT64_MAX;
    std::uint32_t rank = kUnknown;
  };

  [[nodiscard]] std::uint32_t rank_of(const Cluster& cluster, std::uint32_t node) const {
    if (ranks_ == nullptr || node >= ranks_->size()) return kUnknown;
    const Rank& known = (*ranks_)[node];
    return known.arrival == cluster.arrival(NodeIndex{node}) ? known.rank : kUnknown;
  }
  /// So many names were compared.
  void spend(const Cluster& cluster, std::size_t names) {
    spent_ += names;
    if (spent_ <= 4UL * cluster.slot_count()) return;
    spent_ = 0;
    auto made = std::make_shared<std::vector<Rank>>(cluster.slot_count());
    std::vector<const NodeInfo*> nodes = cluster.nodes();
    std::ranges::sort(nodes, {}, [](const NodeInfo* node) -> const std::string& { return node->name; });
    for (std::uint32_t i = 0; i < nodes.size(); ++i) (*made)[nodes[i]->index.value] = {cluster.arrival(nodes[i]->index), i};
    ranks_ = std::move(made);
  }

  std::shared_ptr<const std::vector<Rank>> ranks_;
  std::size_t spent_ = 0;
};

}  // namespace berth::placement
