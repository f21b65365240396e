// NodeLabel of 1.20: labels that must (not) be there, labels that are (not) liked.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

TEST(NodeLabel, PresenceAndPreference) {
  PluginWorld world(Era::k120);
  world.profile.filter.push_back({"NodeLabel", 0});
  world.score_by("NodeLabel", 3);
  world.profile.args.node_label = {{"zone"}, {"retiring"}, {"zone", "rack"}, {}};
  world.add("{kind: Node, metadata: {name: node, labels: {zone: z}}}")
      .add("{kind: Node, metadata: {name: leaving, labels: {zone: z, retiring: ''}}}")
      .add("{kind: Node, metadata: {name: bare}}");
  const std::string refused = "NodeLabel UnschedulableAndUnresolvable: node(s) didn't have the requested labels";
  EXPECT_EQ(world.scores("NodeLabel", world.pod("{}")), (Scores{{"node", 150}}));
  EXPECT_EQ(world.verdict("leaving", world.pod("{}")), refused);
  EXPECT_EQ(world.verdict("bare", world.pod("{}")), refused);
  world.profile.args.node_label = {{}, {}, {"zone"}, {"retiring"}};
  EXPECT_EQ(world.scores("NodeLabel", world.pod("{}")), (Scores{{"node", 300}, {"leaving", 150}, {"bare", 150}}));
}

// A labelPreference without a label (document 002 §16.2.6.2).
TEST(NodeLabel, WithoutALabelNodesWithoutLabelsOfTheirOwnAreLiked) {
  PluginWorld world(Era::k120);
  world.score_by("NodeLabel", 1);
  world.profile.args.node_label = {{}, {}, {}, {""}};
  world.add("{kind: Node, metadata: {name: labelled, labels: {kubernetes.io/hostname: a, rack: r}}}")
      .add("{kind: Node, metadata: {name: plain, labels: {kubernetes.io/hostname: b, topology.kubernetes.io/zone: z}}}");
  EXPECT_EQ(world.scores("NodeLabel", world.pod("{}")), (Scores{{"labelled", 0}, {"plain", 100}}));
}

}  // namespace
}  // namespace berth::placement::testing
