// Quotas and what is used of them, along cohorts: what a ClusterQueue has left, what it may borrow, how large its share is
// (Kueue: pkg/cache resource_node.go, fair_sharing.go).
#pragma once
#include <span>
#include <string>
#include <vector>

#include "queues/objects.h"

namespace berth::queues {

enum class QuotaNode : int { kNone = -1 };

/// ClusterQueues are leaves, cohorts the nodes above. What a node does not keep for itself (its lendingLimit) it gives to its parent, who
/// keeps account of what is used of that. A cohort that nobody made is there as soon as somebody names it. Not thread-safe.
class QuotaTree {
 public:
  QuotaTree() = default;
  /// Nothing is used yet. Cohorts in circles, and what stands below them, have no parent: `is_circular` tells.
  QuotaTree(const std::map<std::string, ClusterQueue>& queues, const std::map<std::string, Cohort>& cohorts);

  [[nodiscard]] QuotaNode queue(std::string_view name) const;
  [[nodiscard]] const std::string& name(QuotaNode node) const { return at(node).name; }
  [[nodiscard]] bool is_circular(QuotaNode node) const { return at(node).is_circular; }
  [[nodiscard]] QuotaNode parent(QuotaNode node) const { return at(node).parent; }
  [[nodiscard]] QuotaNode root(QuotaNode node) const;
  [[nodiscard]] std::span<const QuotaNode> queues_of(QuotaNode cohort) const { return at(cohort).queues; }
  [[nodiscard]] std::span<const QuotaNode> cohorts_of(QuotaNode cohort) const { return at(cohort).cohorts; }
  /// Of a root that is a ClusterQueue: itself.
  [[nodiscard]] std::vector<QuotaNode> queues_below(QuotaNode node) const;

  /// What may still be used, borrowing included; negative where more is used than there is.
  [[nodiscard]] Amount available(QuotaNode node, const FlavorResource& what) const;
  /// The same if nobody used anything.
  [[nodiscard]] Amount potential(QuotaNode node, const FlavorResource& what) const;
  /// Of what the node keeps for itself alone.
  [[nodiscard]] Amount locally_available(QuotaNode node, const FlavorResource& what) const;
  [[nodiscard]] Amount used(QuotaNode node, const FlavorResource& what) const { return value(at(node).used, what); }
  /// The nominal quota of a ClusterQueue; of a cohort, what is lent to it on top of its own.
  [[nodiscard]] Amount nominal(QuotaNode node, const FlavorResource& what) const { return value(at(node).subtree, what); }
  [[nodiscard]] const ResourceQuota* quota(QuotaNode node, const FlavorResource& what) const;
  [[nodiscard]] bool borrows_with(QuotaNode node, const FlavorResource& what, Amount more) const {
    return plus(used(node, what), more) > nominal(node, what);
  }
  [[nodiscard]] bool fits(QuotaNode node, const FlavorAmounts& amounts) const;
  /// The dominant resource share by the fair-sharing weight: 0 below the nominal quotas, 1000 for all that can be lent at weight 1, the
  /// largest number at weight 0.
  [[nodiscard]] std::int64_t share(QuotaNode node) const;
  /// Levels of cohorts below; 0 of one without anything.
  [[nodiscard]] int height(QuotaNode cohort) const;

  void add(QuotaNode queue, const FlavorAmounts& amounts);
  void remove(QuotaNode queue, const FlavorAmounts& amounts);

 private:
  struct Node {
    std::string name;
    QuotaNode parent = QuotaNode::kNone;
    bool is_circular = false;
    std::vector<QuotaNode> queues, cohorts;
    Quotas quotas;
    std::int64_t weight_milli = 1000;
    FlavorAmounts subtree, used;
  };
  [[nodiscard]] const Node& at(QuotaNode node) const { return nodes_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] Node& at(QuotaNode node) { return nodes_[static_cast<std::size_t>(node)]; }
  static Amount value(const FlavorAmounts& amounts, const FlavorResource& what);
  [[nodiscard]] Amount kept(const Node& node, const FlavorResource& what) const;
  QuotaNode cohort_named(const std::string& name);
  void cut_circles();
  void sum_up(QuotaNode cohort);
  void add_one(QuotaNode node, const FlavorResource& what, Amount amount);
  void remove_one(QuotaNode node, const FlavorResource& what, Amount amount);

  std::vector<Node> nodes_;
  std::map<std::string, QuotaNode, std::less<>> queues_, cohorts_;
};

}  // namespace berth::queues
