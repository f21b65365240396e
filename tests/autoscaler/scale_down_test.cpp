#include "autoscaler/scale_down.h"

#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

/// Two nodes of one group, "a-1" nearly idle.
struct Two : TestCluster {
  Two() {
    set("a", {.replicas = 2});
    machine("a", "a-1");
    machine("a", "a-2");
    pod("busy", {.cpu = "5", .memory = "10Gi", .node = "a-2"});
  }
};

TEST(ScaleDown, AnUnneededNodeGoesAfterItsTime) {
  Two cluster;
  cluster.pod("p", {.node = "a-1"});
  const TimePoint start = cluster.now;
  const auto actions = cluster.run_until_removal(15min);
  ASSERT_TRUE(actions);
  EXPECT_EQ(cluster.now - start, 10min + 10s);  // Longer than ten minutes, looked at every ten seconds.
  ASSERT_EQ(actions->remove.size(), 1U);
  EXPECT_EQ(actions->remove[0].node, "a-1");
  EXPECT_EQ(actions->remove[0].instance, "m/a-1");
  ASSERT_EQ(actions->remove[0].evict.size(), 1U);
  EXPECT_EQ(actions->remove[0].evict[0]->key(), "default/p");
}

TEST(ScaleDown, ItIsTaintedSoftlyWhileItIsUnneeded) {
  Two cluster;
  const Actions first = cluster.step();
  ASSERT_EQ(first.soft_taints.size(), 1U);
  EXPECT_EQ(first.soft_taints[0], (std::pair<std::string, bool>{"a-1", true}));
  cluster.node("a-1", "8", "32Gi", "m/a-1", true, "",
               fmt::format("taints: [{{key: {}, effect: PreferNoSchedule}}]", kDeletionCandidateTaint));
  EXPECT_TRUE(cluster.step().soft_taints.empty());
  cluster.pod("p", {.cpu = "6", .node = "a-1"});
  const Actions needed = cluster.step();
  ASSERT_EQ(needed.soft_taints.size(), 1U);
  EXPECT_FALSE(needed.soft_taints[0].second);
}

TEST(ScaleDown, ANodeThatIsNeededInBetweenStartsAnew) {
  Two cluster;
  for (int i = 0; i < 50; ++i, cluster.now += 10s) EXPECT_TRUE(cluster.step().remove.empty());
  cluster.pod("p", {.cpu = "5", .node = "a-1"});
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "NotUnderutilized");
  cluster.cache.remove("Pod", "default", "p");
  const TimePoint again = cluster.now;
  ASSERT_TRUE(cluster.run_until_removal(15min));
  EXPECT_GT(cluster.now - again, 10min);
}

TEST(ScaleDown, LessThanHalfOfCpuAndMemoryIsNeeded) {
  for (const auto& [cpu, memory, reason] :
       {std::tuple("3999m", "1Gi", ""), std::tuple("4", "1Gi", "NotUnderutilized"), std::tuple("1", "16Gi", "NotUnderutilized")}) {
    Two cluster;
    cluster.node("big", "64", "256Gi");
    cluster.pod("p", {.cpu = cpu, .memory = memory, .node = "a-1"});
    const Actions actions = cluster.step();
    EXPECT_EQ(reason_of(actions, "a-1"), reason) << cpu << " " << memory;
  }
}

TEST(ScaleDown, DaemonsCountAsConfigured) {
  Two cluster;
  cluster.put("kind: DaemonSet\nmetadata: {namespace: default, name: web, uid: web}\nspec: {template: {spec: {containers: []}}}");
  cluster.pod("daemon", {.cpu = "5", .node = "a-1", .owner = "DaemonSet"});
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "NotUnderutilized");
  cluster.options.ignore_daemonsets_utilization = true;
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "");
}

struct Blocker {
  std::string name, reason;
  PodSpec pod;
};
class ScaleDownBlocker : public ::testing::TestWithParam<Blocker> {};
TEST_P(ScaleDownBlocker, HoldsItsNode) {
  Two cluster;
  PodSpec pod = GetParam().pod;
  pod.node = "a-1";
  cluster.pod("p", pod);
  cluster.put(
      "kind: PodDisruptionBudget\napiVersion: policy/v1\nmetadata: {namespace: default, name: strict}\nspec: {selector: "
      "{matchLabels: {app: strict}}}\nstatus: {disruptionsAllowed: 0}");
  cluster.put(
      "kind: PodDisruptionBudget\napiVersion: policy/v1\nmetadata: {namespace: kube-system, name: loose}\nspec: {selector: "
      "{matchLabels: {app: loose}}}\nstatus: {disruptionsAllowed: 1}");
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), GetParam().reason);
}
const std::string kSafe = ", annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: 'true'}";
const std::string kUnsafe = ", annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: 'false'}";
const std::string kDisk = ", volumes: [{name: data, emptyDir: {}}]";
INSTANTIATE_TEST_SUITE_P(
    Documented, ScaleDownBlocker,
    ::testing::Values(
        Blocker{"Movable", "", {}}, Blocker{"Budget", "BlockedByPod NotEnoughPdb", {.app = "strict"}},
        Blocker{"KubeSystem", "BlockedByPod UnmovableKubeSystemPod", {.ns = "kube-system"}},
        Blocker{"KubeSystemWithBudget", "", {.ns = "kube-system", .app = "loose"}},
        Blocker{"NoController", "BlockedByPod NotReplicated", {.owner = ""}},
        Blocker{"NoControllerButSafe", "", {.owner = "", .extra_metadata = kSafe}},
        Blocker{"ControllerIsGone", "BlockedByPod ControllerNotFound", {.owner = "Job"}},
        Blocker{"LocalStorage", "BlockedByPod LocalStorageRequested", {.extra_spec = kDisk}},
        Blocker{"LocalStorageButSafe", "", {.extra_metadata = kSafe, .extra_spec = kDisk}},
        Blocker{"NamedLocalVolume",
                "",
                {.extra_metadata = ", annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes: 'x,data'}",
                 .extra_spec = kDisk}},
        Blocker{"MemoryVolume", "", {.extra_spec = ", volumes: [{name: data, emptyDir: {medium: Memory}}]"}},
        Blocker{"HostPath", "BlockedByPod LocalStorageRequested", {.extra_spec = ", volumes: [{name: data, hostPath: {path: /x}}]"}},
        Blocker{"NotSafeToEvict", "BlockedByPod NotSafeToEvictAnnotation", {.extra_metadata = kUnsafe}},
        Blocker{"NoRoomElsewhere", "NoPlaceToMovePods", {.cpu = "3500m"}},
        Blocker{"SelectorFitsNowhereElse", "NoPlaceToMovePods", {.extra_spec = ", nodeSelector: {kubernetes.io/hostname: a-1}"}},
        Blocker{"AntiAffinity",
                "NoPlaceToMovePods",
                {.extra_spec = ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "
                               "kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}"}}),
    [](const auto& info) { return info.param.name; });

TEST(ScaleDown, LocalStorageMayBeAllowed) {
  Two cluster;
  cluster.pod("p", {.node = "a-1", .extra_spec = kDisk});
  cluster.options.skip_nodes_with_local_storage = false;
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "");
}

TEST(ScaleDown, TheAnnotationOfTheNodeHoldsIt) {
  Two cluster;
  cluster.node("a-1", "8", "32Gi", "m/a-1", true, fmt::format(", {}: 'true'", kScaleDownDisabled));
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "ScaleDownDisabledAnnotation");
}

TEST(ScaleDown, NodesOfNoGroupStay) {
  Two cluster;
  cluster.node("mine", "8");
  const auto actions = cluster.run_until_removal(15min);
  ASSERT_TRUE(actions);
  EXPECT_EQ(actions->remove[0].node, "a-1");
  EXPECT_FALSE(actions->status.unneeded.contains("mine"));
}

TEST(ScaleDown, PodsBelowTheThresholdHoldNoNode) {
  Two cluster;
  cluster.pod("cheap", {.cpu = "7", .node = "a-1", .owner = "", .priority = -11});
  const auto actions = cluster.run_until_removal(15min);
  ASSERT_TRUE(actions);
  EXPECT_EQ(actions->remove[0].node, "a-1");
  ASSERT_EQ(actions->remove[0].evict.size(), 1U);  // It is evicted all the same.
}

TEST(ScaleDown, TheGroupsMinimumHolds) {
  Two cluster;
  cluster.set("a", {.min = 2, .replicas = 2});
  EXPECT_FALSE(cluster.run_until_removal(15min));
  EXPECT_TRUE(cluster.step().status.unneeded.empty());  // They are no candidates.
}

TEST(ScaleDown, NodesOfAGroupAtItsMinimumTakeNoPlacesFromOthers) {
  Two cluster;
  cluster.set("full", {.min = 1, .replicas = 1});
  cluster.machine("full", "0-first");
  cluster.pod("stays", {.cpu = "3", .node = "0-first"});
  cluster.pod("p", {.cpu = "3", .node = "a-1"});
  // "stays" would take the room on a-2 if its node were thought away first, and "p" found none.
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "");
}

TEST(ScaleDown, GpusHaveAThresholdOfTheirOwn) {
  for (const auto& [used, reason] : {std::pair("2", "NotUnderutilized"), std::pair("1", "")}) {
    Two cluster;
    cluster.options.utilization_threshold = 0.1;
    cluster.node("a-1", "8", "32Gi", "m/a-1", true, "", "", ", nvidia.com/gpu: '4'");
    cluster.node("spare", "64", "256Gi", "", true, "", "", ", nvidia.com/gpu: '8'");
    cluster.pod("p", {.cpu = "4", .node = "a-1"});
    cluster.pod("gpu", {.node = "a-1",
                        .extra_spec = fmt::format(", initContainers: [{{name: i, image: i, resources: {{requests: {{nvidia.com/gpu: "
                                                  "'{0}'}}, limits: {{nvidia.com/gpu: '{0}'}}}}}}]",
                                                  used)});
    EXPECT_EQ(reason_of(cluster.step(), "a-1"), reason) << used;
  }
}

TEST(ScaleDown, AGroupMayHaveOptionsOfItsOwn) {
  Two cluster;
  const std::string options = fmt::format(", {0}scaledownutilizationthreshold: '0.1', {0}scaledownunneededtime: 1m", kGroupOptions);
  cluster.set("a", {.replicas = 2, .annotations = options});
  cluster.pod("p", {.node = "a-1"});
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "NotUnderutilized");
  cluster.pod("p", {.cpu = "700m", .node = "a-1"});
  const TimePoint start = cluster.now;
  ASSERT_TRUE(cluster.run_until_removal(5min));
  EXPECT_EQ(cluster.now - start, 1min + 10s);
}

TEST(ScaleDown, TheClustersMinimaHold) {
  Two cluster;
  cluster.options = options_of("{resourceLimits: {cores: {min: 16, max: 100}}}");
  EXPECT_FALSE(cluster.run_until_removal(15min));
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "MinimalResourceLimitExceeded");
}

TEST(ScaleDown, OffMeansOff) {
  Two cluster;
  cluster.options = options_of("{scaleDown: {enabled: false}}");
  EXPECT_FALSE(cluster.run_until_removal(20min));
  EXPECT_TRUE(cluster.step().status.unneeded.empty());
}

TEST(ScaleDown, EmptyNodesGoTogetherOthersOneByOne) {
  TestCluster cluster;
  cluster.options = options_of("{scaleDown: {enabled: true, unneededTime: 1m}}");
  cluster.set("a", {.replicas = 6});
  for (int i = 1; i <= 6; ++i) cluster.machine("a", fmt::format("a-{}", i));
  cluster.pod("p1", {.node = "a-1"});
  cluster.pod("p2", {.node = "a-2"});
  cluster.pod("p3", {.cpu = "4500m", .node = "a-3"});
  const auto actions = cluster.run_until_removal(5min);
  ASSERT_TRUE(actions);
  std::size_t empty = 0;
  for (const NodeRemoval& removal : actions->remove) empty += removal.is_empty;
  EXPECT_EQ(empty, 3U);
  EXPECT_EQ(actions->remove.size(), 4U);
}

TEST(ScaleDown, TwoNodesDoNotLeanOnEachOther) {
  TestCluster cluster;
  cluster.options = options_of("{scaleDown: {enabled: true, unneededTime: 1m}}");
  cluster.set("a", {.replicas = 2});
  cluster.machine("a", "a-1");
  cluster.machine("a", "a-2");
  cluster.pod("p1", {.cpu = "3", .node = "a-1"});
  cluster.pod("p2", {.cpu = "3", .node = "a-2"});
  EXPECT_EQ(cluster.step().status.unneeded.size(), 1U);
}

TEST(ScaleDown, GrowthRemovalAndFailurePauseIt) {
  for (const auto& [what, pause] : {std::pair("add", 120s), std::pair("delete", 60s), std::pair("failure", 90s)}) {
    Two cluster;
    cluster.options =
        options_of("{scaleDown: {enabled: true, unneededTime: 10s, delayAfterAdd: 2m, delayAfterDelete: 1m, delayAfterFailure: 90s}}");
    cluster.step();
    const TimePoint start = cluster.now;
    if (what == std::string("add")) {
      cluster.pod("large", {.cpu = "8", .memory = "30Gi"});
      cluster.pod("small", {.cpu = "1", .node = "a-1"});
      ASSERT_FALSE(cluster.step().grow.empty());
      cluster.cache.remove("Pod", "default", "large");
    } else {
      cluster.core->removal_ended("gone", what == std::string("delete"), cluster.now);
    }
    ASSERT_TRUE(cluster.run_until_removal(5min)) << what;
    EXPECT_EQ(cluster.now - start, pause) << what;
  }
}

TEST(ScaleDown, AnUnreadyNodeGoesAfterTwentyMinutes) {
  Two cluster;
  cluster.node("a-1", "8", "32Gi", "m/a-1", false);
  const TimePoint start = cluster.now;
  const auto actions = cluster.run_until_removal(40min);
  ASSERT_TRUE(actions);
  EXPECT_EQ(actions->remove[0].node, "a-1");
  EXPECT_GT(cluster.now - start, 20min);
}

TEST(ScaleDown, APodThatEndsByItselfIsWaitedFor) {
  Two cluster;
  cluster.pod("p", {.node = "a-1", .extra_metadata = ", annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: on-completion}"});
  EXPECT_FALSE(cluster.run_until_removal(15min));
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "BlockedByOnCompletionPod");
}

TEST(ScaleDown, BudgetsAreUsedUpOverNodes) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 3});
  for (int i = 1; i <= 3; ++i) cluster.machine("a", fmt::format("a-{}", i));
  cluster.pod("p1", {.node = "a-1"});
  cluster.pod("p2", {.node = "a-2"});
  cluster.pod("p3", {.cpu = "4500m", .node = "a-3"});
  cluster.put(
      "kind: PodDisruptionBudget\napiVersion: policy/v1\nmetadata: {namespace: default, name: one}\nspec: {selector: {matchLabels: "
      "{app: web}}}\nstatus: {disruptionsAllowed: 1}");
  const Actions actions = cluster.step();
  EXPECT_EQ(actions.status.unneeded.size(), 1U);
  EXPECT_EQ(reason_of(actions, "a-2"), "BlockedByPod NotEnoughPdb");
}

TEST(ScaleDown, AWaitingPodThatFitsKeepsItsRoom) {
  Two cluster;
  cluster.pod("waiting", {.cpu = "7"});  // Fits on a-1 alone: it will come there, and could go nowhere else.
  const Actions actions = cluster.step();
  EXPECT_TRUE(actions.grow.empty());
  EXPECT_EQ(reason_of(actions, "a-1"), "NotUnderutilized");
}

TEST(ScaleDown, NothingHappensToASickCluster) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 10});
  for (int i = 0; i < 10; ++i) cluster.machine("a", fmt::format("a-{}", i));
  cluster.now += 1h;
  for (int i = 0; i < 6; ++i)
    cluster.put(
        fmt::format("kind: Node\nmetadata: {{name: a-{0}, creationTimestamp: '2026-01-01T00:00:00Z', annotations: "
                    "{{machine.openshift.io/machine: m/a-{0}}}}}\nstatus: {{conditions: [{{type: Ready, status: Unknown}}]}}",
                    i));
  cluster.pod("p", {.cpu = "100"});
  const Actions actions = cluster.step();
  EXPECT_FALSE(actions.status.is_healthy);
  EXPECT_TRUE(actions.remove.empty() && actions.grow.empty());
}

TEST(ScaleDown, AFullCircleEndsWhereItBegan) {
  TestCluster cluster;
  cluster.options = options_of("{scaleDown: {enabled: true, unneededTime: 30s, delayAfterAdd: 30s}}");
  cluster.set("a", {.min = 1, .replicas = 1});
  cluster.machine("a", "a-0");
  cluster.pods(20, {.cpu = "2"});
  const Actions up = cluster.step();
  ASSERT_EQ(up.grow.size(), 1U);
  EXPECT_EQ(up.grow[0].to, 5);
  cluster.set("a", {.min = 1, .replicas = 5});
  for (int i = 1; i < 5; ++i) cluster.machine("a", fmt::format("a-{}", i));
  for (int i = 0; i < 20; ++i) cluster.pod(fmt::format("p{}", i), {.cpu = "2", .node = fmt::format("a-{}", i % 5)});
  cluster.now += 10s;
  EXPECT_TRUE(cluster.step().grow.empty());
  for (int i = 0; i < 20; ++i) cluster.cache.remove("Pod", "default", fmt::format("p{}", i));
  const auto down = cluster.run_until_removal(5min);
  ASSERT_TRUE(down);
  EXPECT_EQ(down->remove.size(), 4U);
}

/// What the pods of a drained node hold comes free, and they find it elsewhere only as often as it is there.
TEST(ScaleDown, PodsWithDevicesMoveWhereThereAreAsMany) {
  Two cluster;
  put_devices(cluster, "a-1", 2);
  put_devices(cluster, "a-2", 1);
  put_device_user(cluster, "p", "a-1", "g0");
  put_device_user(cluster, "q", "a-1", "g1");
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "NoPlaceToMovePods");
  put_devices(cluster, "a-2", 2);
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "");
}

/// The pod's eviction as the API server marks it, and its successor on a node.
void move_pod(TestCluster& cluster, const std::string& name, const std::string& successor, const std::string& to) {
  const std::string spec =
      "\nspec: {nodeName: a-2, containers: [{name: c, image: i}]}\nstatus: {phase: Running, conditions: [{type: "
      "DisruptionTarget, status: 'True', reason: EvictionByEvictionAPI}]}";
  cluster.put(
      fmt::format("kind: Pod\nmetadata: {{namespace: default, name: {0}, uid: {0}, labels: {{app: web}}, ownerReferences: [{{apiVersion: "
                  "apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}}]}}{1}",
                  name, spec));
  cluster.pod(successor, {.node = to});
  cluster.cache.remove("Pod", "default", name);
}

// The last pods of a lost node end long after it was lost: by then others may have been moved for other reasons.
TEST(ScaleDown, TheEndOfPodsThatHadToLeaveIsNoSecondNews) {
  Two cluster;
  const auto put_lost = [&](const std::string& conditions) {
    cluster.put(
        "kind: Pod\nmetadata: {namespace: default, name: lost, uid: lost}\nspec: {nodeName: a-2, containers: [{name: c, image: "
        "i}]}\nstatus: {phase: Running, conditions: [" +
        conditions + "]}");
  };
  put_lost("");
  cluster.pod("p", {.node = "a-2"});
  (void)cluster.step();
  put_lost("{type: DisruptionTarget, status: 'True', reason: DeletionByTaintManager}");
  move_pod(cluster, "p", "q", "a-1");
  cluster.cache.remove("Pod", "default", "lost");
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "HoldsMovedPod");
}

// By the descheduler or by a drain: its node does not go too, until something has changed.
TEST(ScaleDown, ANodeThatAPodWasMovedToStays) {
  Two cluster;
  cluster.pod("p", {.node = "a-2"});
  (void)cluster.step();
  move_pod(cluster, "p", "q", "a-1");
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "HoldsMovedPod");
  EXPECT_FALSE(cluster.run_until_removal(30min));
  cluster.pod("news", {.cpu = "100m", .node = "a-2"});
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "");
  const auto actions = cluster.run_until_removal(15min);
  ASSERT_TRUE(actions);
  EXPECT_EQ(actions->remove[0].node, "a-1");
}

TEST(ScaleDown, APodThatWasDeletedByHandDoesNotKeepItsSuccessorsNode) {
  Two cluster;
  cluster.pod("p", {.node = "a-2"});
  (void)cluster.step();
  cluster.cache.remove("Pod", "default", "p");
  cluster.pod("q", {.node = "a-1"});
  EXPECT_EQ(reason_of(cluster.step(), "a-1"), "");
}

// A lost machine's pods never end: nobody waits for them.
TEST(ScaleDown, PodsThatShouldHaveEndedLongAgoAreNotEvicted) {
  Two cluster;
  cluster.pod("stuck", {.node = "a-1", .extra_metadata = ", deletionTimestamp: '2025-12-31T23:00:00Z'"});
  const auto actions = cluster.run_until_removal(15min);
  ASSERT_TRUE(actions);
  EXPECT_TRUE(actions->remove[0].evict.empty());
  EXPECT_TRUE(actions->remove[0].is_empty);
}

}  // namespace
}  // namespace berth::autoscaler::testing
