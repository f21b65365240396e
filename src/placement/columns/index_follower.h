// Where somebody stands who follows a ClusterIndex: which nodes changed since he looked last.
#pragma once
#include <cstdint>
#include <vector>

#include "placement/columns/cluster_index.h"

namespace berth::placement {

/// Owner: a class of pods, a static column. What was looked at during an attempt is remembered apart: once the attempt is taken back, just
/// those nodes are looked at again, and what others did in attempts of their own costs nobody anything. Copies follow copies of the index.
class IndexFollower {
 public:
  /// All nodes are looked at as they are now.
  void restart(const ClusterIndex& index) {
    line_ = index.line();
    position_ = index.touched_end();
    attempt_ = index.attempt_begin();
    tried_.clear();
    if (attempt_ == ClusterIndex::kNoAttempt) return;
    for (std::uint64_t at = attempt_; at < position_; ++at) tried_.push_back(index.touched(at));
  }

  /// False: the index no longer knows what changed since; then `restart`.
  [[nodiscard]] bool reaches(const ClusterIndex& index) const { return start(index) >= index.touched_begin(); }
  /// At least how many nodes `follow` will name, with repetitions.
  [[nodiscard]] std::size_t behind(const ClusterIndex& index) const {
    return index.touched_end() - start(index) + (is_astray(index) ? tried_.size() : 0);
  }
  /// Names each node that may differ from what was seen, perhaps more than once: visit(node, is_static, next) with the node that comes
  /// some way after this one (the same for lack of another), to be fetched ahead. Requires `reaches`.
  template <typename Visit>
  void follow(const ClusterIndex& index, Visit&& visit) {
    constexpr std::uint64_t kAhead = 12;
    const bool goes_back = is_astray(index);
    const std::uint64_t begin = position_ = start(index);
    line_ = index.line();
    // A node is looked at once: where its object changed at any time of the attempt, for that.
    for (const bool is_static : {true, false})
      for (std::size_t i = 0; goes_back && i < tried_.size(); ++i)
        if (tried_[i].is_static == is_static)
          visit(tried_[i].node, is_static || index.is_static_since(tried_[i].node, begin), tried_[i].node);
    if (goes_back || attempt_ != index.attempt_begin()) {
      attempt_ = index.attempt_begin();
      tried_.clear();
    }
    for (const std::uint64_t end = index.touched_end(); position_ < end; ++position_) {
      const std::uint32_t node = index.touched(position_).node;
      const bool is_static = index.is_static_since(node, begin);
      visit(node, is_static, position_ + kAhead < end ? index.touched(position_ + kAhead).node : node);
      if (attempt_ != ClusterIndex::kNoAttempt && position_ >= attempt_) tried_.push_back({node, is_static});
    }
  }

 private:
  /// An attempt that was looked into has been taken back.
  [[nodiscard]] bool is_astray(const ClusterIndex& index) const { return line_ != index.line() && attempt_ != ClusterIndex::kNoAttempt; }
  [[nodiscard]] std::uint64_t start(const ClusterIndex& index) const { return is_astray(index) ? attempt_ : position_; }

  std::uint64_t position_ = 0, line_ = 0;
  std::uint64_t attempt_ = ClusterIndex::kNoAttempt;  ///< Where the attempt began in which this follower looked last.
  std::vector<ClusterIndex::Touched> tried_;          ///< What it looked at there.
};

}  // namespace berth::placement
