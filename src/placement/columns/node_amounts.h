// The amounts of a node in one piece, and the resource plugins' columnar form over them.
#pragma once
#include <cmath>
#include <cstdint>

#include "placement/cluster.h"
#include "placement/framework.h"

namespace berth::placement {

/// What NodeResourcesFit and the resource scorers read of a node, kept beside the nodes so that a class touches one or two cache lines.
struct NodeAmounts {
  std::int64_t allocatable_cpu = 0, allocatable_memory = 0, allocatable_storage = 0;
  std::int64_t requested_cpu = 0, requested_memory = 0, requested_storage = 0;
  std::int64_t nonzero_cpu = 0, nonzero_memory = 0;
  double per_cpu = 0, per_memory = 0;  ///< 1 / allocatable, rounded, where is_plain: multiplying is several times faster than dividing.
  std::int32_t pods = 0, allowed_pods = 0;
  /// The two used fractions are computable, and everything is small enough for doubles to be exact.
  bool is_plain = false;
  std::int8_t balance = 0;    ///< (1 - deviation) * 100 of what is there, over CPU and memory.
  std::uint16_t claims = 0;   ///< NodeInfo::claim_volumes; kManyClaims where there are other volumes too.
  std::uint32_t version = 0;  ///< NodeInfo's, of which these are; 0 without one.

  static constexpr std::uint16_t kManyClaims = UINT16_MAX;

  static NodeAmounts of(const NodeInfo& node);
};

/// (1 - |a - b| / 2) * 100: the balance of two used fractions, each capped at 1.
inline double balance_before_rounding(double a, double b) {
  return (1 - std::abs((std::min(a, 1.0) - std::min(b, 1.0)) / 2)) * static_cast<double>(kMaxNodeScore);
}
/// The same, truncated.
inline std::int64_t balance_of_two(double a, double b) { return static_cast<std::int64_t>(balance_before_rounding(a, b)); }

/// 1.36's NodeResourcesFit (LeastAllocated over CPU and memory) and BalancedAllocation (over the same) for one class of pods without
/// scalar resources. Made by the plugins themselves; equal to their plain forms wherever `NodeAmounts::is_plain`.
struct ResourceColumns {
  // Filter.
  bool filters = false;
  bool asks_nothing = false;
  std::int64_t cpu = 0, memory = 0, storage = 0;
  // LeastAllocated.
  std::int64_t least_weight = 0;
  std::int64_t cpu_share = 0, memory_share = 0;  ///< Weights of the two resources.
  std::int64_t scored_cpu = 0, scored_memory = 0;
  // BalancedAllocation.
  std::int64_t balanced_weight = 0;

  /// Which of the checks fail, as bits: pods, cpu, memory, storage; 16: more than the whole node has.
  [[nodiscard]] unsigned shortage(const NodeAmounts& node) const {
    unsigned out = node.pods + 1 > node.allowed_pods ? 1U : 0U;
    if (asks_nothing) return out;
    out |= lacks(cpu, node.requested_cpu, node.allocatable_cpu, 2) | lacks(memory, node.requested_memory, node.allocatable_memory, 4) |
           lacks(storage, node.requested_storage, node.allocatable_storage, 8);
    return out;
  }

  /// Requires node.is_plain.
  [[nodiscard]] std::int64_t score(const NodeAmounts& node) const {
    std::int64_t out = 0;
    if (least_weight != 0) {
      const std::int64_t sum = least(scored_cpu + node.nonzero_cpu, node.allocatable_cpu, node.per_cpu) * cpu_share +
                               least(scored_memory + node.nonzero_memory, node.allocatable_memory, node.per_memory) * memory_share;
      // Both are small and not negative: 32 bits divide several times faster.
      out +=
          static_cast<std::int64_t>(static_cast<std::uint32_t>(sum) / static_cast<std::uint32_t>(cpu_share + memory_share)) * least_weight;
    }
    if (balanced_weight != 0) {
      const std::int64_t with = balance_with(node);
      out += (kMaxNodeScore / 2 + (kMaxNodeScore / 2 + with - node.balance) / 2) * balanced_weight;
    }
    return out;
  }

 private:
  static unsigned lacks(std::int64_t wanted, std::int64_t used, std::int64_t allocatable, unsigned bit) {
    const AmountVerdict verdict = fit_amount(wanted, used, allocatable, Era::k136);
    return !verdict.is_short ? 0 : verdict.exceeds_node ? bit | 16U : bit;
  }
  /// (capacity - requested) * 100 / capacity, rounded down. The product is off by one at most, which is put right.
  static std::int64_t least(std::int64_t requested, std::int64_t capacity, double per_capacity) {
    if (requested > capacity) return 0;
    const std::int64_t left = (capacity - requested) * kMaxNodeScore;
    auto out = static_cast<std::int64_t>(static_cast<double>(left) * per_capacity);
    if (out * capacity > left) --out;
    if ((out + 1) * capacity <= left) ++out;
    return out;
  }

  /// As kube-scheduler's divisions have it: near a whole number they alone can tell.
  [[nodiscard]] std::int64_t balance_with(const NodeAmounts& node) const {
    constexpr double kNear = 1e-6;
    const auto with_cpu = static_cast<double>(node.requested_cpu + cpu), with_memory = static_cast<double>(node.requested_memory + memory);
    const double about = balance_before_rounding(with_cpu * node.per_cpu, with_memory * node.per_memory);
    const auto out = static_cast<std::int64_t>(about);
    const double rest = about - static_cast<double>(out);
    if (rest > kNear && rest < 1 - kNear) return out;
    return balance_of_two(with_cpu / static_cast<double>(node.allocatable_cpu), with_memory / static_cast<double>(node.allocatable_memory));
  }
};

}  // namespace berth::placement
