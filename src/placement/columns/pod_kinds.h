// Pods as others' selectors and terms see them: kinds of equal namespace, labels and own affinity terms, with how many pods of each kind
// are on each node, and from those the counts that topology plugins go by. Each kind of pod is tried against a selector once, not each pod.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "placement/cluster.h"
#include "placement/columns/label_postings.h"
#include "placement/columns/node_counts.h"
#include "placement/heap_bytes.h"
#include "placement/pages.h"
#include "placement/sharded_map.h"

namespace berth::placement {

/// Names the counts of a matcher or a held term for as long as the index does not start over; in copies of the index too.
struct CountId {
  std::uint32_t value = UINT32_MAX;
  [[nodiscard]] bool is_valid() const { return value != UINT32_MAX; }
};

/// Pods that match all of `terms` (namespace and selector), counted per node.
struct PodMatcher {
  std::vector<AffinityTerm> terms;
  bool skip_terminating = false;
  NodeCounts count;
  [[nodiscard]] std::size_t own_bytes() const { return sizeof(PodMatcher) + heap_bytes(terms); }  ///< Without counts.
};

/// An affinity term of pods that are there, with the number of pods per node that hold it.
struct HeldTerm {
  enum class Kind : std::uint8_t { kRequiredAffinity, kRequiredAntiAffinity, kPreferred };
  Kind kind = Kind::kPreferred;
  AffinityTerm term;  ///< Of preferred terms: `weight`, negative for anti-affinity.
  NodeCounts count;
  std::uint64_t pods = 0;  ///< That hold it, on all nodes.
  [[nodiscard]] std::size_t own_bytes() const { return sizeof(HeldTerm) + heap_bytes(term); }
};

/// Owner: ClusterIndex. Single-threaded. Ids hold until `clear`. Copies share what neither changes.
class PodKinds {
 public:
  /// Forgets everything; then pods are to be added anew.
  void clear();
  /// One more (1) or one less (-1) pod on the node. `slots`: how many nodes there may be.
  void apply(const Cluster& cluster, const PodInfo& pod, std::uint32_t node, std::int32_t delta, std::uint32_t slots);
  /// All pods that are there have been added after a `clear`.
  void note_start() { held_at_start_ = held_terms_.size(); }

  /// Forgets kinds without pods.
  void forget_unused();

  /// The counter of pods that match all terms; made on first use, and right at once.
  CountId matcher(const Cluster& cluster, std::vector<AffinityTerm> terms, bool skip_terminating, std::uint32_t slots);
  /// Requires an id that matcher() gave.
  [[nodiscard]] const PodMatcher& matcher_of(CountId id) const { return *matchers_[id.value / 2]; }
  /// All terms ever held; new ones are appended.
  [[nodiscard]] std::size_t held_term_count() const { return held_terms_.size(); }
  [[nodiscard]] const HeldTerm& held_term(std::size_t index) const { return *held_terms_[index]; }
  [[nodiscard]] static CountId held_counts(std::size_t index) { return {static_cast<std::uint32_t>(index) * 2 + 1}; }
  [[nodiscard]] const NodeCounts& counts(CountId id) const {
    return (id.value & 1) != 0 ? held_terms_[id.value / 2]->count : matchers_[id.value / 2]->count;
  }

  /// Held terms that match the pod, ascending.
  std::span<const std::uint32_t> terms_that_match(const Cluster& cluster, const PodInfo& pod);
  const model::Selector& default_selector(const Cluster& cluster, const PodInfo& pod);

  /// Some pod ever seen selects namespaces by labels: then those may not change unnoticed.
  [[nodiscard]] bool selects_namespaces() const { return selects_namespaces_; }
  void note_namespace_selectors(const PodInfo& pod);
  /// So much has come together since the last `clear` that it is worth to forget what nobody needs any more: by number, or by what kinds
  /// without pods, terms that nobody holds, and matchers take.
  [[nodiscard]] bool is_overgrown() const;
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Kind {
    PodInfoPtr example;
    std::uint64_t pods = 0;
    NodeCounts nodes;
    std::vector<std::uint32_t> matchers, held;
    std::vector<std::uint32_t> audience;  ///< Of the held terms below audience_seen.
    std::size_t audience_seen = 0;
    // What default spreading selects for the pods of one controller, at one version of the workloads.
    std::shared_ptr<const model::Selector> selector;
    model::OwnerReference selector_owner;
    std::uint64_t selector_version = 0;
  };

  std::uint32_t kind_of(const Cluster& cluster, const PodInfo& pod);
  std::uint32_t learn(const Cluster& cluster, const PodInfo& pod);
  [[nodiscard]] bool is_of(std::uint32_t kind, const PodInfo& pod) const;
  std::uint32_t find(const PodInfo& pod) const;
  void count_pods(std::uint32_t kind, std::int64_t delta);
  void start_counting(const Cluster& cluster, std::uint32_t slots);
  std::uint32_t hold(HeldTerm::Kind kind, const AffinityTerm& term);
  static bool matches(const Cluster& cluster, const PodMatcher& matcher, const PodInfo& pod);

  Pages<std::shared_ptr<Kind>> kinds_;
  std::vector<std::uint32_t> free_kinds_;
  ShardedMap<std::uint64_t, std::vector<std::uint32_t>, NumberHash> kinds_by_hash_;
  std::size_t used_kinds_ = 0;  ///< When unused ones were last forgotten.
  std::size_t idle_kind_bytes_ = 0, idle_term_bytes_ = 0, matcher_bytes_ = 0;
  LabelPostings kinds_by_label_, matchers_by_label_, held_by_label_;
  Pages<std::shared_ptr<PodMatcher>> matchers_;
  Pages<std::shared_ptr<HeldTerm>> held_terms_;
  ShardedMap<std::uint64_t, std::vector<std::uint32_t>, NumberHash> matcher_index_, held_index_;  ///< By hash of the terms.
  std::size_t held_at_start_ = 0;
  bool counts_all_ = false, selects_namespaces_ = false;
  const PodInfo* last_pod_ = nullptr;  ///< Asked for twice in a row: when it is decided and when it is counted.
  std::uint32_t last_kind_ = 0;
};

}  // namespace berth::placement
