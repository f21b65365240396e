// Which nodes count as ready, and what the others are: still to come, or broken (SPEC H2, H3).
#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

struct Trouble {
  std::string name;
  std::string labels, taint, condition;  ///< As YAML of one label, one taint, one more condition.
};

/// One node of a group of one, created now and settled a while ago, with a trouble; and a pod that would fit on it.
struct OneNode : TestCluster {
  explicit OneNode(const Trouble& trouble, Duration age) {
    set("a", {.max = 5, .replicas = 1});
    machine("a", "a-1", false);
    put(fmt::format(
        "kind: Node\nmetadata: {{name: a-1, creationTimestamp: '{}', labels: {{kubernetes.io/hostname: a-1{}}}, annotations: "
        "{{machine.openshift.io/machine: m/a-1}}}}\nspec: {{taints: [{}]}}\nstatus: {{capacity: {{cpu: '8', memory: 32Gi, pods: "
        "'110'}}, allocatable: {{cpu: '8', memory: 32Gi, pods: '110'}}, conditions: [{{type: Ready, status: 'True', "
        "lastTransitionTime: '2025-01-01T00:00:00Z'}}{}]}}",
        format_rfc3339(now - age), trouble.labels, trouble.taint, trouble.condition));
    pod("p", {.cpu = "7"});
  }
};

class NodeTrouble : public ::testing::TestWithParam<Trouble> {};

TEST_P(NodeTrouble, OfAYoungNodeMeansThatItIsStillToCome) {
  OneNode cluster(GetParam(), 1min);
  const Actions actions = cluster.step();
  EXPECT_EQ(grown(actions), "[]");  // The pod waits for it.
  EXPECT_EQ(actions.status.groups[0].not_started, 1);
  EXPECT_EQ(actions.status.groups[0].upcoming, 1);
  EXPECT_FALSE(actions.status.unneeded.contains("a-1"));
}

TEST_P(NodeTrouble, OfAnOldNodeMeansThatItIsBroken) {
  OneNode cluster(GetParam(), 20min);
  const Actions actions = cluster.step();
  EXPECT_EQ(actions.status.groups[0].unready, 1);
  EXPECT_EQ(actions.status.groups[0].upcoming, 0);
}

TEST_P(NodeTrouble, KeepsANodeFromBeingATemplate) {
  OneNode cluster(GetParam(), 20min);
  // By its annotations a new node is too small; the node that is there would not be.
  cluster.set("a", {.max = 5, .replicas = 1, .cpu = "2"});
  cluster.pod("filler", {.cpu = "7", .node = "a-1"});
  const Actions actions = cluster.step();
  EXPECT_EQ(grown(actions), "[]");
  EXPECT_EQ(message_for(actions, "p"), "NotTriggerScaleUp: pod didn't trigger scale-up: 1 Insufficient cpu");
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, NodeTrouble,
    ::testing::Values(Trouble{"DiskPressure", "", "", ", {type: DiskPressure, status: 'True'}"},
                      Trouble{"NetworkUnavailable", "", "", ", {type: NetworkUnavailable, status: 'True'}"},
                      Trouble{"NotReadyTaint", "", "{key: node.kubernetes.io/not-ready, effect: NoSchedule}", ""},
                      Trouble{"StartupTaint", "", "{key: startup-taint.cluster-autoscaler.kubernetes.io/cni, effect: NoSchedule}", ""},
                      Trouble{"IgnoreTaint", "", "{key: ignore-taint.cluster-autoscaler.kubernetes.io/cni, effect: NoSchedule}", ""},
                      Trouble{"DeviceToCome", ", cluster-api/accelerator: t4", "", ""}),
    [](const auto& info) { return info.param.name; });

TEST(Readiness, ANodeThatJustBecameReadyIsATemplateOnlyWithoutABetterOne) {
  TestCluster cluster;
  cluster.set("a", {.max = 5, .replicas = 1, .cpu = "2"});
  cluster.machine("a", "a-1", false);
  const auto node = [&](TimePoint ready_since) {
    cluster.put(fmt::format(
        "kind: Node\nmetadata: {{name: a-1, annotations: {{machine.openshift.io/machine: m/a-1}}}}\nstatus: {{capacity: {{cpu: '8', "
        "memory: 32Gi, pods: '110'}}, allocatable: {{cpu: '8', memory: 32Gi, pods: '110'}}, conditions: [{{type: Ready, "
        "status: 'True', lastTransitionTime: '{}'}}]}}",
        format_rfc3339(ready_since)));
  };
  node(cluster.now);
  cluster.pod("filler", {.cpu = "7", .node = "a-1"});
  cluster.pod("p", {.cpu = "7"});
  EXPECT_EQ(grown(cluster.step()), "[]");
  node(cluster.now - 2min);
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/a 1->2 (max: 5)}]");
}

TEST(Readiness, WhatAGroupsNodesAreIsRememberedWhenTheLastHasGone) {
  TestCluster cluster;
  cluster.set("a", {.max = 5, .replicas = 1, .cpu = "2"});
  cluster.machine("a", "a-1", false);
  cluster.node("a-1", "8", "32Gi", "m/a-1");
  cluster.step();
  cluster.cache.remove("Node", "", "a-1");
  cluster.cache.remove("Machine", "m", "a-1");
  cluster.set("a", {.max = 5, .replicas = 0, .cpu = "2"});
  cluster.pod("p", {.cpu = "7"});
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/a 0->1 (max: 5)}]");
}

}  // namespace
}  // namespace berth::autoscaler::testing
