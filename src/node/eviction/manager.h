// The eviction manager: what a node does when memory, disk or process ids run out (SPEC F2–F8; kubelet pkg/kubelet/eviction).
//
//   observe ─> thresholds met ─> conditions (held for the transition period)
//                    │
//                    ├─> local storage limits: every pod over one is evicted, nothing else happens
//                    ├─> grace period over and observation new? ─> choose one threshold ─> reclaim on the node ─> observe again
//                    └────────────────────────────────────────────────────────────────────> still met: rank, evict one pod
//
// Pure: it sees summaries and times and says what to do. One pass is `begin`, the clean-ups it asks for, and, when it asked for any,
// `finish` with the figures after them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "node/eviction/pod_facts.h"
#include "node/eviction/ranking.h"
#include "node/eviction/summary.h"
#include "node/eviction/thresholds.h"

namespace berth::node::eviction {

inline constexpr std::string_view kEvictedReason = "Evicted";

/// How messages write amounts of bytes. The kubelet's figures are exact ("21474836800" for a tenth of 200Gi, which its single precision
/// makes 20Gi and 320 bytes); people get the largest unit and two decimals.
enum class AmountText { kReadable, kKubelet };

struct ManagerConfig {
  std::vector<Threshold> thresholds;
  std::size_t spare_places = 0;  ///< thresholds_spare_places of the settings.
  std::int64_t max_pod_grace_period_seconds = 0;
  std::int64_t pressure_transition_period_ns = 300'000'000'000;
  /// Pods over their emptyDir sizeLimit or ephemeral-storage limits are evicted.
  bool local_storage_capacity_isolation = true;
  EvictionRules rules = EvictionRules::kKubernetes;
  AmountText amounts = AmountText::kReadable;
};

/// One pod to be killed: phase Failed, reason Evicted.
struct Eviction {
  std::size_t pod = 0;  ///< Index into the active pods given to begin.
  std::int64_t grace_period_seconds = 1;
  std::string message;
  /// Set for evictions under node pressure (not for local storage limits): they carry a DisruptionTarget condition.
  bool is_disruption = false;
  /// Of the event; nullopt: none.
  std::optional<std::map<std::string, std::string>> annotations;
};

enum class Reclaim { kContainers, kImages };  ///< Delete dead containers; delete unused images.

struct MetThreshold {
  Threshold threshold;
  TimePoint first_observed{};
};

/// What one pass found and wants.
struct Outcome {
  std::vector<MetThreshold> observed;  ///< Met whatever their grace period, and met before and not yet cleared by their minimum reclaim.
  std::vector<Threshold> met;          ///< Those whose grace period is over.
  std::optional<Threshold> acting_on;
  std::vector<Reclaim> reclaim;  ///< To be run in order; then call finish.
  bool was_ranked = false;
  std::vector<RankedPod> ranking;  ///< In eviction order.
  std::vector<Eviction> evictions;
  /// The node event "Attempting to reclaim memory" is due.
  std::optional<StarvedResource> attempt;
};

class EvictionManager {
 public:
  explicit EvictionManager(ManagerConfig config) : config_(std::move(config)) {}

  /// The disk layout, once it is known: containerfs.* thresholds derive from it and count from the next pass on (those configured, from
  /// this). Returns the warning about ignored settings, or empty.
  std::string set_layout(DiskLayout layout);
  [[nodiscard]] bool has_layout() const { return layout_.has_value(); }
  [[nodiscard]] DiskLayout layout() const { return layout_.value_or(DiskLayout{}); }
  /// False: nothing is configured, passes are not needed.
  [[nodiscard]] bool has_work() const { return !config_.thresholds.empty() || config_.local_storage_capacity_isolation; }

  /// One pass. Requires a layout. `active` and `summary` must stay until the pass is over (finish, or no reclaim asked for).
  const Outcome& begin(const std::vector<PodFacts>& active, const Summary& summary, TimePoint now);
  /// The pass after its clean-ups, with the node's figures after them; null when they could not be read. Evicts unless every threshold is
  /// cleared by its minimum reclaim.
  const Outcome& finish(const NodeUsage* node_after);

  /// The thresholds that these figures meet, whatever their grace period.
  [[nodiscard]] std::vector<Threshold> met_by(const NodeUsage& node) const {
    return thresholds_met(config_.thresholds, observe_signals(node), false);
  }
  /// With these figures finish would evict nobody: every threshold is cleared by its minimum reclaim.
  [[nodiscard]] bool is_relieved(const NodeUsage& node) const {
    return thresholds_met(config_.thresholds, observe_signals(node), true).empty();
  }

  /// A pass whose figures could not be read: nothing is decided, conditions stay. The pass after set_layout counts as over.
  void skip_pass() { first_pass_thresholds_.reset(); }

  /// Conditions that are true now, in the order of their names.
  [[nodiscard]] const std::vector<NodeCondition>& conditions() const { return conditions_; }
  [[nodiscard]] const Observations& last_observations() const { return last_observations_; }
  [[nodiscard]] const std::vector<Threshold>& thresholds() const { return config_.thresholds; }

  /// Nullopt: the pod may start on this node; otherwise the message for status.message with reason "Evicted".
  [[nodiscard]] std::optional<std::string> refuse(const PodFacts& pod) const;

 private:
  void evict_over_local_limits();
  void rank_and_evict();
  [[nodiscard]] std::vector<Threshold> thresholds_met(const std::vector<Threshold>& thresholds, const Observations& observations,
                                                      bool with_reclaim) const;

  ManagerConfig config_;
  std::optional<DiskLayout> layout_;
  /// The thresholds of the pass after set_layout: as configured.
  std::optional<std::vector<Threshold>> first_pass_thresholds_;
  std::vector<MetThreshold> first_observed_;
  std::array<std::optional<TimePoint>, kConditionCount> condition_observed_;
  std::vector<NodeCondition> conditions_;
  std::vector<Threshold> met_;
  Observations last_observations_;
  // Of the pass under way:
  Outcome outcome_;
  const std::vector<PodFacts>* active_ = nullptr;
  const Summary* summary_ = nullptr;
};

/// Which clean-ups free what a signal measures, in order. Images on a filesystem of their own: the document (000 §21.2.6.1) deletes dead
/// containers for nodefs and images for imagefs; Kubernetes both for imagefs, where containers lie as well, and nothing for nodefs.
[[nodiscard]] std::vector<Reclaim> reclaim_for(EvictionRules rules, Signal signal, DiskLayout layout);

/// "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container c was using …" and the event's annotations.
struct EvictionText {
  std::string message;
  std::map<std::string, std::string> annotations;
};
[[nodiscard]] EvictionText describe_eviction(const Threshold& threshold, const Observations& observations, const RankedPod& pod,
                                             AmountText amounts);

}  // namespace berth::node::eviction
