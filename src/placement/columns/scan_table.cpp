#include "placement/columns/scan_table.h"

#include <limits>

namespace berth::placement {

void ScanTable::sync(const ClusterIndex& index) {
  const std::uint32_t slots = index.cluster().slot_count();
  if (epoch_ != index.epoch() || !follower_.reaches(index) || follower_.behind(index) > slots || is_odd_.size() != slots) {
    epoch_ = index.epoch();
    pairs_.assign((slots + kLanes - 1) / kLanes, Pair{});
    is_odd_.assign(slots, 0);
    odd_ = 0;
    for (auto& pair : pairs_) pair.free_pods = Lanes{-1, -1};
    for (std::uint32_t i = 0; i < slots; ++i) set(index, i);
    follower_.restart(index);
    return;
  }
  follower_.follow(index, [&](std::uint32_t node, bool, std::uint32_t) { set(index, node); });
}

void ScanTable::set(const ClusterIndex& index, std::uint32_t node) {
  const NodeAmounts& from = index.amounts(node);
  Pair& to = pairs_[node / kLanes];
  const std::size_t at = node % kLanes;
  const bool is_odd = !from.is_plain && from.allowed_pods > 0;
  odd_ = odd_ + static_cast<std::size_t>(is_odd) - is_odd_[node];
  is_odd_[node] = static_cast<std::uint8_t>(is_odd);
  to.free_pods[at] = from.is_plain ? from.allowed_pods - from.pods : -1;
  if (!from.is_plain) return;
  to.capacity_cpu[at] = static_cast<double>(from.allocatable_cpu);
  to.capacity_memory[at] = static_cast<double>(from.allocatable_memory);
  to.requested_cpu[at] = static_cast<double>(from.requested_cpu);
  to.requested_memory[at] = static_cast<double>(from.requested_memory);
  to.nonzero_cpu[at] = static_cast<double>(from.nonzero_cpu);
  to.nonzero_memory[at] = static_cast<double>(from.nonzero_memory);
  to.per_cpu[at] = from.per_cpu;
  to.per_memory[at] = from.per_memory;
  to.balance[at] = from.balance;
}

/// To the nearest whole number; requires 0 <= value < 2^51. Adding 2^52 leaves no place for a fraction.
inline ScanTable::Lanes ScanTable::nearest_to(Lanes value) {
  constexpr double kNoFraction = 4503599627370496.0;
  return (value + kNoFraction) - kNoFraction;
}

inline ScanTable::Lanes ScanTable::floor_of(Lanes value) {
  const Lanes one = {1, 1}, none = {0, 0}, out = nearest_to(value);
  return out - (out > value ? one : none);
}

/// Whole numbers divided and rounded down; requires 0 <= dividend < 2^52 and a quotient of a hundred or so. The nearest whole number is the
/// one wanted, or the next.
inline ScanTable::Lanes ScanTable::quotient(Lanes dividend, Lanes divisor, Lanes per_divisor) {
  const Lanes one = {1, 1}, none = {0, 0}, out = nearest_to(dividend * per_divisor);
  return out - (out * divisor > dividend ? one : none);
}

void ScanTable::score(const ResourceColumns& wanted, const ClusterIndex& index, std::vector<std::int32_t>& out) const {
  constexpr double kAnything = -std::numeric_limits<double>::infinity();
  const auto asked = [&](std::int64_t amount) { return amount == 0 || wanted.asks_nothing ? kAnything : static_cast<double>(amount); };
  const double cpu = asked(wanted.cpu), memory = asked(wanted.memory);
  const auto added_cpu = static_cast<double>(wanted.cpu), added_memory = static_cast<double>(wanted.memory);
  const auto scored_cpu = static_cast<double>(wanted.scored_cpu), scored_memory = static_cast<double>(wanted.scored_memory);
  const bool is_least = wanted.least_weight != 0;
  const double cpu_share = is_least ? static_cast<double>(wanted.cpu_share) : 0;
  const double memory_share = is_least ? static_cast<double>(wanted.memory_share) : 0;
  const double all_shares = is_least ? cpu_share + memory_share : 1;
  const Lanes shares = {all_shares, all_shares}, per_share = {1 / all_shares, 1 / all_shares};
  const auto least_weight = static_cast<double>(wanted.least_weight), balanced_weight = static_cast<double>(wanted.balanced_weight);
  constexpr auto kMax = static_cast<double>(kMaxNodeScore), kHalf = kMax / 2;
  const Lanes none = {0, 0}, whole = {1, 1}, unfit = {static_cast<double>(kUnfit), static_cast<double>(kUnfit)};
  const auto least = [&](Lanes room, Lanes capacity, Lanes per) {
    const Lanes left = room < none ? none : room * kMax;
    return quotient(left, capacity, per);
  };

  out.resize(pairs_.size() * kLanes);
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const Pair& node = pairs_[i];
    const Lanes sum =
        least(node.capacity_cpu - (node.nonzero_cpu + scored_cpu), node.capacity_cpu, node.per_cpu) * cpu_share +
        least(node.capacity_memory - (node.nonzero_memory + scored_memory), node.capacity_memory, node.per_memory) * memory_share;
    // As balance_before_rounding has it, operation by operation.
    const Lanes with_cpu = (node.requested_cpu + added_cpu) / node.capacity_cpu;
    const Lanes with_memory = (node.requested_memory + added_memory) / node.capacity_memory;
    const Lanes apart = ((with_cpu < whole ? with_cpu : whole) - (with_memory < whole ? with_memory : whole)) / 2;
    const Lanes balance = floor_of((1 - (apart < none ? -apart : apart)) * kMax);
    const Lanes gain = floor_of((kHalf + balance - node.balance) / 2);
    const Lanes total = quotient(sum, shares, per_share) * least_weight + (kHalf + gain) * balanced_weight;
    const auto fits = (node.free_pods >= whole) & (node.capacity_cpu - node.requested_cpu >= cpu) &
                      (node.capacity_memory - node.requested_memory >= memory);
    const Lanes said = fits ? total : unfit;
    out[i * kLanes] = static_cast<std::int32_t>(said[0]);
    out[i * kLanes + 1] = static_cast<std::int32_t>(said[1]);
  }
  // Rare: storage that is asked for, which may be beyond what a double tells apart, and nodes with amounts of that kind.
  const bool asks_storage = wanted.storage != 0 && !wanted.asks_nothing;
  if (!asks_storage && odd_ == 0) return;
  for (std::uint32_t i = 0; i < is_odd_.size(); ++i) {
    if (is_odd_[i] == 0 && (!asks_storage || out[i] == kUnfit)) continue;
    if (wanted.shortage(index.amounts(i)) != 0)
      out[i] = kUnfit;
    else if (is_odd_[i] != 0)
      out[i] = kNotPlain;
  }
}

}  // namespace berth::placement
