// The resource scorers: BalancedAllocation of both eras; LeastAllocated, MostAllocated and RequestedToCapacityRatio of 1.20.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

std::string asks(const std::string& requests) { return "{containers: [{name: c, resources: {requests: {" + requests + "}}}]}"; }

TEST(NodeResourcesBalancedAllocation, PrefersEvenUse) {
  PluginWorld world(Era::k136);
  world.add("{kind: Node, metadata: {name: node}}");
  EXPECT_EQ(world.scores("NodeResourcesBalancedAllocation", world.pod(asks("cpu: '1', memory: 1Gi"))), (Scores{{"node", 75}}))
      << "as balanced as before";
  EXPECT_EQ(world.scores("NodeResourcesBalancedAllocation", world.pod(asks("cpu: '2'"))), (Scores{{"node", 62}})) << "worse than before";
  world.run("other", "node", asks("memory: 2Gi"));
  EXPECT_EQ(world.scores("NodeResourcesBalancedAllocation", world.pod(asks("cpu: '2'"))), (Scores{{"node", 87}})) << "better than before";
  EXPECT_EQ(world.scores("NodeResourcesBalancedAllocation", world.pod("{}")), Scores()) << "a pod that asks for nothing is not scored";
}

TEST(NodeResourcesBalancedAllocation, Of120LooksAtTheDifferenceAlone) {
  PluginWorld world(Era::k120);
  world.add("{kind: Node, metadata: {name: node}}");
  EXPECT_EQ(world.scores("NodeResourcesBalancedAllocation", world.pod(asks("cpu: '1', memory: 1Gi"))), (Scores{{"node", 100}}));
  EXPECT_EQ(world.scores("NodeResourcesBalancedAllocation", world.pod(asks("cpu: '3', memory: 1Gi"))), (Scores{{"node", 50}}));
  EXPECT_EQ(world.scores("NodeResourcesBalancedAllocation", world.pod(asks("cpu: '4', memory: 1Gi"))), (Scores{{"node", 0}}))
      << "nothing would be left";
}

TEST(NodeResourcesLeastAllocated, CountsDefaultsForContainersThatAskForNothing) {
  PluginWorld world(Era::k120);
  world.add("{kind: Node, metadata: {name: node}, status: {allocatable: {cpu: '1', memory: 1000Mi, pods: '10'}}}");
  EXPECT_EQ(world.scores("NodeResourcesLeastAllocated", world.pod("{}")), (Scores{{"node", (90 + 80) / 2}})) << "100m and 200Mi";
  EXPECT_EQ(world.scores("NodeResourcesLeastAllocated", world.pod(asks("cpu: 500m, memory: 500Mi"))), (Scores{{"node", 50}}));
}

TEST(NodeResourcesMostAllocated, PacksNodes) {
  PluginWorld world(Era::k120);
  world.add("{kind: Node, metadata: {name: used}}")
      .add("{kind: Node, metadata: {name: empty}}")
      .run("other", "used", asks("cpu: '1', memory: 1Gi"));
  world.score_by("NodeResourcesMostAllocated", 2);
  EXPECT_EQ(world.scores("NodeResourcesMostAllocated", world.pod(asks("cpu: '1', memory: 1Gi"))), (Scores{{"used", 100}, {"empty", 50}}));
}

TEST(RequestedToCapacityRatio, FollowsItsShape) {
  PluginWorld world(Era::k120);
  world.add("{kind: Node, metadata: {name: node}}").score_by("RequestedToCapacityRatio");
  world.profile.args.ratio.shape = {{0, 0}, {100, 10}};
  EXPECT_EQ(world.scores("RequestedToCapacityRatio", world.pod(asks("cpu: '1', memory: 3Gi"))), (Scores{{"node", 50}}));
  world.profile.args.ratio.shape = {{0, 10}, {20, 10}, {40, 0}};
  world.profile.args.ratio.resources = {{"cpu", 1}};
  EXPECT_EQ(world.scores("RequestedToCapacityRatio", world.pod(asks("cpu: 1200m"))), (Scores{{"node", 50}}))
      << "halfway between two points";
  EXPECT_EQ(world.scores("RequestedToCapacityRatio", world.pod(asks("cpu: '3'"))), (Scores{{"node", 0}})) << "beyond the last point";
}

}  // namespace
}  // namespace berth::placement::testing
