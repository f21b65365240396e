// A quantity of nodes (a number of pods, a sum of weights) summed over the domains of one topology key, changed one node at a time.
#pragma once
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "placement/columns/cluster_index.h"
#include "placement/columns/sparse_column.h"

namespace berth::placement {

/// Where every domain is one node ("local"), the node's own value is the domain's.
class DomainSum {
 public:
  struct Source {
    CountId count;  ///< Of a PodMatcher or a HeldTerm.
    std::int64_t weight = 1;
  };

  DomainSum(const ClusterIndex& index, std::size_t topology) : index_(&index), topology_(topology), local_(column().is_local()) {}

  /// The index is another one from now on: the same, or a copy in which nothing has changed.
  void bind(const ClusterIndex& index) { index_ = &index; }
  void add_source(Source source) { sources_.push_back(source); }
  /// Forgets all nodes, keeps the sources, and looks again at whether domains are single nodes.
  void reset() {
    local_ = column().is_local();
    seen_.clear();
    sums_.clear();
    members_.clear();
    histogram_.clear();
    lowest_ = 0;
    total_ = domains_ = 0;
  }
  [[nodiscard]] bool is_local() const { return local_; }
  /// The topology key changed its nature: the class must be built anew.
  [[nodiscard]] bool is_stale() const { return local_ != column().is_local(); }
  [[nodiscard]] std::size_t topology() const { return topology_; }
  [[nodiscard]] const TopologyColumn& column() const { return index_->topology_column(topology_); }

  /// Brings the node's part up to date. `counted`: its pods count; `member`: its domain exists because of it.
  void update(std::uint32_t node, bool counted, bool member) {
    const std::int32_t value = column().value_of(node);
    std::int64_t amount = 0;
    if (value >= 0 && counted)
      for (const auto& source : sources_) amount += source.weight * static_cast<std::int64_t>(index_->counts(source.count)[node]);
    member &= value >= 0;
    // Most nodes count for nothing, before and after: of them nothing is kept.
    const Seen now = amount == 0 && !member ? Seen{} : Seen{amount, value, member};
    const Seen before = seen_[node];
    if (before == now) return;
    retract(before);
    seen_.set(node, now, static_cast<std::uint32_t>(column().value_plus_one_of.size()));
    if (now == Seen{}) return;
    total_ += amount;
    if (static_cast<std::size_t>(value) >= sums_.size()) {
      sums_.resize(static_cast<std::size_t>(value) + 1);
      members_.resize(sums_.size());
    }
    if (amount != 0) sums_.edit(static_cast<std::size_t>(value)) += amount;
    if (member && members_.edit(static_cast<std::size_t>(value))++ == 0) ++domains_;
    if (member && local_) count_local(amount, 1);
  }

  /// Marks the nodes on which there is something to sum; of the others `update` keeps nothing, unless they are members.
  void mark_counted(std::vector<std::uint8_t>& nodes) const {
    for (const auto& source : sources_) index_->counts(source.count).for_each([&](std::uint32_t node, std::uint32_t) { nodes[node] = 1; });
  }

  /// -1 where the label is missing.
  [[nodiscard]] std::int32_t value_of(std::uint32_t node) const { return column().value_of(node); }
  [[nodiscard]] std::int64_t amount_of(std::uint32_t node) const { return seen_[node].amount; }
  /// The sum over a domain; 0 for one that no member makes exist when `existing_only`.
  [[nodiscard]] std::int64_t sum(std::int64_t value, bool existing_only = false) const {
    const auto at = static_cast<std::size_t>(value);
    return at >= sums_.size() || (existing_only && members_[at] == 0) ? 0 : sums_[at];
  }
  /// Over all nodes that have the key.
  [[nodiscard]] std::int64_t total() const { return total_; }
  [[nodiscard]] std::int64_t domains() const { return domains_; }
  /// The smallest sum of an existing domain; INT32_MAX without any.
  [[nodiscard]] std::int64_t minimum() const {
    if (local_) {
      while (lowest_ < histogram_.size() && histogram_[lowest_] == 0) ++lowest_;
      return lowest_ < histogram_.size() ? static_cast<std::int64_t>(lowest_) : INT32_MAX;
    }
    std::int64_t out = INT32_MAX;
    for (std::size_t i = 0; i < sums_.size(); ++i)
      if (members_[i] != 0) out = std::min(out, sums_[i]);
    return out;
  }
  /// Some member makes the domain exist.
  [[nodiscard]] bool exists(std::int64_t value) const {
    return static_cast<std::size_t>(value) < members_.size() && members_[static_cast<std::size_t>(value)] != 0;
  }
  /// The two smallest sums of existing domains, which may be equal; INT32_MAX where there are fewer.
  struct Lowest {
    std::int64_t first = INT32_MAX, second = INT32_MAX;
    void add(std::int64_t sum) {
      second = std::min(second, std::max(first, sum));
      first = std::min(first, sum);
    }
  };
  [[nodiscard]] Lowest lowest_two() const {
    Lowest out;
    if (local_) {
      for (std::size_t i = lowest_; i < histogram_.size() && out.second == INT32_MAX; ++i)
        for (std::uint32_t n = std::min(histogram_[i], 2U); n > 0; --n) out.add(static_cast<std::int64_t>(i));
      return out;
    }
    for (std::size_t i = 0; i < sums_.size(); ++i)
      if (members_[i] != 0) out.add(sums_[i]);
    return out;
  }
  [[nodiscard]] std::size_t memory_bytes() const {
    return sizeof(DomainSum) + sources_.capacity() * sizeof(Source) + seen_.memory_bytes() + sums_.memory_bytes() +
           members_.memory_bytes() + histogram_.capacity() * 4;
  }

 private:
  struct Seen {
    std::int64_t amount = 0;
    std::int32_t value = -1;
    bool member = false;
    friend bool operator==(const Seen&, const Seen&) = default;
  };

  void retract(const Seen& seen) {
    if (seen.value < 0) return;
    total_ -= seen.amount;
    if (seen.amount != 0) sums_.edit(static_cast<std::size_t>(seen.value)) -= seen.amount;
    BERTH_CHECK(!seen.member || exists(seen.value), "a node leaves a domain of {} that has no members", column().key);
    if (seen.member && --members_.edit(static_cast<std::size_t>(seen.value)) == 0) --domains_;
    if (seen.member && local_) count_local(seen.amount, -1);
  }

  /// Only of counts of pods: never negative.
  void count_local(std::int64_t amount, int delta) {
    if (amount < 0) return;
    const auto at = static_cast<std::size_t>(amount);
    if (at >= histogram_.size()) histogram_.resize(at + 1);
    histogram_[at] = static_cast<std::uint32_t>(static_cast<std::int64_t>(histogram_[at]) + delta);
    if (delta > 0) lowest_ = std::min(lowest_, at);
  }

  const ClusterIndex* index_;
  std::size_t topology_;
  bool local_;
  std::vector<Source> sources_;
  SparseColumn<Seen> seen_;
  Pages<std::int64_t> sums_;
  Pages<std::uint32_t> members_;
  std::vector<std::uint32_t> histogram_;
  mutable std::size_t lowest_ = 0;
  std::int64_t total_ = 0;
  std::int64_t domains_ = 0;
};

}  // namespace berth::placement
