// NodeName: a pod that names its node goes there or nowhere.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

TEST(NodeName, IsMetByThatNodeAlone) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add("{kind: Node, metadata: {name: a}}").add("{kind: Node, metadata: {name: b}}");
    const auto pod = world.pod("{nodeName: b}");
    EXPECT_EQ(world.verdict("a", pod), era == Era::k120
                                           ? "NodeName UnschedulableAndUnresolvable: node(s) didn't match the requested hostname"
                                           : "NodeName UnschedulableAndUnresolvable: node(s) didn't match the requested node name");
    EXPECT_EQ(world.verdict("b", pod), "fits");
  }
}

}  // namespace
}  // namespace berth::placement::testing
