// Groups of pods that wait as one (PodGroup, scheduling.k8s.io/v1alpha2): nodes are added for all of one or for none of it. The cluster
// autoscaler knows no groups: it adds nodes for each pod by itself.
//
//   a gang --> the domain that its standing members hold, or each in turn (without a topology key: the whole cluster)
//                |
//                +--> free places first; for the rest one node group, or several together --> would the scheduler place it then? --> grow
//                                                                              |
//                                                                              +--> limits, sizes: not whole --> nothing grows for it
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autoscaler/scale_up.h"
#include "placement/groups/group_placement.h"

namespace berth::autoscaler {

/// What waits of a gang, or of a group that has to stay in one domain.
struct Gang {
  placement::PodGroupPtr group;
  std::vector<PodPtr> waiting;  ///< In the order in which they choose.
};

struct WaitingGangs {
  std::vector<Gang> gangs;  ///< By priority, then by the age of their eldest.
  /// Members of gangs that have fewer pods than minCount, and that in words: no node makes them run.
  std::vector<std::pair<PodPtr, std::string>> of_too_few{};
};
std::size_t count_pods(const std::vector<PodPtr>& single, const std::vector<Gang>& gangs);
/// Takes members of such groups out of `pods`; those of other groups, and of groups that are not there, are pods like any.
WaitingGangs take_gangs(std::vector<PodPtr>& pods, const placement::PodGroups& groups);

/// Told of each pod and the node that it got.
using Placed = std::function<void(const PodPtr&, placement::NodeIndex)>;
/// Those that the scheduler would place now are there, gang by gang; what still waits of each stays, and gangs without any go.
void place_gangs(placement::Trial& trial, std::vector<Gang>& gangs, const placement::PodGroups& groups, const Placed& placed);
/// The same beside single pods, as `place_waiting` places them: whoever has the higher priority chooses first, then gangs.
void place_waiting_and_gangs(placement::Trial& trial, std::vector<PodPtr>& pods, Kinds* kinds, std::vector<Gang>& gangs,
                             const placement::PodGroups& groups, const Placed& placed);

struct GangPlan {
  std::vector<Resize> resizes;  ///< Empty: not whole by any growth that is allowed.
  std::vector<PodPtr> helped;   ///< All that have a place then.
  Refusals why;                 ///< Of each node group, where nothing grows.
  std::vector<Warning> warnings;
};
/// What grows for the gang, which fits nowhere in the input's trial. `input.pending` and `kinds` are not looked at.
GangPlan plan_for_gang(const ScaleUpInput& input, const Gang& gang, const placement::PodGroups& groups, const Options& options);

/// What grows for one gang after the other, each on what those before it will have; then single pods' turn comes.
class GangGrowth {
 public:
  struct Refused {
    PodPtr pod;
    std::string gang;  ///< "nodes are added for all pods of gang ns/name or for none"
    std::shared_ptr<const Refusals> why;
  };
  /// All of `input` is changed by what grows: its trial, its groups (which are this one's from here on), its limits, which are `limits`.
  GangGrowth(ScaleUpInput& input, ClusterLimits& limits);
  void plan_for(std::vector<Gang> gangs, const placement::PodGroups& groups, const Options& options);
  [[nodiscard]] bool grows() const { return !plan_.resizes.empty(); }
  [[nodiscard]] const std::vector<Refused>& refused() const { return refused_; }
  /// `plan`, made for single pods on the changed input, becomes one growth with this.
  void add_to(ScaleUpPlan& plan);

 private:
  void add(const GangPlan& plan, const Options& options);
  ScaleUpInput& input_;
  ClusterLimits& limits_;
  std::vector<NodeGroup> groups_;
  ScaleUpPlan plan_;
  std::vector<Refused> refused_;
};

}  // namespace berth::autoscaler
