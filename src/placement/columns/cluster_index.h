// What an engine keeps of a cluster beside the nodes themselves: topology values as columns, and per node the number of pods that match
// each selector in use or hold each affinity term. Kept by the cluster's change log, never recounted.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "placement/cluster.h"
#include "placement/columns/image_marks.h"
#include "placement/columns/node_amounts.h"
#include "placement/columns/pod_kinds.h"
#include "placement/pages.h"
#include "placement/sharded_map.h"
#include "placement/signature.h"

namespace berth::placement {

/// One topology key as a column: each node's value as a small number.
struct TopologyColumn {
  std::string key;
  Pages<std::int32_t> value_plus_one_of;  ///< By node slot; 0 where the label is missing.
  Pages<std::uint32_t> population;        ///< Nodes per value.
  ShardedMap<std::string, std::int32_t, TextHash> ids;
  std::uint32_t shared_values = 0;  ///< Values that more than one node has.
  std::int32_t empty_value = -1;    ///< The id of the empty string, once a node has had it.

  /// -1 where the label is missing.
  [[nodiscard]] std::int32_t value_of(std::uint32_t node) const { return value_plus_one_of[node] - 1; }
  /// Every value is on one node at most: what depends on the domain depends on the node alone.
  [[nodiscard]] bool is_local() const { return shared_values == 0; }
};

/// Single-threaded; follows one cluster. `sync` must be called before reading after the cluster changed. Copies share what neither changes.
class ClusterIndex final : public Onlookers {
 public:
  explicit ClusterIndex(const Cluster& cluster) : cluster_(&cluster) { rebuild(); }
  /// Of a fork of the other's cluster, which has not changed since; `other` must be synced.
  ClusterIndex(const ClusterIndex& other, const Cluster& fork) : ClusterIndex(other) {
    bind(fork);
    attempt_begin_ = kNoAttempt;
  }
  void bind(const Cluster& fork) { cluster_ = &fork; }
  ClusterIndex& operator=(const ClusterIndex&) = delete;

  /// Catches up with the change log; starts over where the log is gone or namespaces changed under selectors of namespaces.
  void sync();

  [[nodiscard]] const Cluster& cluster() const override { return *cluster_; }
  /// Counts how often everything started over; columns made before are void.
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

  // Changes of nodes, for the classes: entries [touched_begin, touched_end). What came and was taken back before anybody looked is none,
  // and several changes of a node at once are one.
  struct Touched {
    std::uint32_t node = 0;
    bool is_static = false;  ///< The node object itself changed, came or went.
  };
  [[nodiscard]] std::uint64_t touched_begin() const { return touched_.begin(); }
  [[nodiscard]] std::uint64_t touched_end() const { return touched_.end(); }
  [[nodiscard]] Touched touched(std::uint64_t position) const { return touched_[position]; }
  /// An attempt begins, or the one that began last ends: what it changed is as it was before where it was `taken_back`, and the entries of
  /// it go. The index must be synced before either. Only attempts that are in no other are told.
  void begin_attempt() { attempt_begin_ = touched_.end(); }
  void end_attempt(bool taken_back);
  static constexpr std::uint64_t kNoAttempt = UINT64_MAX;
  /// The entry that an open attempt began at, of those that were told.
  [[nodiscard]] std::uint64_t attempt_begin() const { return attempt_begin_; }
  /// Another one whenever entries went with their attempt (index_follower.h).
  [[nodiscard]] std::uint64_t line() const { return line_; }
  /// Of the node as it is now (NodeInfo::version): who has seen this one has nothing to do.
  [[nodiscard]] std::uint32_t version(std::uint32_t node) const { return amounts_[node].version; }
  /// Some entry of the node, at the position or later, is static.
  [[nodiscard]] bool is_static_since(std::uint32_t node, std::uint64_t position) const { return static_end_[node] > position; }

  /// By node slot.
  [[nodiscard]] const NodeAmounts& amounts(std::uint32_t node) const { return amounts_[node]; }
  void prefetch(std::uint32_t node) const {
    __builtin_prefetch(&amounts_[node]);
    __builtin_prefetch(reinterpret_cast<const char*>(&amounts_[node]) + 64);
  }
  /// Nodes of one kind have the same taints and are cordoned or not alike; kNoNode: there is no node object.
  [[nodiscard]] std::uint32_t taint_kind(std::uint32_t node) const { return node < taint_kinds_.size() ? taint_kinds_[node] : kNoNode; }
  static constexpr std::uint32_t kNoNode = 0, kLikeNoOther = UINT32_MAX;
  [[nodiscard]] const ImageMarks& image_marks(std::uint32_t node) const { return image_marks_[node]; }
  /// The column of a topology key; made on first use. The index stays valid.
  std::size_t topology(const std::string& key);
  [[nodiscard]] const TopologyColumn& topology_column(std::size_t index) const { return *topologies_[index]; }
  /// Must be told of each pod whose terms a class is made from: where nobody selects namespaces by labels, those may change freely.
  void note_namespace_selectors(const PodInfo& pod) { pods_.note_namespace_selectors(pod); }
  /// Forgets kinds of pods of which none is there.
  void forget_unused() { pods_.forget_unused(); }
  /// The counter of pods that match all terms; made on first use.
  CountId matcher(std::vector<AffinityTerm> terms, bool skip_terminating) {
    return pods_.matcher(*cluster_, std::move(terms), skip_terminating, slots_);
  }
  [[nodiscard]] const PodMatcher& matcher_of(CountId id) const { return pods_.matcher_of(id); }
  /// All terms ever held; new ones are appended.
  [[nodiscard]] std::size_t held_term_count() const { return pods_.held_term_count(); }
  [[nodiscard]] const HeldTerm& held_term(std::size_t index) const { return pods_.held_term(index); }
  [[nodiscard]] static CountId held_counts(std::size_t index) { return PodKinds::held_counts(index); }
  [[nodiscard]] const NodeCounts& counts(CountId id) const { return pods_.counts(id); }

  [[nodiscard]] std::span<const std::uint32_t> terms_that_match(const PodInfo& pod) override {
    return pods_.terms_that_match(*cluster_, pod);
  }
  [[nodiscard]] bool rejects(std::uint32_t term) const override {
    return pods_.held_term(term).kind == HeldTerm::Kind::kRequiredAntiAffinity;
  }
  [[nodiscard]] const model::Selector& default_selector(const PodInfo& pod) override { return pods_.default_selector(*cluster_, pod); }

  /// One pod of each kind (traits and priority apart) that is nominated to some node.
  struct NominatedKind {
    PodInfoPtr example;
    std::size_t count = 0;
  };
  [[nodiscard]] const std::vector<NominatedKind>& nominated_kinds() const { return nominations_->kinds; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  ClusterIndex(const ClusterIndex&) = default;
  struct Nominations {
    std::vector<NominatedKind> kinds;
    std::unordered_map<std::string, PodInfoPtr> pods;  ///< By key, as counted in kinds.
  };

  void rebuild();
  void apply(const Change& change);
  void apply_node(std::uint32_t node);
  void note_object(std::uint32_t node);
  std::uint32_t kind_of_taints(const model::NodeView& node);
  void apply_nomination(const PodInfoPtr& pod);
  void set_value(TopologyColumn& column, std::uint32_t node, const std::string* value);
  void refresh_amounts(std::uint32_t node);
  void touch_changed();
  void grow(std::uint32_t slots);

  const Cluster* cluster_;
  std::uint64_t position_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t line_ = 0, attempt_begin_ = kNoAttempt;
  std::uint64_t namespaces_version_ = 0;
  std::uint32_t slots_ = 0;
  Pages<NodeAmounts> amounts_;
  Pages<std::uint32_t> taint_kinds_;
  ShardedMap<std::string, std::uint32_t, TextHash> kinds_of_taints_;
  Pages<ImageMarks> image_marks_;
  PagedLog<Touched> touched_;
  Pages<std::uint64_t> static_end_;     ///< By node slot: past its last static entry; 0 without one.
  std::vector<std::uint32_t> changed_;  ///< Nodes of the changes that a sync goes over; otherwise empty.
  std::vector<std::shared_ptr<TopologyColumn>> topologies_;
  std::unordered_map<std::string, std::size_t> topology_index_;
  PodKinds pods_;
  std::shared_ptr<Nominations> nominations_;
};

}  // namespace berth::placement
