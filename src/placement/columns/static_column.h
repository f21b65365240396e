// What the static plugins say of every node for pods that are alike in what those read: shared by all classes of such
// pods.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "placement/columns/cluster_index.h"
#include "placement/columns/index_follower.h"
#include "placement/framework.h"

namespace berth::placement {

/// A weighted sum of scores as columns keep it; two of them can be added.
inline std::int32_t narrow_score(std::int64_t value) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, INT32_MIN / 2, INT32_MAX / 2));
}

class StaticColumn {
 public:
  struct Filter {
    const Plugin* plugin;
    std::uint32_t order;
  };
  struct Scorer {
    const Plugin* plugin;
    std::int64_t weight;
  };
  struct Plan {
    std::vector<Filter> filters;
    std::vector<Scorer> scorers;             ///< Without normalization.
    std::vector<const Plugin*> raw_scorers;  ///< At most two.
    std::optional<std::set<std::string>> only_nodes;
    Status left_out;  ///< What nodes outside only_nodes are told.
    bool uses_images = false;
  };
  struct Entry {
    std::int32_t score = 0;
    std::int32_t raw[2] = {0, 0};
    std::uint16_t verdict = 0;  ///< Index into verdicts(); 0 when nothing rejects.
  };
  struct Verdict {
    Status status;
    std::uint32_t order = 0;
  };

  /// `key`: the static part of the pod's signature.
  StaticColumn(FrameworkPtr framework, PodInfoPtr pod, std::string key, const ClusterIndex& index, Plan plan);
  /// The index is another one from now on: the same, or a copy in which nothing has changed.
  void bind(const ClusterIndex& index);

  /// Pods of this signature under this framework get this column.
  [[nodiscard]] bool serves(const Framework& framework, const Signature& signature) const {
    return framework_.get() == &framework && key_ == signature.statics();
  }
  /// Brings the column up to the index for this pod, whose signature it serves. Returns a number that grows whenever entries changed
  /// without a change of their node (images).
  std::uint64_t catch_up(const PodInfoPtr& pod);
  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] const Entry& operator[](std::uint32_t node) const { return entries_[node]; }
  void prefetch(std::uint32_t node) const { __builtin_prefetch(&entries_[node]); }
  [[nodiscard]] const std::vector<Verdict>& verdicts() const { return verdicts_; }
  /// Some plugin could not tell, of a node that was looked at.
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  /// The pod counts with the classes that use the column, and with nobody when none does.
  [[nodiscard]] std::size_t memory_bytes() const { return sizeof(StaticColumn) + entries_.memory_bytes() + key_.capacity(); }
  [[nodiscard]] std::size_t bytes_with_pod() const { return memory_bytes() + pod_->bytes; }

 private:
  /// What the plugins that read taints at most say of all nodes with such taints.
  struct Alike {
    Entry entry;
    std::uint32_t order = 0;  ///< Of the filter that rejects.
    bool is_known = false;
  };
  struct RawScorer {
    const Plugin* plugin;
    std::size_t place;  ///< In an entry's `raw`.
  };
  void take_plan(Plan plan);
  void build();
  void evaluate(std::uint32_t node);
  const Alike& alike_of(std::uint32_t kind, const NodeInfo& info);
  [[nodiscard]] Alike ask_alike(const NodeInfo& info);
  std::uint16_t first_rejection(std::span<const Filter> filters, const NodeInfo& info, std::uint32_t before, std::uint32_t& order);
  std::uint16_t intern(Status status, std::uint32_t order);
  std::int64_t score_of(const Plugin* plugin, const NodeInfo& info);
  std::uint64_t image_digest() const;

  FrameworkPtr framework_;
  PodInfoPtr pod_;  ///< The one asked for last; stands for all.
  std::string key_;
  const ClusterIndex* index_;
  CycleState state_;
  // The plan, by what its plugins read of a node.
  std::vector<Filter> alike_filters_, filters_;
  std::vector<Scorer> alike_scorers_, scorers_, image_scorers_;
  std::vector<RawScorer> alike_raw_scorers_, raw_scorers_;
  std::optional<std::set<std::string>> only_nodes_;
  Status left_out_;
  bool uses_images_ = false;
  std::vector<Alike> alike_;                     ///< By the index's kind of taints.
  std::vector<ImageMarks::Place> image_places_;  ///< Of the pod's images.
  IndexFollower follower_;
  std::uint64_t generation_ = 0, images_version_ = 0, image_digest_ = 0;
  Pages<Entry> entries_;
  std::vector<Verdict> verdicts_;
  bool has_failed_ = false;
};

/// Held by each class that uses a column.
struct StaticColumnId {
  std::uint64_t value = 0;
};
using StaticColumnIdPtr = std::shared_ptr<const StaticColumnId>;

/// The columns in use, and some that classes have lately given up, to be found again. Copies share them until one of them is brought up to
/// date.
class StaticColumns {
 public:
  /// Null when there is none.
  StaticColumnIdPtr find(const Framework& framework, const Signature& signature) const;
  StaticColumnIdPtr add(StaticColumn column);
  /// For use with this index. The reference holds until the next call or copy.
  StaticColumn& edit(const StaticColumnId& id, const ClusterIndex& index);
  void clear();
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  static constexpr std::size_t kSpare = 16, kSpareBytes = std::size_t{16} << 20;
  struct Entry {
    std::weak_ptr<const StaticColumnId> users;
    std::shared_ptr<StaticColumn> column;
  };
  void forget_spare();

  ShardedMap<std::uint64_t, Entry, NumberHash> columns_;
  ShardedMap<std::string, std::vector<std::uint64_t>, TextHash> by_key_;
  std::vector<StaticColumnIdPtr> recent_;  ///< Kept though nobody may use them.
  std::size_t recent_bytes_ = 0;
  std::uint64_t next_id_ = 0;
};

}  // namespace berth::placement
