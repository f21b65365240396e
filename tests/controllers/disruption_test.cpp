// PodDisruptionBudgets' status.
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

class Budgets : public ::testing::Test {
 protected:
  Budgets() {
    world.api.engine.add(make_disruption_controller());
    world.api.engine.start();
  }
  void pods(int count, int ready, const std::string& owner = "") {
    for (int i = 0; i < count; ++i)
      world.api.put(kinds().pod,
                    yaml(fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: p{0}, labels: {{app: a}}{2}}}\nspec: {{nodeName: "
                                     "n}}\nstatus: {{phase: Running, conditions: [{{type: Ready, status: '{1}'}}]}}\n",
                                     i, i < ready ? "True" : "False", owner)));
  }
  void budget(const std::string& spec, const std::string& status = "") {
    world.api.put(kinds().pod_disruption_budget,
                  yaml(fmt::format("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: b, generation: 3}}\nspec: {{{}, "
                                   "selector: {{matchLabels: {{app: a}}}}}}\n{}",
                                   spec, status)));
    world.loop.run_for(seconds(1));
  }
  json::Value document() const { return world.api.get(kinds().pod_disruption_budget, "b"); }
  /// allowed, healthy, desired, expected
  std::array<std::int64_t, 4> status() const {
    const json::Value d = document();
    return {json::get_int(d, {"status", "disruptionsAllowed"}), json::get_int(d, {"status", "currentHealthy"}),
            json::get_int(d, {"status", "desiredHealthy"}), json::get_int(d, {"status", "expectedPods"})};
  }
  static constexpr const char* kOwned = ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: u, controller: true}]";
  void replica_set(int replicas) {
    world.api.put(
        kinds().replica_set,
        yaml(fmt::format("{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: r, uid: u}}, spec: {{replicas: {}}}}}", replicas)));
  }
  World world;
};

TEST_F(Budgets, MinAvailableCountsThePodsThereAre) {
  pods(5, 4);
  budget("minAvailable: 3");
  EXPECT_EQ(status(), (std::array<std::int64_t, 4>{1, 4, 3, 5}));
  const json::Value d = document();
  const json::Value* condition = find_condition(d, "DisruptionAllowed");
  ASSERT_NE(condition, nullptr);
  EXPECT_EQ(json::get_string(*condition, {"reason"}), "SufficientPods");
  EXPECT_EQ(json::get_int(*condition, {"observedGeneration"}), 3);
}

TEST_F(Budgets, PercentagesAreOfWhatTheOwnersWant) {
  replica_set(10);
  pods(8, 8, kOwned);
  budget("minAvailable: 75%");
  EXPECT_EQ(status(), (std::array<std::int64_t, 4>{0, 8, 8, 10})) << "7.5 of ten is eight";
  budget("maxUnavailable: 25%");
  EXPECT_EQ(status(), (std::array<std::int64_t, 4>{1, 8, 7, 10})) << "2.5 of ten is three";
  budget("maxUnavailable: 1");
  EXPECT_EQ(status(), (std::array<std::int64_t, 4>{0, 8, 9, 10}));
}

TEST_F(Budgets, FollowTheOwnersScale) {
  replica_set(4);
  pods(4, 4, kOwned);
  budget("maxUnavailable: 1");
  EXPECT_EQ(status()[0], 1);
  replica_set(6);
  world.loop.run_for(seconds(1));
  EXPECT_EQ(status(), (std::array<std::int64_t, 4>{0, 4, 5, 6}));
}

TEST_F(Budgets, NoPodsAllowNothing) {
  budget("minAvailable: 0");
  EXPECT_EQ(status(), (std::array<std::int64_t, 4>{0, 0, 0, 0}));
  const json::Value d = document();
  EXPECT_EQ(json::get_string(*find_condition(d, "DisruptionAllowed"), {"reason"}), "InsufficientPods");
  EXPECT_EQ(condition_status(d, "DisruptionAllowed"), "False");
  pods(2, 2);
  world.loop.run_for(seconds(1));
  EXPECT_EQ(condition_status(document(), "DisruptionAllowed"), "True");
}

TEST_F(Budgets, AnEvictionUnderWayCountsUntilItIsOldOrDone) {
  pods(3, 3);
  budget("minAvailable: 1",
         fmt::format("status: {{disruptedPods: {{p0: '{}', gone: '{}'}}}}\n", format_rfc3339(kStart), format_rfc3339(kStart)));
  EXPECT_EQ(status()[1], 2) << "p0 counts as gone";
  EXPECT_EQ(json::get_object(document(), {"status", "disruptedPods"}).size(), 1u) << "a pod that is gone is forgotten";
  world.loop.run_for(minutes(3));
  EXPECT_EQ(status()[1], 3) << "its eviction came to nothing";
  EXPECT_EQ(json::find(document(), {"status", "disruptedPods"}), nullptr);
}

TEST_F(Budgets, EachEvictionUnderWayIsLookedAtWhenItIsOld) {
  pods(3, 3);
  budget("minAvailable: 1",
         fmt::format("status: {{disruptedPods: {{p0: '{}', p1: '{}', p2: '{}'}}}}\n", format_rfc3339(kStart - seconds(60)),
                     format_rfc3339(kStart - seconds(90)), format_rfc3339(kStart)));
  EXPECT_EQ(status()[1], 0);
  world.loop.run_for(seconds(35));
  EXPECT_EQ(status()[1], 1) << "p1 is spared";
  world.loop.run_for(seconds(30));
  EXPECT_EQ(status()[1], 2) << "p0, too";
  world.loop.run_for(seconds(60));
  EXPECT_EQ(status()[1], 3);
}

TEST_F(Budgets, WhatCannotBeCountedAllowsNothingAndIsSaid) {
  pods(2, 2, ", ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: u, controller: true}]");
  budget("maxUnavailable: 1");
  EXPECT_EQ(status()[0], 0);
  const json::Value d = document();
  EXPECT_EQ(json::get_string(*find_condition(d, "DisruptionAllowed"), {"reason"}), "SyncFailed");
  EXPECT_EQ(json::find(*find_condition(d, "DisruptionAllowed"), "observedGeneration"), nullptr) << "none was counted yet";
  EXPECT_TRUE(
      world.api.saw("CalculateExpectedPodCountFailed: Failed to calculate the number of expected pods: daemonsets.apps does not implement "
                    "the scale subresource"));
}

TEST_F(Budgets, UnmanagedPodsAndNoPodsAreSaid) {
  budget("minAvailable: 1");
  EXPECT_TRUE(world.api.saw("NoPods: No matching pods found"));
  pods(2, 2);
  budget("minAvailable: 50%");
  EXPECT_TRUE(std::any_of(world.api.events.begin(), world.api.events.end(), [](const std::string& event) {
    return event.starts_with("UnmanagedPods: Pods selected by this PodDisruptionBudget (selector: &LabelSelector{");
  }));
}

TEST_F(Budgets, WithoutANumberNothingIsExpected) {
  pods(2, 2);
  budget("unhealthyPodEvictionPolicy: AlwaysAllow");
  EXPECT_EQ(status(), (std::array<std::int64_t, 4>{0, 2, 0, 0}));
}

TEST_F(Budgets, FinishedPodsAreExpectedButNotHealthy) {
  pods(3, 2);
  json::Value done = world.api.get(kinds().pod, "p2");
  json::set(done, {"status", "phase"}, "Succeeded");
  world.api.put(kinds().pod, done);
  budget("minAvailable: 1");
  EXPECT_EQ(status(), (std::array<std::int64_t, 4>{1, 2, 1, 3}));
}

TEST_F(Budgets, APodOfTwoBudgetsIsTold) {
  budget("minAvailable: 1");
  world.api.put(kinds().pod_disruption_budget,
                yaml("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: c, generation: 1}, "
                     "spec: {minAvailable: 1, selector: {matchExpressions: [{key: app, operator: Exists}]}}}"));
  pods(1, 1);
  world.loop.run_for(seconds(1));
  EXPECT_TRUE(world.api.saw(
      "MultiplePodDisruptionBudgets: Pod \"default\"/\"p0\" matches multiple PodDisruptionBudgets.  Chose \"b\" arbitrarily."));
}

TEST_F(Budgets, UnmanagedPodsAreToldWithTheSelector) {
  pods(1, 1);
  budget("maxUnavailable: 1");
  const auto told = std::ranges::find_if(world.api.events, [](const std::string& event) { return event.starts_with("UnmanagedPods: "); });
  ASSERT_NE(told, world.api.events.end());
  EXPECT_NE(told->find("(selector: &LabelSelector{MatchLabels:map[string]string{app: a,},MatchExpressions:[]LabelSelectorRequirement{},})"),
            std::string::npos)
      << *told;
}

TEST_F(Budgets, APodThatWasSparedLosesItsMark) {
  const auto put = [&](const char* name, const char* reason) {
    world.api.put(
        kinds().pod,
        yaml(fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{nodeName: node-1}}\nstatus: {{phase: Running, "
                         "conditions: [{{type: DisruptionTarget, status: 'True', reason: {}, lastTransitionTime: '{}'}}]}}\n",
                         name, reason, format_rfc3339(world.loop.now()))));
  };
  put("spared", "PreemptionByScheduler");
  put("slow", "TerminationByKubelet");
  world.loop.run_for(seconds(100));
  EXPECT_EQ(condition_status(world.api.get(kinds().pod, "spared"), "DisruptionTarget"), "True");
  world.loop.run_for(seconds(30));
  EXPECT_EQ(condition_status(world.api.get(kinds().pod, "spared"), "DisruptionTarget"), "False");
  EXPECT_EQ(condition_status(world.api.get(kinds().pod, "slow"), "DisruptionTarget"), "True");
}

TEST_F(Budgets, WhatCannotBeCountedAnyMoreKeepsWhichGenerationWas) {
  replica_set(2);
  pods(2, 2, kOwned);
  budget("maxUnavailable: 1");
  ASSERT_EQ(status()[0], 1);
  pods(2, 2, ", ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: u, controller: true}]");
  world.loop.run_for(seconds(1));
  EXPECT_EQ(status()[0], 0) << "a number of before says nothing of now";
  const json::Value d = document();
  EXPECT_EQ(json::get_string(*find_condition(d, "DisruptionAllowed"), {"reason"}), "SyncFailed");
  EXPECT_EQ(json::get_int(*find_condition(d, "DisruptionAllowed"), {"observedGeneration"}), 3);
  pods(2, 2, kOwned);
  world.loop.run_for(seconds(1));
  EXPECT_EQ(status()[0], 1) << "and it comes back";
}

}  // namespace
}  // namespace berth::controllers
