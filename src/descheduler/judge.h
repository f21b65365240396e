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

/// Keeps in thought what each accepted eviction does, so that a plan of several is judged in sequence. Two stages of it are asked, and both
/// must agree: all who leave have ended, and their replacements run, with devices and volumes; and nobody has ended yet, since a
/// replacement is placed before that, and what is to become free is not free. Owner: one plan; single-threaded. The snapshot must stay.
class Judge {
 public:
  Judge(const Snapshot& snapshot, const placement::Profiles& profiles, PlacementCheck check);

  /// Accepted: in thought the pod has gone and its replacement is at its destination, where it `goes`. Otherwise nothing has changed.
  Judgement judge(const Pod& pod, const DestinationRule& rule, bool goes = true);
  /// It goes, whatever would be said of it now.
  void carry_out(const Pod& pod, const std::string& destination);
  /// How the gang would find room; nothing changes.
  [[nodiscard]] RoomPlan room_for(const std::vector<placement::PodInfoPtr>& gang, const PackingRules& rules);
  /// The plan is made: those who move go, and the gang has its places.
  void carry_out(const RoomPlan& plan);
  /// Those of a gang that waits are nowhere from now on; or where the scheduler would put them, as far as it would.
  void lift_waiting(const std::vector<placement::PodInfoPtr>& gang);
  void place_waiting(const std::vector<placement::PodInfoPtr>& gang);

 private:
  struct Stage {
    placement::Trial trial;
    bool has_everybody = false;  ///< Nobody has ended: who leaves holds its room without being the pod any more.
  };
  /// How a decision is judged.
  struct Terms {
    const DestinationRule* rule = nullptr;
    bool may_be_equal = false;   ///< The old node may be among the best, as long as there is another one.
    std::string preferred = {};  ///< Of equals: the destination; else the first by name.
  };
  void place_all_waiting();
  /// With the second stage, which is forked off when first needed.
  std::vector<Stage>& stages();
  static placement::EvictedPod leave(Stage& stage, const placement::PodInfoPtr& pod);
  static void put(Stage& stage, const placement::PodInfoPtr& pod, const std::string& node);
  /// The labels of what comes in the pod's place, where they are others than its own.
  [[nodiscard]] std::optional<model::Labels> other_labels(const Pod& pod) const;
  Judgement decide(Stage& stage, const Pod& pod, const placement::PodInfoPtr& replacement, const Terms& terms);

  const Snapshot& snapshot_;
  std::vector<Stage> stages_;
  std::set<std::string, std::less<>> placed_waiting_;  ///< Keys of waiting pods that have places in thought.
  PlacementCheck check_;
  bool has_unneeded_;  ///< Some node carries a mark of the autoscaler.
  /// The scheduler's name, the pod's signature, and the node that it is on.
  using RefusalKey = std::tuple<std::string, placement::Signature, std::string>;
  std::map<RefusalKey, Judgement> refusals_;  ///< The engine's, since anything last changed: many pods that stay are alike.
};

}  // namespace berth::descheduler
