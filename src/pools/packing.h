// Which nodes to buy so that all items have a place and the hour costs least: vector bin packing with shapes of different prices. Pure
// numbers: no pod, no cluster, no clock.
//
//   pack_first_fit   what Karpenter does: largest first, each open node keeps every shape that still takes its content
//   pack             that, then column generation for the items' prices, patterns chosen by these, ruin and recreate: the cheapest found
//   Packed::bound    no way to pack all that was packed costs less
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace berth::pools {

/// Amounts of each resource, in the order that the asker chose; all vectors of a problem have the same length.
using Amounts = std::vector<std::int64_t>;

/// A node that can be bought.
struct BinShape {
  Amounts room;      ///< What daemons leave of it.
  Amounts capacity;  ///< What it takes from its pool's limits, in the order of PoolLimits.
  double price = 0;  ///< Of an hour.
  std::size_t pool = 0;
};

/// Pods that are interchangeable.
struct Item {
  Amounts request;
  std::int64_t count = 0;
  std::int64_t priority = 0;
  std::vector<std::uint32_t> shapes;  ///< That it may go to, ascending; one that is too small for it is no harm.
  /// False: more than sizes and limits may send it to a pool of less weight. For lower_bound alone.
  bool goes_by_weight = true;
};

/// A pool's rank among the others, and what is left of its limits.
struct PoolRules {
  std::int64_t weight = 0;
  Amounts left;  ///< INT64_MAX: no limit.
};

inline bool fits(const Amounts& wanted, const Amounts& room) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] > room[i]) return false;
  return true;
}

struct PackingProblem {
  std::vector<BinShape> shapes;
  std::vector<PoolRules> pools;  ///< In the order in which equals are tried.
  std::vector<Item> items;
  std::size_t slots = 0;  ///< How many of the last amounts are no sizes, but keep items apart.
};

/// One node to buy.
struct Bin {
  std::uint32_t shape = 0;
  std::vector<std::pair<std::uint32_t, std::int64_t>> content;  ///< Item and how many of it, by item.
};

struct Packed {
  std::vector<Bin> bins;
  std::vector<std::int64_t> left;  ///< Of each item: how many have no place.
  double cost = 0;
  double greedy_cost = 0;  ///< What pack_first_fit would pay for at least as few left.
  /// Of what has a place. 0 when nothing better is known.
  double bound = 0;
  [[nodiscard]] std::int64_t left_count() const;
};

struct PackingOptions {
  /// Asked between steps: true ends the improvement with what there is. Never called when empty.
  std::function<bool()> is_over;
  int rounds = 150;  ///< Of ruin and recreate, at most.
  std::uint64_t seed = 1;
};

/// As Karpenter's scheduler (pkg/controllers/provisioning/scheduling): by cpu, then memory, which must be the first two amounts; existing
/// room first is the asker's business; then the open node with the fewest items, then a new one of the pool that weighs most. A node's
/// price is that of the cheapest shape that it could still be.
Packed pack_first_fit(const PackingProblem& problem);

/// Never costs more than pack_first_fit, and never leaves more. An item goes to the pools of highest weight that can take it, and to others
/// only when these are at their limits, as there. Deterministic where `is_over` is.
Packed pack(const PackingProblem& problem, const PackingOptions& options = {});

/// No nodes that hold all items cost less, as long as pools of more weight come first: a pool without limits leaves nobody whom it can take
/// to one of less weight.
double lower_bound(const PackingProblem& problem, const std::function<bool()>& is_over);

}  // namespace berth::pools
