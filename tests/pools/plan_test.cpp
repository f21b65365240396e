// What would be bought: the cheapest shapes, by the scheduler's rules, with pools' weights, limits, taints and requirements.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/pools/builder.h"

namespace berth::pools {
namespace {

using namespace tests;

TEST(Plan, TakesTheCheapestThatFits) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  world.add_pods("web", 4, "1900m", "1Gi");
  const ProvisionPlan plan = world.plan();
  EXPECT_EQ(words(plan.claims), "1 x large a on-demand") << "8 processors cost less at once than one by one";
  EXPECT_TRUE(plan.refused.empty());
}

TEST(Plan, ArchitectureIsTheCheapestUnlessThePodOrThePoolSays) {
  TestWorld world;
  world.add(pool_document("general", "[{key: kubernetes.io/arch, operator: In, values: [amd64]}]"));
  world.add_pods("web", 1, "7", "1Gi");
  EXPECT_EQ(words(world.plan().claims), "1 x large a spot");
}

TEST(Plan, WhatRunsAlreadyTakesWhatFits) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  world.add_owned("old", "general", *small_catalogue().find("large"), "a", "on-demand");
  world.add_pods("web", 4, "1900m", "1Gi");
  const ProvisionPlan plan = world.plan();
  EXPECT_TRUE(plan.claims.empty());
  EXPECT_EQ(plan.on_existing.size(), 4U);
}

TEST(Plan, AClaimOnItsWayIsCountedOn) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  world.add_yaml(R"({apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: coming, labels: {karpenter.sh/nodepool: general}},
    spec: {requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [large]}, {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]}})");
  world.add_pods("web", 5, "1900m", "1Gi");
  const ProvisionPlan plan = world.plan();
  EXPECT_EQ(plan.on_existing.size(), 4U);
  EXPECT_EQ(words(plan.claims), "1 x small a on-demand");
}

TEST(Plan, SpreadsOverZonesThatHaveNoNodeYet) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  world.add_pods("web", 6, "900m", "1Gi",
                 "{topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, "
                 "labelSelector: {matchLabels: {app: web}}}]}");
  EXPECT_EQ(words(world.plan().claims), "1 x small a on-demand, 1 x small b on-demand, 1 x small c on-demand");
}

TEST(Plan, OneNodeEachWherePodsKeepApart) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  world.add_pods("web", 3, "100m", "1Gi",
                 "{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, "
                 "labelSelector: {matchLabels: {app: web}}}]}}}");
  world.add_pods("more", 9, "500m", "1Gi");
  const ProvisionPlan plan = world.plan();
  EXPECT_TRUE(plan.refused.empty());
  EXPECT_GT(plan.bound, 0.2) << "5 processors at least, at 5 cents each";
  EXPECT_LE(plan.bound, plan.cost);
  EXPECT_GE(plan.claims.size(), 3U);
  EXPECT_LE(plan.cost, 0.31) << "the room beside them is used: " << words(plan.claims);
}

TEST(Plan, TogetherOnOneNodeThatGrows) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  world.add_pods("web", 4, "1500m", "1Gi",
                 "{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, "
                 "labelSelector: {matchLabels: {app: web}}}]}}}");
  const ProvisionPlan plan = world.plan();
  EXPECT_EQ(plan.claims.size(), 1U);
  EXPECT_TRUE(plan.refused.empty());
}

TEST(Plan, WhoWantsToBeWithOthersWaitsForThem) {
  // The larger goes first, and finds nobody yet.
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  world.add_pods("app", 2, "500m", "1Gi");
  world.add_pods("beside", 2, "1500m", "1Gi",
                 "{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, "
                 "labelSelector: {matchLabels: {app: app}}}]}}}");
  const ProvisionPlan plan = world.plan();
  EXPECT_TRUE(plan.refused.empty()) << plan.refused.front().why;
  EXPECT_EQ(words(plan.claims), "1 x medium a on-demand");
}

TEST(Plan, PodsThatSpreadOverZonesShareNodesWithOthers) {
  // Three in each zone, and nine of others: packed together, not one node for each pod that spreads.
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  world.add_pods("web", 9, "1200m", "1Gi",
                 "{topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, "
                 "labelSelector: {matchLabels: {app: web}}}]}");
  world.add_pods("plain", 9, "1300m", "1Gi");
  const ProvisionPlan plan = world.plan();
  EXPECT_TRUE(plan.refused.empty());
  EXPECT_EQ(words(plan.claims), "1 x large a on-demand, 1 x large b on-demand, 1 x large c on-demand");
}

TEST(Plan, AsManyOnOneNodeAsTheSkewOverNodesAllows) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  world.add_pods("web", 6, "500m", "1Gi",
                 "{topologySpreadConstraints: [{maxSkew: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, "
                 "labelSelector: {matchLabels: {app: web}}}]}");
  const ProvisionPlan plan = world.plan();
  EXPECT_TRUE(plan.refused.empty());
  EXPECT_EQ(words(plan.claims), "3 x small a on-demand");
}

TEST(Plan, OnePortOnEachNode) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  world.add_pods("web", 3, "100m", "1Gi", "{containers: [{name: c, image: i, ports: [{containerPort: 80, hostPort: 80}]}]}");
  const ProvisionPlan plan = world.plan();
  EXPECT_TRUE(plan.refused.empty());
  EXPECT_EQ(words(plan.claims), "3 x small a on-demand");
}

TEST(Plan, TheSameChoiceForEveryPodOfANode) {
  // Large alone has room for eight, but then there is nothing to choose.
  TestWorld world;
  world.add(pool_document("flexible",
                          "[{key: node.kubernetes.io/instance-type, operator: Exists, minValues: 2}, {key: kubernetes.io/arch, operator: "
                          "In, values: [amd64]}, {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]"));
  world.add_pods("web", 16, "900m", "1Gi");
  const ProvisionPlan plan = world.plan();
  EXPECT_TRUE(plan.refused.empty()) << plan.refused.front().why;
  for (const NewClaim& claim : plan.claims) EXPECT_GE(claim.types.size(), 2U) << claim.type;
}

TEST(Plan, DaemonsTakeTheirPart) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  world.add_yaml(
      R"({apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: default, uid: agent}, spec: {selector: {matchLabels: {app: agent}},
    template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 200m}}}]}}}})");
  world.add_pods("web", 1, "1900m", "1Gi");
  EXPECT_EQ(words(world.plan().claims), "1 x medium a on-demand");
}

TEST(Plan, TaintsLabelsAndValuesOfOnesOwn) {
  TestWorld world;
  world.add(pool_document(
      "team",
      "[{key: example.com/team, operator: In, values: [red, blue]}, {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]",
      "{}", "{taints: [{key: team, value: 'yes', effect: NoSchedule}]}"));
  world.add_pods("web", 1, "1", "1Gi");
  world.add_pods("red", 1, "1", "1Gi", "{nodeSelector: {example.com/team: red}, tolerations: [{key: team, operator: Exists}]}");
  const ProvisionPlan plan = world.plan();
  ASSERT_EQ(plan.claims.size(), 1U);
  EXPECT_EQ(*plan.claims[0].labels.get("example.com/team"), "red");
  ASSERT_EQ(plan.refused.size(), 1U);
  EXPECT_EQ(plan.refused[0].why, "pool \"team\": taint team=yes:NoSchedule is not tolerated");
}

TEST(Plan, LimitsAreKeptAndTheImportantComeFirst) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand, "{limits: {cpu: 4}}"));
  world.add_pods("low", 4, "1500m", "1Gi");
  world.add_pods("high", 2, "1500m", "1Gi", "{priority: 1000}");
  const ProvisionPlan plan = world.plan();
  std::int64_t cores = 0;
  for (const NewClaim& claim : plan.claims) {
    cores += model::find_resource(small_catalogue().find(claim.type)->capacity, "cpu")->value();
    for (const auto& pod : claim.pods) EXPECT_TRUE(pod->view().meta.name.starts_with("high")) << pod->key;
  }
  EXPECT_LE(cores, 4);
  ASSERT_EQ(plan.refused.size(), 4U);
  EXPECT_EQ(plan.refused[0].why, "pool \"general\": the pool's limit of cpu is reached");
}

/// A PodGroup, and a pod's part that names it.
void add_gang(TestWorld& world, const std::string& name, int min_count, int priority = 0, const std::string& constraints = "") {
  world.add_yaml(
      fmt::format("apiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nmetadata: {{name: {}, namespace: default, uid: {}}}\n"
                  "spec: {{priority: {}, schedulingPolicy: {{gang: {{minCount: {}}}}}{}}}",
                  name, name, priority, min_count, constraints));
}
std::string member_of(const std::string& gang, int priority = 0) {
  return fmt::format("{{priority: {}, schedulingGroup: {{podGroupName: {}}}}}", priority, gang);
}

TEST(Plan, AGangWithATopologyIsBoughtForInOneDomain) {
  const auto zones_of = [](TestWorld& world) {
    std::set<std::string> zones;
    for (const NewClaim& claim : world.plan().claims) zones.insert(claim.zone);
    return fmt::format("{}", fmt::join(zones, ","));
  };
  const char* kByZone = ", schedulingConstraints: {topology: [{key: topology.kubernetes.io/zone}]}";
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  add_gang(world, "team", 4, 0, kByZone);
  world.add_pods("team", 3, "3500m", "1Gi", member_of("team"));
  // Of these devices zone b alone has some: the others of the gang go there, too.
  world.add(pod("team-gpu", "1", "1Gi",
                "{schedulingGroup: {podGroupName: team}, containers: [{name: c, image: i, resources: {requests: {cpu: 1, memory: 1Gi, "
                "example.com/gpu: 1}}}]}"));
  EXPECT_EQ(zones_of(world), "b");
  EXPECT_TRUE(world.plan().refused.empty());

  TestWorld standing;
  standing.add(pool_document("general", kOnDemand));
  add_gang(standing, "team", 4, 0, kByZone);
  standing.add_owned("there", "general", *small_catalogue().find("small"), "c", "on-demand");
  standing.add(pod("team-first", "1900m", "1Gi", member_of("team"), "there"));
  standing.add_pods("team", 3, "1900m", "1Gi", member_of("team"));
  EXPECT_EQ(zones_of(standing), "c") << "where one of them stands";

  TestWorld impossible;
  impossible.add(pool_document("general", "[{key: topology.kubernetes.io/zone, operator: In, values: [a]}]", "{limits: {cpu: 2}}"));
  add_gang(impossible, "team", 3, 0, kByZone);
  impossible.add_pods("team", 3, "1900m", "1Gi", member_of("team"));
  EXPECT_EQ(zones_of(impossible), "");
  EXPECT_EQ(impossible.plan().refused.size(), 3U);
}

TEST(Plan, PodsThatAGroupMayGrowForAreLeftToIt) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  const auto add_group = [&](int replicas) {
    world.add_yaml(fmt::format(
        "apiVersion: machine.openshift.io/v1beta1\nkind: MachineSet\nmetadata: {{name: workers, namespace: openshift-machine-api, "
        "annotations: "
        "{{machine.openshift.io/cluster-api-autoscaler-node-group-min-size: '0', "
        "machine.openshift.io/cluster-api-autoscaler-node-group-max-size: '2', capacity.cluster-autoscaler.kubernetes.io/cpu: '4', "
        "capacity.cluster-autoscaler.kubernetes.io/memory: 16Gi}}}}\nspec: {{replicas: {}, selector: {{matchLabels: {{a: b}}}}, template: "
        "{{metadata: {{labels: {{a: b}}}}, spec: {{}}}}}}",
        replicas));
  };
  const auto bought_for = [&] {
    std::size_t out = 0;
    for (const NewClaim& claim : world.plan().claims) out += claim.pods.size();
    return out;
  };
  add_group(0);
  world.add_pods("web", 3, "3500m", "1Gi");
  for (int i = 0; i < 3; ++i) {
    json::Value waiting = pod(fmt::format("web-{}", i), "3500m", "1Gi");
    json::set(waiting, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(kNow - std::chrono::minutes(i == 0 ? 20 : 1))));
    world.add(waiting);
  }
  EXPECT_EQ(bought_for(), 3U) << "nobody grows groups";
  world.add_yaml("{apiVersion: autoscaling.openshift.io/v1, kind: ClusterAutoscaler, metadata: {name: default}, spec: {}}");
  ProvisionPlan plan = world.plan();
  ASSERT_EQ(plan.claims.size(), 1U) << "the one that has waited for a machine for long, and no other";
  EXPECT_EQ(plan.claims[0].pods[0]->key, "default/web-0");
  EXPECT_EQ(world.view.left_to_groups.size(), 2U);
  add_group(2);
  EXPECT_EQ(bought_for(), 1U) << "its machines are on their way";
  for (int i = 0; i < 2; ++i) {
    json::Value more = pod(fmt::format("more-{}", i), "3500m", "1Gi");
    json::set(more, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(kNow)));
    world.add(more);
  }
  EXPECT_EQ(bought_for(), 3U) << "it is at its most: the pools buy";
}

TEST(Plan, AGangGetsAllThatItNeedsOrNothing) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand, "{limits: {cpu: 8}}"));
  add_gang(world, "big", 5);
  world.add_pods("big", 5, "1900m", "1Gi", member_of("big"));
  world.add_pods("single", 1, "1", "1Gi");
  ProvisionPlan plan = world.plan();
  EXPECT_EQ(words(plan.claims), "1 x small a on-demand") << "what is single is not held up";
  ASSERT_EQ(plan.refused.size(), 5U);
  EXPECT_EQ(plan.refused[0].why.substr(0, 62), "of gang default/big 4 of the 5 pods that it needs would have a");
  add_gang(world, "small", 3);
  world.add_pods("small", 3, "1900m", "1Gi", member_of("small"));
  plan = world.plan();
  EXPECT_EQ(plan.refused.size(), 5U);
  for (const auto& [pod, why] : plan.refused) EXPECT_TRUE(pod->view().meta.name.starts_with("big")) << pod->key;
}

TEST(Plan, MembersThatRunCountForTheirGang) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  world.add_owned("old", "general", *small_catalogue().find("large"), "a", "on-demand");
  add_gang(world, "team", 3);
  for (int i = 0; i < 2; ++i) world.add(pod(fmt::format("team-{}", i), "3900m", "1Gi", member_of("team"), "old"));
  world.add(pod("team-2", "1900m", "1Gi", member_of("team")));
  const ProvisionPlan plan = world.plan();
  EXPECT_EQ(words(plan.claims), "1 x small a on-demand");
  EXPECT_TRUE(plan.refused.empty());
}

TEST(Plan, OfTwoGangsTheMoreImportantIsWhole) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand, "{limits: {cpu: 8}}"));
  for (const auto& [name, priority] : {std::pair{"one", 0}, {"two", 100}}) {
    add_gang(world, name, 3, priority);
    world.add_pods(name, 3, "1900m", "1Gi", member_of(name, priority));
  }
  const ProvisionPlan plan = world.plan();
  EXPECT_EQ(plan.refused.size(), 3U);
  for (const auto& [pod, why] : plan.refused) EXPECT_TRUE(pod->view().meta.name.starts_with("one")) << pod->key;
}

TEST(Plan, ThePoolThatWeighsMoreComesFirst) {
  TestWorld world;
  world.add(pool_document("cheap", "[{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]"));
  world.add(pool_document("dear", kOnDemand, "{weight: 50}"));
  world.add_pods("web", 1, "1", "1Gi");
  EXPECT_EQ(words(world.plan().claims), "1 x small a on-demand");
}

TEST(Plan, MinValuesWantsChoice) {
  TestWorld world;
  world.add(pool_document("flexible",
                          "[{key: node.kubernetes.io/instance-type, operator: Exists, minValues: 3}, {key: kubernetes.io/arch, operator: "
                          "In, values: [amd64]}]"));
  world.add_pods("web", 1, "1", "1Gi");
  EXPECT_GE(world.plan().claims.at(0).types.size(), 3U);
  world.add_pods("big", 1, "7", "1Gi");
  const ProvisionPlan plan = world.plan();
  ASSERT_FALSE(plan.refused.empty());
  EXPECT_NE(plan.refused[0].why.find("minValues"), std::string::npos) << plan.refused[0].why;
}

TEST(Plan, PreferencesAreKeptWhereTheyCostNothing) {
  const std::string prefers =
      "{{affinity: {{nodeAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 1, preference: {{matchExpressions: "
      "[{{key: {}, operator: In, values: [{}]}}]}}}}]}}}}}}";
  TestWorld free;
  free.add(pool_document("general", kOnDemand));
  free.add_pods("web", 1, "1", "1Gi", fmt::format(fmt::runtime(prefers), "topology.kubernetes.io/zone", "c"));
  EXPECT_EQ(words(free.plan().claims), "1 x small c on-demand");
  TestWorld dear;
  dear.add(pool_document("general", kOnDemand));
  dear.add_pods("web", 1, "1", "1Gi", fmt::format(fmt::runtime(prefers), "node.kubernetes.io/instance-type", "large"));
  EXPECT_EQ(words(dear.plan().claims), "1 x small a on-demand");
}

std::string soft_spread(const std::string& app, const std::string& key) {
  return fmt::format(
      "topologySpreadConstraints: [{{maxSkew: 1, topologyKey: {}, whenUnsatisfiable: ScheduleAnyway, labelSelector: "
      "{{matchLabels: {{app: {}}}}}}}]",
      key, app);
}
/// A preferred term: `sort` is podAffinity or podAntiAffinity.
std::string soft_term(const std::string& sort, const std::string& app, const std::string& key) {
  return fmt::format(
      "{}: {{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 10, podAffinityTerm: {{topologyKey: {}, "
      "labelSelector: {{matchLabels: {{app: {}}}}}}}}}]}}",
      sort, key, app);
}

TEST(Plan, SpreadingAndKeepingApartThatIsOnlyPreferredIsKeptWhereItCostsNothing) {
  TestWorld spread;
  spread.add(pool_document("general", kOnDemand));
  spread.add_pods("web", 2, "1900m", "1Gi", "{" + soft_spread("web", "topology.kubernetes.io/zone") + "}");
  const ProvisionPlan plan = spread.plan();
  ASSERT_EQ(plan.claims.size(), 2U) << "two small ones cost as much as one of twice the size";
  EXPECT_NE(plan.claims[0].zone, plan.claims[1].zone);
  EXPECT_NEAR(plan.cost, 0.2, 1e-9);
  EXPECT_FALSE(plan.claims[0].pods[0]->view().spread_constraints[0].is_hard) << "the pods are as they were";
  TestWorld dear;
  dear.add(pool_document("general", kOnDemand));
  dear.add_pods("web", 4, "1900m", "1Gi", "{" + soft_spread("web", "topology.kubernetes.io/zone") + "}");
  EXPECT_EQ(words(dear.plan().claims), "1 x large a on-demand") << "it would cost two cents";
  TestWorld apart;
  apart.add(pool_document("general", kOnDemand));
  apart.add_pods("web", 2, "1900m", "1Gi", "{affinity: {" + soft_term("podAntiAffinity", "web", "kubernetes.io/hostname") + "}}");
  EXPECT_EQ(apart.plan().claims.size(), 2U);
}

TEST(Plan, BeingBesideOthersIsKeptAndDroppedBeforeKeepingApart) {
  const auto zones_of = [](const std::string& affinity) {
    TestWorld world;
    world.add(pool_document("general", kOnDemand));
    world.add_owned("there", "general", *small_catalogue().find("small"), "c", "on-demand");
    world.add(pod("db-0", "2", "1Gi", "{}", "there"));
    world.add_pods("web", 1, "1", "1Gi", "{affinity: {" + affinity + "}}");
    const ProvisionPlan plan = world.plan();
    return plan.claims.size() == 1 ? plan.claims[0].zone : "";
  };
  const std::string key = "topology.kubernetes.io/zone";
  EXPECT_EQ(zones_of(soft_term("podAffinity", "db", key)), "c");
  EXPECT_NE(zones_of(soft_term("podAntiAffinity", "db", key)), "c");
  EXPECT_NE(zones_of(soft_term("podAffinity", "db", key) + ", " + soft_term("podAntiAffinity", "db", key)), "c")
      << "both cannot be: being beside others is dropped first";
}

TEST(Plan, WhatOneWorkloadPrefersAtACostTakesNothingFromAnother) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  world.add_owned("there", "general", *small_catalogue().find("small"), "c", "on-demand");
  world.add(pod("db-0", "2", "1Gi", "{}", "there"));
  world.add_pods("web", 4, "1900m", "1Gi", "{" + soft_spread("web", "kubernetes.io/hostname") + "}");
  world.add_pods("api", 1, "7", "1Gi", "{affinity: {" + soft_term("podAffinity", "db", "topology.kubernetes.io/zone") + "}}");
  const ProvisionPlan plan = world.plan();
  EXPECT_NEAR(plan.cost, 0.76, 1e-9);
  const auto of_api = std::ranges::find(plan.claims, "api-0", [](const NewClaim& claim) { return claim.pods[0]->view().meta.name; });
  ASSERT_NE(of_api, plan.claims.end());
  EXPECT_EQ(of_api->zone, "c");
}

TEST(Plan, WhatCouldNotBeHadLatelyIsLeftOut) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand));
  world.add_pods("web", 1, "1", "1Gi");
  ProvisionInput input = world.input();
  for (const char* zone : {"a", "b", "c"}) input.unavailable[{"small", zone, "on-demand"}] = kNow + std::chrono::minutes(3);
  EXPECT_EQ(words(plan_provisioning(input).claims), "1 x medium a on-demand");
  input.now += std::chrono::minutes(3);
  EXPECT_EQ(words(plan_provisioning(input).claims), "1 x small a on-demand") << "forgotten after a while";
}

TEST(Consolidation, EmptyNodesGoAsTheBudgetsAllow) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand, "{disruption: {consolidateAfter: 30s, budgets: [{nodes: '2'}]}}"));
  for (const char* name : {"n1", "n2", "n3"}) world.add_owned(name, "general", *small_catalogue().find("small"), "a", "on-demand");
  const ConsolidationPlan plan = world.consolidation();
  ASSERT_EQ(plan.steps.size(), 1U);
  EXPECT_EQ(plan.steps[0].reason, Reason::kEmpty);
  EXPECT_EQ(plan.steps[0].nodes.size(), 2U);
  EXPECT_NEAR(plan.savings, 0.2, 1e-9);
  ASSERT_EQ(plan.staying.size(), 1U);
}

TEST(Consolidation, PodsMoveToRoomThatIsThereAndTheRestStays) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand, "{disruption: {consolidateAfter: 0s, budgets: [{nodes: '100%'}]}}"));
  for (const char* name : {"n1", "n2"}) world.add_owned(name, "general", *small_catalogue().find("small"), "a", "on-demand");
  world.add(pod("web-1", "500m", "1Gi", "{}", "n1"));
  world.add(pod("web-2", "500m", "1Gi", "{}", "n2"));
  const ConsolidationPlan plan = world.consolidation();
  ASSERT_EQ(plan.steps.size(), 1U);
  EXPECT_EQ(plan.steps[0].nodes.size(), 1U);
  EXPECT_TRUE(plan.steps[0].replacements.empty());
  EXPECT_EQ(plan.steps[0].evicted.size(), 1U);
}

TEST(Consolidation, ACheaperNodeInsteadAndThenRest) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand, "{disruption: {consolidateAfter: 0s, budgets: [{nodes: '100%'}]}}"));
  world.add_owned("big", "general", *small_catalogue().find("large"), "a", "on-demand");
  world.add(pod("web-1", "1", "1Gi", "{}", "big"));
  ConsolidationPlan plan = world.consolidation();
  ASSERT_EQ(plan.steps.size(), 1U);
  EXPECT_EQ(words(plan.steps[0].replacements), "1 x small a on-demand");
  EXPECT_NEAR(plan.savings, 0.28, 1e-9);
  EXPECT_EQ(plan.steps[0].replacements[0].types, (std::vector<std::string>{"small", "medium"})) << "none that costs as much as before";
  TestWorld after;
  after.add(pool_document("general", kOnDemand, "{disruption: {consolidateAfter: 0s, budgets: [{nodes: '100%'}]}}"));
  after.add_owned("right", "general", *small_catalogue().find("small"), "a", "on-demand");
  after.add(pod("web-1", "1", "1Gi", "{}", "right"));
  plan = after.consolidation();
  EXPECT_TRUE(plan.steps.empty());
  ASSERT_EQ(plan.staying.size(), 1U);
  EXPECT_EQ(plan.staying[0].second, "its pods have no cheaper place");
}

TEST(Consolidation, TwoHalfEmptyOnesForOneSmaller) {
  TestWorld world;
  world.add(pool_document("general", kOnDemand, "{disruption: {consolidateAfter: 0s, budgets: [{nodes: '100%'}]}}"));
  for (const char* name : {"n1", "n2"}) world.add_owned(name, "general", *small_catalogue().find("medium"), "a", "on-demand");
  for (const char* name : {"n1", "n2"}) world.add(pod(fmt::format("web-{}", name), "2500m", "1Gi", "{}", name));
  const ConsolidationPlan plan = world.consolidation();
  ASSERT_EQ(plan.steps.size(), 1U) << "two of 0.20 for one of 0.38";
  EXPECT_EQ(words(plan.steps[0].replacements), "1 x large a on-demand");
  EXPECT_EQ(plan.steps[0].nodes.size(), 2U);
}

TEST(Consolidation, WhatKeepsANode) {
  const auto why = [](const std::string& disruption, const std::function<void(TestWorld&)>& change) {
    TestWorld world;
    world.add(pool_document("general", kOnDemand, "{disruption: " + disruption + "}"));
    world.add_owned("big", "general", *small_catalogue().find("large"), "a", "on-demand");
    json::Value web = pod("web-1", "1", "1Gi", "{}", "big");
    world.add(web);
    change(world);
    const ConsolidationPlan plan = world.consolidation();
    EXPECT_TRUE(plan.steps.empty());
    return plan.staying.empty() ? std::string() : plan.staying[0].second;
  };
  const std::string all = "{consolidateAfter: 0s, budgets: [{nodes: '100%'}]}";
  EXPECT_EQ(why("{consolidateAfter: Never}", [](TestWorld&) {}), "NodePool \"general\" has consolidation disabled");
  EXPECT_EQ(why("{consolidateAfter: 0s, consolidationPolicy: WhenEmpty}", [](TestWorld&) {}),
            "NodePool \"general\" has non-empty consolidation disabled");
  EXPECT_EQ(why("{consolidateAfter: 2h}", [](TestWorld&) {}), "its pods have not been quiet for consolidateAfter");
  EXPECT_EQ(why(all,
                [](TestWorld& world) {
                  json::Value web = pod("web-1", "1", "1Gi", "{}", "big");
                  json::set(web, {"metadata", "annotations"}, json::Object{{"karpenter.sh/do-not-disrupt", "true"}});
                  world.add(web);
                }),
            "pod default/web-1 has the annotation karpenter.sh/do-not-disrupt");
  EXPECT_EQ(
      why(all,
          [](TestWorld& world) {
            world.add_yaml(
                "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: pdb, namespace: default}, spec: {maxUnavailable: "
                "0, selector: {matchLabels: {app: web}}}, status: {disruptionsAllowed: 0}}");
          }),
      "the PodDisruptionBudget default/pdb allows nothing for pod default/web-1");
  EXPECT_EQ(why("{consolidateAfter: 0s, budgets: [{nodes: '0', reasons: [Underutilized]}]}", [](TestWorld&) {}),
            "its pods have no cheaper place");
}

TEST(Consolidation, EveryPodThatMovesHasAPlaceInTheEnd) {
  for (int seed = 0; seed < 8; ++seed) {
    TestWorld world;
    world.add(pool_document("general", kOnDemand, "{disruption: {consolidateAfter: 0s, budgets: [{nodes: '100%'}]}}"));
    TestWorld anew;
    anew.add(pool_document("general", kOnDemand));
    int number = 0;
    for (int i = 0; i < 20; ++i) {
      const std::string name = fmt::format("n{}", i);
      world.add_owned(name, "general", *small_catalogue().find(i % 3 == seed % 3 ? "large" : "medium"), "a", "on-demand");
      for (int k = 0; k < 1 + (i * 7 + seed) % 4; ++k, ++number) {
        const std::string cpu = fmt::format("{}m", 200 + (number * 37 + seed * 11) % 7 * 100);
        world.add(pod(fmt::format("web-{}", number), cpu, "1Gi", "{}", name));
        anew.add(pod(fmt::format("web-{}", number), cpu, "1Gi"));
      }
    }
    const ConsolidationPlan plan = world.consolidation();
    EXPECT_GT(plan.savings, 0) << "seed " << seed;
    const double least = anew.plan().bound;
    EXPECT_GE(plan.cost - plan.savings, least - 1e-9) << "seed " << seed << ": cheaper than is possible: pods were forgotten";
    EXPECT_LE(plan.cost - plan.savings, least * 1.35) << "seed " << seed;
    std::set<std::size_t> gone;
    for (const Disruption& step : plan.steps)
      for (const std::size_t node : step.nodes) EXPECT_TRUE(gone.insert(node).second) << "it goes once";
  }
}

TEST(Consolidation, SpotIsNotChased) {
  TestWorld world;
  world.add(pool_document("spot", "[{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]",
                          "{disruption: {consolidateAfter: 0s, budgets: [{nodes: '100%'}]}}"));
  world.add_owned("big", "spot", *small_catalogue().find("large"), "a", "spot");
  world.add(pod("web-1", "1", "1Gi", "{}", "big"));
  EXPECT_TRUE(world.consolidation().steps.empty()) << "not fifteen types are cheaper";
}

TEST(Consolidation, DriftedNodesAreReplacedWhateverTheyCost) {
  TestWorld world;
  world.add(pool_document("general",
                          "[{key: topology.kubernetes.io/zone, operator: In, values: [b]}, {key: karpenter.sh/capacity-type, operator: In, "
                          "values: [on-demand]}]",
                          "{disruption: {consolidateAfter: Never}}"));
  world.add_owned("there", "general", *small_catalogue().find("small"), "a", "on-demand");
  world.add(pod("web-1", "1", "1Gi", "{}", "there"));
  const ConsolidationPlan plan = world.consolidation();
  ASSERT_EQ(plan.steps.size(), 1U);
  EXPECT_EQ(plan.steps[0].reason, Reason::kDrifted);
  EXPECT_EQ(words(plan.steps[0].replacements), "1 x small b on-demand");
}

TEST(Budget, BySchedule) {
  NodePool pool = NodePool::parse(
      pool_document("p", "[]", "{disruption: {budgets: [{nodes: '50%'}, {nodes: '0', schedule: '0 9 * * *', duration: 8h}]}}"));
  const auto at = [&](const char* time) { return pool.allowed(Reason::kEmpty, 10, *parse_rfc3339(time)); };
  EXPECT_EQ(at("2026-11-28T08:59:00Z"), 5);
  EXPECT_EQ(at("2026-11-28T09:00:00Z"), 0);
  EXPECT_EQ(at("2026-11-28T16:59:59Z"), 0);
  EXPECT_EQ(at("2026-11-28T17:00:00Z"), 5);
  EXPECT_EQ(pool.allowed(Reason::kEmpty, 11, *parse_rfc3339("2026-11-28T08:00:00Z")), 6) << "shares are rounded up";
}

}  // namespace
}  // namespace berth::pools
