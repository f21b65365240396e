// Nodes that are drained, lost, removed, added and changed: answers worked out by hand.
#include "tests/whatif/dump.h"

namespace berth::whatif::testing {
namespace {

/// Three nodes of 4 cpus; web has a pod of 3 on a1 and one of 3 on a2; b1 is empty.
Dump three_nodes() {
  Dump dump;
  dump.node("a1", "a").node("a2", "a").node("b1", "b").deployment("web", "3", {{"a1"}, {"a2"}});
  return dump;
}

TEST(Drain, PodsGoWhereThereIsRoom) {
  const json::Value answer = three_nodes().ask("{changes: [{drain: a1}]}");
  EXPECT_EQ(moves(answer), Words{"web-1-0 a1>b1"});
  EXPECT_EQ(evictions(answer), Words{"web-1-0 evicted"});
  EXPECT_TRUE(pending(answer).empty());
  EXPECT_EQ(summary(answer, "moves"), 1);
}

TEST(Drain, WhatFindsNoRoomStaysPendingAndSaysWhy) {
  Dump dump = three_nodes();
  dump.deployment("other", "2", {{"b1"}});
  const json::Value answer = dump.ask("{changes: [{drain: a1}]}");
  EXPECT_EQ(pending(answer), Words{"web-1-0"});
  const std::string message(json::get_string(json::get_array(answer, {"pending"})[0], {"message"}));
  EXPECT_NE(message.find("0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."), std::string::npos) << message;
}

TEST(Drain, ABudgetThatAllowsNothingKeepsThePodsAndIsNamed) {
  Dump dump = three_nodes();
  dump.budget("web", "web", "minAvailable: 2");
  const json::Value answer = dump.ask("{changes: [{drain: a1}]}");
  EXPECT_EQ(evictions(answer), Words{"web-1-0 blocked"});
  const json::Value& one = json::get_array(answer, {"evictions"})[0];
  EXPECT_EQ(json::get_string(one, {"budget"}), "shop/web");
  EXPECT_EQ(json::get_string(one, {"reason"}),
            "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 2 healthy pods and has 2 "
            "currently");
  EXPECT_TRUE(moves(answer).empty());
  EXPECT_EQ(summary(answer, "blocked"), 1);
}

TEST(Drain, ABudgetOfOneAtATimeIsHonouredAndAllGo) {
  Dump dump;
  dump.node("a1", "a").node("b1", "b").deployment("web", "1", {{"a1"}, {"a1"}, {"a1"}}).budget("web", "web", "maxUnavailable: 1");
  const json::Value answer = dump.ask("{changes: [{drain: a1}]}");
  EXPECT_EQ(moves(answer), (Words{"web-1-0 a1>b1", "web-1-1 a1>b1", "web-1-2 a1>b1"}));
  const json::Value& budget = json::get_array(answer, {"budgets"})[0];
  EXPECT_EQ(json::get_int(budget, {"lowest"}), 2);
  EXPECT_FALSE(json::get_bool(budget, {"broken"}));
}

TEST(Drain, ABudgetWhoseSuccessorsFindNoPlaceStopsTheRest) {
  Dump dump;
  dump.node("a1", "a").node("b1", "b", "1").deployment("web", "1", {{"a1"}, {"a1"}, {"a1"}}).budget("web", "web", "maxUnavailable: 1");
  const json::Value answer = dump.ask("{changes: [{drain: a1}]}");
  EXPECT_EQ(moves(answer), Words{"web-1-0 a1>b1"});
  EXPECT_EQ(pending(answer), Words{"web-1-1"});
  EXPECT_EQ(evictions(answer), (Words{"web-1-0 evicted", "web-1-1 evicted", "web-1-2 blocked"}));
}

TEST(Drain, ThatTheDumpSaysNothingIsAllowedCounts) {
  Dump dump = three_nodes();
  dump.budget("web", "web", "minAvailable: 1");
  json::set(dump.objects.back(), {"status"},
            json::Object{{"disruptionsAllowed", 0}, {"currentHealthy", 2}, {"desiredHealthy", 1}, {"expectedPods", 2}});
  EXPECT_EQ(evictions(dump.ask("{changes: [{drain: a1}]}")), Words{"web-1-0 blocked"});
}

TEST(Drain, DaemonsStayBarePodsAreLostAndMirrorPodsAreNobodys) {
  Dump dump = three_nodes();
  dump.daemon("log", "100m", {"a1", "a2", "b1"});
  dump.pod("bare", "{}", "", "100m", {"a1"});
  dump.pod("static-a1", "{}", "apiVersion: v1, kind: Node, name: a1, uid: u-a1", "100m",
           {"a1", "annotations: {kubernetes.io/config.mirror: x}"});
  const json::Value answer = dump.ask("{changes: [{drain: a1}]}");
  EXPECT_EQ(evictions(answer), (Words{"bare lost", "web-1-0 evicted"}));
  EXPECT_TRUE(has_note(answer, "wants --force"));
}

TEST(Drain, AnUnreadyPodOfAHealthyBudgetMayGo) {
  Dump dump;
  dump.node("a1", "a").node("b1", "b");
  dump.deployment("web", "1", {{"b1"}, {"a1", "", "{phase: Running, conditions: [{type: Ready, status: 'False'}]}"}})
      .budget("web", "web", "minAvailable: 1");
  EXPECT_EQ(evictions(dump.ask("{changes: [{drain: a1}]}")), Words{"web-1-1 evicted"});
}

TEST(Fail, BudgetsAreNotAskedAndAreSaidToBeBroken) {
  Dump dump = three_nodes();
  dump.budget("web", "web", "minAvailable: 2");
  const json::Value answer = dump.ask("{changes: [{fail: a1}]}");
  EXPECT_EQ(moves(answer), Words{"web-1-0 a1>b1"});
  const json::Value& budget = json::get_array(answer, {"budgets"})[0];
  EXPECT_TRUE(json::get_bool(budget, {"broken"}));
  EXPECT_EQ(json::get_int(budget, {"lowest"}), 1);
  EXPECT_EQ(json::get_int(budget, {"after", "healthy"}), 2);
}

TEST(Fail, AZoneIsMeantByItsShortName) {
  const json::Value answer = three_nodes().ask("{changes: [{fail: zone=a}]}");
  EXPECT_EQ(moves(answer), Words{"web-1-0 a1>b1"});
  EXPECT_EQ(pending(answer), Words{"web-1-1"});
}

TEST(Fail, ALostZoneGoesOnCountingForSpreadAndARemovedOneDoesNot) {
  const std::string spread =
      "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: "
      "{matchLabels: "
      "{app: web}}}]";
  Dump dump;
  dump.node("a1", "a").node("b1", "b").deployment("web", "1", {{"a1"}, {"b1"}}, spread);
  EXPECT_EQ(pending(dump.ask("{changes: [{fail: zone=b}]}")), Words{"web-1-1"});
  EXPECT_EQ(moves(dump.ask("{changes: [{remove: zone=b}]}")), Words{"web-1-1 b1>a1"});
}

TEST(Fail, AStatefulSetWaitsUntilItsPodIsKnownToHaveEnded) {
  Dump dump;
  dump.node("a1", "a").node("b1", "b");
  dump.yaml("{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: shop, uid: s-db}, spec: {replicas: 1}}");
  dump.pod("db-0", "{app: db}", "apiVersion: apps/v1, kind: StatefulSet, name: db, uid: s-db", "1", {"a1"});
  const json::Value answer = dump.ask("{changes: [{fail: a1}]}");
  EXPECT_EQ(moves(answer), Words{"db-0 a1>b1"});
  EXPECT_NE(json::get_string(json::get_array(answer, {"moves"})[0], {"when"}).find("delete Node a1"), std::string_view::npos);
  EXPECT_EQ(json::find(json::get_array(dump.ask("{changes: [{remove: a1}]}"), {"moves"})[0], "when"), nullptr);
}

TEST(Fail, WhoToleratesItForEverStays) {
  Dump dump;
  dump.node("a1", "a").node("b1", "b").deployment("web", "1", {{"a1"}},
                                                  "tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists}]");
  const json::Value answer = dump.ask("{changes: [{fail: a1}]}");
  EXPECT_TRUE(moves(answer).empty());
  EXPECT_TRUE(has_note(answer, "tolerates for ever"));
}

TEST(Fail, MoreImportantSuccessorsPreempt) {
  Dump dump;
  dump.node("a1", "a").node("b1", "b").deployment("web", "3", {{"a1"}}, "priority: 100").deployment("batch", "3", {{"b1"}});
  const json::Value answer = dump.ask("{changes: [{fail: a1}]}");
  EXPECT_EQ(moves(answer), Words{"web-1-0 a1>b1"});
  EXPECT_EQ(evictions(answer), (Words{"web-1-0 evicted", "batch-1-0 preempted"}));
  EXPECT_EQ(json::get_string(json::get_array(answer, {"evictions"})[1], {"by"}), "shop/web-1-0");
  EXPECT_EQ(pending(answer), Words{"batch-1-0"});
}

TEST(Add, NodesOfATypeTakeWhatWaited) {
  Dump dump;
  dump.node("a1", "a").deployment("web", "3", {{"a1"}, {""}, {""}}).daemon("log", "500m", {"a1"});
  const json::Value answer = dump.ask("{changes: [{add: m4, count: 2}]}");
  EXPECT_EQ(moves(answer), (Words{"log-new-m4-1 >new-m4-1", "log-new-m4-2 >new-m4-2", "web-1-1 >new-m4-1", "web-1-2 >new-m4-2"}));
  EXPECT_EQ(json::get_int(answer, {"summary", "nodes", "after"}), 3);
}

TEST(Add, AShapeOfItsOwn) {
  Dump dump;
  dump.node("a1", "a").deployment("web", "3", {{"a1"}, {""}});
  EXPECT_EQ(moves(dump.ask("{changes: [{add: {cpu: 3, memory: 1Gi}}]}")), Words{"web-1-1 >new-3cpu-1"});
  EXPECT_TRUE(moves(dump.ask("{changes: [{add: {cpu: 2, memory: 1Gi}}]}")).empty());
  EXPECT_TRUE(moves(dump.ask("{changes: [{add: {cpu: 8, memory: 1Gi, taints: ['gpu=yes:NoSchedule']}}]}")).empty());
}

TEST(Add, AnUnknownTypeTellsWhatThereIs) {
  Dump dump;
  dump.node("a1", "a");
  const auto answer = dump.try_ask("{changes: [{add: m5}]}");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message,
            "changes[0].add: no node is called \"m5\" or has that instance type; did you mean \"m4\"?; there are: m4 (or describe it: "
            "cpu=8,memory=32Gi)");
}

TEST(Taint, NoExecuteEvictsWhoDoesNotTolerate) {
  Dump dump = three_nodes();
  dump.budget("web", "web", "minAvailable: 2");
  const json::Value answer = dump.ask("{changes: [{taint: a1, taints: ['gpu=yes:NoExecute']}]}");
  EXPECT_EQ(moves(answer), Words{"web-1-0 a1>b1"});
  EXPECT_TRUE(moves(dump.ask("{changes: [{taint: a1, taints: ['gpu=yes:NoSchedule']}]}")).empty());
}

TEST(Label, PodsStayAndDaemonsFollow) {
  Dump dump;
  dump.node("a1", "a").node("b1", "b").deployment("web", "1", {{"a1"}}, "nodeSelector: {topology.kubernetes.io/zone: a}");
  dump.daemon("gpu", "1", {}, "nodeSelector: {gpu: 'yes'}");
  const json::Value answer =
      dump.ask("{changes: [{label: b1, labels: {gpu: 'yes'}}, {label: a1, labels: {topology.kubernetes.io/zone: null}}]}");
  EXPECT_EQ(moves(answer), Words{"gpu-b1 >b1"});
}

TEST(Allocatable, LessRoomKeepsWhoIsThereAndNobodyComes) {
  Dump dump = three_nodes();
  const json::Value answer =
      dump.ask("{changes: [{allocatable: b1, resources: {cpu: 2}}, {allocatable: a2, resources: {cpu: 1}}, {drain: a1}]}");
  EXPECT_EQ(pending(answer), Words{"web-1-0"});
  EXPECT_TRUE(has_note(answer, "node a2 has given away more than it would have"));
}

TEST(Changes, AreAppliedInTheirOrder) {
  Dump dump;
  dump.node("a1", "a").node("b1", "b").deployment("web", "3", {{"a1"}});
  EXPECT_EQ(moves(dump.ask("{changes: [{cordon: b1}, {drain: a1}, {uncordon: b1}]}")), Words{"web-1-0 a1>b1"});
  EXPECT_EQ(pending(dump.ask("{changes: [{drain: a1}, {drain: b1}]}")), Words{"web-1-0"});
}

TEST(Each, OneNodeMoreThanNeededOrNot) {
  // 3 of 4 cpus on a1 and a2: the loss of either finds room on b1 alone; that of b1 costs nothing.
  Dump dump = three_nodes();
  json::Value answer = dump.ask("{each: node}");
  EXPECT_EQ(json::get_int(answer, {"eachCount"}), 3);
  EXPECT_EQ(json::get_int(answer, {"eachPending"}), 0);
  EXPECT_TRUE(moves(answer).empty());
  dump.deployment("other", "1", {{"b1"}, {"b1"}});  // These find room beside web, web none beside these.
  answer = dump.ask("{each: node}");
  EXPECT_EQ(json::get_int(answer, {"eachPending"}), 2);
  const auto& each = json::get_array(answer, {"each"});
  ASSERT_EQ(each.size(), 2);
  EXPECT_EQ(json::get_string(each[0], {"lost"}), "a1");
  EXPECT_EQ(json::get_string(json::get_array(each[0], {"pending"})[0], {"pod"}), "shop/web-1-0");
  EXPECT_EQ(json::get_string(each[1], {"lost"}), "a2");
  EXPECT_EQ(json::get_int(dump.ask("{each: zone}"), {"eachPending"}), 1);
}

TEST(Each, OneThoughtAfterTheOtherIsAsEachByItself) {
  Dump dump;
  for (int i = 0; i < 6; ++i) dump.node(fmt::format("n{}", i), i % 2 == 0 ? "a" : "b");
  const std::string spread =
      "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: "
      "{matchLabels: "
      "{app: spread}}}]";
  const std::string alone =
      "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: "
      "{matchLabels: {app: "
      "alone}}}]}}";
  dump.deployment("vip", "1500m", {{"n0"}, {"n3"}}, "priority: 50");
  dump.deployment("spread", "800m", {{"n0"}, {"n1"}, {"n2"}, {"n3"}}, spread);
  dump.deployment("alone", "200m", {{"n0"}, {"n1"}, {"n2"}, {"n3"}, {"n4"}}, alone);
  dump.deployment("fill", "1300m", {{"n1"}, {"n2"}, {"n4"}, {"n4"}, {"n5"}, {"n5"}});
  dump.budget("fill", "fill", "maxUnavailable: 1").budget("vip", "vip", "minAvailable: 2");
  for (const std::string by : {"fail", "remove", "drain"}) {
    const json::Value all = dump.ask(fmt::format("{{each: node, by: {}}}", by));
    for (int i = 0; i < 6; ++i) {
      const std::string node = fmt::format("n{}", i);
      const json::Value alone_answer = dump.ask(fmt::format("{{changes: [{{{}: {}}}]}}", by, node));
      const json::Value* found = nullptr;
      for (const json::Value& one : json::get_array(all, {"each"}))
        if (json::get_string(one, {"lost"}) == node) found = &one;
      EXPECT_EQ(found == nullptr ? 0 : json::get_int(*found, {"pendingCount"}), summary(alone_answer, "pending")) << by << " " << node;
      EXPECT_EQ(found == nullptr ? 0 : json::get_int(*found, {"blockedCount"}), summary(alone_answer, "blocked")) << by << " " << node;
      if (found == nullptr) continue;
      EXPECT_EQ(json::get_int(*found, {"moves"}), static_cast<std::int64_t>(json::get_array(alone_answer, {"moves"}).size()))
          << by << " " << node;
    }
  }
}

TEST(Dumps, AmountsThatNoServerWouldHaveTakenAreRefused) {
  Dump dump = three_nodes();
  dump.node("c1", "c", "four").pod("odd", "{a: b}", "", "1x", {.node = "b1"});
  const auto answer = dump.try_ask("{changes: [{drain: a1}]}");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message,
            "amounts that no API server would have taken: Node c1: cpu: \"four\", Pod shop/odd: cpu: \"1x\". The dump is damaged");
}

TEST(Dumps, AnErrorThatWasSavedInTheirPlaceIsTold) {
  Dump dump;
  dump.yaml("{kind: Status, apiVersion: v1, metadata: {}, status: Failure, message: Unauthorized, code: 401}");
  const auto answer = dump.try_ask("{changes: []}");
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("(there is a Status: Unauthorized)"), std::string::npos) << answer.error().message;
}

}  // namespace
}  // namespace berth::whatif::testing
