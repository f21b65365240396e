// A value per node, of which most are as they began.
#pragma once
#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>

#include "placement/pages.h"

namespace berth::placement {

/// By node slot; T() where nothing was set. Few values are kept as a map, many as a column, so that what a class of pods holds grows with
/// the nodes that matter to it.
template <typename T>
class SparseColumn {
 public:
  [[nodiscard]] const T& operator[](std::uint32_t node) const {
    static const T kNone{};
    if (!dense_.empty()) return node < dense_.size() ? dense_[node] : kNone;
    if (sparse_.empty()) return kNone;
    const auto at = sparse_.find(node);
    return at == sparse_.end() ? kNone : at->second;
  }
  /// `slots`: how many nodes there may be.
  void set(std::uint32_t node, const T& value, std::uint32_t slots) {
    if (dense_.empty()) {
      if (value == T{}) {
        sparse_.erase(node);
        return;
      }
      sparse_.insert_or_assign(node, value);
      if (sparse_.size() > slots / kMostShare) make_dense(slots);
      return;
    }
    if (node >= dense_.size()) dense_.resize(std::max(node + 1, slots));
    dense_.edit(node) = value;
  }
  void clear() {
    sparse_.clear();
    dense_.clear();
  }
  [[nodiscard]] std::size_t memory_bytes() const { return dense_.memory_bytes() + sparse_.size() * (sizeof(T) + 12); }

 private:
  /// Beyond one node in so many the column is the smaller and the faster.
  static constexpr std::uint32_t kMostShare = 4;

  void make_dense(std::uint32_t slots) {
    std::uint32_t size = slots;
    for (const auto& [node, value] : sparse_) size = std::max(size, node + 1);
    dense_.renew(std::max(size, 1U));
    for (const auto& [node, value] : sparse_) dense_.edit(node) = value;
    sparse_ = {};
  }

  boost::unordered_flat_map<std::uint32_t, T> sparse_;
  Pages<T> dense_;
};

}  // namespace berth::placement
