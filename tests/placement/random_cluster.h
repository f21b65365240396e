// Random nodes and pods from a small world, so that everything collides with everything.
#pragma once
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "model/views/node_view.h"
#include "model/views/pod_view.h"
#include "placement/cluster.h"
#include "placement/framework.h"
#include "tests/support/stored_pods.h"

namespace berth::placement::testing {

/// The default profile of the era.
FrameworkPtr default_framework(Era era);
FrameworkPtr framework_of(Profile profile);

class RandomWorld {
 public:
  explicit RandomWorld(std::uint64_t seed) : random_(seed), stored_(seed) {}

  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  model::NodeViewPtr node(const std::string& name);
  /// Most of them as an API server stores them: of Deployments, of Jobs, of nobody.
  model::PodViewPtr pod(const std::string& name);
  /// A service, a ReplicaSet, a namespace's labels, now and then.
  void change_objects(Cluster& cluster);
  std::mt19937_64& random() { return random_; }

  int zones = 3;
  bool unique_hostnames = true;
  bool volumes = false;  ///< Some pods have claims and disks, and change_objects changes those.

 private:
  model::Labels pod_labels();
  model::Selector selector();
  model::PodAffinityTerm affinity_term();
  model::VolumeView volume();
  void change_storage(Cluster& cluster);
  void store(model::PodView& pod);
  void change_replica_sets(Cluster& cluster);
  std::mt19937_64 random_;
  berth::testing::StoredPods stored_;
};

}  // namespace berth::placement::testing
