// Whether an eviction makes anything better: the placement engine's word on where the pod's replacement would go (SPEC G4).
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

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
  /// Those of a gang that waits are nowhere in the trial from now on; or where the scheduler would put them, as far as it would.
  void lift_waiting(const std::vector<placement::PodInfoPtr>& gang);
  void place_waiting(const std::vector<placement::PodInfoPtr>& gang);
  /// An accepted eviction that then did not happen.
  void undo(const Pod& pod);
  [[nodiscard]] const placement::Cluster& cluster() const { return trial_.cluster(); }

 private:
  /// How a decision is judged.
  struct Terms {
    const DestinationRule* rule = nullptr;
    bool may_be_equal = false;   ///< The old node may be among the best, as long as there is another one.
    std::string preferred = {};  ///< Of equals: the destination; else the first by name.
  };
  struct Leaving {
    placement::Eviction eviction;
    std::string stand_in;  ///< The key of what holds its room.
  };
  void place_all_waiting();
  Judgement decide(placement::Trial& trial, const Pod& pod, const placement::PodInfoPtr& replacement, const Terms& terms);
  /// The same question while nobody evicted has ended yet. Accepted: the pod is on its way out there, and its replacement has its place.
  Judgement decide_meanwhile(const Pod& pod, const DestinationRule& rule, const model::Labels* labels, std::string preferred);
  /// In the trial where nobody has ended: it holds its room without being the pod any more.
  Leaving leave(const placement::PodInfoPtr& pod);
  void come_back(const Leaving& leaving);

  const Snapshot& snapshot_;
  placement::Trial trial_;
  /// The same but for the evicted pods, which are still there: a replacement is placed before the old pod has ended, and what is to become
  /// free is not free. Forked off at the first eviction.
  std::optional<placement::Trial> meanwhile_;
  std::map<std::string, Leaving, std::less<>> leaving_;  ///< The accepted ones, by the pod's key.
  std::set<std::string, std::less<>> placed_waiting_;    ///< Keys of waiting pods that have places in thought.
  PlacementCheck check_;
  bool has_unneeded_;                                                ///< Some node carries a mark of the autoscaler.
  std::map<std::string, placement::Eviction, std::less<>> evicted_;  ///< The accepted ones, by the pod's key.
  /// The scheduler's name, the pod's signature, and the node that it is on.
  using RefusalKey = std::tuple<std::string, placement::Signature, std::string>;
  std::map<RefusalKey, Judgement> refusals_;  ///< The engine's, since the cluster last changed: many pods that stay are alike.
};

}  // namespace berth::descheduler
