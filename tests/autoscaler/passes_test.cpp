// One pass after the other: own writes awaited, time limited, what is left in turn.
#include "autoscaler/own_writes.h"
#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

TEST(Passes, OwnWritesAreOutstandingUntilTheyAreAnsweredAndSeen) {
  OwnWrites writes;
  std::int64_t seen = 10;
  const auto watch = [&](const std::string&) { return seen; };
  EXPECT_TRUE(writes.outstanding(watch).empty());
  writes.started("machinesets");
  writes.started("machinesets");
  EXPECT_EQ(writes.outstanding(watch), std::vector<std::string>{"machinesets"});
  writes.ended("machinesets", 12);
  writes.ended("machinesets", 0);  // Failed: nothing to wait for.
  EXPECT_EQ(writes.outstanding(watch), std::vector<std::string>{"machinesets"});
  seen = 11;
  EXPECT_FALSE(writes.outstanding(watch).empty());
  seen = 12;
  EXPECT_TRUE(writes.outstanding(watch).empty());
}

/// A clock that is over after so many looks.
TimeLimit looks(int most, TimePoint now) {
  return {[left = std::make_shared<int>(most), now] { return (*left)-- > 0 ? now - 1s : now; }, now};
}

TEST(Passes, NodesThatThereWasNoTimeForComeFirstTheNextTime) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 6});
  for (int i = 0; i < 6; ++i) cluster.machine("a", fmt::format("a-{}", i));
  std::set<std::string> looked_at;
  for (int pass = 0; pass < 3; ++pass) {
    const Actions actions = cluster.core->step(cluster.cache.snapshot(), cluster.options, cluster.now, looks(2, cluster.now));
    EXPECT_EQ(actions.status.left_nodes.size(), 4U);
    for (const auto& [node, since] : actions.status.unneeded) looked_at.insert(node);
    cluster.now += 10s;
  }
  EXPECT_EQ(looked_at.size(), 6U);
}

TEST(Passes, ANodeThatIsNotLookedAtKeepsItsTime) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 3});
  for (int i = 0; i < 3; ++i) cluster.machine("a", fmt::format("a-{}", i));
  const Actions first = cluster.step();
  cluster.now += 10s;
  const Actions none = cluster.core->step(cluster.cache.snapshot(), cluster.options, cluster.now, looks(0, cluster.now));
  EXPECT_EQ(none.status.unneeded, first.status.unneeded);
  EXPECT_TRUE(none.remove.empty());
}

TEST(Passes, AGroupIsChosenEvenWhenThereWasNoTimeForOthers) {
  TestCluster cluster;
  for (const char* name : {"a", "b", "c"}) cluster.set(name, {});
  cluster.pod("p", {});
  const Actions actions = cluster.core->step(cluster.cache.snapshot(), cluster.options, cluster.now, looks(0, cluster.now));
  EXPECT_EQ(grown(actions), "[{MachineSet/m/a 0->1 (max: 10)}]");
  EXPECT_EQ(actions.status.left_groups, (std::vector<std::string>{"MachineSet/m/b", "MachineSet/m/c"}));
}

TEST(Passes, OptionsOfAGroupThatMakeNoSenseAreTold) {
  TestCluster cluster;
  cluster.set("a", {.annotations = fmt::format(", {}scaledownunneededtime: soon", kGroupOptions)});
  const Actions actions = cluster.step();
  ASSERT_EQ(actions.status.problems.size(), 1U);
  EXPECT_EQ(actions.status.problems[0],
            fmt::format("MachineSet/m/a: annotation {}scaledownunneededtime: \"soon\" is not a duration", kGroupOptions));
}

TEST(Passes, DaemonsGoWithADrainedNodeAsTheirAnnotationSays) {
  for (const auto& [pods, asked, expected] :
       {std::tuple(1, "", 1U), std::tuple(1, "false", 0U), std::tuple(0, "", 0U), std::tuple(0, "true", 1U)}) {
    TestCluster cluster;
    cluster.set("a", {.replicas = 2});
    cluster.machine("a", "a-1");
    cluster.machine("a", "a-2");
    cluster.put("kind: DaemonSet\nmetadata: {namespace: default, name: web, uid: web}\nspec: {template: {spec: {containers: []}}}");
    cluster.pod("busy", {.cpu = "5", .node = "a-2"});
    cluster.pod("daemon", {.cpu = "100m",
                           .node = "a-1",
                           .owner = "DaemonSet",
                           .extra_metadata = *asked == 0 ? "" : fmt::format(", annotations: {{{}: '{}'}}", kEvictDaemon, asked)});
    if (pods > 0) cluster.pod("p", {.node = "a-1"});
    const auto actions = cluster.run_until_removal(15min);
    ASSERT_TRUE(actions);
    EXPECT_EQ(actions->remove[0].daemons.size(), expected) << pods << asked;
  }
}

}  // namespace
}  // namespace berth::autoscaler::testing
