#include "autoscaler/scale_up.h"

#include <random>

#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

TEST(ScaleUp, APendingPodBringsANode) {
  TestCluster cluster;
  cluster.set("a", {});
  cluster.pod("p", {});
  const Actions actions = cluster.step();
  EXPECT_EQ(grown(actions), "[{MachineSet/m/a 0->1 (max: 10)}]");
  EXPECT_EQ(message_for(actions, "p"), "TriggeredScaleUp: pod triggered scale-up: [{MachineSet/m/a 0->1 (max: 10)}]");
}

TEST(ScaleUp, TheDocumentsCapOfCoresAddsAtMostFour) {
  TestCluster cluster;
  cluster.options = options_of("{resourceLimits: {cores: {min: 0, max: 64}}}");
  cluster.node("control", "30", "64Gi", "", true, "", "taints: [{key: node-role.kubernetes.io/master, effect: NoSchedule}]");
  cluster.set("a", {.max = 100});
  cluster.pods(20, {.cpu = "7"});
  const Actions actions = cluster.step();
  EXPECT_EQ(grown(actions), "[{MachineSet/m/a 0->4 (max: 100)}]");  // 30 + 32 = 62 cores.
  EXPECT_EQ(actions.status.totals.find("cpu")->second, 30);
}

TEST(ScaleUp, LimitsOfMemoryNodesAndGpusHold) {
  for (const auto& [limit, nodes] : {std::pair("{maxNodesTotal: 3}", 2), std::pair("{memory: {min: 0, max: 112}}", 3),
                                     std::pair("{gpus: [{type: nvidia.com/gpu, min: 0, max: 5}]}", 2)}) {
    TestCluster cluster;
    cluster.options = options_of(fmt::format("{{resourceLimits: {}}}", limit));
    cluster.node("other", "1", "16Gi");
    cluster.set("a", {.max = 100, .annotations = ", capacity.cluster-autoscaler.kubernetes.io/gpu-count: '2'"});
    cluster.pods(20, {.cpu = "7"});
    EXPECT_EQ(grown(cluster.step()), fmt::format("[{{MachineSet/m/a 0->{} (max: 100)}}]", nodes)) << limit;
  }
}

TEST(ScaleUp, WithoutGroupsThePodIsToldHowOneComesToBe) {
  TestCluster cluster;
  cluster.node("other", "1");
  cluster.pod("p", {.cpu = "7"});
  EXPECT_EQ(message_for(cluster.step(), "p"),
            "NotTriggerScaleUp: pod didn't trigger scale-up: there is no node group: a MachineSet becomes one by a MachineAutoscaler that "
            "names it");
}

TEST(ScaleUp, AFullClusterSaysWhy) {
  TestCluster cluster;
  cluster.options = options_of("{resourceLimits: {maxNodesTotal: 1}}");
  cluster.node("other", "1");
  cluster.set("a", {});
  cluster.pod("p", {.cpu = "7"});
  const Actions actions = cluster.step();
  EXPECT_TRUE(actions.grow.empty());
  EXPECT_EQ(message_for(actions, "p"), "NotTriggerScaleUp: pod didn't trigger scale-up: max total nodes in cluster reached");
}

TEST(ScaleUp, ReasonsAreCountedOverTheGroups) {
  TestCluster cluster;
  cluster.options = options_of("{resourceLimits: {cores: {min: 0, max: 20}}}");
  cluster.set("full", {.max = 1, .replicas = 1});
  cluster.machine("full", "full-1");
  cluster.pod("filler", {.cpu = "8", .node = "full-1"});
  cluster.set("small", {.cpu = "2"});
  cluster.set("tainted", {.spec = "{taints: [{key: gpu, value: 'yes', effect: NoSchedule}]}"});
  cluster.set("dear", {.cpu = "16"});
  cluster.pod("p", {.cpu = "7"});
  EXPECT_EQ(message_for(cluster.step(), "p"),
            "NotTriggerScaleUp: pod didn't trigger scale-up: 1 Insufficient cpu, 1 max cluster cpu limit reached, "
            "1 max node group size reached, 1 node(s) had untolerated taint(s)");
}

TEST(ScaleUp, OnlyAMatchingGroupGrows) {
  TestCluster cluster;
  cluster.set("plain", {});
  cluster.set("ssd", {.annotations = ", capacity.cluster-autoscaler.kubernetes.io/labels: 'disk=ssd'"});
  cluster.pod("p", {.extra_spec = ", nodeSelector: {disk: ssd}"});
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/ssd 0->1 (max: 10)}]");
}

TEST(ScaleUp, NodesThatAreComingAreCounted) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 2});
  cluster.machine("a", "a-1", false);
  cluster.machine("a", "a-2", false);
  cluster.pods(2, {.cpu = "7"});
  const Actions actions = cluster.step();
  EXPECT_TRUE(actions.grow.empty()) << grown(actions);
  EXPECT_EQ(actions.status.groups[0].upcoming, 2);
  cluster.pod("third", {.cpu = "7"});
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/a 2->3 (max: 10)}]");
}

TEST(ScaleUp, DaemonsTakeTheirShareOfANewNode) {
  TestCluster cluster;
  cluster.set("a", {});
  cluster.put(
      "kind: DaemonSet\nmetadata: {namespace: default, name: logs, uid: logs}\nspec: {template: {spec: {containers: [{name: c, "
      "image: i, resources: {requests: {cpu: '2'}}}]}}}");
  cluster.pods(2, {.cpu = "4"});
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/a 0->2 (max: 10)}]");  // 2 + 4 + 4 are more than 8.
  cluster.pod("large", {.cpu = "7"});
  EXPECT_EQ(message_for(cluster.step(), "large"), "");  // Others grew; nothing fits it anyway.
}

TEST(ScaleUp, PodsBelowTheThresholdAddNothing) {
  TestCluster cluster;
  cluster.set("a", {});
  cluster.pod("cheap", {.priority = -11});
  EXPECT_TRUE(cluster.step().grow.empty());
  cluster.pod("just", {.priority = -10});
  EXPECT_FALSE(cluster.step().grow.empty());
}

TEST(ScaleUp, PodsBelowTheThresholdMakeRoom) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 1});
  cluster.machine("a", "a-1");
  cluster.pod("cheap", {.cpu = "8", .node = "a-1", .priority = -20});
  cluster.pod("p", {.cpu = "8"});
  EXPECT_TRUE(cluster.step().grow.empty());
}

TEST(ScaleUp, APodThatWaitsForItsVictimsAddsNothing) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 1});
  cluster.machine("a", "a-1");
  cluster.pod("low", {.cpu = "8", .node = "a-1"});
  cluster.put(
      "kind: Pod\nmetadata: {namespace: default, name: high, uid: high}\nspec: {priority: 100, containers: [{name: c, image: i, "
      "resources: {requests: {cpu: '8'}}}]}\nstatus: {phase: Pending, nominatedNodeName: a-1, conditions: [{type: PodScheduled, "
      "status: 'False', reason: Unschedulable}]}");
  EXPECT_TRUE(cluster.step().grow.empty());
}

TEST(ScaleUp, ExpandersChoose) {
  const auto chosen = [](const std::string& expanders, const std::string& priorities = "") {
    TestCluster cluster;
    cluster.options = options_of(fmt::format("{{expanders: [{}]}}", expanders));
    // Two pods of 3 cores: one node of "large" takes both, of "fit" one each; "only" can have a single node, which one of them fills.
    cluster.set("fit", {.cpu = "4", .memory = "4Gi"});
    cluster.set("large", {.cpu = "32", .memory = "128Gi"});
    cluster.set("only", {.max = 1, .cpu = "3", .memory = "2Gi"});
    if (!priorities.empty())
      cluster.cache.upsert(
          json::Object{{"kind", "ConfigMap"},
                       {"metadata", json::Object{{"name", "cluster-autoscaler-priority-expander"}, {"namespace", "kube-system"}}},
                       {"data", json::Object{{"priorities", priorities}}}});
    cluster.pods(2, {.cpu = "3", .memory = "2Gi"});
    return grown(cluster.step());
  };
  EXPECT_EQ(chosen("LeastWaste"), "[{MachineSet/m/only 0->1 (max: 1)}]");
  EXPECT_EQ(chosen("LeastNodes, LeastWaste"), "[{MachineSet/m/only 0->1 (max: 1)}]");
  EXPECT_EQ(chosen("MostPods, LeastWaste"), "[{MachineSet/m/fit 0->2 (max: 10)}]");
  EXPECT_EQ(chosen("MostPods, LeastNodes"), "[{MachineSet/m/large 0->1 (max: 10)}]");
  EXPECT_EQ(chosen("Priority", "10: ['.*']\n50: ['m/large']"), "[{MachineSet/m/large 0->1 (max: 10)}]");
  EXPECT_EQ(chosen("Priority, LeastWaste", "10: ['.*']\n50: ['m/(large|fit)']"), "[{MachineSet/m/fit 0->2 (max: 10)}]");
  EXPECT_EQ(chosen("Priority, LeastWaste", "10: ['[']"), "[{MachineSet/m/only 0->1 (max: 1)}]");  // Not a pattern: narrows nothing.
  // The patterns are RE2's, and one that is none leaves the others standing.
  for (const char* pattern : {"(?i)M/LARGE", "(?P<which>large)", "(?<which>large)", "\\Amachineset|large\\z"})
    EXPECT_EQ(chosen("Priority", fmt::format("10: ['.*']\n50: ['[', '{}']", pattern)), "[{MachineSet/m/large 0->1 (max: 10)}]") << pattern;
}

TEST(ScaleUp, RandomDrawsBySeedAlone) {
  std::set<std::string> seen;
  const NodeTemplate nothing;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<ExpansionOption> options = {{"a", &nothing, 1, {}}, {"b", &nothing, 1, {}}, {"c", &nothing, 1, {}}};
    const std::string first = draw(options, seed).group;
    EXPECT_EQ(first, draw(options, seed).group);
    seen.insert(first);
  }
  EXPECT_EQ(seen.size(), 3U);
}

TEST(ScaleUp, SimilarGroupsAreKeptEqual) {
  TestCluster cluster;
  cluster.options = options_of("{balanceSimilarNodeGroups: true, balancingIgnoredLabels: [rack]}");
  const std::string place = ", capacity.cluster-autoscaler.kubernetes.io/labels: 'topology.kubernetes.io/zone={},rack={}'";
  cluster.set("a", {.annotations = fmt::format(fmt::runtime(place), "a", 1)});
  cluster.set("b", {.max = 2, .annotations = fmt::format(fmt::runtime(place), "b", 2)});
  cluster.set("c", {.annotations = fmt::format(fmt::runtime(place), "c", 3)});
  cluster.set("other", {.cpu = "512", .memory = "2048Gi"});
  cluster.pods(9, {.cpu = "7"});
  Actions actions = cluster.step();
  std::map<std::string, std::int64_t> sizes;
  for (const Resize& resize : actions.grow) sizes[resize.group] = resize.to;
  std::int64_t all = 0;
  for (const auto& [group, size] : sizes) all += size;
  if (sizes.contains("MachineSet/m/other")) GTEST_FAIL() << grown(actions);
  EXPECT_EQ(all, 9);
  EXPECT_EQ(sizes["MachineSet/m/b"], 2);
  EXPECT_LE(std::abs(sizes["MachineSet/m/a"] - sizes["MachineSet/m/c"]), 1);
}

TEST(ScaleUp, BalancingFillsTheSmallestFirst) {
  const auto out = balance({{"a", 5, 5, 9}, {"b", 1, 1, 3}, {"c", 2, 2, 9}}, 6);
  EXPECT_EQ(to_string(out), "[{b 1->3 (max: 3)} {c 2->6 (max: 9)}]");
}

TEST(ScaleUp, AGroupBelowItsMinimumGrowsToItWhereThatIsAsked) {
  TestCluster cluster;
  cluster.set("a", {.min = 3, .replicas = 1});
  cluster.machine("a", "a-1");
  EXPECT_EQ(grown(cluster.step()), "[]");
  cluster.options.enforce_min_sizes = true;
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/a 1->3 (max: 10)}]");
}

TEST(ScaleUp, MachinesThatNeverComeAreGivenUpAndTheGroupPauses) {
  TestCluster cluster;
  cluster.options = options_of("{maxNodeProvisionTime: 2m}");
  cluster.set("a", {});
  cluster.pod("p", {});
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/a 0->1 (max: 10)}]");
  cluster.set("a", {.replicas = 1});
  cluster.machine("a", "a-1", false);
  cluster.now += 1min;
  EXPECT_TRUE(cluster.step().delete_instances.empty());
  cluster.now += 70s;
  EXPECT_TRUE(std::ranges::any_of(cluster.step().notes, [](const Note& note) { return note.reason == "ScaleUpTimedOut"; }));
  // The machine itself is late two minutes after it was first seen.
  cluster.now += 60s;
  const Actions late = cluster.step();
  ASSERT_EQ(late.delete_instances.size(), 1U);
  EXPECT_EQ(late.delete_instances[0].instance, "m/a-1");
  cluster.cache.remove("Machine", "m", "a-1");
  cluster.set("a", {});
  EXPECT_EQ(message_for(cluster.step(), "p"), "NotTriggerScaleUp: pod didn't trigger scale-up: 1 in backoff after failed scale-up");
  cluster.now += 5min;
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/a 0->1 (max: 10)}]");
}

TEST(ScaleUp, AFailedResizePausesTheGroupTwiceAsLongEachTime) {
  TestCluster cluster;
  cluster.set("a", {});
  cluster.pod("p", {});
  EXPECT_FALSE(cluster.step().grow.empty());
  cluster.core->grow_failed("MachineSet/m/a", "quota", cluster.options, cluster.now);
  cluster.now += 299s;
  EXPECT_TRUE(cluster.step().grow.empty());
  cluster.now += 1s;
  EXPECT_FALSE(cluster.step().grow.empty());
  cluster.core->grow_failed("MachineSet/m/a", "quota", cluster.options, cluster.now);
  cluster.now += 9min;
  const Actions actions = cluster.step();
  EXPECT_TRUE(actions.grow.empty());
  EXPECT_EQ(actions.status.groups[0].backoff_message, "quota");
}

TEST(ScaleUp, NewPodsCanBeLeftAloneForAWhile) {
  TestCluster cluster;
  cluster.options = options_of("{scaleUp: {newPodScaleUpDelay: 30s}}");
  cluster.set("a", {});
  cluster.pod("p", {});
  EXPECT_TRUE(cluster.step().grow.empty());
  cluster.now += 30s;
  EXPECT_TRUE(cluster.step().grow.empty());
  cluster.now += 1s;
  EXPECT_FALSE(cluster.step().grow.empty());
}

TEST(ScaleUp, APodMayAskForMorePatience) {
  TestCluster cluster;
  cluster.options = options_of("{scaleUp: {newPodScaleUpDelay: 30s}}");
  cluster.set("a", {});
  cluster.pod("p", {.extra_metadata = fmt::format(", annotations: {{{}: 2m}}", kPodScaleUpDelay)});
  cluster.pod("hasty", {.cpu = "2", .extra_metadata = fmt::format(", annotations: {{{}: 1s}}", kPodScaleUpDelay)});
  EXPECT_TRUE(cluster.step().grow.empty());  // Less than the autoscaler's own does not count.
  cluster.cache.remove("Pod", "default", "hasty");
  cluster.now += 120s;
  EXPECT_TRUE(cluster.step().grow.empty());
  cluster.now += 1s;
  EXPECT_FALSE(cluster.step().grow.empty());
}

TEST(ScaleUp, SpreadAndAntiAffinityBringANodeEach) {
  TestCluster cluster;
  cluster.set("a", {});
  const std::string anti =
      ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, "
      "labelSelector: {matchLabels: {app: web}}}]}}";
  cluster.pods(3, {.cpu = "100m", .extra_spec = anti});
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/a 0->3 (max: 10)}]");
}

/// SPEC H7: the scheduler's engine, placing the pods in its own order on the cluster with the new nodes, uses each of them.
TEST(ScaleUp, EveryNewNodeIsUsed) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    TestCluster cluster;
    cluster.options = options_of("{balanceSimilarNodeGroups: true}");
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    for (int i = 0; i < 3; ++i)
      cluster.set(fmt::format("s{}", i),
                  {.max = 1 + below(6), .cpu = std::to_string(2 + below(7)), .memory = fmt::format("{}Gi", 4 + below(12))});
    for (int i = 0; i < 3; ++i) cluster.node(fmt::format("n{}", i), std::to_string(1 + below(4)), "8Gi");
    for (int i = 0; i < 15; ++i)
      cluster.pod(fmt::format("p{}", i),
                  {.cpu = fmt::format("{}m", 100 + below(3000)), .memory = fmt::format("{}Mi", 100 + below(4000)), .priority = below(3)});
    const Actions actions = cluster.step();
    if (actions.grow.empty()) continue;
    const Snapshot snapshot = cluster.cache.snapshot();
    placement::Trial trial =
        placement::Trial::on_fork(*snapshot.cluster, cluster.framework,
                                  {.engine = {.tie_break = placement::EngineOptions::TieBreak::kFirstByName}, .preemption = {}});
    std::set<placement::NodeIndex> added;
    for (const Resize& resize : actions.grow)
      for (std::int64_t i = resize.from; i < resize.to; ++i) {
        const auto group = std::ranges::find(snapshot.groups, resize.group, &NodeGroup::id);
        added.insert(add_node(trial, {group->template_node, {}}, fmt::format("{}-{}", resize.group, i)));
      }
    std::vector<PodPtr> pods;
    for (const auto& [key, pod] : snapshot.pods()) pods.push_back(pod);
    std::ranges::stable_sort(pods, std::greater{}, [](const PodPtr& pod) { return pod->view().priority; });
    for (const PodPtr& pod : pods) added.erase(trial.place(pod->info).node);
    EXPECT_TRUE(added.empty()) << "round " << round << " " << grown(actions);
  }
}

/// Of two pods that each want the only device one has no place: the other has it.
TEST(ScaleUp, ADeviceThatOnePodGetsIsNotThereForAnother) {
  TestCluster cluster;
  cluster.node("n1", "8");
  put_devices(cluster, "n1", 1);
  for (const char* name : {"p", "q"}) put_device_user(cluster, name, "");
  EXPECT_EQ(cluster.step().status.pending_pods, 1U);
  put_devices(cluster, "n1", 2);
  EXPECT_EQ(cluster.step().status.pending_pods, 0U);
}

TEST(ScaleUp, AVolumeThatOnePodGetsIsNotThereForAnother) {
  TestCluster cluster;
  cluster.node("n1", "8");
  cluster.put(
      "kind: StorageClass\nmetadata: {name: local}\nprovisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer");
  cluster.put(
      "kind: PersistentVolume\nmetadata: {name: v}\nspec: {storageClassName: local, accessModes: [ReadWriteOnce], capacity: {storage: "
      "1Gi}}\n"
      "status: {phase: Available}");
  for (const char* name : {"p", "q"}) {
    cluster.put(
        fmt::format("kind: PersistentVolumeClaim\nmetadata: {{namespace: default, name: {0}, uid: claim-{0}}}\nspec: {{storageClassName: "
                    "local, accessModes: "
                    "[ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}",
                    name));
    cluster.pod(name, {.extra_spec = fmt::format(", volumes: [{{name: v, persistentVolumeClaim: {{claimName: {}}}}}]", name)});
  }
  EXPECT_EQ(cluster.step().status.pending_pods, 1U);
}

}  // namespace
}  // namespace berth::autoscaler::testing
