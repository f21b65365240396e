// Why a node stays and what would free it; why no group grows for a pod.
#include "autoscaler/advice.h"

#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

std::string node_words(TestCluster& cluster, const std::string& node) {
  cluster.options.unneeded_time = 0s;
  const Snapshot snapshot = cluster.cache.snapshot();
  return explain_node(snapshot, cluster.core->step(snapshot, cluster.options, cluster.now), node);
}
std::string pod_words(TestCluster& cluster, const std::string& pod) {
  const Snapshot snapshot = cluster.cache.snapshot();
  return explain_growth(snapshot, cluster.core->step(snapshot, cluster.options, cluster.now), cluster.options, pod);
}

TEST(Advice, ANodeThatStaysNamesThePodTheRuleAndWhatWouldFreeIt) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 2});
  cluster.machine("a", "a-1");
  cluster.machine("a", "a-2");
  cluster.pod("lone", {.node = "a-1", .owner = ""});
  cluster.pod("busy", {.cpu = "6", .node = "a-2"});
  EXPECT_EQ(
      node_words(cluster, "a-1"),
      "Node a-1 of MachineSet/m/a stays: BlockedByPod: NotReplicated: default/lone is not replicated.\nTo free it: give pod default/lone a "
      "controller that makes it again, or annotate it with cluster-autoscaler.kubernetes.io/safe-to-evict: \"true\".\n");
  EXPECT_EQ(node_words(cluster, "a-2"),
            "Node a-2 of MachineSet/m/a stays: NotUnderutilized: 75% requested.\nTo free it: let its pods request "
            "less, or raise utilizationThreshold.\n");
}

TEST(Advice, AnEventTellsOfAHeldNodeOnce) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 1});
  cluster.machine("a", "a-1");
  cluster.pod("lone", {.node = "a-1", .owner = ""});
  const auto told = [&] {
    std::string out;
    for (const Note& note : cluster.step().notes)
      if (note.reason == "ScaleDownBlocked") out += note.node + ": " + note.message.substr(0, note.message.find(';'));
    return out;
  };
  EXPECT_EQ(told(), "a-1: BlockedByPod: NotReplicated: default/lone is not replicated");
  EXPECT_EQ(told(), "");
  cluster.pod("lone", {.node = "a-1", .extra_spec = ", volumes: [{name: data, emptyDir: {}}]"});
  EXPECT_EQ(told(), "a-1: BlockedByPod: LocalStorageRequested: pod with local storage present: lone");
}

TEST(Advice, ANodeWithoutAPlaceForItsPodNamesThePod) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 2});
  cluster.machine("a", "a-1");
  cluster.machine("a", "a-2");
  cluster.pod("big", {.cpu = "3", .node = "a-1"});
  cluster.pod("busy", {.cpu = "6", .node = "a-2"});
  EXPECT_NE(node_words(cluster, "a-1").find("make room for pod default/big on another node"), std::string::npos);
}

TEST(Advice, NodesThatAreNoCandidatesSayWhy) {
  TestCluster cluster;
  cluster.set("a", {.min = 1, .replicas = 1});
  cluster.machine("a", "a-1");
  cluster.node("mine", "8");
  EXPECT_EQ(node_words(cluster, "a-1"),
            "Node a-1 of MachineSet/m/a stays: the group is at its minimum (1).\nTo free it: lower the minimum of its group.\n");
  EXPECT_EQ(node_words(cluster, "mine"), "Node mine stays: it belongs to no group that is scaled.\n");
  EXPECT_EQ(node_words(cluster, "nobody"), "");
}

TEST(Advice, AnEmptyNodeWouldGo) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 1});
  cluster.machine("a", "a-1");
  EXPECT_EQ(node_words(cluster, "a-1"), "Node a-1 of MachineSet/m/a would go now.\n");
}

TEST(Advice, AnUnneededNodeSaysWhenItGoes) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 1});
  cluster.machine("a", "a-1");
  cluster.options.unneeded_time = 0s;
  const Actions pass = [&] {
    const Snapshot snapshot = cluster.cache.snapshot();
    return cluster.core->step(snapshot, cluster.options, cluster.now);
  }();
  const auto words = [&](const Patience& patience) { return explain_node(cluster.cache.snapshot(), pass, "a-1", patience); };
  EXPECT_EQ(words({cluster.now, 10min, 20min}),
            "Node a-1 of MachineSet/m/a is not needed now, and goes after 10m0s (unneededTime) in which it is not.\n");
  EXPECT_EQ(words({cluster.now, 0s, 0s}), "Node a-1 of MachineSet/m/a would go now.\n");
}

TEST(Advice, EachGroupSaysWhyItDoesNotGrowForAPod) {
  TestCluster cluster;
  cluster.set("full", {.max = 1, .replicas = 1});
  cluster.machine("full", "full-1");
  cluster.pod("filler", {.cpu = "8", .node = "full-1"});
  cluster.set("small", {.cpu = "2"});
  cluster.pod("p", {.cpu = "7"});
  EXPECT_EQ(pod_words(cluster, "default/p"),
            "Groups of nodes that could grow for it:\n  MachineSet/m/full: max node group size reached\n  MachineSet/m/small: Insufficient "
            "cpu\n");
  cluster.set("large", {.cpu = "16"});
  EXPECT_EQ(pod_words(cluster, "default/p"), "Groups of nodes that could grow for it:\n  grows: [{MachineSet/m/large 0->1 (max: 10)}]\n");
}

TEST(Advice, APodThatWaitsByItsAnnotationSaysSo) {
  TestCluster cluster;
  cluster.set("a", {.cpu = "16"});
  cluster.pod("p", {.cpu = "7", .extra_metadata = ", annotations: {cluster-autoscaler.kubernetes.io/pod-scale-up-delay: 1h}"});
  EXPECT_NE(pod_words(cluster, "default/p")
                .find("or it is not yet 1h0m0s old (its annotation cluster-autoscaler.kubernetes.io/pod-scale-up-delay)"),
            std::string::npos)
      << pod_words(cluster, "default/p");
}

TEST(Advice, APodThatNoGroupIsAskedAboutSaysWhy) {
  TestCluster cluster;
  cluster.set("a", {});
  cluster.pod("cheap", {.cpu = "7", .priority = -20});
  EXPECT_EQ(pod_words(cluster, "default/cheap"), "No node is added for it: its priority -20 is below podPriorityThreshold (-10).\n");
}

// Document 003 §4.7.1: a pod has to exceed the threshold for nodes to be added; today's autoscaler adds them for a pod at it.
TEST(Advice, APodAtTheThresholdAddsNodesUnlessTheDocumentsAreFollowed) {
  TestCluster cluster;
  cluster.set("a", {.cpu = "16"});
  cluster.pod("edge", {.cpu = "7", .priority = -10});
  EXPECT_EQ(cluster.step().grow.size(), 1u);
  cluster.options.follow(placement::Era::k120);
  EXPECT_TRUE(cluster.step().grow.empty());
  EXPECT_EQ(pod_words(cluster, "default/edge"), "No node is added for it: its priority -10 does not exceed podPriorityThreshold (-10).\n");
  cluster.pod("edge", {.cpu = "7", .priority = -9});
  EXPECT_EQ(cluster.step().grow.size(), 1u);
}

}  // namespace
}  // namespace berth::autoscaler::testing
