// NodeUnschedulable: cordoned nodes take only pods that tolerate it.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

TEST(NodeUnschedulable, KeepsPodsOffUnlessTolerated) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add("{kind: Node, metadata: {name: node}, spec: {unschedulable: true}}");
    EXPECT_EQ(world.verdict("node", world.pod("{}")), "NodeUnschedulable UnschedulableAndUnresolvable: node(s) were unschedulable");
    EXPECT_EQ(
        world.verdict("node", world.pod("{tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists, effect: NoSchedule}]}")),
        "fits");
    EXPECT_EQ(world.verdict("node", world.pod("{tolerations: [{operator: Exists}]}")), "fits");
    EXPECT_EQ(
        world.verdict("node", world.pod("{tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists, effect: NoExecute}]}")),
        "NodeUnschedulable UnschedulableAndUnresolvable: node(s) were unschedulable");
  }
}

}  // namespace
}  // namespace berth::placement::testing
