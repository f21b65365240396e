// Questions of people who run clusters, beside those of the table: answers worked out by hand.
#include "tests/whatif/dump.h"
#include "whatif/budgets.h"

namespace berth::whatif::testing {
namespace {

TEST(Questions, HowManyFitWithASpreadOverZonesKept) {
  // Zone b takes 2, so zone a may have 3 at most, though 8 would fit.
  Dump dump;
  dump.node("a1", "a").node("a2", "a").node("b1", "b", "2");
  const json::Value answer = dump.ask(
      "{capacity: {pod: {apiVersion: v1, kind: Pod, metadata: {name: x, namespace: shop, labels: {app: x}}, spec: "
      "{topologySpreadConstraints: "
      "[{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}], "
      "containers: [{name: c, resources: {requests: {cpu: '1'}}}]}}}}");
  EXPECT_EQ(json::get_int(answer, {"capacity", "total"}), 5);
  const json::Array& zones = json::get_array(answer, {"capacity", "zones"});
  ASSERT_EQ(zones.size(), 2U);
  EXPECT_EQ(json::get_int(zones[0], {"count"}), 3);
  EXPECT_EQ(json::get_int(zones[1], {"count"}), 2);
}

TEST(Questions, ACordonedNodeTakesNothingUntilItIsUncordoned) {
  Dump dump;
  dump.node("a1", "a").node("a2", "a", "4", "unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]");
  const std::string pod =
      "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c, resources: {requests: {cpu: '1'}}}]}}";
  EXPECT_EQ(json::get_int(dump.ask("{capacity: {pod: " + pod + "}}"), {"capacity", "total"}), 4);
  EXPECT_EQ(json::get_int(dump.ask("{changes: [{uncordon: a2}], capacity: {pod: " + pod + "}}"), {"capacity", "total"}), 8);
}

TEST(Questions, ABudgetInPercentRoundsAsTheDisruptionController) {
  // 60% of 5 and all but 30% of 5 (1.5, rounded up to 2) are 3: two may be away at a time. One of the four finds a place, two do not.
  for (const char* spec : {"minAvailable: 60%", "maxUnavailable: 30%"}) {
    Dump dump;
    dump.node("a1", "a").node("b1", "b", "2").deployment("web", "1", {{"a1"}, {"a1"}, {"a1"}, {"a1"}, {"b1"}}).budget("web", "web", spec);
    const json::Value answer = dump.ask("{changes: [{drain: a1}]}");
    EXPECT_EQ(moves(answer), Words{"web-1-0 a1>b1"}) << spec;
    EXPECT_EQ(pending(answer), (Words{"web-1-1", "web-1-2"})) << spec;
    EXPECT_EQ(evictions(answer), (Words{"web-1-0 evicted", "web-1-1 evicted", "web-1-2 evicted", "web-1-3 blocked"})) << spec;
  }
}

TEST(Questions, ARuleThatTaintsDevicesSendsTheirUsersAway) {
  // The pod of claim "mine" has the device of a1; b1 has another. "brave" tolerates the taint for ever.
  const auto dump = [] {
    Dump out;
    out.node("a1", "a").node("b1", "b");
    out.yaml("{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}}");
    const auto slice = [&](const char* node, const char* devices) {
      out.yaml(
          fmt::format("{{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {{name: {0}}}, spec: {{driver: d.example.com, "
                      "nodeName: {0}, pool: {{name: {0}, generation: 1, resourceSliceCount: 1}}, devices: {1}}}}}",
                      node, devices));
    };
    slice("a1", "[{name: g0}, {name: g1}]");
    slice("b1", "[{name: g0}]");
    const auto claim = [&](const char* name, const char* pod, const char* device, const char* more) {
      out.yaml(fmt::format(
          "{{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {{name: {0}, namespace: shop, uid: c-{0}}}, spec: {{devices: "
          "{{requests: [{{name: r, exactly: {{deviceClassName: gpu, allocationMode: ExactCount, count: 1}}}}]}}}}, status: {{allocation: "
          "{{devices: {{results: [{{request: r, driver: d.example.com, pool: a1, device: {2}{3}}}]}}, nodeSelector: {{nodeSelectorTerms: "
          "[{{matchFields: [{{key: metadata.name, operator: In, values: [a1]}}]}}]}}}}, reservedFor: [{{resource: pods, name: {1}, uid: "
          "{4}}}]}}}}",
          name, pod, device, more, json::get_string(out.objects.back(), {"metadata", "uid"})));
    };
    out.deployment("web", "1", {{"a1"}}, "resourceClaims: [{name: c, resourceClaimName: mine}]");
    claim("mine", "web-1-0", "g0", "");
    out.deployment("db", "1", {{"a1"}}, "resourceClaims: [{name: c, resourceClaimName: brave}]");
    claim("brave", "db-1-0", "g1", ", tolerations: [{operator: Exists, effect: NoExecute}]");
    return out;
  };
  const auto rule = [](const char* effect) {
    return fmt::format(
        "{{changes: [{{apply: {{apiVersion: resource.k8s.io/v1beta2, kind: DeviceTaintRule, metadata: {{name: worn}}, spec: "
        "{{deviceSelector: "
        "{{pool: a1}}, taint: {{key: worn, effect: {}}}}}}}}}]}}",
        effect);
  };
  EXPECT_EQ(evictions(dump().ask(rule("NoExecute"))), (Words{"web-1-0 evicted"}));
  EXPECT_EQ(moves(dump().ask(rule("NoExecute"))), (Words{"web-1-0 a1>b1"}));
  EXPECT_EQ(evictions(dump().ask(rule("NoSchedule"))), Words{});
}

TEST(Questions, ABudgetEditedTwiceCoversWhatItsLastFormSelects) {
  const auto budget = [](const std::string& app, int least) {
    return fmt::format(
        "{{apply: {{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: b, namespace: shop}}, spec: {{minAvailable: {}, "
        "selector: {{matchLabels: {{app: {}}}}}}}}}}}",
        least, app);
  };
  const auto dump = [] {
    Dump out;
    out.node("a1", "a").node("b1", "b").deployment("web", "1", {{"a1"}}).deployment("db", "1", {{"a1"}});
    return out;
  };
  EXPECT_EQ(evictions(dump().ask(fmt::format("{{changes: [{}, {{drain: a1}}]}}", budget("web", 1)))),
            (Words{"db-1-0 evicted", "web-1-0 blocked"}));
  EXPECT_EQ(evictions(dump().ask(fmt::format("{{changes: [{}, {}, {{drain: a1}}]}}", budget("web", 1), budget("db", 1)))),
            (Words{"web-1-0 evicted", "db-1-0 blocked"}));
  EXPECT_EQ(
      evictions(dump().ask(fmt::format("{{changes: [{}, {}, {}, {{drain: a1}}]}}", budget("web", 1), budget("db", 1), budget("web", 0)))),
      (Words{"db-1-0 evicted", "web-1-0 evicted"}));
}

TEST(Budgets, AnEditedOneIsFoundOnceByWhatItSelectsNow) {
  Budgets budgets;
  const auto put = [&](const std::string& selector) {
    return budgets.put(*json::parse_yaml(
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b, namespace: shop}\nspec: {selector: {" + selector + "}}"));
  };
  const auto of = [&](const std::string& app) {
    model::PodView pod;
    pod.meta.ns = "shop";
    pod.meta.labels = model::Labels({{"app", app}, {"tier", "one"}});
    return budgets.of(pod).size();
  };
  const auto id = put("matchLabels: {app: web}");
  EXPECT_EQ(std::pair(of("web"), of("db")), std::pair(std::size_t{1}, std::size_t{0}));
  EXPECT_EQ(put("matchLabels: {app: db}"), id);
  EXPECT_EQ(std::pair(of("web"), of("db")), std::pair(std::size_t{0}, std::size_t{1}));
  put("matchLabels: {tier: one}");
  put("matchExpressions: [{key: app, operator: Exists}]");
  put("matchLabels: {tier: one}");
  EXPECT_EQ(std::pair(of("web"), of("db")), std::pair(std::size_t{1}, std::size_t{1})) << "each once";
  EXPECT_TRUE(budgets.erase("shop/b"));
  EXPECT_EQ(of("web"), 0U);
}

Dump with_volume() {
  Dump dump;
  dump.node("a1", "a").node("a2", "a").node("b1", "b");
  dump.yaml(
          "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop, uid: c, annotations: "
          "{pv.kubernetes.io/bind-completed: 'yes'}}, spec: {volumeName: disk, accessModes: [ReadWriteOnce], resources: {requests: "
          "{storage: "
          "1Gi}}}, status: {phase: Bound}}")
      .yaml(
          "{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk, uid: v}, spec: {capacity: {storage: 1Gi}, accessModes: "
          "[ReadWriteOnce], claimRef: {namespace: shop, name: data, uid: c}, csi: {driver: d, volumeHandle: h}, nodeAffinity: {required: "
          "{nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a]}]}]}}}, status: {phase: "
          "Bound}}");
  dump.deployment("db", "3", {{"a1"}}, "volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]");
  return dump;
}

TEST(Questions, AVolumeOfAZoneKeepsItsPodThere) {
  Dump dump = with_volume();
  EXPECT_EQ(moves(dump.ask("{changes: [{drain: a1}]}")), Words{"db-1-0 a1>a2"});
  dump.deployment("web", "2", {{"a2"}});
  const json::Value answer = dump.ask("{changes: [{drain: a1}]}");
  EXPECT_EQ(pending(answer), Words{"db-1-0"});  // b1 is empty, and in another zone.
  const std::string message(json::get_string(json::get_array(answer, {"pending"})[0], {"message"}));
  EXPECT_NE(message.find("1 node(s) didn't match PersistentVolume's node affinity"), std::string::npos) << message;
}

TEST(Questions, DaemonsTakeTheirShareOfNodesThatCome) {
  Dump dump;
  dump.node("a1", "a").daemon("log", "1", {"a1"}).deployment("web", "4", {{""}});
  EXPECT_EQ(pending(dump.ask("{changes: [{add: 'cpu=4,memory=8Gi', count: 3}]}")), Words{"web-1-0"});
  EXPECT_EQ(pending(dump.ask("{changes: [{add: 'cpu=5,memory=8Gi', count: 1}]}")), Words{});
}

TEST(Questions, ATaintIsWaitedOutByWhoToleratesItForATime) {
  Dump dump;
  dump.node("a1", "a").node("b1", "b");
  dump.deployment("web", "1", {{"a1"}}, "tolerations: [{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]");
  dump.deployment("stays", "1", {{"a1"}}, "tolerations: [{key: k, operator: Exists, effect: NoExecute}]");
  EXPECT_EQ(moves(dump.ask("{changes: [{taint: a1, taints: ['k=v:NoExecute']}]}")), Words{"web-1-0 a1>b1"});
}

TEST(Questions, AGateKeepsPodsWhateverRoomThereIs) {
  Dump dump;
  dump.node("a1", "a").deployment("web", "1", {{"a1"}}, "schedulingGates: [{name: example.com/later}]");
  const json::Value answer = dump.ask("{changes: [{scale: shop/web, replicas: 2}, {add: a1, count: 5}]}");
  EXPECT_EQ(pending(answer).size(), 1U);
  EXPECT_EQ(summary(answer, "placed"), 0);
}

TEST(Questions, ExtendedResourcesCount) {
  Dump dump;
  const auto gpu_node = [&](const std::string& name, int gpus) {
    dump.yaml(
        fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {0}, uid: u-{0}}}, status: {{allocatable: {{cpu: '8', memory: 64Gi, "
                    "pods: '110', nvidia.com/gpu: '{1}'}}, conditions: [{{type: Ready, status: 'True'}}]}}}}",
                    name, gpus));
  };
  gpu_node("g1", 4), gpu_node("g2", 3);
  const std::string pod =
      "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2}, requests: "
      "{nvidia.com/gpu: 2}}}]}}";
  const json::Value answer = dump.ask("{capacity: {pod: " + pod + "}}");
  EXPECT_EQ(json::get_int(answer, {"capacity", "total"}), 3);
  EXPECT_EQ(json::get_string(json::get_array(answer, {"capacity", "limits"})[0], {"reason"}), "Insufficient nvidia.com/gpu");
}

TEST(Questions, WhoNeverPreemptsWaits) {
  Dump dump;
  dump.node("a1", "a").deployment("web", "3", {{"a1"}});
  const auto apply = [&](const char* policy) {
    return dump.ask(
        fmt::format("{{changes: [{{apply: {{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: high}}, value: 1000, "
                    "preemptionPolicy: "
                    "{}}}}}, {{apply: {{apiVersion: v1, kind: Pod, metadata: {{name: x, namespace: shop}}, spec: {{priorityClassName: "
                    "high, containers: "
                    "[{{name: c, image: i, resources: {{requests: {{cpu: '2'}}}}}}]}}}}}}]}}",
                    policy));
  };
  EXPECT_EQ(pending(apply("Never")), Words{"x"});
  EXPECT_EQ(evictions(apply("PreemptLowerPriority")), Words{"web-1-0 preempted"});
}

TEST(Questions, WhoIsOnItsWayOutHoldsItsRoomAndIsNotAskedAgain) {
  Dump dump;
  dump.node("a1", "a").node("b1", "b", "1");
  dump.deployment("web", "1",
                  {{.node = "a1", .more_metadata = "deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [example.com/x]"}, {"a1"}});
  const json::Value answer = dump.ask("{changes: [{drain: a1}]}");
  EXPECT_EQ(moves(answer), Words{"web-1-1 a1>b1"});
  has_note(answer, "on their way out");
}

Dump with_job(const std::string& spec, int failed = 0, int pods = 2) {
  Dump dump;
  dump.node("a1", "a").node("b1", "b");
  dump.yaml(fmt::format(
      "{{apiVersion: batch/v1, kind: Job, metadata: {{name: j, namespace: shop, uid: j}}, spec: {{parallelism: {}, completions: "
      "9, {}, template: {{spec: {{containers: [{{name: c}}]}}}}}}, status: {{failed: {}}}}}",
      pods, spec, failed));
  for (int i = 0; i < pods; ++i)
    dump.pod(fmt::format("j-{}", i), "{}", "apiVersion: batch/v1, kind: Job, name: j, uid: j", "1",
             {.node = "a1", .more_metadata = fmt::format("annotations: {{batch.kubernetes.io/job-completion-index: '{}'}}", i)});
  return dump;
}

TEST(Questions, AJobWithoutRetriesLeftDoesNotSurviveADrain) {
  const std::string drain = "{changes: [{drain: a1}]}";
  EXPECT_EQ(evictions(with_job("backoffLimit: 6").ask(drain)), (Words{"j-0 evicted", "j-1 evicted"}));
  EXPECT_EQ(evictions(with_job("backoffLimit: 1").ask(drain)), (Words{"j-0 evicted", "j-1 lost"}));
  EXPECT_EQ(evictions(with_job("backoffLimit: 6", 6).ask(drain)), (Words{"j-0 lost", "j-1 lost"}));
  const json::Value answer = with_job("backoffLimit: 0").ask(drain);
  EXPECT_EQ(json::get_string(json::get_array(answer, {"evictions"})[0], {"reason"}),
            "a1 is drained; its Job has no retries left and fails (backoffLimit 0, 0 failed before)");
  has_note(answer, "Job shop/j fails by this");
  EXPECT_EQ(
      evictions(with_job("backoffLimit: 0, podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: "
                         "'True'}]}]}")
                    .ask(drain)),
      (Words{"j-0 evicted", "j-1 evicted"}));
  EXPECT_EQ(evictions(with_job("completionMode: Indexed, backoffLimitPerIndex: 1").ask(drain)), (Words{"j-0 evicted", "j-1 evicted"}));
  EXPECT_EQ(evictions(with_job("completionMode: Indexed, backoffLimitPerIndex: 0").ask(drain)), (Words{"j-0 lost", "j-1 lost"}));
}

TEST(Questions, RetriesThatAThoughtTookAreGivenBack) {
  const json::Value answer = with_job("backoffLimit: 1", 0, 1).ask("{changes: [{cordon: b1}, {uncordon: b1}], each: node}");
  EXPECT_TRUE(json::get_array(answer, {"each"}).empty()) << json::serialize(*json::find(answer, "each"));
}

TEST(Questions, SomeJobsWaitUntilALostPodIsKnownToHaveEnded) {
  const json::Value answer = with_job("podReplacementPolicy: Failed", 0, 1).ask("{changes: [{fail: a1}]}");
  ASSERT_EQ(moves(answer), Words{"j-0 a1>b1"});
  EXPECT_NE(json::get_string(json::get_array(answer, {"moves"})[0], {"when"}).find("known to have ended"), std::string_view::npos);
  EXPECT_EQ(json::get_string(json::get_array(with_job("backoffLimit: 6", 0, 1).ask("{changes: [{fail: a1}]}"), {"moves"})[0], {"when"}),
            "");
}

TEST(Questions, APortOfTheHostIsTakenOncePerNode) {
  Dump dump;
  dump.node("a1", "a").node("b1", "b");
  dump.yaml(
      "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: edge, namespace: shop, uid: e}, spec: {replicas: 2, selector: "
      "{matchLabels: "
      "{app: edge}}, template: {metadata: {labels: {app: edge}}, spec: {containers: [{name: c, image: i, ports: [{containerPort: 80, "
      "hostPort: 80}]}]}}}}");
  for (const char* node : {"a1", "b1"})
    dump.yaml(
        fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: edge-{0}, namespace: shop, uid: p-{0}, labels: {{app: edge}}, "
                    "ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: edge, uid: e, controller: true}}]}}, spec: "
                    "{{nodeName: {0}, containers: [{{name: c, image: i, ports: [{{containerPort: 80, hostPort: 80}}]}}]}}, status: "
                    "{{phase: Running}}}}",
                    node));
  const json::Value answer = dump.ask("{changes: [{drain: a1}]}");
  EXPECT_EQ(pending(answer), Words{"edge-a1"});
  const std::string message(json::get_string(json::get_array(answer, {"pending"})[0], {"message"}));
  EXPECT_NE(message.find("didn't have free ports"), std::string::npos) << message;
}

}  // namespace
}  // namespace berth::whatif::testing
