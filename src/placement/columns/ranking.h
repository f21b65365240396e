// Nodes in order of score, per group, changed one node at a time.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace berth::placement {

/// For each group, buckets of nodes with equal score in ascending order. Moving a node costs a search over the group's distinct scores,
/// which are few. Positions of nodes inside buckets live with the caller (`position_of(node)`), so that a node's record is one piece.
///
/// A group may have a floor: nodes that score less are counted but in no bucket, so that moving them costs next to nothing. The caller, who
/// knows all scores, refills a group that has nodes but no buckets (`is_thin`): it lowers the floor and ranks the nodes at or above it.
template <typename PositionOf>
class Ranking {
 public:
  explicit Ranking(PositionOf position_of) : position_of_(position_of) {}
  /// Positions are there from now on: a copy's are with the copy's owner.
  void bind(PositionOf position_of) { position_of_ = position_of; }

  struct Bucket {
    std::int32_t score = 0;
    std::vector<std::uint32_t> nodes;
  };

  static constexpr std::int32_t kNoFloor = INT32_MIN;

  void add_group(std::int32_t floor = kNoFloor) { groups_.emplace_back().floor = floor; }
  [[nodiscard]] bool empty(std::uint32_t group) const { return groups_[group].size == 0; }
  [[nodiscard]] std::int32_t floor(std::uint32_t group) const { return groups_[group].floor; }
  /// Has nodes, but none in a bucket.
  [[nodiscard]] bool is_thin(std::uint32_t group) const { return groups_[group].order.empty() && groups_[group].size != 0; }
  [[nodiscard]] std::size_t size(std::uint32_t group) const { return groups_[group].size; }
  /// Requires a group that is neither empty nor thin.
  [[nodiscard]] const Bucket& best(std::uint32_t group) const { return buckets_[groups_[group].order.back().second]; }
  /// Distinct scores of the group, and the bucket at `rank` from the best (0).
  [[nodiscard]] std::size_t bucket_count(std::uint32_t group) const { return groups_[group].order.size(); }
  [[nodiscard]] const Bucket& bucket(std::uint32_t group, std::size_t rank) const {
    const auto& order = groups_[group].order;
    return buckets_[order[order.size() - 1 - rank].second];
  }

  void insert(std::uint32_t group, std::uint32_t node, std::int32_t score) {
    Group& owner = groups_[group];
    ++owner.size;
    if (score >= owner.floor) rank(owner, node, score);
  }

  /// Counts nodes that the group has below its floor.
  void insert_below(std::uint32_t group, std::size_t count) { groups_[group].size += count; }

  /// The group is thin and gets a lower floor; `rank_counted` must follow for each of its nodes at or above it.
  void lower_floor(std::uint32_t group, std::int32_t floor) { groups_[group].floor = floor; }
  void rank_counted(std::uint32_t group, std::uint32_t node, std::int32_t score) { rank(groups_[group], node, score); }

  void erase(std::uint32_t group, std::uint32_t node, std::int32_t score) {
    Group& owner = groups_[group];
    --owner.size;
    if (score < owner.floor) return;
    const auto at = find(owner, score);
    auto& nodes = buckets_[at->second].nodes;
    const std::uint32_t hole = position_of_(node);
    const std::uint32_t last = nodes.back();
    nodes[hole] = last;
    position_of_(last) = hole;
    nodes.pop_back();
    if (!nodes.empty()) return;
    free_.push_back(at->second);
    owner.order.erase(at);
  }

  /// A node of the group with another score from now on.
  void move(std::uint32_t group, std::uint32_t node, std::int32_t from, std::int32_t to) {
    const std::int32_t floor = groups_[group].floor;
    if (from < floor && to < floor) return;
    erase(group, node, from);
    insert(group, node, to);
  }

  void clear() {
    groups_.clear();
    buckets_.clear();
    free_.clear();
  }

  [[nodiscard]] std::size_t memory_bytes() const {
    std::size_t out = groups_.capacity() * sizeof(Group) + buckets_.capacity() * sizeof(Bucket);
    for (const auto& bucket : buckets_) out += bucket.nodes.capacity() * 4;
    return out;
  }

 private:
  struct Group {
    std::vector<std::pair<std::int32_t, std::uint32_t>> order;  ///< (score, bucket), ascending.
    std::size_t size = 0;
    std::int32_t floor = kNoFloor;
  };

  void rank(Group& owner, std::uint32_t node, std::int32_t score) {
    auto at = find(owner, score);
    if (at == owner.order.end() || at->first != score) at = owner.order.insert(at, {score, take_bucket(score)});
    auto& nodes = buckets_[at->second].nodes;
    position_of_(node) = static_cast<std::uint32_t>(nodes.size());
    nodes.push_back(node);
  }

  /// From the best downwards: changes happen near the top.
  static auto find(Group& group, std::int32_t score) {
    auto at = group.order.end();
    if (group.order.size() > 32) {
      return std::lower_bound(group.order.begin(), group.order.end(), score,
                              [](const auto& pair, std::int32_t value) { return pair.first < value; });
    }
    while (at != group.order.begin() && std::prev(at)->first >= score) --at;
    return at;
  }

  std::uint32_t take_bucket(std::int32_t score) {
    if (free_.empty()) {
      buckets_.push_back({score, {}});
      return static_cast<std::uint32_t>(buckets_.size() - 1);
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    buckets_[index].score = score;
    return index;
  }

  PositionOf position_of_;
  std::vector<Group> groups_;
  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> free_;
};

}  // namespace berth::placement
