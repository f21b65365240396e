// A provider that lies or forgets, groups that go, settings that change: what is not known deletes nothing.
#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

/// Two nodes of one group, "a-1" nearly idle.
struct Two : TestCluster {
  explicit Two(const SetSpec& spec = {.replicas = 2}) {
    set("a", spec);
    machine("a", "a-1");
    machine("a", "a-2");
    pod("busy", {.cpu = "5", .memory = "10Gi", .node = "a-2"});
    pod("p", {.node = "a-1"});
  }
  void pass(Duration time) {
    for (const TimePoint end = now + time; now < end; now += 10s) EXPECT_TRUE(step().remove.empty());
  }
};

TEST(BadInput, SizesThatMakeNoSenseAreToldAndTheSetIsNotScaled) {
  for (const auto& [min, max] :
       {std::pair("5", "3"), std::pair("two", "3"), std::pair("-1", "3"), std::pair("1", "many"), std::pair("0", "-4")}) {
    TestCluster cluster;
    cluster.put(
        fmt::format("kind: MachineSet\nmetadata: {{namespace: m, name: a, annotations: {{{}: '{}', {}: '{}'}}}}\nspec: {{replicas: 2}}",
                    kMinSize, min, kMaxSize, max));
    const Snapshot snapshot = cluster.world.snapshot();
    EXPECT_TRUE(snapshot.groups.empty()) << min << max;
    const Actions actions = cluster.step();
    ASSERT_EQ(actions.status.problems.size(), 1U) << min << max;
    EXPECT_EQ(actions.status.problems[0],
              fmt::format("MachineSet/m/a: sizes from \"{}\" to \"{}\" make no sense: it is not scaled", min, max));
  }
}

TEST(BadInput, AGroupThatGoesInTheMiddleKeepsItsNodes) {
  Two cluster;
  cluster.pass(9min);
  cluster.world.remove("MachineSet", "m", "a");
  cluster.pass(1h);
}

TEST(BadInput, AGroupThatGoesIsToldOnce) {
  Two cluster;
  (void)cluster.step();
  cluster.world.remove("MachineSet", "m", "a");
  const auto told = [&] {
    const Actions actions = cluster.step();
    return std::ranges::count(actions.notes, "NodeGroupGone", &Note::reason);
  };
  EXPECT_EQ(told(), 1);
  EXPECT_EQ(told(), 0);
}

TEST(BadInput, ANodeWhoseMachineIsForgottenStays) {
  Two cluster;
  cluster.pass(9min);
  cluster.world.remove("Machine", "m", "a-1");
  cluster.pass(5min);
}

TEST(BadInput, ATargetBelowWhatIsThereTakesNoNodeBelowTheMinimum) {
  Two cluster({.min = 1, .replicas = 1});
  EXPECT_FALSE(cluster.run_until_removal(1h));
}

TEST(BadInput, ATargetWithoutMachinesDoesNotGrowBeyondTheMaximum) {
  TestCluster cluster;
  cluster.set("a", {.max = 3, .replicas = 3});
  cluster.pods(40, {.cpu = "5"});
  for (int i = 0; i < 60; ++i, cluster.now += 30s)
    for (const Resize& growth : cluster.step().grow) EXPECT_LE(growth.to, 3);
}

TEST(BadInput, RulesThatChangeBetweenPassesHoldFromTheNextOneOn) {
  Two cluster;
  const TimePoint start = cluster.now;
  cluster.pass(9min);
  cluster.options.unneeded_time = 20min;
  ASSERT_TRUE(cluster.run_until_removal(1h));
  EXPECT_GT(cluster.now - start, 20min);
}

TEST(BadInput, AClockThatJumpsChangesNoTimeThatHasGoneBy) {
  for (const Duration jump : {Duration(2h), Duration(-2h)}) {
    Two cluster;
    cluster.pass(9min);
    cluster.now += jump;
    cluster.core->shift_times(jump);
    cluster.pass(60s);
    const TimePoint start = cluster.now;
    ASSERT_TRUE(cluster.run_until_removal(1h));
    EXPECT_LE(cluster.now - start, 30s);
  }
}

TEST(BadInput, AClockThatGoesBackRemovesNothingEarly) {
  Two cluster;
  cluster.pass(9min);
  cluster.now -= 1h;
  cluster.pass(1h);
}

}  // namespace
}  // namespace berth::autoscaler::testing
