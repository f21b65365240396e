// Which pods are never evicted, and the limits (SPEC G3). Every case stands beside a pod that is evicted, so that it can fail.
#include <map>

#include "tests/descheduler/world.h"

namespace berth::descheduler::test {
namespace {

/// Two nodes; whatever is on `old` is to leave it for its taint.
constexpr std::string_view kTainted = "{spec: {taints: [{key: gone, effect: NoSchedule}]}}";
std::string policy(const std::string& evictor = "{}", const std::string& top = "") {
  return one_plugin("RemovePodsViolatingNodeTaints", "{}", evictor, top);
}
Names evicted_beside_plain(std::string_view extra, const std::string& evictor = "{}", std::string_view more = "{kind: Nothing}") {
  World world;
  world.add(more).node("old", kTainted).node("new").pod("plain", "old", "{metadata: {labels: {app: other}}}").pod("special", "old", extra);
  return evicted(world.run(policy(evictor)));
}
const Names kBoth = {"plain", "special"}, kPlain = {"plain"};

TEST(Protections, PodsWithoutAnOwner) {
  EXPECT_EQ(evicted_beside_plain("{metadata: {ownerReferences: []}}"), kPlain);
  EXPECT_EQ(evicted_beside_plain("{metadata: {ownerReferences: []}}", "{evictFailedBarePods: true}"), kPlain);
  EXPECT_EQ(evicted_beside_plain("{}"), kBoth);
}

TEST(Protections, CriticalPods) {
  EXPECT_EQ(evicted_beside_plain("{spec: {priority: 2000000000}}"), kPlain);
  EXPECT_EQ(evicted_beside_plain("{metadata: {annotations: {scheduler.alpha.kubernetes.io/critical-pod: 'true'}}}"), kPlain);
  EXPECT_EQ(evicted_beside_plain("{metadata: {annotations: {scheduler.alpha.kubernetes.io/critical-pod: ''}}}"), kPlain);
  EXPECT_EQ(evicted_beside_plain("{spec: {priority: 2000000000}}", "{evictSystemCriticalPods: true}"), kBoth);
}

TEST(Protections, PriorityThresholds) {
  EXPECT_EQ(evicted_beside_plain("{spec: {priority: 100}}", "{priorityThreshold: {value: 100}}"), kPlain);
  EXPECT_EQ(evicted_beside_plain("{spec: {priority: 99}}", "{priorityThreshold: {value: 100}}"), kBoth);
  EXPECT_EQ(evicted_beside_plain("{spec: {priority: 500}}", "{priorityThreshold: {name: high}}",
                                 "{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: high}, value: 400}"),
            kPlain);
}

TEST(Protections, AnUnknownPriorityClassIsSaid) {
  Snapshot snapshot;
  const auto read = parse_policy(policy("{priorityThreshold: {name: nowhere}}"), "p");
  ASSERT_TRUE(read);
  const auto result = plan_cycle(*read, snapshot, {}, {});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("priorityclasses.scheduling.k8s.io \"nowhere\" not found"), std::string::npos);
}

TEST(Protections, AGangKeepsThePodsThatItIsOfUseWith) {
  constexpr std::string_view kGroup =
      "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {namespace: default, name: g}, spec: {schedulingPolicy: {gang: "
      "{minCount: 2}}}}";
  constexpr std::string_view kMember = "{spec: {schedulingGroup: {podGroupName: g}}}";
  const auto run = [&](int members, std::string_view top) {
    World world;
    world.add(kGroup).node("old", kTainted).node("new").pods("m", members, "old", kMember);
    return evicted(world.run(policy("{}", std::string(top)))).size();
  };
  EXPECT_EQ(run(2, ""), 0U);
  EXPECT_EQ(run(4, ""), 2U) << "what is above minCount may go";
  // A group that is not there says nothing.
  EXPECT_EQ(evicted_beside_plain(kMember), kBoth);
  EXPECT_EQ(evicted_beside_plain(kMember, "{}", kGroup), kPlain);
}

TEST(Protections, DaemonSetPods) {
  const char* daemon = "{metadata: {ownerReferences: [{kind: DaemonSet, name: d, uid: d}]}}";
  EXPECT_EQ(evicted_beside_plain(daemon), kPlain);
  EXPECT_EQ(evicted_beside_plain(daemon, "{podProtections: {defaultDisabled: [DaemonSetPods]}}"), kBoth);
}

TEST(Protections, MirrorStaticAndTerminatingPodsEvenWhenAnnotated) {
  for (const char* what : {"annotations: {kubernetes.io/config.mirror: x, descheduler.alpha.kubernetes.io/evict: 'true'}",
                           "annotations: {kubernetes.io/config.source: file, descheduler.alpha.kubernetes.io/evict: 'true'}",
                           "deletionTimestamp: '2026-01-02T11:59:59Z'"})
    EXPECT_EQ(evicted_beside_plain("{metadata: {" + std::string(what) + "}}"), kPlain) << what;
}

TEST(Protections, LocalStorage) {
  for (const char* volume : {"{name: v, emptyDir: {}}", "{name: v, hostPath: {path: /x}}"}) {
    const std::string extra = "{spec: {volumes: [" + std::string(volume) + "]}}";
    EXPECT_EQ(evicted_beside_plain(extra), kPlain);
    EXPECT_EQ(evicted_beside_plain(extra, "{evictLocalStoragePods: true}"), kBoth);
  }
  EXPECT_EQ(evicted_beside_plain("{spec: {volumes: [{name: v, configMap: {name: c}}]}}"), kBoth);
}

TEST(Protections, ClaimsWhenAskedFor) {
  const char* extra = "{spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}";
  const char* storage =
      "{kind: PersistentVolumeClaim, apiVersion: v1, metadata: {name: c, namespace: default, annotations: "
      "{pv.kubernetes.io/bind-completed: "
      "'yes'}}, spec: {storageClassName: slow, volumeName: vol}, status: {phase: Bound}}\n---\n{kind: PersistentVolume, apiVersion: v1, "
      "metadata: {name: vol}, spec: {storageClassName: slow, claimRef: {name: c, namespace: default}}, status: {phase: Bound}}\n";
  EXPECT_EQ(evicted_beside_plain(extra, "{}", storage), kBoth);
  EXPECT_EQ(evicted_beside_plain(extra, "{ignorePvcPods: true}", storage), kPlain);
  const auto protecting = [](const std::string& name) {
    return "{podProtections: {extraEnabled: [PodsWithPVC], config: {PodsWithPVC: {protectedStorageClasses: [{name: " + name + "}]}}}}";
  };
  EXPECT_EQ(evicted_beside_plain(extra, protecting("slow"), storage), kPlain);
  EXPECT_EQ(evicted_beside_plain(extra, protecting("fast"), storage), kBoth);
}

TEST(Protections, TheEvictAnnotationLiftsThem) {
  EXPECT_EQ(evicted_beside_plain("{metadata: {ownerReferences: [], annotations: {descheduler.alpha.kubernetes.io/evict: 'true'}}}"), kBoth);
}

TEST(Protections, NoEvictionIsAWishOrARule) {
  const char* extra = "{metadata: {annotations: {descheduler.alpha.kubernetes.io/prefer-no-eviction: 'true'}}}";
  EXPECT_EQ(evicted_beside_plain(extra), kBoth);
  EXPECT_EQ(evicted_beside_plain(extra, "{noEvictionPolicy: Mandatory}"), kPlain);
}

TEST(Protections, LabelsNamespacesAgeAndReplicas) {
  EXPECT_EQ(evicted_beside_plain("{}", "{labelSelector: {matchLabels: {app: other}}}"), kPlain);
  EXPECT_EQ(evicted_beside_plain("{metadata: {namespace: b}}", "{namespaceLabelSelector: {matchLabels: {move: ok}}}",
                                 "{kind: Namespace, apiVersion: v1, metadata: {name: default, labels: {move: ok}}}\n---\n{kind: Namespace, "
                                 "apiVersion: v1, metadata: {name: b}}\n"),
            kPlain);
  EXPECT_EQ(evicted_beside_plain("{status: {startTime: '2026-01-02T11:45:00Z'}}", "{minPodAge: 30m}"), kPlain);
  World world;
  world.node("old", kTainted).node("new").pods("web", 2, "old");
  world.pod("lone", "old", "{metadata: {ownerReferences: [{kind: ReplicaSet, name: lone, uid: lone}]}}");
  // Of two copies one may go: then there is one, too few for the next.
  EXPECT_EQ(evicted(world.run(policy("{minReplicas: 2}"))), (Names{"web-0"}));
}

TEST(Protections, BudgetsAreCountedAlongThePlan) {
  World world;
  world
      .add(
          "{kind: PodDisruptionBudget, apiVersion: policy/v1, metadata: {name: b, namespace: default}, spec: {selector: {matchLabels: "
          "{app: "
          "web}}}, status: {disruptionsAllowed: 1, currentHealthy: 3, desiredHealthy: 2}}")
      .node("old", kTainted)
      .node("new")
      .pods("a", 3, "old");
  const CycleResult result = world.run(policy());
  EXPECT_EQ(evicted(result), (Names{"a-0"}));
  EXPECT_EQ(kept_because(result, "a-1"), "Cannot evict pod as it would violate the pod's disruption budget.");
  EXPECT_EQ(result.removals[1].outcome, Outcome::kProtected);
}

TEST(Protections, ARefusedEvictionLeavesRoomForOthers) {
  World world;
  world.node("old", kTainted).node("new", "{status: {allocatable: {pods: '1'}}}").pods("a", 2, "old");
  world.options.counts_budgets = false;
  world.answer = [](const Step& step) { return step.removal.pod->view().name() == "a-0" ? Answer{Outcome::kProtected, "no"} : Answer{}; };
  EXPECT_EQ(evicted(world.run(policy("{}", "maxNoOfPodsToEvictTotal: 1\n"))), (Names{"a-1"}));
}

TEST(Limits, PerNodeNamespaceAndCycle) {
  const auto run = [](const std::string& top) {
    World world;
    world.node("a", kTainted).node("b", kTainted).node("new");
    world.pods("x", 2, "a").pods("y", 2, "b", "{metadata: {namespace: other}}").pod("z", "b");
    return evicted(world.run(policy("{}", top)));
  };
  EXPECT_EQ(run(""), (Names{"x-0", "x-1", "z", "y-0", "y-1"}));
  EXPECT_EQ(run("maxNoOfPodsToEvictPerNode: 1\n"), (Names{"x-0", "z"}));
  EXPECT_EQ(run("maxNoOfPodsToEvictPerNamespace: 1\n"), (Names{"x-0", "y-0"}));
  EXPECT_EQ(run("maxNoOfPodsToEvictTotal: 3\n"), (Names{"x-0", "x-1", "z"}));
  EXPECT_EQ(run("maxNoOfPodsToEvictTotal: 0\n"), Names{});
}

TEST(Limits, LowPriorityAndBestEffortGoFirst) {
  World world;
  world.node("old", kTainted).node("new");
  const auto pod = [&](const std::string& name, const std::string& resources, int priority) {
    world.pod(name, "old",
              "{spec: {priority: " + std::to_string(priority) + ", containers: [{name: c, image: nginx, resources: " + resources + "}]}}");
  };
  pod("a-guaranteed", "{requests: {cpu: 100m, memory: 1Mi}, limits: {cpu: 100m, memory: 1Mi}}", 0);
  pod("b-burstable", "{requests: {cpu: 100m}}", 0);
  pod("c-best-effort", "{}", 0);
  pod("d-best-effort-high", "{}", 10);
  EXPECT_EQ(evicted(world.run(policy())), (Names{"c-best-effort", "b-burstable", "a-guaranteed", "d-best-effort-high"}));
}

TEST(NodeFit, WantsRoomElsewhere) {
  const auto run = [](const char* extra) {
    World world;
    world.options.check = PlacementCheck::kOff;
    world.node("old", kTainted).node("new", extra).pod("a", "old");
    return evicted(world.run(policy("{nodeFit: true}")));
  };
  EXPECT_EQ(run("{}"), (Names{"a"}));
  EXPECT_EQ(run("{spec: {unschedulable: true}}"), Names{});
  EXPECT_EQ(run("{spec: {taints: [{key: x, effect: NoExecute}]}}"), Names{});
  EXPECT_EQ(run("{status: {allocatable: {cpu: 50m}}}"), Names{});
  EXPECT_EQ(run("{status: {allocatable: {pods: '0'}}}"), Names{});
}

TEST(Cycle, NeedsTwoReadyNodes) {
  World world;
  world.node("old", kTainted).node("down", "{status: {conditions: [{type: Ready, status: Unknown}]}}").pod("a", "old");
  const CycleResult result = world.run(policy());
  EXPECT_TRUE(result.removals.empty());
  EXPECT_EQ(result.notes.size(), 1u);
}

TEST(Cycle, OnlyTheSelectedNodesAreEmptied) {
  World world;
  world.node("a", "{metadata: {labels: {pool: x}}, spec: {taints: [{key: gone, effect: NoSchedule}]}}")
      .node("b", "{metadata: {labels: {pool: x}}}")
      .node("c", kTainted)
      .pod("p", "a")
      .pod("q", "c");
  EXPECT_EQ(evicted(world.run(policy("{}", "nodeSelector: pool=x\n"))), (Names{"p"}));
}

TEST(Protections, AskedForEveryPodHasItsReason) {
  World world;
  world.node("old", kTainted).node("new").pod("goes", "old").pod("bare", "old", "{metadata: {ownerReferences: []}}").pod("settled", "new");
  EXPECT_TRUE(world.run(policy()).standing.empty()) << "only when asked for";
  world.options.lists_everyone = true;
  std::map<std::string, std::string> why;
  for (const Standing& one : world.run(policy()).standing) why[one.pod->view().name()] = one.why;
  EXPECT_EQ(why,
            (std::map<std::string, std::string>{{"bare", "pod does not have any ownerRefs"}, {"settled", "no strategy wants it away"}}));
}

TEST(Protections, ALimitCountsOnlyThoseThatWent) {
  for (const char* limit : {"maxNoOfPodsToEvictPerNamespace", "maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictTotal"}) {
    World world;
    world.node("old", kTainted).node("new").pods("a", 3, "old");
    world.most_in_flight = 1;
    world.answer = [](const Step& step) { return step.removal.pod->view().name() == "a-0" ? Answer{Outcome::kProtected, "no"} : Answer{}; };
    const CycleResult result = world.run(policy("{}", std::string(limit) + ": 1\n"));
    EXPECT_EQ(evicted(result), Names{"a-1"}) << limit << ": what was refused after it was counted is given back, and not more";
  }
}

TEST(Protections, NamespacesAreCountedApart) {
  World world;
  world.node("old", kTainted).node("new").pods("a", 2, "old").pods("b", 2, "old", "{metadata: {namespace: other}}");
  EXPECT_EQ(evicted(world.run(policy("{}", "maxNoOfPodsToEvictPerNamespace: 1\n"))), (Names{"a-0", "b-0"}));
}

}  // namespace
}  // namespace berth::descheduler::test
