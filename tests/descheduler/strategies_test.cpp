// What each strategy chooses, and where the engine then puts it (SPEC G2, G4).
#include <fmt/format.h>

#include "descheduler/judge.h"
#include "tests/descheduler/world.h"

namespace berth::descheduler::test {
namespace {

const std::string kHostAnti =
    "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: "
    "{matchLabels: {app: a}}}]}}";

TEST(RemoveDuplicates, SpreadsCopiesAfterANodeReturns) {
  World world;
  world.node("n1").node("n2").node("n3").pods("web", 3, "n1");
  const CycleResult result = world.run(one_plugin("RemoveDuplicates", "{}"));
  EXPECT_EQ(moves(result), (Names{"web-2 n1->n2", "web-1 n1->n3"}));
  EXPECT_EQ(result.removals[0].why, "3 of ReplicaSet web on the node, 1 a node would be even");
}

TEST(RemoveDuplicates, LeavesAnEvenSpreadAlone) {
  World world;
  world.node("n1").node("n2").pods("a", 2, "n1").pods("b", 2, "n2");
  EXPECT_TRUE(world.run(one_plugin("RemoveDuplicates", "{}")).removals.empty());
}

TEST(RemoveDuplicates, OtherImagesOwnersAndNamespacesAreNoDuplicates) {
  World world;
  world.node("n1").node("n2").pod("a", "n1").pod("b", "n1", "{spec: {containers: [{name: c, image: other}]}}");
  world.pod("c", "n1", "{metadata: {namespace: two}}")
      .pod("d", "n1", "{metadata: {ownerReferences: [{kind: ReplicaSet, name: x, uid: x}]}}");
  EXPECT_TRUE(world.run(one_plugin("RemoveDuplicates", "{}")).removals.empty());
}

TEST(RemoveDuplicates, ExcludesOwnerKindsAndNamespaces) {
  World world;
  world.node("n1").node("n2").pods("a", 2, "n1");
  EXPECT_TRUE(world.run(one_plugin("RemoveDuplicates", "{excludeOwnerKinds: [ReplicaSet]}")).removals.empty());
  EXPECT_TRUE(world.run(one_plugin("RemoveDuplicates", "{namespaces: {exclude: [default]}}")).removals.empty());
  EXPECT_EQ(evicted(world.run(one_plugin("RemoveDuplicates", "{namespaces: {include: [default]}}"))), (Names{"a-1"}));
}

TEST(RemoveDuplicates, NodesThatThePodsCannotUseDoNotCount) {
  World world;
  world.node("n1").node("n2", "{spec: {taints: [{key: x, effect: NoSchedule}]}}").pods("a", 2, "n1");
  EXPECT_TRUE(world.run(one_plugin("RemoveDuplicates", "{}")).removals.empty());
}

TEST(RemoveDuplicates, TheYoungestGoes) {
  World world;
  world.node("n1").node("n2").pod("a", "n1", "{metadata: {creationTimestamp: '2026-01-02T11:30:00Z'}}").pod("b", "n1");
  EXPECT_EQ(evicted(world.run(one_plugin("RemoveDuplicates", "{}"))), (Names{"a"}));
}

const std::string kLow = "{thresholds: {cpu: 20, memory: 20, pods: 20}, targetThresholds: {cpu: 50, memory: 50, pods: 50}}";

TEST(LowNodeUtilization, MovesUntilTheNodeIsBelowTheTarget) {
  World world;
  // 8 of 4 cores' 40 tenths each: 3200m of 4000m is 80%; half is reached after three pods of 400m.
  world.node("full").node("empty").pods("a", 8, "full",
                                        "{spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: 400m}}}]}}");
  const CycleResult result = world.run(one_plugin("LowNodeUtilization", kLow));
  EXPECT_EQ(moves(result), (Names{"a-0 full->empty", "a-1 full->empty", "a-2 full->empty"}));
}

TEST(LowNodeUtilization, NumberOfNodesHoldsItBack) {
  World world;
  world.node("full").node("empty").pods("a", 8, "full",
                                        "{spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: 400m}}}]}}");
  EXPECT_TRUE(world.run(one_plugin("LowNodeUtilization", "{thresholds: {cpu: 20}, targetThresholds: {cpu: 50}, numberOfNodes: 1}"))
                  .removals.empty());
  EXPECT_FALSE(world.run(one_plugin("LowNodeUtilization", "{thresholds: {cpu: 20}, targetThresholds: {cpu: 50}}")).removals.empty());
}

TEST(LowNodeUtilization, UnschedulableNodesTakeNothing) {
  World world;
  world.node("full").node("empty", "{spec: {unschedulable: true}}").node("half");
  world.pods("a", 8, "full", "{spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: 400m}}}]}}");
  world.pods("b", 3, "half", "{spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: 400m}}}]}}");
  EXPECT_TRUE(world.run(one_plugin("LowNodeUtilization", kLow)).removals.empty());
}

TEST(LowNodeUtilization, DeviationsFromTheAverage) {
  World world;
  // 60%, 30%, 0%: the average is 30%, so that 40% and 20% are the bounds.
  world.node("a").node("b").node("c");
  world.pods("x", 6, "a", "{spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: 400m}}}]}}");
  world.pods("y", 3, "b", "{spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: 400m}}}]}}");
  const auto result =
      world.run(one_plugin("LowNodeUtilization", "{useDeviationThresholds: true, thresholds: {cpu: 10}, targetThresholds: {cpu: 10}}"));
  EXPECT_EQ(moves(result), (Names{"x-0 a->c", "x-1 a->c"}));
}

TEST(LowNodeUtilization, ExtendedResourcesCount) {
  World world;
  const char* gpus = "{status: {allocatable: {example.com/gpu: '4'}}}";
  world.node("a", gpus).node("b", gpus);
  world.pods(
      "x", 4, "a",
      "{spec: {containers: [{name: c, image: nginx, resources: {requests: {example.com/gpu: '1'}, limits: {example.com/gpu: '1'}}}]}}");
  const auto result =
      world.run(one_plugin("LowNodeUtilization", "{thresholds: {example.com/gpu: 20}, targetThresholds: {example.com/gpu: 50}}"));
  // The default scheduler spreads by cpu and memory; the copies of one ReplicaSet make the other node the better one.
  EXPECT_EQ(evicted(result).size(), 2u);
}

TEST(LowNodeUtilization, ByActualUse) {
  World world;
  world.node("a").node("b").pods("x", 3, "a");
  world.add(
      "{kind: NodeMetrics, metadata: {name: a}, usage: {cpu: 3600m, memory: 1Gi}}\n---\n{kind: NodeMetrics, metadata: {name: b}, usage: "
      "{cpu: 100m, memory: 1Gi}}\n---\n{kind: PodMetrics, metadata: {namespace: default, name: x-0}, containers: [{name: c, usage: {cpu: "
      "1700m, memory: 1Mi}}]}\n");
  const std::string policy = one_plugin(
      "LowNodeUtilization", "{thresholds: {cpu: 20}, targetThresholds: {cpu: 50}, metricsUtilization: {source: KubernetesMetrics}}", "{}",
      "metricsProviders: [{source: KubernetesMetrics}]\n");
  EXPECT_EQ(moves(world.run(policy)), (Names{"x-0 a->b"}));  // Nobody measured the others.
}

TEST(LowNodeUtilization, NeverToANodeThatWouldBeOverTheTarget) {
  World world;
  const char* big = "{spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: 2500m}}}]}}";
  world.node("full")
      .node("empty")
      .pod("a", "full", big)
      .pod("b", "full", "{spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: '1'}}}]}}");
  const CycleResult result = world.run(one_plugin("LowNodeUtilization", "{thresholds: {cpu: 20}, targetThresholds: {cpu: 50}}"));
  EXPECT_EQ(evicted(result), (Names{"b"}));
  EXPECT_EQ(kept_because(result, "a"), "it would go to empty, which would then be above the target for cpu");
}

TEST(LowNodeUtilization, PluginLimitPerNode) {
  World world;
  world.node("full").node("empty").pods("a", 8, "full",
                                        "{spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: 400m}}}]}}");
  EXPECT_EQ(evicted(world.run(
                one_plugin("LowNodeUtilization", "{thresholds: {cpu: 20}, targetThresholds: {cpu: 50}, evictionLimits: {node: 1}}"))),
            (Names{"a-0"}));
}

TEST(HighNodeUtilization, EmptiesNodesForASchedulerThatPacks) {
  World world;
  world.node("low").node("busy");
  world.pods("b", 10, "busy", "{metadata: {ownerReferences: [{kind: ReplicaSet, name: b, uid: b}]}}").pods("a", 2, "low");
  const std::string policy = one_plugin("HighNodeUtilization", "{thresholds: {cpu: 20}}");
  const CycleResult spreading = world.run(policy);
  EXPECT_EQ(evicted(spreading), Names{});  // LeastAllocated puts them back.
  EXPECT_EQ(kept_because(spreading, "a-0"), "it would come back to low");
  world.profile.args.fit.strategy = placement::ScoringStrategyType::kMostAllocated;
  world.profile.score = {{"NodeResourcesFit", 1}};
  EXPECT_EQ(moves(world.run(policy)), (Names{"a-0 low->busy", "a-1 low->busy"}));
}

TEST(HighNodeUtilization, OnlyPodsThatAskForTheResource) {
  World world;
  world.profile.args.fit.strategy = placement::ScoringStrategyType::kMostAllocated;
  world.profile.score = {{"NodeResourcesFit", 1}};
  world.node("low").node("busy");
  world.pods("b", 10, "busy")
      .pod("a", "low")
      .pod("bare", "low", "{spec: {containers: [{name: c, image: nginx, resources: {requests: {memory: 1Mi}}}]}}");
  EXPECT_EQ(evicted(world.run(one_plugin("HighNodeUtilization", "{thresholds: {cpu: 20}, evictionModes: [OnlyThresholdingResources]}"))),
            (Names{"a"}));
}

TEST(AntiAffinity, TheDocumentsExample) {
  // podB and podC cannot stand podA: it goes, and they stay.
  World world;
  world.node("node1").node("node2");
  world.pod("pod-a", "node1", "{metadata: {labels: {app: a}}}");
  world.pod("pod-b", "node1", "{spec: {" + kHostAnti + "}}").pod("pod-c", "node1", "{spec: {" + kHostAnti + "}}");
  EXPECT_EQ(moves(world.run(one_plugin("RemovePodsViolatingInterPodAntiAffinity", "{}"))), (Names{"pod-a node1->node2"}));
}

TEST(AntiAffinity, OneHolderGoesItself) {
  World world;
  world.node("n1").node("n2").pod("a", "n1", "{metadata: {labels: {app: a}}}").pod("b", "n1", "{spec: {" + kHostAnti + "}}");
  EXPECT_EQ(moves(world.run(one_plugin("RemovePodsViolatingInterPodAntiAffinity", "{}"))), (Names{"b n1->n2"}));
}

TEST(AntiAffinity, APodOfHigherPriorityStays) {
  World world;
  world.node("n1").node("n2").pod("a", "n1", "{metadata: {labels: {app: a}}, spec: {priority: 10}}");
  world.pod("b", "n1", "{spec: {" + kHostAnti + "}}").pod("c", "n1", "{spec: {" + kHostAnti + "}}");
  EXPECT_EQ(evicted(world.run(one_plugin("RemovePodsViolatingInterPodAntiAffinity", "{}"))), (Names{"b", "c"}));
}

TEST(AntiAffinity, OfSeveralThatExcludeEachOtherOneStays) {
  World world;
  world.node("n1").node("n2").node("n3");
  world.pods("a", 3, "n1", "{metadata: {labels: {app: a}}, spec: {" + kHostAnti + "}}");
  EXPECT_EQ(moves(world.run(one_plugin("RemovePodsViolatingInterPodAntiAffinity", "{}"))), (Names{"a-0 n1->n2", "a-1 n1->n3"}));
}

TEST(AntiAffinity, ZonesCount) {
  World world;
  world.node("n1", "{metadata: {labels: {zone: x}}}")
      .node("n2", "{metadata: {labels: {zone: x}}}")
      .node("n3", "{metadata: {labels: {zone: y}}}");
  const std::string anti =
      "{spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: "
      "{matchLabels: "
      "{app: a}}}]}}}}";
  world.pod("a", "n1", "{metadata: {labels: {app: a}}}").pod("b", "n2", anti);
  EXPECT_EQ(moves(world.run(one_plugin("RemovePodsViolatingInterPodAntiAffinity", "{}"))), (Names{"b n2->n3"}));
}

const std::string kNeedsSsd =
    "{spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: "
    "disk, "
    "operator: In, values: [ssd]}]}]}}}}}";
const std::string kRequired = "{nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]}";

TEST(NodeAffinity, RequiredMovesWhereItHolds) {
  World world;
  world.node("n1").node("n2").node("n3", "{metadata: {labels: {disk: ssd}}}").pod("a", "n1", kNeedsSsd).pod("b", "n1");
  EXPECT_EQ(moves(world.run(one_plugin("RemovePodsViolatingNodeAffinity", kRequired))), (Names{"a n1->n3"}));
}

TEST(NodeAffinity, StaysWhenNoNodeMatches) {
  World world;
  world.node("n1").node("n2").pod("a", "n1", kNeedsSsd);
  EXPECT_TRUE(world.run(one_plugin("RemovePodsViolatingNodeAffinity", kRequired)).removals.empty());
}

TEST(NodeAffinity, PreferredMovesToABetterNode) {
  World world;
  const std::string prefers =
      "{spec: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: "
      "[{key: "
      "disk, operator: In, values: [ssd]}]}}]}}}}";
  world.node("n1").node("n2", "{metadata: {labels: {disk: ssd}}}").pod("a", "n1", prefers).pod("b", "n2", prefers);
  EXPECT_EQ(moves(world.run(
                one_plugin("RemovePodsViolatingNodeAffinity", "{nodeAffinityType: [preferredDuringSchedulingIgnoredDuringExecution]}"))),
            (Names{"a n1->n2"}));
}

TEST(NodeTaints, OnlyThoseThatCount) {
  const auto run = [](const std::string& taint, const std::string& args) {
    World world;
    world.node("n1", "{spec: {taints: [" + taint + "]}}").node("n2").pod("a", "n1");
    world.pod("tolerant", "n1", "{spec: {tolerations: [{operator: Exists}]}}");
    return evicted(world.run(one_plugin("RemovePodsViolatingNodeTaints", args)));
  };
  EXPECT_EQ(run("{key: k, value: v, effect: NoSchedule}", "{}"), (Names{"a"}));
  EXPECT_EQ(run("{key: k, value: v, effect: PreferNoSchedule}", "{}"), Names{});
  EXPECT_EQ(run("{key: k, value: v, effect: PreferNoSchedule}", "{includePreferNoSchedule: true}"), (Names{"a"}));
  EXPECT_EQ(run("{key: k, value: v, effect: NoSchedule}", "{excludedTaints: [k]}"), Names{});
  EXPECT_EQ(run("{key: k, value: v, effect: NoSchedule}", "{excludedTaints: [k=w]}"), (Names{"a"}));
  EXPECT_EQ(run("{key: k, value: v, effect: NoSchedule}", "{includedTaints: [k=v]}"), (Names{"a"}));
  EXPECT_EQ(run("{key: k, value: v, effect: NoSchedule}", "{includedTaints: [other]}"), Names{});
}

std::string spread(const std::string& when) {
  return "{spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: " + when +
         ", labelSelector: {matchLabels: {app: "
         "web}}}]}}";
}

TEST(TopologySpread, EvensOutZones) {
  World world;
  world.node("n1", "{metadata: {labels: {zone: a}}}").node("n2", "{metadata: {labels: {zone: b}}}");
  world.pods("x", 4, "n1", spread("DoNotSchedule"));
  EXPECT_EQ(moves(world.run(one_plugin("RemovePodsViolatingTopologySpreadConstraint", "{}"))), (Names{"x-2 n1->n2", "x-3 n1->n2"}));
}

TEST(TopologySpread, WithinTheSkewNothingMoves) {
  World world;
  world.node("n1", "{metadata: {labels: {zone: a}}}").node("n2", "{metadata: {labels: {zone: b}}}");
  world.pods("x", 2, "n1", spread("DoNotSchedule")).pod("y", "n2", spread("DoNotSchedule"));
  EXPECT_TRUE(world.run(one_plugin("RemovePodsViolatingTopologySpreadConstraint", "{}")).removals.empty());
}

TEST(TopologySpread, SoftConstraintsWhenAskedFor) {
  World world;
  world.node("n1", "{metadata: {labels: {zone: a}}}").node("n2", "{metadata: {labels: {zone: b}}}");
  world.pods("x", 4, "n1", spread("ScheduleAnyway"));
  EXPECT_TRUE(world.run(one_plugin("RemovePodsViolatingTopologySpreadConstraint", "{}")).removals.empty());
  EXPECT_EQ(evicted(world.run(one_plugin("RemovePodsViolatingTopologySpreadConstraint", "{constraints: [ScheduleAnyway]}"))).size(), 2u);
}

TEST(TopologySpread, LowPriorityLeavesTheZone) {
  World world;
  world.node("n1", "{metadata: {labels: {zone: a}}}").node("n2", "{metadata: {labels: {zone: b}}}");
  json::Value low = yaml(spread("DoNotSchedule"));
  world.pod("a-low", "n1", json::serialize(low));
  json::set(low, {"spec", "priority"}, json::Value(100));
  world.pods("b-high", 2, "n1", json::serialize(low));
  EXPECT_EQ(evicted(world.run(one_plugin("RemovePodsViolatingTopologySpreadConstraint", "{}"))), (Names{"a-low"}));
}

std::string restarts(int count, const std::string& waiting = "") {
  return "{status: {containerStatuses: [{name: c, restartCount: " + std::to_string(count) +
         ", state: " + (waiting.empty() ? "{running: {}}" : "{waiting: {reason: " + waiting + "}}") +
         "}], initContainerStatuses: [{name: i, restartCount: 5}]}}";
}

TEST(TooManyRestarts, MostRestartsFirst) {
  World world;
  world.node("n1", "{spec: {taints: [{key: x, effect: NoSchedule}]}}").node("n2");
  world.pod("a", "n1", restarts(10)).pod("b", "n1", restarts(30)).pod("c", "n1", restarts(9));
  EXPECT_EQ(evicted(world.run(one_plugin("RemovePodsHavingTooManyRestarts", "{podRestartThreshold: 10}"))), (Names{"b", "a"}));
  EXPECT_EQ(evicted(world.run(one_plugin("RemovePodsHavingTooManyRestarts", "{podRestartThreshold: 14, includingInitContainers: true}"))),
            (Names{"b", "a", "c"}));
}

TEST(TooManyRestarts, OnlyInTheStatesNamed) {
  World world;
  world.node("n1", "{spec: {taints: [{key: x, effect: NoSchedule}]}}").node("n2");
  world.pod("a", "n1", restarts(10)).pod("b", "n1", restarts(10, "CrashLoopBackOff"));
  EXPECT_EQ(evicted(world.run(one_plugin("RemovePodsHavingTooManyRestarts", "{podRestartThreshold: 10, states: [CrashLoopBackOff]}"))),
            (Names{"b"}));
}

TEST(FailedPods, OldEnoughWithTheReason) {
  World world;
  world.node("n1").node("n2");
  const auto failed = [](const std::string& reason, const std::string& created) {
    return "{metadata: {creationTimestamp: '" + created + "'}, status: {phase: Failed, reason: " + reason +
           ", containerStatuses: [{state: {terminated: {reason: Error, exitCode: 3}}}]}}";
  };
  world.pod("a", "n1", failed("OutOfcpu", "2026-01-02T10:00:00Z")).pod("b", "n1", failed("Other", "2026-01-02T10:00:00Z"));
  world.pod("young", "n1", failed("OutOfcpu", "2026-01-02T11:30:00Z")).pod("runs", "n1");
  EXPECT_EQ(evicted(world.run(one_plugin("RemoveFailedPods", "{}"))), (Names{"a", "b"}));
  EXPECT_EQ(evicted(world.run(one_plugin("RemoveFailedPods", "{reasons: [OutOfcpu], minPodLifetimeSeconds: 0}"))), (Names{"a", "young"}));
  EXPECT_EQ(evicted(world.run(one_plugin("RemoveFailedPods", "{exitCodes: [4]}"))), Names{});
  EXPECT_EQ(evicted(world.run(one_plugin("RemoveFailedPods", "{excludeOwnerKinds: [ReplicaSet]}"))), Names{});
}

TEST(PodLifeTime, OldestFirstAndByStateConditionAndOwner) {
  World world;
  world.node("n1", "{spec: {taints: [{key: x, effect: NoSchedule}]}}").node("n2");
  world.pod("a", "n1", "{metadata: {creationTimestamp: '2026-01-02T10:00:00Z'}}");
  world.pod("b", "n1", "{metadata: {creationTimestamp: '2026-01-01T10:00:00Z'}, status: {phase: Pending}}");
  world.pod("done", "n1",
            "{metadata: {ownerReferences: [{kind: Job, name: j, uid: j}]}, status: {phase: Succeeded, conditions: [{type: Ready, status: "
            "'False', "
            "reason: PodCompleted, lastTransitionTime: '2026-01-02T11:00:00Z'}]}}");
  EXPECT_EQ(evicted(world.run(one_plugin("PodLifeTime", "{maxPodLifeTimeSeconds: 3601}"))), (Names{"b", "a"}));
  EXPECT_EQ(evicted(world.run(one_plugin("PodLifeTime", "{maxPodLifeTimeSeconds: 60, states: [Pending]}"))), (Names{"b"}));
  EXPECT_EQ(
      evicted(world.run(one_plugin("PodLifeTime", "{conditions: [{reason: PodCompleted, minTimeSinceLastTransitionSeconds: 3600}]}"))),
      (Names{"done"}));
  EXPECT_EQ(
      evicted(world.run(one_plugin("PodLifeTime", "{conditions: [{reason: PodCompleted, minTimeSinceLastTransitionSeconds: 3601}]}"))),
      Names{});
  EXPECT_EQ(evicted(world.run(one_plugin("PodLifeTime", "{maxPodLifeTimeSeconds: 60, ownerKinds: {include: [Job]}}"))), (Names{"done"}));
}

TEST(BetterPlace, APodThatWouldComeBackStays) {
  World world;
  world.node("n1").node("n2").pod("a", "n1").pods("b", 3, "n2");
  const std::string policy = one_plugin("PodLifeTime", "{maxPodLifeTimeSeconds: 60, labelSelector: {matchLabels: {app: only}}}");
  world.pod("old", "n1", "{metadata: {labels: {app: only}}}");
  const CycleResult result = world.run(policy);
  EXPECT_EQ(evicted(result), Names{});
  EXPECT_EQ(kept_because(result, "old"), "it would come back to n1");
  world.options.check = PlacementCheck::kFits;
  EXPECT_EQ(moves(world.run(policy)), (Names{"old n1->n1"}));
  world.options.check = PlacementCheck::kOff;
  EXPECT_EQ(moves(world.run(policy)), (Names{"old n1->"}));
}

TEST(BetterPlace, EquallyGoodIsNotBetter) {
  World world;
  world.node("n1").node("n2").pod("a", "n1", "{spec: {containers: [{name: c, image: nginx}]}}");
  const CycleResult result = world.run(one_plugin("PodLifeTime", "{maxPodLifeTimeSeconds: 60}"));
  EXPECT_EQ(evicted(result), Names{});
  EXPECT_EQ(kept_because(result, "a"), "it could come back to n1");
}

TEST(BetterPlace, NowhereToGo) {
  World world;
  world.node("n1", "{spec: {taints: [{key: x, effect: NoSchedule}]}}").node("n2", "{status: {allocatable: {cpu: 50m}}}").pod("a", "n1");
  const CycleResult result = world.run(one_plugin("RemovePodsViolatingNodeTaints", "{}"));
  EXPECT_EQ(evicted(result), Names{});
  EXPECT_NE(kept_because(result, "a").find("it would fit nowhere: 0/2 nodes are available"), std::string::npos)
      << kept_because(result, "a");
}

TEST(BetterPlace, ReplacementsHaveTheirTemplatesLabels) {
  const auto run = [](std::string_view sets) {
    World world;
    world.add(sets).node("n1").node("n2");
    world.pod("a", "n1", "{metadata: {labels: {app: a, by: hand}}, spec: {nodeSelector: {}}}")
        .pod("b", "n1", "{spec: {" + kHostAnti + "}}");
    world.pod("c", "n1", "{spec: {" + kHostAnti + "}}")
        .pods("other", 3, "n2", "{metadata: {ownerReferences: [{kind: ReplicaSet, name: o, uid: o}]}}");
    return world.run(one_plugin("RemovePodsViolatingInterPodAntiAffinity", "{}"));
  };
  const char* bare =
      "{kind: ReplicaSet, apiVersion: apps/v1, metadata: {name: web, namespace: default, uid: web-uid}, spec: {selector: {matchLabels: {x: "
      "y}}, "
      "template: {metadata: {labels: {x: y}}}}}";
  EXPECT_EQ(moves(run("{kind: Nothing}")), (Names{"a n1->n2"}));
  // The template lacks the label: whoever comes would go to n1, which has more room.
  const CycleResult kept = run(bare);
  EXPECT_EQ(kept_because(kept, "a"), "it would come back to n1");
}

TEST(BetterPlace, WithoutTheLabelsThatMadeItLeaveTheOldNodeMayBeAsGood) {
  World world;
  world.add(
      "{kind: ReplicaSet, apiVersion: apps/v1, metadata: {name: web, namespace: default, uid: web-uid}, spec: {selector: {matchLabels: {x: "
      "y}}, template: {metadata: {labels: {x: y}}}}}");
  world.node("n1").node("n2").pod("a", "n1", "{metadata: {labels: {app: a, by: hand}}}");
  world.pods("b", 2, "n1", "{spec: {" + kHostAnti + "}}");
  world.pods("other", 2, "n2", "{metadata: {ownerReferences: [{kind: ReplicaSet, name: o, uid: o}]}}");
  EXPECT_EQ(moves(world.run(one_plugin("RemovePodsViolatingInterPodAntiAffinity", "{}"))), (Names{"a n1->n2"}));
}

/// A pod with a claim of its template's making for one device, on a node that it has to leave.
void put_device_user(World& world, const std::string& name, const std::string& node, const std::string& device) {
  world.add(fmt::format(
      "{{kind: ResourceClaim, metadata: {{namespace: default, name: made-{0}, uid: claim-{0}, ownerReferences: [{{apiVersion: v1, kind: "
      "Pod, "
      "name: {0}, uid: {0}-uid, controller: true}}]}}, spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: gpu, "
      "allocationMode: ExactCount, count: 1}}}}]}}}}, status: {{reservedFor: [{{resource: pods, name: {0}, uid: {0}-uid}}], allocation: "
      "{{devices: {{results: [{{request: r, driver: d.example.com, pool: {1}, device: {2}}}]}}, nodeSelector: {{nodeSelectorTerms: "
      "[{{matchFields: [{{key: metadata.name, operator: In, values: [{1}]}}]}}]}}}}}}}}",
      name, node, device));
  world.pod(
      name, node,
      fmt::format("{{spec: {{resourceClaims: [{{name: c, resourceClaimTemplateName: t}}]}}, status: {{resourceClaimStatuses: [{{name: c, "
                  "resourceClaimName: made-{}}}]}}}}",
                  name));
}

TEST(BetterPlace, ADeviceThatOneReplacementGetsIsNotThereForAnother) {
  World world;
  world.node("n1", "{spec: {taints: [{key: x, effect: NoSchedule}]}}").node("n2");
  world.add("{kind: DeviceClass, metadata: {name: gpu}, spec: {}}");
  for (const auto& [node, devices] : {std::pair("n1", "[{name: g0}, {name: g1}]"), std::pair("n2", "[{name: g0}]")})
    world.add(
        fmt::format("{{kind: ResourceSlice, metadata: {{name: slice-{0}}}, spec: {{driver: d.example.com, nodeName: {0}, pool: {{name: "
                    "{0}, generation: 1, "
                    "resourceSliceCount: 1}}, devices: {1}}}}}",
                    node, devices));
  put_device_user(world, "a", "n1", "g0");
  put_device_user(world, "b", "n1", "g1");
  const CycleResult result = world.run(one_plugin("RemovePodsViolatingNodeTaints", "{}"));
  EXPECT_EQ(moves(result), (Names{"a n1->n2"}));
  EXPECT_NE(kept_because(result, "b").find("cannot allocate all claims"), std::string::npos) << kept_because(result, "b");
}

TEST(BetterPlace, AVolumeThatOneReplacementGetsIsNotThereForAnother) {
  World world;
  world.node("n1", "{spec: {taints: [{key: x, effect: NoSchedule}]}}").node("n2");
  world.add(
      "{kind: StorageClass, metadata: {name: local}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}");
  for (const auto& [name, node] : {std::pair("v1", "n1"), std::pair("v2", "n1"), std::pair("v3", "n2")})
    world.add(fmt::format(
        "{{kind: PersistentVolume, metadata: {{name: {0}}}, spec: {{storageClassName: local, accessModes: [ReadWriteOnce], capacity: "
        "{{storage: "
        "1Gi}}, nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: "
        "[{1}]}}]}}]}}}}}}, status: {{phase: Available}}}}",
        name, node));
  for (const auto& [name, volume] : {std::pair("a", "v1"), std::pair("b", "v2")}) {
    world.add(fmt::format(
        "{{kind: PersistentVolumeClaim, metadata: {{namespace: default, name: {0}-scratch, uid: claim-{0}, annotations: "
        "{{pv.kubernetes.io/bind-completed: 'yes'}}, ownerReferences: [{{apiVersion: v1, kind: Pod, name: {0}, uid: {0}-uid, controller: "
        "true}}]}}, spec: {{storageClassName: local, volumeName: {1}, accessModes: [ReadWriteOnce], resources: {{requests: {{storage: "
        "1Gi}}}}}}}}",
        name, volume));
    world.pod(name, "n1", "{spec: {volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {}}}}]}}");
  }
  EXPECT_EQ(moves(world.run(one_plugin("RemovePodsViolatingNodeTaints", "{}"))), (Names{"a n1->n2"}));
}

TEST(BetterPlace, ARefusalHoldsUntilTheClusterChanges) {
  World world;
  world.node("n1").node("n2").node("n3", "{metadata: {labels: {disk: ssd}}, spec: {taints: [{key: k, effect: NoSchedule}]}}");
  world.pods("a", 2, "n1")
      .pod("x", "n2",
           "{spec: {nodeSelector: {disk: ssd}, tolerations: [{operator: Exists}], containers: [{name: c, image: nginx, "
           "resources: {requests: {cpu: 2}}}]}}");
  Snapshot& snapshot = world.snapshot();
  snapshot.finish();
  const placement::Profiles profiles(*placement::Framework::create(world.profile));
  Judge judge(snapshot, profiles, PlacementCheck::kBetterPlace);
  const auto& pods = snapshot.pods_by_node["n1"];
  EXPECT_EQ(judge.judge(*pods[0], {}).reason, "it would come back to n1");
  EXPECT_EQ(judge.judge(*pods[1], {}).reason, "it would come back to n1");
  EXPECT_EQ(judge.judge(*snapshot.pods_by_node["n2"][0], {}).destination, "n3");
  // n2 is the better place by now, but not while x is still there.
  EXPECT_EQ(judge.judge(*pods[1], {}).reason, "before those that leave have ended, it would come back to n1");
}

TEST(BetterPlace, APlanIsJudgedInSequence) {
  // One place only: the second pod must stay, for the first has taken it.
  World world;
  world.node("n1", "{spec: {taints: [{key: x, effect: NoSchedule}]}}")
      .node("n2", "{status: {allocatable: {pods: '1'}}}")
      .pods("a", 2, "n1");
  EXPECT_EQ(moves(world.run(one_plugin("RemovePodsViolatingNodeTaints", "{}"))), (Names{"a-0 n1->n2"}));
}

TEST(BetterPlace, AnUnknownSchedulersPodStays) {
  World world;
  world.node("n1", "{spec: {taints: [{key: x, effect: NoSchedule}]}}").node("n2").pod("a", "n1", "{spec: {schedulerName: mine}}");
  EXPECT_NE(kept_because(world.run(one_plugin("RemovePodsViolatingNodeTaints", "{}")), "a").find("scheduler \"mine\""), std::string::npos);
}

/// Whatever is done once is never done again: on the cluster after the plan, the same policy finds nothing to do.
TEST(BetterPlace, ThePlanComesToRest) {
  for (int seed = 0; seed < 30; ++seed) {
    const int nodes = 2 + seed % 5, pods = 6 + seed * 3 % 17;
    std::vector<std::pair<std::string, std::string>> places;
    for (int i = 0; i < pods; ++i) places.emplace_back("p" + std::to_string(i), "n" + std::to_string(i * i % (1 + seed % nodes)));
    const auto build = [&](World& world) {
      for (int i = 0; i < nodes; ++i)
        world.node("n" + std::to_string(i), i % 2 == 0 ? "{metadata: {labels: {zone: a}}}" : "{metadata: {labels: {zone: b}}}");
      for (std::size_t i = 0; i < places.size(); ++i) {
        json::Value extra = yaml(spread("ScheduleAnyway"));
        const std::string owner = "rs" + std::to_string(i % 3);
        merge(extra, yaml("{metadata: {ownerReferences: [{kind: ReplicaSet, name: " + owner + ", uid: " + owner +
                          "}]}, spec: {containers: [{name: "
                          "c, image: " +
                          owner + ", resources: {requests: {cpu: " + std::to_string(50 + static_cast<int>(i) * 37 % 300) + "m}}}]}}"));
        world.pod(places[i].first, places[i].second, json::serialize(extra));
      }
    };
    const std::string policy = R"(apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig:
  - {name: RemoveDuplicates}
  - {name: LowNodeUtilization, args: {thresholds: {cpu: 20}, targetThresholds: {cpu: 30}}}
  - {name: RemovePodsViolatingTopologySpreadConstraint, args: {constraints: [DoNotSchedule, ScheduleAnyway]}}
  plugins: {balance: {enabled: [RemoveDuplicates, LowNodeUtilization, RemovePodsViolatingTopologySpreadConstraint]}}
)";
    std::set<std::string> left;  // "pod node": a place once left is not come back to.
    int round = 0;
    for (; round < 8; ++round) {
      World world;
      build(world);
      const CycleResult result = world.run(policy);
      if (result.evicted() == 0) break;
      for (const Removal& removal : result.removals) {
        if (!goes(removal.outcome)) continue;
        const std::string& name = removal.pod->view().name();
        EXPECT_NE(removal.destination, removal.pod->node()) << "seed " << seed;
        left.insert(name + " " + removal.pod->node());
        EXPECT_FALSE(left.contains(name + " " + removal.destination)) << "seed " << seed << ": " << name;
        for (auto& [pod, node] : places)
          if (pod == name) node = removal.destination;
      }
    }
    EXPECT_LT(round, 8) << "seed " << seed;
  }
}

// A replacement is placed before the old pod has ended.
TEST(BetterPlace, RoomThatIsNotFreeYetIsNoPlace) {
  const auto asks = [](std::string_view tolerated) {
    return fmt::format(
        "{{spec: {{tolerations: [{{key: {}, operator: Exists}}], containers: [{{name: c, image: i, resources: {{requests: "
        "{{cpu: '3'}}}}}}]}}}}",
        tolerated);
  };
  World world;
  world.node("a", "{spec: {taints: [{key: wet, effect: NoSchedule}]}}").node("b", "{spec: {taints: [{key: dry, effect: NoSchedule}]}}");
  world.node("c").pod("p", "a", asks("dry")).pod("q", "b", asks("wet"));
  const CycleResult result = world.run(one_plugin("RemovePodsViolatingNodeTaints", "{}"));
  EXPECT_EQ(moves(result), Names{"p a->c"});
  EXPECT_NE(kept_because(result, "q").find("before those that leave have ended, it would fit nowhere"), std::string::npos)
      << kept_because(result, "q");
}

TEST(BetterPlace, WhoWaitsHasItsPlaceFirst) {
  const auto asks = [](std::string_view more) {
    return fmt::format("{{spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: '3'}}}}}}]}}{}}}", more);
  };
  World alone, with_waiting;
  for (World* world : {&alone, &with_waiting})
    world->node("a", "{spec: {taints: [{key: wet, effect: NoSchedule}]}}").node("c").pod("p", "a", asks(""));
  with_waiting.pod("w", "", asks(", status: {phase: Pending}"));
  EXPECT_EQ(moves(alone.run(one_plugin("RemovePodsViolatingNodeTaints", "{}"))), Names{"p a->c"});
  EXPECT_EQ(moves(with_waiting.run(one_plugin("RemovePodsViolatingNodeTaints", "{}"))), Names{});
}

TEST(LowNodeUtilization, WhatWentToADestinationCountsThere) {
  World world;
  const std::string asks = "{spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 500m, memory: 64Mi}}}]}}";
  world.node("empty", "{status: {allocatable: {cpu: '8', memory: 16Gi}}}").node("full").pods("a", 8, "full", asks);
  const CycleResult result = world.run(one_plugin("LowNodeUtilization", "{thresholds: {cpu: 20}, targetThresholds: {cpu: 30}}"));
  EXPECT_EQ(evicted(result), (Names{"a-0", "a-1", "a-2", "a-3"})) << "a fifth would put it above 2400m";
  EXPECT_EQ(kept_because(result, "a-4"), "it would go to empty, which would then be above the target for cpu");
}

}  // namespace
}  // namespace berth::descheduler::test
