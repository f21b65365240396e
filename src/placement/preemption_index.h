// What preemption keeps of a cluster: per node the pods by importance in compact rows, and which disruption budgets cover them. Kept by the
// cluster's change log; a change costs one node, or the nodes that a changed budget covers.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "placement/columns/cluster_index.h"

namespace berth::placement {

/// cpu, memory, ephemeral storage, pods.
using PreemptionAmounts = std::array<std::int64_t, 4>;
inline PreemptionAmounts preemption_amounts(const Resource& resource, std::int64_t pods) {
  return {resource.cpu_milli, resource.memory_bytes, resource.ephemeral_storage_bytes, pods};
}

/// A pod of a node, as preemption sees it.
struct PreemptionRow {
  std::int64_t priority, start_time_ns;
  PreemptionAmounts request;
  const PodInfo* pod;
  std::uint8_t has;    ///< What a RemovableLoad may read of it (RemovableLoad::Reads).
  std::uint32_t kind;  ///< Pods of one kind are alike in traits, host ports and extended resources: a RemovableLoad counts them alike.
};

struct PreemptionNode {
  std::vector<PreemptionRow> rows;  ///< Most important first.
  PreemptionAmounts used{}, allocatable{};
  bool is_candidate = false;  ///< Has a node object.
  std::uint32_t version = 0;  ///< NodeInfo's.
};

/// Single-threaded; follows one cluster. `sync` must be called before reading after the cluster changed.
class PreemptionIndex {
 public:
  explicit PreemptionIndex(const Cluster& cluster) : cluster_(&cluster), index_(cluster) { rebuild(); }
  /// Of a fork of the other's cluster, which has not changed since; `other` must be synced. Copies share what neither changes.
  PreemptionIndex(const PreemptionIndex& other, const Cluster& fork)
      : cluster_(&fork),
        index_(other.index_, fork),
        index_epoch_(other.index_epoch_),
        index_position_(other.index_position_),
        epoch_(other.epoch_),
        nodes_(other.nodes_),
        touched_(other.touched_),
        budgets_version_(other.budgets_version_),
        budgets_(other.budgets_),
        sets_(other.sets_),
        set_index_(other.set_index_),
        kinds_(other.kinds_),
        kind_count_(other.kind_count_),
        kinds_at_start_(other.kinds_at_start_),
        kind_bytes_(other.kind_bytes_),
        kind_bytes_at_start_(other.kind_bytes_at_start_),
        set_of_kind_(other.set_of_kind_) {}

  void sync();
  /// Counts how often everything started over; what was derived from nodes before is void.
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] std::size_t slot_count() const { return nodes_.size(); }
  [[nodiscard]] const PreemptionNode& node(std::uint32_t slot) const { return *nodes_[slot]; }
  [[nodiscard]] const ClusterIndex& cluster_index() const { return index_; }
  [[nodiscard]] ClusterIndex& cluster_index() { return index_; }

  // Nodes whose answer to anyone may have changed: entries [touched_begin, touched_end).
  [[nodiscard]] std::uint64_t touched_begin() const { return touched_.begin(); }
  [[nodiscard]] std::uint64_t touched_end() const { return touched_.end(); }
  [[nodiscard]] std::uint32_t touched(std::uint64_t position) const { return touched_[position]; }

  /// One past the largest PreemptionRow::kind.
  [[nodiscard]] std::size_t kind_count() const { return kind_count_; }
  /// For each of `rows`, in order, whether evicting it breaks a budget once those before it are gone (budget_violations). Empty when no
  /// budget covers any.
  [[nodiscard]] std::vector<bool> violations(std::span<const PreemptionRow> rows) const;
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  using BudgetPtr = std::shared_ptr<const model::PodDisruptionBudgetView>;
  struct Budget {
    BudgetPtr view;
    Pages<std::uint32_t> holders;  ///< Nodes that have, or had, a pod it covers; with repetitions.
  };

  void rebuild();
  void rebuild_node(std::uint32_t node);
  void touch(std::uint32_t node);
  bool update_budgets();
  void take_budgets();
  std::uint32_t kind_of(const PodInfo& pod);
  /// The set of budgets that cover such pods.
  std::uint32_t budgets_of(std::uint32_t kind, const PodInfo& pod);
  void hold(std::uint32_t set, std::uint32_t node);
  static void tidy(Pages<std::uint32_t>& holders);

  const Cluster* cluster_;
  ClusterIndex index_;
  std::uint64_t index_epoch_ = 0, index_position_ = 0, epoch_ = 0;
  Pages<std::shared_ptr<PreemptionNode>> nodes_;
  PagedLog<std::uint32_t> touched_;

  std::uint64_t budgets_version_ = 0;
  std::vector<std::shared_ptr<Budget>> budgets_;
  std::vector<std::vector<std::uint32_t>> sets_;  ///< Of places in budgets_; the first is empty.
  std::map<std::vector<std::uint32_t>, std::uint32_t> set_index_;
  ShardedMap<std::uint64_t, std::vector<std::pair<PodInfoPtr, std::uint32_t>>, NumberHash> kinds_;  ///< By hash of the traits.
  std::size_t kind_count_ = 0, kinds_at_start_ = 0, kind_bytes_ = 0, kind_bytes_at_start_ = 0;
  Pages<std::uint32_t> set_of_kind_;  ///< Plus one; 0: not looked for yet.
};

}  // namespace berth::placement
