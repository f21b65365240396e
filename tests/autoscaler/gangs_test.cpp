// Gangs: nodes for all of one or for none, in one domain; nodes go only where the whole gang finds places.
#include "autoscaler/gangs.h"

#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

void gang(TestCluster& cluster, const std::string& name, int min_count, const std::string& topology_key = "",
          const std::string& more = "") {
  const std::string constraints =
      topology_key.empty() ? "" : fmt::format(", schedulingConstraints: {{topology: [{{key: {}}}]}}", topology_key);
  cluster.put(
      fmt::format("apiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nmetadata: {{namespace: default, name: {0}, uid: {0}}}\n"
                  "spec: {{schedulingPolicy: {{gang: {{minCount: {1}}}}}{2}{3}}}",
                  name, min_count, constraints, more));
}
PodSpec member(const std::string& group, const std::string& cpu = "4", const std::string& node = "") {
  return {.cpu = cpu, .node = node, .extra_spec = fmt::format(", schedulingGroup: {{podGroupName: {}}}", group)};
}
/// A group of nodes that stand in the rack.
SetSpec in_rack(const std::string& rack, std::int64_t most, std::int64_t replicas = 0) {
  return {
      .max = most, .replicas = replicas, .annotations = fmt::format(", capacity.cluster-autoscaler.kubernetes.io/labels: 'rack={}'", rack)};
}

TEST(GangScaleUp, NodesComeForAllOfThem) {
  TestCluster cluster;
  cluster.set("a", {});
  gang(cluster, "g", 6);
  cluster.pods(6, member("g"));
  const Actions actions = cluster.step();
  EXPECT_EQ(grown(actions), "[{MachineSet/m/a 0->3 (max: 10)}]");
  EXPECT_EQ(message_for(actions, "p5"), "TriggeredScaleUp: pod triggered scale-up: [{MachineSet/m/a 0->3 (max: 10)}]");
  EXPECT_EQ(actions.status.plan.helped.size(), 6U);
}

TEST(GangScaleUp, ForHalfAGangNothingIsBought) {
  TestCluster cluster;
  cluster.set("a", {.max = 2});
  gang(cluster, "g", 6);
  cluster.pods(6, member("g"));
  Actions actions = cluster.step();
  EXPECT_TRUE(actions.grow.empty()) << grown(actions);
  EXPECT_EQ(message_for(actions, "p0"),
            "NotTriggerScaleUp: pod didn't trigger scale-up: nodes are added for all pods of gang default/g or for none: "
            "1 room for 4 of 6 pods, then max node group size reached");
  // Single pods, which come later, are not held up by it.
  cluster.pod("single", {.cpu = "7"});
  EXPECT_EQ(grown(actions = cluster.step()), "[{MachineSet/m/a 0->1 (max: 2)}]");
  EXPECT_EQ(message_for(actions, "single"), "TriggeredScaleUp: pod triggered scale-up: [{MachineSet/m/a 0->1 (max: 2)}]");
  // A set that may be larger again is enough.
  cluster.set("a", {.max = 9});
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/a 0->4 (max: 9)}]") << "three for the gang, one for the single pod";
}

TEST(GangScaleUp, WhatComesForOneGangMayHoldTheNext) {
  TestCluster cluster;
  cluster.set("a", {.max = 2});
  gang(cluster, "g", 3);
  gang(cluster, "h", 1);
  cluster.pods(3, member("g"));
  cluster.pod("last", member("h"));
  const Actions actions = cluster.step();
  EXPECT_EQ(grown(actions), "[{MachineSet/m/a 0->2 (max: 2)}]");
  EXPECT_EQ(message_for(actions, "last").find("NotTriggerScaleUp"), std::string::npos) << message_for(actions, "last");
}

TEST(GangScaleUp, LimitsOfTheClusterStopAllOfIt) {
  for (const auto& [limit, why] : {std::pair("{maxNodesTotal: 3}", "max total nodes in cluster reached"),
                                   std::pair("{cores: {min: 0, max: 20}}", "max cluster cpu limit reached")}) {
    TestCluster cluster;
    cluster.options = options_of(fmt::format("{{resourceLimits: {}}}", limit));
    cluster.node("other", "1");
    cluster.set("a", {});
    gang(cluster, "g", 6);
    cluster.pods(6, member("g"));
    const Actions actions = cluster.step();
    EXPECT_TRUE(actions.grow.empty()) << grown(actions);
    EXPECT_NE(message_for(actions, "p0").find(fmt::format("room for 4 of 6 pods, then {}", why)), std::string::npos)
        << message_for(actions, "p0");
  }
}

TEST(GangScaleUp, FreePlacesCountAndMembersThatStandToo) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 1});
  cluster.machine("a", "a-1");
  gang(cluster, "g", 6);
  cluster.pods(6, member("g"));
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/a 1->3 (max: 10)}]");
  cluster.pod("p0", member("g", "4", "a-1"));
  cluster.pod("p1", member("g", "4", "a-1"));
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/a 1->3 (max: 10)}]") << "two of six stand: places for four more";
  cluster.set("a", {.replicas = 3});
  cluster.machine("a", "a-2", false);
  cluster.machine("a", "a-3", false);
  EXPECT_EQ(cluster.step().grow.size(), 0U) << "those that are coming are enough";
}

TEST(GangScaleUp, TheWholeGangGetsOneDomain) {
  TestCluster cluster;
  cluster.set("one", in_rack("one", 2));
  cluster.set("two", in_rack("two", 3));
  cluster.set("bare", {});
  gang(cluster, "g", 6, "rack");
  cluster.pods(6, member("g"));
  Actions actions = cluster.step();
  EXPECT_EQ(grown(actions), "[{MachineSet/m/two 0->3 (max: 3)}]");
  cluster.set("two", in_rack("two", 2));
  cluster.core = std::make_unique<Autoscaler>(cluster.framework, 1);
  actions = cluster.step();
  EXPECT_TRUE(actions.grow.empty()) << grown(actions);
  EXPECT_EQ(message_for(actions, "p0"),
            "NotTriggerScaleUp: pod didn't trigger scale-up: nodes are added for all pods of gang default/g or for none: "
            "1 its nodes have no label \"rack\", in one value of which the pods have to be together, "
            "2 room for 4 of 6 pods, then max node group size reached");
}

TEST(GangScaleUp, ADomainsFreePlacesAreUsedFirst) {
  TestCluster cluster;
  cluster.labels = ", rack: one";
  cluster.set("one", in_rack("one", 4, 2));
  cluster.machine("one", "one-1");
  cluster.machine("one", "one-2");
  cluster.set("two", in_rack("two", 9));
  cluster.options.expanders = {Expander::kLeastNodes};
  gang(cluster, "g", 6, "rack");
  cluster.pods(6, member("g"));
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/one 2->3 (max: 4)}]");
}

TEST(GangScaleUp, LateMembersStayWhereTheOthersAre) {
  TestCluster cluster;
  cluster.labels = ", rack: one";
  cluster.set("one", in_rack("one", 2, 1));
  cluster.machine("one", "one-1");
  cluster.set("two", in_rack("two", 9));
  gang(cluster, "g", 2, "rack");
  cluster.pod("p0", member("g", "4", "one-1"));
  cluster.pod("p1", member("g", "4", "one-1"));
  cluster.pod("late", member("g"));
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/one 1->2 (max: 2)}]");
  cluster.set("one", in_rack("one", 1, 1));
  cluster.core = std::make_unique<Autoscaler>(cluster.framework, 1);
  const Actions actions = cluster.step();
  EXPECT_TRUE(actions.grow.empty()) << grown(actions);
  EXPECT_NE(message_for(actions, "late").find("1 the other pods of its group are where rack is one"), std::string::npos)
      << message_for(actions, "late");
}

TEST(GangScaleUp, SeveralKindsOfNodesTogether) {
  TestCluster cluster;
  cluster.set("plain", {.max = 2});
  cluster.set("ssd", {.annotations = ", capacity.cluster-autoscaler.kubernetes.io/labels: 'disk=ssd'"});
  gang(cluster, "g", 5);
  cluster.pods(4, {.cpu = "7", .extra_spec = ", nodeSelector: {disk: ssd}, schedulingGroup: {podGroupName: g}"}, "worker");
  cluster.put(
      "kind: Pod\nmetadata: {namespace: default, name: driver, uid: driver}\nspec: {containers: [{name: c, image: i, resources: "
      "{requests: {cpu: '7'}}}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
      "[{matchExpressions: [{key: disk, operator: DoesNotExist}]}]}}}, schedulingGroup: {podGroupName: g}}\nstatus: {phase: "
      "Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}");
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/plain 0->1 (max: 2)} {MachineSet/m/ssd 0->4 (max: 10)}]");
}

TEST(GangScaleUp, AGangThatLacksPodsBuysNothing) {
  TestCluster cluster;
  cluster.set("a", {});
  gang(cluster, "g", 4);
  cluster.pods(3, member("g"));
  const Actions actions = cluster.step();
  EXPECT_TRUE(actions.grow.empty());
  EXPECT_EQ(message_for(actions, "p0"), "NotTriggerScaleUp: pod didn't trigger scale-up: its gang default/g has 3 pods and needs 4");
  cluster.pod("p3", member("g"));
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/a 0->2 (max: 10)}]");
  // One goes again while its nodes are on their way, and the group is deleted: what is left are pods like any.
  cluster.cache.remove("Pod", "default", "p3");
  cluster.core = std::make_unique<Autoscaler>(cluster.framework, 1);
  EXPECT_TRUE(cluster.step().grow.empty());
  cluster.cache.remove("PodGroup", "default", "g");
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/a 0->2 (max: 10)}]");
}

TEST(GangScaleUp, SeveralGangsInOnePass) {
  TestCluster cluster;
  cluster.set("a", {.max = 5});
  for (const char* name : {"g", "h", "i"}) {
    gang(cluster, name, 4);
    cluster.pods(4, member(name), name);
  }
  Actions actions = cluster.step();
  EXPECT_EQ(grown(actions), "[{MachineSet/m/a 0->4 (max: 5)}]");
  EXPECT_TRUE(message_for(actions, "g0").starts_with("TriggeredScaleUp"));
  EXPECT_TRUE(message_for(actions, "h0").starts_with("TriggeredScaleUp"));
  EXPECT_TRUE(message_for(actions, "i0").starts_with("NotTriggerScaleUp")) << message_for(actions, "i0");
  // The group's new size: the nodes are still to come, and nobody asks for them twice.
  cluster.set("a", {.max = 5, .replicas = 4});
  for (int i = 0; i < 4; ++i) cluster.machine("a", fmt::format("a-{}", i), false);
  cluster.now += 10s;
  actions = cluster.step();
  EXPECT_TRUE(actions.grow.empty()) << grown(actions);
  EXPECT_EQ(actions.status.placed_in_thought, 8U);
}

TEST(GangScaleUp, NodesThatWaitForTheLastOneAreNeeded) {
  TestCluster cluster;
  cluster.options = options_of("{scaleDown: {enabled: true, unneededTime: 30s, delayAfterAdd: 0s}}");
  cluster.set("a", {.replicas = 3});
  cluster.machine("a", "a-1");
  cluster.machine("a", "a-2");
  cluster.machine("a", "a-3", false);
  gang(cluster, "g", 6);
  cluster.pods(6, member("g"));
  const auto gone = cluster.run_until_removal(10min);
  EXPECT_FALSE(gone) << gone->remove[0].node;
  // Without the gang they are nobody's.
  for (int i = 0; i < 6; ++i) cluster.cache.remove("Pod", "default", fmt::format("p{}", i));
  EXPECT_TRUE(cluster.run_until_removal(10min));
}

TEST(GangScaleDown, ANodeGoesWhereTheWholeGangFindsPlaces) {
  TestCluster cluster;
  cluster.options = options_of("{scaleDown: {enabled: true, unneededTime: 30s}}");
  cluster.labels = ", rack: one";
  cluster.set("a", {.min = 0, .replicas = 1});
  cluster.machine("a", "a-1");
  cluster.node("one-1", "4");
  cluster.node("one-2", "3");
  cluster.labels = ", rack: two";
  cluster.node("two-1", "64");
  gang(cluster, "g", 2, "rack");
  cluster.pod("p0", member("g", "3", "a-1"));
  cluster.pod("p1", member("g", "3", "one-1"));
  cluster.pod("other", {.cpu = "3", .node = "one-2"});
  // Elsewhere there is room enough, but not in the rack.
  Actions actions = cluster.step();
  EXPECT_EQ(reason_of(actions, "a-1"), "NoPlaceToMovePods");
  std::string words;
  for (const Unremovable& one : actions.status.unremovable)
    if (one.node == "a-1") words = to_string(one);
  EXPECT_EQ(words,
            "NoPlaceToMovePods: 1 of the 2 pods of gang default/g are here, and the gang finds no other places in one domain of rack: 0 of "
            "them would have one");
  cluster.cache.remove("Pod", "default", "other");
  const auto gone = cluster.run_until_removal(5min);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->remove[0].node, "a-1");
}

}  // namespace
}  // namespace berth::autoscaler::testing
