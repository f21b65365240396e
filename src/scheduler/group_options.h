// How groups of pods are decided: the gates of kube-scheduler 1.36 by which they are one decision, and what leads chance.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "placement/cluster.h"

namespace berth::scheduler {

/// Of meaning where the server has the kind PodGroup.
struct GroupOptions {
  bool gangs = true;       ///< GenericWorkload, GangScheduling
  bool topology = true;    ///< TopologyAwareWorkloadScheduling
  bool preemption = true;  ///< WorkloadAwarePreemption
  /// By the rules of kube-scheduler 1.36 and no others (placement::GroupQuestion::as_kubernetes).
  bool as_kubernetes = false;
  /// A gang of which for so long too few pods are there is told of by condition and event; zero: never. Not as_kubernetes.
  Duration incomplete_after = std::chrono::seconds(30);
  /// A gang that waits so long, and that no victim helps, has room kept for it; zero: never. Not as_kubernetes.
  Duration reservation_after = std::chrono::minutes(5);
  /// So long at most; then it has to wait as long again.
  Duration reservation_for = std::chrono::minutes(30);
  std::size_t most_reservations = 4;  ///< At once.
  /// Sees the members of a group in the order in which they are to choose, and may put those of one priority in another (kube-scheduler
  /// leaves it to chance; replays do as was recorded). May be empty.
  std::function<void(std::vector<placement::PodInfoPtr>& members)> order_members;
  /// As in placement::GroupQuestion.
  std::function<std::size_t(std::size_t count)> pick_domain;
  /// As in placement::TrialOptions.
  std::function<placement::NodeIndex(const placement::Cluster&, const placement::PodInfo&, std::span<const placement::NodeIndex> equals)>
      choose_among_equals;
};

}  // namespace berth::scheduler
