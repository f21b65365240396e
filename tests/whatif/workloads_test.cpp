// Workloads that are applied, scaled and deleted: answers worked out by hand.
#include "tests/whatif/dump.h"
#include "whatif/words.h"

namespace berth::whatif::testing {
namespace {

Dump two_nodes() {
  Dump dump;
  dump.node("a1", "a").node("b1", "b");
  return dump;
}

std::string not_ready() { return "{phase: Running, conditions: [{type: Ready, status: 'False'}]}"; }

TEST(Scale, UpUntilNothingFits) {
  // Eight cpus, two taken: six pods of one cpu fit.
  const json::Value answer = two_nodes().deployment("web", "1", {{"a1"}, {"b1"}}).ask("{changes: [{scale: shop/web, replicas: 10}]}");
  EXPECT_EQ(summary(answer, "placed"), 6);
  EXPECT_EQ(summary(answer, "pending"), 2);
  EXPECT_EQ(json::get_string(json::get_array(answer, {"pending"})[0], {"message"}),
            "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: 2 No "
            "preemption victims found "
            "for incoming pod.");
}

TEST(Scale, DownPicksAsTheReplicaSetController) {
  // Not ready first, then the lower deletion cost, then the one whose node has more of them.
  Dump dump = two_nodes();
  dump.deployment(
      "web", "100m",
      {{"a1"}, {"a1"}, {"b1"}, {"b1", "", not_ready()}, {"b1", "annotations: {controller.kubernetes.io/pod-deletion-cost: '-5'}"}});
  EXPECT_EQ(evictions(dump.ask("{changes: [{scale: shop/web, replicas: 4}]}")), Words{"web-1-3 deleted"});
  EXPECT_EQ(evictions(dump.ask("{changes: [{scale: shop/web, replicas: 3}]}")), (Words{"web-1-3 deleted", "web-1-4 deleted"}));
  EXPECT_EQ(evictions(dump.ask("{changes: [{scale: shop/web, replicas: 2}]}")),
            (Words{"web-1-3 deleted", "web-1-4 deleted", "web-1-2 deleted"}));
}

TEST(Scale, AStatefulSetStopsAtTheFirstThatDoesNotFitAndShrinksFromTheTop) {
  Dump dump = two_nodes();
  dump.yaml(
      "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: shop, uid: s-db}, spec: {replicas: 2, template: {metadata: "
      "{labels: "
      "{app: db}}, spec: {containers: [{name: c, image: x, resources: {requests: {cpu: '3'}}}]}}}}");
  for (int i = 0; i < 2; ++i)
    dump.pod(fmt::format("db-{}", i), "{app: db}", "apiVersion: apps/v1, kind: StatefulSet, name: db, uid: s-db", "3",
             {i == 0 ? "a1" : "b1"});
  EXPECT_EQ(evictions(dump.ask("{changes: [{scale: shop/db, replicas: 1}]}")), Words{"db-1 deleted"});
  const json::Value answer = dump.ask("{changes: [{scale: statefulset/shop/db, replicas: 4}]}");
  EXPECT_EQ(pending(answer), (Words{"db-2", "db-3"}));
  EXPECT_EQ(json::get_string(json::get_array(answer, {"pending"})[1], {"message"}),
            "StatefulSet db makes it once db-2 runs (podManagementPolicy OrderedReady)");
}

TEST(Scale, WhatIsNotThereIsNamedWithWhatWasMeant) {
  Dump dump = two_nodes();
  dump.deployment("web", "1", {{"a1"}});
  EXPECT_EQ(dump.try_ask("{changes: [{scale: shop/wbe, replicas: 3}]}").error().message,
            "changes[0].scale: there is no workload shop/wbe; did you mean \"shop/web\"?");
  EXPECT_EQ(dump.try_ask("{changes: [{scale: shop/web, replicas: three}]}").error().message,
            "changes[0].scale: \"replicas\": a whole number is wanted");
}

TEST(Scale, AnAutoscalerOfPodsIsToldOf) {
  Dump dump = two_nodes();
  dump.deployment("web", "100m", {{"a1"}});
  dump.yaml(
      "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: shop}, spec: {scaleTargetRef: {kind: "
      "Deployment, name: "
      "web}, minReplicas: 1, maxReplicas: 5}}");
  EXPECT_TRUE(
      has_note(dump.ask("{changes: [{scale: shop/web, replicas: 9}]}"), "keeps shop/web between 1 and 5 replicas: it takes 9 back"));
}

TEST(Scale, AQuotaRefuses) {
  Dump dump = two_nodes();
  dump.deployment("web", "1", {{"a1"}})
      .yaml("{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: shop}, spec: {hard: {requests.cpu: '2'}}}");
  const json::Value answer = dump.ask("{changes: [{scale: shop/web, replicas: 3}]}");
  EXPECT_EQ(summary(answer, "placed"), 1);
  EXPECT_EQ(json::get_string(json::get_array(answer, {"pending"})[0], {"message"}),
            "the API server refuses it: exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=2, limited: requests.cpu=2");
}

TEST(Scale, WithoutDeploymentsInTheDumpPodsTellOfThem) {
  Dump dump = two_nodes();
  dump.deployment("web", "1", {{"a1"}});
  std::erase_if(dump.objects, [](const json::Value& one) {
    const auto kind = json::get_string(one, {"kind"});
    return kind == "Deployment" || kind == "ReplicaSet";
  });
  for (json::Value& one : dump.objects)
    if (json::get_string(one, {"kind"}) == "Pod")
      json::set(one, {"metadata", "ownerReferences"},
                json::Array{json::Object{{"kind", "ReplicaSet"}, {"name", "web-1"}, {"uid", "r-web"}, {"controller", true}}});
  const json::Value answer = dump.ask("{changes: [{scale: shop/web, replicas: 3}]}");
  EXPECT_EQ(summary(answer, "placed"), 2);
  EXPECT_TRUE(has_note(answer, "the template of Deployment shop/web is not among the objects"));
  EXPECT_TRUE(has_note(answer, "no replicasets among the objects"));
}

std::string deployment(const std::string& name, int replicas, const std::string& cpu, const std::string& more = "",
                       const std::string& spec = "") {
  return fmt::format(
      "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {0}, namespace: shop}}, spec: {{replicas: {1}, selector: {{matchLabels: "
      "{{app: {0}}}}}, "
      "{3} template: {{metadata: {{labels: {{app: {0}}}}}, spec: {{{4} containers: [{{name: c, image: x, resources: {{requests: {{cpu: "
      "'{2}'}}}}}}]}}}}}}}}",
      name, replicas, cpu, more, spec);
}

TEST(Apply, ANewDeploymentIsPlaced) {
  const json::Value answer = two_nodes().ask("{changes: [{apply: " + deployment("new", 3, "3") + "}]}");
  EXPECT_EQ(summary(answer, "placed"), 2);
  EXPECT_EQ(summary(answer, "pending"), 1);
}

TEST(Apply, TheSameTemplateRollsNothingOut) {
  Dump dump = two_nodes();
  dump.deployment("web", "1", {{"a1"}, {"b1"}});
  const json::Value answer =
      dump.ask("{changes: [{apply: " + deployment("web", 3, "1", "", "schedulerName: default-scheduler, priority: 0,") + "}]}");
  EXPECT_EQ(summary(answer, "placed"), 1);
  EXPECT_TRUE(evictions(answer).empty());
}

TEST(Apply, ANewTemplateIsRolledOut) {
  Dump dump = two_nodes();
  dump.deployment("web", "1", {{"a1"}, {"b1"}});
  const json::Value answer = dump.ask("{changes: [{apply: " + deployment("web", 2, "2") + "}]}");
  EXPECT_EQ(summary(answer, "placed"), 2);
  EXPECT_EQ(summary(answer, "deleted"), 2);
  EXPECT_EQ(summary(answer, "pending"), 0);
}

TEST(Apply, ARolloutThatGetsStuckSaysWhere) {
  // Nothing may be unavailable, one more may come: the first new pod does not fit beside the old ones.
  Dump dump = two_nodes();
  dump.deployment("web", "3", {{"a1"}, {"b1"}});
  const std::string strategy = "strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}},";
  json::Value answer = dump.ask("{changes: [{apply: " + deployment("web", 2, "2", strategy) + "}]}");
  EXPECT_TRUE(has_note(answer, "the rollout of shop/web gets stuck: 0 of 2 pods of the new template run, 2 of the old ones stay"));
  EXPECT_EQ(summary(answer, "pending"), 1);
  const std::string other = "strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}},";
  answer = dump.ask("{changes: [{apply: " + deployment("web", 2, "2", other) + "}]}");
  EXPECT_EQ(summary(answer, "placed"), 2);
  EXPECT_EQ(summary(answer, "pending"), 0);
}

TEST(Apply, APriorityClassAndWhoIsPreemptedByIt) {
  Dump dump = two_nodes();
  dump.deployment("web", "3", {{"a1"}, {"b1"}});
  const json::Value answer =
      dump.ask("{changes: [{apply: {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: vip}, value: 1000}}, {apply: " +
               deployment("big", 1, "3", "", "priorityClassName: vip,") + "}]}");
  EXPECT_EQ(summary(answer, "preempted"), 1);
  EXPECT_EQ(summary(answer, "pending"), 1);
  EXPECT_EQ(json::get_string(json::get_array(answer, {"evictions"})[0], {"reason"}).find("preempted by shop/big-"), 0);
}

TEST(Apply, APodOfAnUnknownClassIsSaidToBeRefused) {
  EXPECT_TRUE(has_note(two_nodes().ask("{changes: [{apply: " + deployment("big", 1, "1", "", "priorityClassName: vip,") + "}]}"),
                       "no PriorityClass with name vip is known"));
}

TEST(Apply, AChangedBudgetCounts) {
  Dump dump = two_nodes();
  dump.deployment("web", "1", {{"a1"}, {"b1"}});
  const std::string budget =
      "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: shop}, spec: {minAvailable: 2, selector: "
      "{matchLabels: {app: web}}}}";
  EXPECT_EQ(evictions(dump.ask("{changes: [{apply: " + budget + "}, {drain: a1}]}")), Words{"web-1-0 blocked"});
  EXPECT_EQ(evictions(dump.ask("{changes: [{apply: " + budget + "}, {scale: shop/web, replicas: 3}, {drain: a1}]}"))[0].substr(0, 4),
            "web-");
  EXPECT_EQ(summary(dump.ask("{changes: [{apply: " + budget + "}, {scale: shop/web, replicas: 3}, {drain: a1}]}"), "blocked"), 0);
  EXPECT_EQ(summary(dump.ask("{changes: [{apply: " + budget + "}, {delete: pdb/shop/web}, {drain: a1}]}"), "blocked"), 0);
}

TEST(Apply, AWrongFieldIsNamed) {
  EXPECT_EQ(two_nodes()
                .try_ask("{changes: [{apply: {apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replica: 3}}}]}")
                .error()
                .message,
            "changes[0].apply: Deployment x: unknown field \"spec.replica\"");
}

TEST(Scale, AnotherSizeBreaksNoBudget) {
  Dump dump = two_nodes();
  dump.deployment("web", "1", {{"a1"}, {"b1"}, {"b1"}, {"b1"}}).budget("web", "web", "maxUnavailable: 1");
  EXPECT_EQ(summary(dump.ask("{changes: [{drain: a1}, {scale: shop/web, replicas: 6}]}"), "budgetsBroken"), 0);
  const json::Value answer = dump.ask("{changes: [{scale: shop/web, replicas: 1}]}");
  EXPECT_EQ(summary(answer, "budgetsBroken"), 0);
  EXPECT_EQ(json::get_int(json::get_array(answer, {"budgets"})[0], {"after", "desired"}), 0);
  EXPECT_EQ(summary(dump.ask("{changes: [{fail: b1}]}"), "budgetsBroken"), 1);
}

TEST(Capacity, HowManyFitAndWhatStopsTheNext) {
  // Four cpus a node, one taken: three halves on b1 would be eight, on a1 six.
  Dump dump = two_nodes();
  dump.deployment("web", "1", {{"a1"}});
  const json::Value answer = dump.ask(
      "{capacity: {pod: {apiVersion: v1, kind: Pod, metadata: {name: small, namespace: shop}, spec: {containers: [{name: c, image: x, "
      "resources: {requests: {cpu: 500m}}}]}}}}");
  EXPECT_EQ(json::get_int(answer, {"capacity", "total"}), 14);
  const auto& nodes = json::get_array(answer, {"capacity", "nodes"});
  EXPECT_EQ(json::get_int(nodes[0], {"count"}), 6);
  EXPECT_EQ(json::get_int(nodes[1], {"count"}), 8);
  EXPECT_EQ(json::get_string(json::get_array(answer, {"capacity", "limits"})[0], {"reason"}), "Insufficient cpu");
  EXPECT_TRUE(moves(answer).empty());
}

TEST(Capacity, SpreadAndQuotaAreKept) {
  Dump dump = two_nodes();
  dump.node("b2", "b").deployment("web", "3", {{"a1"}});
  const std::string pod =
      "{apiVersion: v1, kind: Pod, metadata: {name: s, namespace: shop, labels: {app: s}}, spec: {topologySpreadConstraints: [{maxSkew: 1, "
      "topologyKey: "
      "topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: s}}}], containers: [{name: c, "
      "image: x, "
      "resources: {requests: {cpu: '1'}}}]}}";
  // Zone a takes one more; zone b then one beyond that.
  const json::Value answer = dump.ask("{capacity: {pod: " + pod + "}}");
  EXPECT_EQ(json::get_int(answer, {"capacity", "total"}), 3);
  EXPECT_EQ(json::get_int(json::get_array(answer, {"capacity", "zones"})[1], {"count"}), 2);
  dump.yaml("{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: shop}, spec: {hard: {pods: '3'}}}");
  EXPECT_EQ(json::get_int(dump.ask("{capacity: {pod: " + pod + "}}"), {"capacity", "total"}), 2);
}

TEST(Pack, NodesAreEmptiedWhileBudgetsHold) {
  Dump dump;
  dump.node("a1", "a").node("a2", "a").node("b1", "b");
  dump.deployment("web", "1", {{"a1"}, {"a2"}, {"b1"}}).budget("web", "web", "maxUnavailable: 1");
  const json::Value answer = dump.ask("{pack: {}}");
  EXPECT_EQ(json::get_int(answer, {"pack", "nodesNow"}), 3);
  EXPECT_EQ(json::get_int(answer, {"pack", "nodesNeeded"}), 1);
  EXPECT_EQ(moves(answer), (Words{"web-1-0 a1>b1", "web-1-1 a2>b1"}));
  Words steps;
  for (const json::Value& one : json::get_array(answer, {"pack", "steps"}))
    steps.push_back(fmt::format("{} {}", json::get_string(one, {"step"}), json::get_string(one, {"node"})));
  EXPECT_EQ(steps, (Words{"cordon a1", "cordon a2", "drain a1", "remove a1", "drain a2", "remove a2"})) << "nobody moves twice";
  EXPECT_EQ(summary(answer, "budgetsBroken"), 0);
  dump.pod("bare", "{}", "", "100m", {"a1"});
  EXPECT_EQ(json::get_int(dump.ask("{pack: {}}"), {"pack", "nodesNeeded"}), 1);
  dump.pod("bare2", "{}", "", "100m", {"a2"});
  EXPECT_EQ(json::get_int(dump.ask("{pack: {}}"), {"pack", "nodesNeeded"}), 2);
}

TEST(Pack, IntoNodesOfAShape) {
  // Five cpus in ones: two nodes of four, or one of eight.
  Dump dump;
  for (const char* name : {"a1", "a2", "a3"}) dump.node(name, "a", "2");
  dump.deployment("web", "1", {{"a1"}, {"a1"}, {"a2"}, {"a2"}, {"a3"}});
  json::Value answer = dump.ask("{pack: {shapes: ['cpu=4,memory=64Gi']}}");
  EXPECT_EQ(json::get_int(answer, {"pack", "nodesNeeded"}), 2);
  EXPECT_EQ(json::get_int(answer, {"pack", "lowerBound"}), 2);
  EXPECT_EQ(json::get_int(answer, {"summary", "nodes", "after"}), 2);
  answer = dump.ask("{pack: {shapes: ['cpu=4,memory=64Gi', 'cpu=8,memory=64Gi']}}");
  EXPECT_EQ(json::get_string(answer, {"pack", "shape"}), "8cpu");
  EXPECT_EQ(json::get_int(answer, {"pack", "nodesNeeded"}), 1);
}

TEST(Config, OfAnotherSchedulerWhatWouldStandElsewhere) {
  // Spread by default, packed by the other configuration.
  Dump dump = two_nodes();
  dump.deployment("web", "1", {{"a1"}, {"b1"}});
  const std::string packed =
      "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{schedulerName: default-scheduler, "
      "plugins: {score: {disabled: "
      "[{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 1}]}}, pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: "
      "{type: MostAllocated, resources: "
      "[{name: cpu, weight: 1}]}}}]}]}";
  const json::Value answer = dump.ask("{changes: [{config: " + packed + ", from: empty}]}");
  EXPECT_EQ(moves(answer), Words{"web-1-1 b1>a1"});
  EXPECT_TRUE(has_note(answer, "1 stand elsewhere"));
  EXPECT_NE(
      dump.try_ask("{changes: [{config: {kind: KubeSchedulerConfiguration, profile: []}}]}").error().message.find("changes[0].config: "),
      std::string::npos);
}

TEST(Descheduler, WhatItWouldEvictGoes) {
  Dump dump = two_nodes();
  dump.deployment("web", "1", {{"a1"}, {"a1"}});
  const json::Value answer = dump.ask(
      "{changes: [{descheduler: {apiVersion: descheduler/v1alpha2, kind: DeschedulerPolicy, profiles: [{name: p, pluginConfig: [{name: "
      "RemoveDuplicates}, {name: DefaultEvictor}], plugins: {balance: {enabled: [RemoveDuplicates]}}}]}}]}");
  EXPECT_EQ(summary(answer, "evicted"), 1);
  ASSERT_EQ(moves(answer).size(), 1);
  EXPECT_EQ(moves(answer)[0].substr(8), "a1>b1");
}

TEST(Descheduler, SeesThePodsThatTheQuestionBrought) {
  Dump dump = two_nodes();
  // No template is among the objects: the new pod is like the one that is there.
  dump.pod("web-1-0", "{app: web, pod-template-hash: '1'}", "apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: r-web", "1", {"a1"});
  const json::Value answer = dump.ask(
      "{changes: [{cordon: b1}, {scale: shop/web, replicas: 2}, {uncordon: b1}, {descheduler: {apiVersion: descheduler/v1alpha2, kind: "
      "DeschedulerPolicy, profiles: [{name: p, pluginConfig: [{name: RemoveDuplicates}, {name: DefaultEvictor}], plugins: {balance: "
      "{enabled: [RemoveDuplicates]}}}]}}]}");
  EXPECT_EQ(summary(answer, "evicted"), 1);
}

TEST(Autoscaler, AddsNodesForWhatWaits) {
  Dump dump;
  dump.node("a1", "a").deployment("web", "3", {{"a1"}, {""}});
  dump.yaml(
      "{apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, metadata: {name: workers, namespace: openshift-machine-api, uid: ms, "
      "annotations: "
      "{machine.openshift.io/cluster-api-autoscaler-node-group-min-size: '1', "
      "machine.openshift.io/cluster-api-autoscaler-node-group-max-size: '3'}}, spec: {replicas: 1}}");
  dump.yaml(
      "{apiVersion: machine.openshift.io/v1beta1, kind: Machine, metadata: {name: m1, namespace: openshift-machine-api, uid: m1, "
      "ownerReferences: [{apiVersion: "
      "machine.openshift.io/v1beta1, kind: MachineSet, name: workers, uid: ms, controller: true}]}, status: {nodeRef: {name: a1}}}");
  const json::Value answer = dump.ask(
      "{changes: [{autoscaler: {apiVersion: autoscaling.openshift.io/v1, kind: ClusterAutoscaler, metadata: {name: default}, spec: {}}}]}");
  EXPECT_EQ(moves(answer), Words{"web-1-1 >new-workers-1"});
  EXPECT_TRUE(has_note(answer, "grows from 1 to 2 (at most 3)"));
  EXPECT_NE(dump.try_ask("{changes: [{autoscaler: true}]}").error().message.find("there is no ClusterAutoscaler"), std::string::npos);
}

TEST(Page, BeginsWithTheQuestionAndItsAnswer) {
  Dump dump;
  dump.node("a1", "a").node("b1", "b").deployment("web", "3", {{"a1"}, {"b1"}});
  dump.yaml(
      "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: shop}, spec: {minAvailable: 2, selector: "
      "{matchLabels: {app: web}}}, status: {disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 2, expectedPods: 2, "
      "observedGeneration: 0}}");
  const json::Value answer = dump.ask("{changes: [{fail: zone=a}]}");
  EXPECT_EQ(question_words(answer), "What if zone=a is lost?");
  EXPECT_EQ(question_words(dump.ask("{changes: [{drain: [a1, b1]}]}")), "What if a1, b1 are drained?");
  const Verdict verdict = verdict_of(answer);
  EXPECT_FALSE(verdict.is_good);
  EXPECT_TRUE(verdict.sentence.starts_with("1 pod stays without a node: 0/2 nodes are available: ")) << verdict.sentence;
  EXPECT_TRUE(verdict.sentence.ends_with(".") && !verdict.sentence.ends_with("..")) << verdict.sentence;
  EXPECT_EQ(verdict.sentence.find("deallocate"), std::string::npos) << verdict.sentence;
  ASSERT_FALSE(verdict.more.empty());
  EXPECT_EQ(verdict.more.front(), "1 budget is broken (shop/web)");
  const std::string page = to_html(answer);
  EXPECT_NE(page.find("<title>What if zone=a is lost?</title>"), std::string::npos);
  EXPECT_LT(page.find("1 pod stays without a node"), page.find("<table"));
  EXPECT_NE(page.find("budget is broken (shop/web)"), std::string::npos);
  // Of each single loss the budgets that break are told, too.
  const std::string each = to_html(dump.ask("{changes: [], each: zone}"));
  EXPECT_NE(each.find("<title>What if any single zone is lost, each in turn?</title>"), std::string::npos);
  EXPECT_NE(each.find("2 of 2 single losses leave something undone; the worst is "), std::string::npos) << each.substr(0, 6000);
  EXPECT_NE(each.find("<td>shop/web<"), std::string::npos);
  // What changes nothing is said to be so, without empty sections.
  const json::Value still = dump.ask("{changes: [{cordon: a1}]}");
  EXPECT_EQ(verdict_of(still).sentence, "Nothing has to move, and every budget is kept.");
  EXPECT_TRUE(verdict_of(still).is_good);
}

TEST(Page, APackAndACapacityAreCalledWhatTheyAre) {
  Dump dump;
  dump.node("a1", "a").node("a2", "a").deployment("web", "1", {{"a1"}, {"a2"}});
  dump.options.prices = json::Object{{"m4", 0.5}, {"currency", "EUR"}};
  const std::string pack = to_html(dump.ask("{changes: [], pack: {}}"));
  EXPECT_NE(pack.find("<title>With how few nodes would it do?</title>"), std::string::npos);
  EXPECT_NE(pack.find("1 of 2 nodes do: 1 can go."), std::string::npos) << pack.substr(0, 6000);
  EXPECT_NE(pack.find("1.00 → 0.50 EUR"), std::string::npos);
  const std::string capacity =
      to_html(dump.ask("{changes: [], capacity: {pod: {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: shop}, spec: {containers: "
                       "[{name: c, image: i, "
                       "resources: {requests: {cpu: '2'}}}]}}}}"));
  EXPECT_NE(capacity.find("<title>How many more of the pod shop/p fit?</title>"), std::string::npos) << capacity.substr(0, 4000);
  EXPECT_NE(capacity.find("✓ 2 more fit."), std::string::npos) << capacity.substr(0, 6000);
  EXPECT_NE(capacity.find("What stops the next one"), std::string::npos);
}

TEST(Page, NamesWithMarkupAreText) {
  Dump dump;
  dump.node("a1", "<script>alert(1)</script>").deployment("web", "3", {{"a1"}});
  const std::string page = to_html(dump.ask("{changes: [{drain: a1}]}"));
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_EQ(page.find("http"), page.find("http-equiv"));
  EXPECT_EQ(page.find("src="), std::string::npos);
}

TEST(Delete, AWorkloadGoesAndMakesRoom) {
  Dump dump = two_nodes();
  dump.deployment("web", "3", {{"a1"}}).deployment("other", "3", {{"b1"}, {""}});
  const json::Value answer = dump.ask("{changes: [{delete: deploy/shop/web}]}");
  EXPECT_EQ(evictions(answer), Words{"web-1-0 deleted"});
  EXPECT_EQ(moves(answer), Words{"other-1-1 >a1"});
  EXPECT_EQ(dump.try_ask("{changes: [{delete: deploy/shop/wxb}]}")
                .error()
                .message.find("changes[0].delete: there is no Deployment shop/wxb; did you mean"),
            0);
}

TEST(Evict, TheEvictionApiIsAsked) {
  Dump dump = two_nodes();
  dump.deployment("web", "3", {{"a1"}}).budget("web", "web", "minAvailable: 1");
  EXPECT_EQ(evictions(dump.ask("{changes: [{evict: shop/web-1-0}]}")), Words{"web-1-0 blocked"});
}

TEST(Preempt, WhoWouldHaveToGoIsToldEvenWhereTheSchedulerMayNot) {
  Dump dump = two_nodes();
  dump.deployment("web", "3", {{"a1"}, {"b1"}}, "priority: 10").deployment("new", "4", {{""}});
  const json::Value answer = dump.ask("{preempt: true}");
  const json::Value& go = *json::find(json::get_array(answer, {"pending"})[0], "wouldHaveToGo");
  EXPECT_EQ(json::get_string(go, {"node"}), "a1");
  EXPECT_EQ(json::get_string(json::get_array(go, {"pods"})[0], {"pod"}), "shop/web-1-0");
  EXPECT_TRUE(evictions(answer).empty());
}

TEST(Input, SeveralClustersAreRefused) {
  Dump dump = two_nodes();
  dump.yaml("{apiVersion: v1, kind: Node, metadata: {name: a1, uid: other}, status: {allocatable: {cpu: '4'}}}");
  EXPECT_EQ(
      dump.try_ask("{changes: []}").error().message,
      "the objects are of several clusters, or of several moments: Node//a1 has uid u-a1 and uid other. Give one dump of one cluster");
}

TEST(Input, WhatIsCutOffIsRefused) {
  Dump dump = two_nodes();
  dump.yaml("{apiVersion: v1, items: []}");
  EXPECT_NE(dump.try_ask("{changes: []}").error().message.find("cut off"), std::string::npos);
  Dump pod = two_nodes();
  pod.yaml("{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: shop}}");
  EXPECT_EQ(pod.try_ask("{changes: []}").error().message, "Pod shop/x has no spec.containers: the file seems to be cut off");
  EXPECT_NE(Dump().try_ask("{changes: []}").error().message.find("there is no Node"), std::string::npos);
}

TEST(Input, PodsOnNodesThatAreNotThereAreLeftOutAndSaid) {
  Dump dump = two_nodes();
  dump.deployment("web", "1", {{"a1"}, {"gone"}});
  const json::Value answer = dump.ask("{changes: [{drain: a1}]}");
  EXPECT_TRUE(has_note(answer, "1 pods are on node gone, which is not among the objects: they are left out (shop/web-1-1)"));
  EXPECT_TRUE(has_note(answer, "no poddisruptionbudgets among the objects: no eviction is refused and no budget is broken"));
}

TEST(Input, OfALiveClusterIsSaidWhatCouldNotBeReadAndNotWhatThereIsNoneOf) {
  Dump dump;
  dump.node("node-1", "a").deployment("web", "1", {{"node-1"}});
  Present present(dump.options);
  for (const json::Value& object : dump.objects) present.add(object);
  present.know_all_of("poddisruptionbudgets");
  present.note("you may not list priorityclasses");
  ASSERT_TRUE(present.finish().has_value());
  const auto answer = present.ask(json::Object{{"changes", json::Array{json::Object{{"drain", "node-1"}}}}});
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(json::serialize(*json::find(*answer, "notes")), R"(["you may not list priorityclasses"])");
}

TEST(Input, NamesThatAreNotThereAreErrorsWithWhatWasMeant) {
  Dump dump = two_nodes();
  const auto error = [&](const std::string& question) { return dump.try_ask(question).error().message; };
  EXPECT_EQ(error("{changes: [{drain: a2}]}"),
            "changes[0].drain: no node \"a2\"; did you mean \"a1\"? (a name, or KEY=VALUE of a label); there are: a1, b1");
  EXPECT_EQ(error("{changes: [{fail: zone=c}]}"),
            "changes[0].fail: no node has topology.kubernetes.io/zone=c; did you mean \"a\"?; there are: a, b");
  EXPECT_EQ(error("{changes: [{dran: a1}]}"),
            "changes[0]: \"dran\" is no change; did you mean \"drain\"?; there are: drain, fail, remove, cordon, uncordon, add, label, "
            "taint, allocatable, apply, scale, "
            "delete, evict, resize, config, descheduler, pools, autoscaler");
  EXPECT_EQ(error("{changes: [{drain: a1, count: 3}]}"), "changes[0].count: no such field of \"drain\"");
  EXPECT_EQ(error("{change: []}"), "change: no such field of a question; did you mean \"changes\"?");
  EXPECT_EQ(error("{each: rack}"), "each: no node has a label \"rack\" (\"node\", \"zone\", or a label's key)");
}

TEST(Input, WhatIsOfTheWrongKindIsAnErrorAndNeverTakenForSomethingElse) {
  Dump dump = two_nodes();
  const auto error = [&](const std::string& question) {
    const auto answer = dump.try_ask(question);
    return answer ? std::string("no error") : answer.error().message;
  };
  EXPECT_EQ(error("{changes: [{add: m4, count: '3'}]}"), "changes[0].add: count: \"3\" is no whole number");
  EXPECT_EQ(error("{changes: [{add: m4, zone: 3}]}"), "changes[0].add: zone: 3 is no text");
  EXPECT_EQ(
      error("{changes: [{add: 'cpu=8,mem=32Gi'}]}"),
      "changes[0].add: add.mem: no such resource or field; did you mean \"memory\"?; what is not Kubernetes' own has a domain in its name "
      "(nvidia.com/gpu)");
  EXPECT_EQ(error("{changes: [{add: {cpu: 8, memory: 32}}]}"),
            "changes[0].add: add.memory: \"32\" is less than a megabyte: a unit is missing perhaps (32Gi)");
  EXPECT_EQ(error("{changes: [{apply: {apiVersion: v1, kind: Pod, metadata: {name: x, namespace: true}}}]}"),
            "changes[0].apply: apply: Pod: metadata.namespace: true is no text: in YAML it wants quotes");
  EXPECT_EQ(error("{preempt: 'yes'}"), "preempt: \"yes\" is neither true nor false");
  EXPECT_EQ(error("{changes: [{drain: a1}], by: drain}"), "by: it says how the losses of \"each\" come, which is not there");
  EXPECT_EQ(error("{each: nodes}"), "each: no node has a label \"nodes\"; did you mean \"node\"? (\"node\", \"zone\", or a label's key)");
  const json::Value typo = dump.ask("{changes: [{apply: {apiVersion: v1, kind: Pdo, metadata: {name: x}}}]}");
  EXPECT_TRUE(has_note(typo, "Pdo x is of a kind that is not known here; did you mean \"Pod\"?: it is left out"));
}

TEST(Answer, TheSameQuestionGivesTheSameBytesAndThePresentStays) {
  Dump dump = two_nodes();
  dump.deployment("web", "1", {{"a1"}, {"b1"}, {"a1"}}).budget("web", "web", "minAvailable: 1");
  Present present(dump.options);
  for (const json::Value& one : dump.objects) present.add(one);
  ASSERT_TRUE(present.finish());
  const json::Value question = json::parse_yaml_stream("{changes: [{fail: a1}, {scale: shop/web, replicas: 9}], each: zone}")->front();
  const std::string first = json::serialize(*present.ask(question));
  (void)present.ask(json::parse_yaml_stream("{changes: [{drain: b1}]}")->front());
  EXPECT_EQ(json::serialize(*present.ask(question)), first);
}

TEST(Resize, WhatHasRoomIsTakenFromOthers) {
  Dump dump;
  dump.node("a1", "a", "4").node("a2", "a", "2").deployment("db", "1", {{"a1"}}).deployment("web", "2", {{"a2"}});
  EXPECT_EQ(pending(dump.ask("{changes: [{drain: a2}]}")), Words{});
  const json::Value answer = dump.ask("{changes: [{resize: shop/db-1-0, requests: {cpu: 3}}, {drain: a2}]}");
  EXPECT_TRUE(has_note(answer, "shop/db-1-0: Its resize has room on a1"));
  EXPECT_EQ(pending(answer), Words{"web-1-0"});
}

TEST(Resize, WhatHasNoRoomSaysAfterWhoseGoingItWould) {
  Dump dump;
  dump.node("a1", "a", "4").deployment("db", "1", {{"a1"}}).deployment("web", "2", {{"a1"}});
  EXPECT_TRUE(has_note(
      dump.ask("{changes: [{resize: shop/db-1-0, requests: {cpu: 3}}]}"),
      "shop/db-1-0: Its resize waits on a1 for cpu: 1 more (asks 3, free 2 of 4); it would fit after shop/web-1-0 (priority 0) is gone"));
  EXPECT_TRUE(has_note(dump.ask("{changes: [{scale: shop/web, replicas: 0}, {resize: shop/db-1-0, requests: {cpu: 3}}]}"),
                       "shop/db-1-0: Its resize has room on a1"));
  EXPECT_TRUE(has_note(dump.ask("{changes: [{resize: shop/db-1-0, requests: {cpu: 9}}]}"),
                       "shop/db-1-0: Its resize never has room on a1: cpu (asks 9, the node has 4)"));
}

TEST(Resize, WhatIsGivenBackIsThereForWhoWaits) {
  Dump dump;
  dump.node("a1", "a", "4").deployment("db", "3", {{"a1"}}).deployment("web", "2", {{""}});
  EXPECT_EQ(pending(dump.ask("{changes: [{cordon: a1}, {uncordon: a1}]}")), Words{"web-1-0"});
  EXPECT_EQ(pending(dump.ask("{changes: [{resize: shop/db-1-0, requests: {cpu: 1}}]}")), Words{});
}

TEST(Resize, MistakesSayWhatIsMeant) {
  Dump dump;
  dump.node("a1", "a", "4").deployment("db", "1", {{"a1"}});
  const auto error = [&](const std::string& question) { return dump.try_ask(question).error().message; };
  EXPECT_EQ(error("{changes: [{resize: shop/db-1-1, requests: {cpu: 3}}]}"),
            "changes[0].resize: no pod shop/db-1-1 runs on a node; did you mean \"shop/db-1-0\"?");
  EXPECT_EQ(error("{changes: [{resize: shop/db-1-0, container: d, requests: {cpu: 3}}]}"),
            "changes[0].resize: container: the pod has no \"d\"; did you mean \"c\"?");
  EXPECT_EQ(error("{changes: [{resize: shop/db-1-0, requests: {gpu: 3}}]}"),
            "changes[0].resize: requests.gpu: only cpu and memory are resized in place");
  EXPECT_EQ(error("{changes: [{resize: shop/db-1-0, requests: {cpu: 1x}}]}"),
            "changes[0].resize: requests.cpu: an amount such as 500m or 2Gi is wanted");
  EXPECT_EQ(error("{changes: [{resize: shop/db-1-0}]}"), "changes[0].resize: \"requests\": amounts such as {\"cpu\": 2} are wanted");
}

}  // namespace
}  // namespace berth::whatif::testing
