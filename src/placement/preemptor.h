// Preemption that stays fast on full clusters: per node, the pods by importance in compact rows; per class of preemptor, each node's
// victims ranked once and repaired when the node changes. Same answers as run_post_filter, which is its oracle and its fall-back.
//
// The fast form covers pods whose fit on a node depends on that node alone: node selectors and affinity, taints, native and extended
// resources, host ports, and anti-affinity (theirs, or that of pods that are there) over topologies whose every domain is one node.
// Required pod affinity, hard topology spread, anti-affinity over wider domains and volumes take the plain form: their answers would have
// to be given anew for every node of a domain with each pod that comes or goes there (docs/scheduling.md says what it costs).
#pragma once
#include <memory>

#include "placement/preemption.h"

namespace berth::placement {

/// Owner: the scheduler's thread. The cluster must outlive it; it catches up with the cluster's change log by itself.
class Preemptor {
 public:
  explicit Preemptor(const Cluster& cluster, PreemptionOptions options = {});
  /// The same over a fork of the other's cluster that has not changed since: what it knows is shared, and copied as either one changes.
  Preemptor(Preemptor& from, const Cluster& fork);
  ~Preemptor();
  Preemptor(const Preemptor&) = delete;
  Preemptor& operator=(const Preemptor&) = delete;

  /// Where evicting makes room for a pod that fits nowhere now, and what the PostFilter stage says. Fast form: `candidates` holds the best
  /// only.
  [[nodiscard]] PostFilterResult find(const FrameworkPtr& framework, const PodInfoPtr& pod);
  /// Whether the last find took the fast form.
  [[nodiscard]] bool was_fast() const;
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::placement
