// SchedulingGates: pods that wait for others.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

TEST(SchedulingGates, HoldThePodBack) {
  PluginWorld world(Era::k136);
  const auto framework = *Framework::create(world.profile);
  const Status status = framework->run_pre_enqueue(world.pod("{schedulingGates: [{name: a}, {name: b}]}")->view());
  EXPECT_EQ(status.message(), "waiting for scheduling gates: [a b]");
  EXPECT_EQ(status.plugin, "SchedulingGates");
  EXPECT_TRUE(framework->run_pre_enqueue(world.pod("{}")->view()).is_success());
}

}  // namespace
}  // namespace berth::placement::testing
