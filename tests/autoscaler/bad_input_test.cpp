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
    const Snapshot snapshot = cluster.cache.snapshot();
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
  cluster.cache.remove("MachineSet", "m", "a");
  cluster.pass(1h);
}

TEST(BadInput, AGroupThatGoesIsToldOnce) {
  Two cluster;
  (void)cluster.step();
  cluster.cache.remove("MachineSet", "m", "a");
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
  cluster.cache.remove("Machine", "m", "a-1");
  cluster.pass(5min);
}

/// Group "a" was grown by two for pods that fit on no other group's nodes as cheaply; "b" would do as well.
struct Failing : TestCluster {
  Failing() {
    set("a", {});
    pods(2, {.cpu = "6"});
    EXPECT_EQ(grown(step()), "[{MachineSet/m/a 0->2 (max: 10)}]");
    set("a", {.replicas = 2});
    set("b", {});
    now += 10s;
  }
  void fail(const std::string& name, const std::string& status) {
    put(
        fmt::format("kind: Machine\nmetadata: {{namespace: m, name: {}, ownerReferences: [{{kind: MachineSet, name: a, uid: a, controller: "
                    "true}}]}}\nstatus: {{phase: Failed, {}}}",
                    name, status));
  }
};

TEST(BadInput, AMachineThatHasFailedIsNotWaitedForAndGoes) {
  Failing cluster;
  cluster.fail("a-1", "errorReason: InvalidConfiguration, errorMessage: no such image");
  cluster.machine("a", "a-2", false);
  const Actions actions = cluster.step();
  ASSERT_EQ(actions.delete_instances.size(), 1U);
  EXPECT_EQ(actions.delete_instances[0].instance, "m/a-1");
  EXPECT_TRUE(actions.delete_instances[0].has_failed);
  EXPECT_EQ(actions.failed_growth, std::vector<std::string>{"MachineSet/m/a"});
  EXPECT_EQ(grown(actions), "[]");
  EXPECT_EQ(actions.status.groups[0].backoff_message, "InvalidConfiguration: no such image");
  const auto told = [](const Actions& of) { return std::ranges::count(of.notes, "ScaleUpFailed", &Note::reason); };
  EXPECT_EQ(told(actions), 1);
  // A minimum, or nobody who deletes it, may keep it there: then it is no machine that is to come.
  cluster.now += 10s;
  const Actions next = cluster.step();
  EXPECT_EQ(told(next), 0) << "once";
  EXPECT_EQ(grown(next), "[{MachineSet/m/b 0->1 (max: 10)}]") << "the other one is still to come";
}

TEST(BadInput, WhatAFailedMachineWasToTakeIsLookedForWhenItIsGone) {
  Failing cluster;
  cluster.fail("a-1", "errorMessage: quota");
  cluster.machine("a", "a-2", false);
  EXPECT_EQ(grown(cluster.step()), "[]");
  cluster.cache.remove("Machine", "m", "a-1");
  cluster.set("a", {.replicas = 1});
  cluster.now += 10s;
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/b 0->1 (max: 10)}]");
}

TEST(BadInput, AGroupWhoseMachinesFailPausesThoughOthersCome) {
  Failing cluster;
  cluster.fail("a-1", "failureReason: CreateError");
  cluster.machine("a", "a-2");
  (void)cluster.step();
  cluster.cache.remove("Machine", "m", "a-1");
  cluster.set("a", {.replicas = 1});
  cluster.pod("late", {.cpu = "7"});
  cluster.set("b", {.max = 1, .replicas = 1});
  cluster.now += 10s;
  EXPECT_TRUE(cluster.step().grow.empty());
  cluster.now += 5min;
  EXPECT_FALSE(cluster.step().grow.empty());
}

TEST(BadInput, AMachineWithANodeIsNotDeletedForItsPhase) {
  Two cluster;
  cluster.put(
      "kind: Machine\nmetadata: {namespace: m, name: a-2, ownerReferences: [{kind: MachineSet, name: a, uid: a, controller: true}]}\n"
      "status: {phase: Failed, nodeRef: {name: a-2}, errorMessage: the instance was stopped}");
  EXPECT_TRUE(cluster.step().delete_instances.empty());
}

TEST(BadInput, FailedMachinesKeepTheMinimum) {
  Failing cluster;
  cluster.set("a", {.min = 2, .replicas = 2});
  cluster.fail("a-1", "errorMessage: quota");
  cluster.fail("a-2", "errorMessage: quota");
  EXPECT_TRUE(cluster.step().delete_instances.empty());
}

TEST(BadInput, AGroupThatIsLeftAloneIsNotCalledGone) {
  Two cluster;
  (void)cluster.step();
  Snapshot snapshot = cluster.cache.snapshot();
  snapshot.groups.clear();
  snapshot.left_alone = {"MachineSet/m/a"};
  const auto told = [](const Actions& of) { return std::ranges::count(of.notes, "NodeGroupGone", &Note::reason); };
  EXPECT_EQ(told(cluster.core->step(snapshot, cluster.options, cluster.now)), 0);
  snapshot.left_alone.clear();
  EXPECT_EQ(told(cluster.core->step(snapshot, cluster.options, cluster.now)), 1);
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
