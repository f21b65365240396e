// What-if over a fork of a cluster: where would this pod go, and would it fit there. What the autoscaler and the descheduler ask.
#pragma once
#include <memory>
#include <string_view>

#include "placement/engine.h"

namespace berth::placement {

/// A copy of a cluster that may be changed freely, asked with the scheduler's own engine. Ties go to the first node by name. The cluster
/// it was made of is never touched. Single-threaded.
class Simulation {
 public:
  Simulation(const Cluster& cluster, FrameworkPtr framework);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  [[nodiscard]] Cluster& cluster() { return *cluster_; }
  [[nodiscard]] const Cluster& cluster() const { return *cluster_; }
  [[nodiscard]] const FrameworkPtr& framework() const { return framework_; }

  /// Whether the scheduler could put the pod on this very node now; otherwise why not, in the scheduler's words.
  [[nodiscard]] Status fits(const PodInfo& pod, NodeIndex node) const;
  /// The same; on success the pod counts as running there from now on.
  Status place_on(const PodInfoPtr& pod, NodeIndex node);
  /// Where the scheduler would put it, and it counts there from now on; invalid when it fits nowhere.
  NodeIndex place(const PodInfoPtr& pod);

 private:
  std::unique_ptr<Cluster> cluster_;
  FrameworkPtr framework_;
  Engine engine_;
};

/// The pod as its successor would come to the scheduler: bound to no node, nominated to none, without a status.
PodInfoPtr as_unplaced(const PodInfo& pod, Era era);

}  // namespace berth::placement
