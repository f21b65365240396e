// NodePreferAvoidPods of 1.20: a node's annotation keeps a controller's pods away.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

TEST(NodePreferAvoidPods, CountsForReplicaSetsAndReplicationControllers) {
  PluginWorld world(Era::k120);
  world.add("{kind: Node, metadata: {name: plain}}");
  world.add(
      "{kind: Node, metadata: {name: avoids, annotations: {scheduler.alpha.kubernetes.io/preferAvoidPods: "
      "'{\"preferAvoidPods\": [{\"podSignature\": {\"podController\": {\"apiVersion\": \"v1\", \"kind\": \"ReplicaSet\", \"uid\": \"u1\", "
      "\"controller\": true}}}]}'}}}");
  const auto owned = [&](const char* kind, const char* uid) {
    auto view = std::make_shared<model::PodView>(world.pod("{}")->view());
    view->meta.owner_references = {{"apps/v1", kind, "web", uid, true}};
    return PodInfo::make(std::move(view), Era::k120);
  };
  const std::int64_t full = 100 * 10'000;
  EXPECT_EQ(world.scores("NodePreferAvoidPods", owned("ReplicaSet", "u1")), (Scores{{"plain", full}, {"avoids", 0}}));
  EXPECT_EQ(world.scores("NodePreferAvoidPods", owned("ReplicaSet", "u2")), (Scores{{"plain", full}, {"avoids", full}}));
  EXPECT_EQ(world.scores("NodePreferAvoidPods", owned("StatefulSet", "u1")), (Scores{{"plain", full}, {"avoids", full}}));
}

}  // namespace
}  // namespace berth::placement::testing
