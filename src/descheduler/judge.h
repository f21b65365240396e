// Whether an eviction makes anything better: the placement engine's word on where the pod's replacement would go (SPEC G4).
#pragma once
#include <map>
#include <memory>
#include <string>

#include "descheduler/packing.h"
#include "descheduler/placement_check.h"
#include "descheduler/snapshot.h"
#include "placement/trial.h"

namespace berth::descheduler {

struct Judgement {
  bool is_accepted = false;
  std::string destination;  ///< Of an accepted one: where the replacement goes, first by name among equals. Empty when nothing comes back.
  std::string reason;       ///< Of a refused one, for people.
  bool is_by_rule = false;  ///< Refused by the strategy's rule, not by the engine.
};

/// Keeps a trial in which each accepted eviction has happened and its replacement runs, with its devices and volumes, so that a plan of
/// several is judged in sequence. Owner: one cycle; single-threaded. The snapshot must stay.
class Judge {
 public:
  Judge(const Snapshot& snapshot, const placement::Profiles& profiles, PlacementCheck check);

  /// Accepted: in the trial the pod is gone and its replacement is at its destination. Refused: the trial is as before.
  Judgement judge(const Pod& pod, const DestinationRule& rule);
  /// How the gang would find room; the trial is as before.
  [[nodiscard]] RoomPlan room_for(const std::vector<placement::PodInfoPtr>& gang, const PackingRules& rules);
  /// These moves of a plan were made, and these pods have their places.
  void carry_out(std::span<const Move> moves, std::span<const RoomPlan::Place> placed);
  /// An accepted eviction that then did not happen.
  void undo(const Pod& pod);
  [[nodiscard]] const placement::Cluster& cluster() const { return trial_.cluster(); }

 private:
  /// `may_be_equal`: the old node may be among the best, as long as there is another one.
  Judgement decide(const Pod& pod, const placement::PodInfoPtr& replacement, const DestinationRule& rule, bool may_be_equal);

  const Snapshot& snapshot_;
  placement::Trial trial_;
  PlacementCheck check_;
  std::map<std::string, placement::Eviction, std::less<>> evicted_;  ///< The accepted ones, by the pod's key.
  /// The scheduler's name, the pod's signature, and the node that it is on.
  using RefusalKey = std::tuple<std::string, placement::Signature, std::string>;
  std::map<RefusalKey, Judgement> refusals_;  ///< The engine's, since the cluster last changed: many pods that stay are alike.
};

}  // namespace berth::descheduler
