// The cheapest nodes for the pods that wait: what to buy, who goes where, and why the others get none. One trial for all of them, on the
// profile of each pod's scheduler. Pure: no clock, no I/O.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "placement/groups/pod_groups.h"
#include "placement/trial.h"
#include "pools/packing.h"
#include "pools/shapes.h"

namespace berth::pools {

struct ProvisionInput {
  /// The cluster with every node, those on their way too. It is left as it was.
  placement::Trial* trial = nullptr;
  std::vector<placement::PodInfoPtr> waiting;  ///< In the queue's order.
  const std::vector<NodePool>* pools = nullptr;
  const Catalogue* catalogue = nullptr;
  std::vector<placement::PodInfoPtr> daemons;  ///< One of each DaemonSet, as it would come to a node.
  /// What each pool's claims have by now, of its limits' resources ("nodes" too).
  std::map<std::string, std::map<std::string, std::int64_t>> in_use;
  Unavailable unavailable;
  /// Of a gang all that it needs get a place, or nobody gets a node for it. Null: each pod is on its own.
  const placement::PodGroups* groups = nullptr;
  TimePoint now{};
  std::function<bool()> is_over{};  ///< As PackingOptions.
  std::uint64_t seed = 1;
  int rounds = 150;  ///< Of improvement, at most.
  /// What pods prefer of one another is kept where it costs nothing (preferences.h): several plans instead of one.
  bool keeps_wishes = true;
};

/// A node to buy. What launches it may take any of the types, the cheapest first.
struct NewClaim {
  std::size_t pool = 0;
  std::vector<std::string> types, zones, capacity_types;
  model::Labels labels;  ///< Of the chosen shape.
  std::string type, zone, capacity_type;
  double price = 0;  ///< Of the chosen shape.
  std::vector<placement::PodInfoPtr> pods;
  placement::Resource requests;  ///< Of these pods and the daemons.
};

struct ProvisionPlan {
  std::vector<NewClaim> claims;
  std::vector<std::pair<placement::PodInfoPtr, std::string>> on_existing;  ///< With the node.
  struct Refused {
    placement::PodInfoPtr pod;
    std::string why;
  };
  std::vector<Refused> refused;
  double cost = 0;         ///< Of an hour of all claims.
  double greedy_cost = 0;  ///< What packing as Karpenter does would pay, with the places of pods that see one another as here.
  /// Nothing that holds these pods costs less, whether they see one another or not; 0: not known.
  double bound = 0;
  bool keeps_node_wishes = true;  ///< What pods prefer of nodes is kept; for the asker to compare plans by.
  /// "at most 3% above what is possible"; empty without a bound.
  [[nodiscard]] std::string bound_words() const;
};

/// A gang whose group names required topology keys is bought for in one domain. One of which too few would have a place gets nothing, the
/// least important first; what is left is planned for anew.
///
/// Pods are packed by numbers. Of those that see one another (spread, affinity, volumes, ports) domains.h first says in which place they
/// get their node. All of it is then put into a trial; what the engine refuses there, and pods with devices, go one by one to where they
/// cost least, and who finds nothing is told.
ProvisionPlan plan_provisioning(const ProvisionInput& input);

}  // namespace berth::pools
