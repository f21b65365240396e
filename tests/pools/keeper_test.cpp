// The life of claims over virtual time. Load comes and goes, faults, rest.
#include "pools/keeper.h"

#include <gtest/gtest.h>

#include "tests/pools/fake_cluster.h"

namespace berth::pools {
namespace {

using namespace tests;

TEST(Keeper, LoadComesTheCheapestNodesComeLoadGoesTheyGoAndThereIsRest) {
  FakeCluster cluster;
  cluster.add(pool_document("general", kOnDemand, kEager));
  cluster.scale("web", 0, 12, "1");
  cluster.run(15);
  EXPECT_EQ(cluster.waiting(), 0U);
  EXPECT_EQ(cluster.types(), "1 large, 1 medium") << "12 processors for 0.58, as eight and four";
  EXPECT_EQ(cluster.count("NodeClaim"), 2U);
  const json::Value& claim = *cluster.first("NodeClaim");
  for (const char* type : {"Launched", "Registered", "Initialized", "Ready"})
    EXPECT_EQ(NodeClaim::parse(claim).condition(type), "True") << type;
  cluster.scale("web", 12, 2, "1");
  cluster.run(120);
  EXPECT_EQ(cluster.waiting(), 0U);
  EXPECT_EQ(cluster.types(), "1 small");
  EXPECT_TRUE(cluster.told("an hour less"));
  const std::size_t evictions = cluster.evictions_;
  cluster.run(1800);
  EXPECT_EQ(cluster.evictions_, evictions) << "it comes to rest";
  EXPECT_EQ(cluster.writes_, 0U);
  cluster.end_pods();
  cluster.run(60);
  EXPECT_EQ(cluster.count("Node"), 0U) << cluster.types();
  EXPECT_EQ(cluster.count("NodeClaim"), 0U);
}

TEST(Keeper, NothingIsBoughtTwiceWhileNodesAreOnTheirWay) {
  FakeCluster cluster;
  cluster.ready_delay(true);
  cluster.add(pool_document("general", kOnDemand, kEager));
  cluster.scale("web", 0, 3, "1500m");
  cluster.run(60);
  const std::size_t claims = cluster.count("NodeClaim");
  cluster.restart();
  cluster.run(60);
  EXPECT_EQ(cluster.count("NodeClaim"), claims) << "nor after a restart";
  cluster.ready_delay(false);
  cluster.run(5);
  EXPECT_EQ(cluster.waiting(), 0U);
}

TEST(Keeper, WhatCannotBeHadIsRememberedAndTheNextCheapestComes) {
  FakeCluster cluster;
  cluster.change("SimulatedNodeClass/default", "{spec: {insufficientCapacity: [{instanceType: small}]}}");
  cluster.add(pool_document("general",
                            "[{key: node.kubernetes.io/instance-type, operator: In, values: [small]}, {key: karpenter.sh/capacity-type, "
                            "operator: In, values: [on-demand]}]",
                            kEager));
  cluster.scale("web", 0, 1, "1");
  cluster.run(10);
  EXPECT_EQ(cluster.count("Node"), 0U);
  EXPECT_TRUE(cluster.told("InsufficientCapacity"));
  cluster.add(pool_document("other",
                            "[{key: node.kubernetes.io/instance-type, operator: In, values: [medium]}, {key: karpenter.sh/capacity-type, "
                            "operator: In, values: [on-demand]}]",
                            kEager));
  cluster.run(15);
  EXPECT_EQ(cluster.types(), "1 medium");
}

TEST(Keeper, AFlexibleClaimTakesTheNextCheapestAtOnce) {
  FakeCluster cluster;
  cluster.change("SimulatedNodeClass/default", "{spec: {insufficientCapacity: [{instanceType: small}]}}");
  cluster.add(pool_document("general", kOnDemand, kEager));
  cluster.scale("web", 0, 1, "1");
  cluster.run(6);
  EXPECT_EQ(cluster.types(), "1 medium");
}

TEST(Keeper, AClaimWhoseNodeNeverComesIsGivenUp) {
  FakeCluster cluster;
  cluster.change("SimulatedNodeClass/default", "{spec: {bootDelay: never, registrationTimeout: 30s}}");
  cluster.add(pool_document("general", kOnDemand, kEager));
  cluster.scale("web", 0, 1, "1");
  cluster.run(20);
  EXPECT_EQ(cluster.count("NodeClaim"), 1U);
  cluster.run(20);
  EXPECT_TRUE(cluster.told("RegistrationTimeout: its node has not come within 30s"));
  cluster.change("SimulatedNodeClass/default", "{spec: {bootDelay: 0s}}");
  cluster.run(20);
  EXPECT_EQ(cluster.waiting(), 0U) << "another one was made";
}

TEST(Keeper, StartupTaintsAreWaitedFor) {
  FakeCluster cluster;
  cluster.add(pool_document("general", kOnDemand, kEager, "{startupTaints: [{key: example.com/starting, effect: NoSchedule}]}"));
  cluster.scale("web", 0, 1, "1");
  cluster.run(30);
  EXPECT_EQ(cluster.count("Node"), 1U);
  EXPECT_EQ(cluster.waiting(), 1U);
  EXPECT_EQ(NodeClaim::parse(*cluster.first("NodeClaim")).condition("Initialized"), "Unknown");
  cluster.change(fmt::format("Node/{}", json::get_string(*cluster.first("NodeClaim"), {"metadata", "name"})), "{spec: {taints: []}}");
  cluster.run(3);
  EXPECT_EQ(NodeClaim::parse(*cluster.first("NodeClaim")).condition("Initialized"), "True");
  EXPECT_EQ(cluster.waiting(), 0U);
}

TEST(Keeper, DeletedClaimsDrainByDoNotDisruptAndGracePeriod) {
  FakeCluster cluster;
  cluster.add(pool_document("general", kOnDemand, kEager, "{terminationGracePeriod: 2m}"));
  json::Value web = pod("web-0", "1", "1Gi");
  json::set(web, {"metadata", "annotations"}, json::Object{{"karpenter.sh/do-not-disrupt", "true"}});
  cluster.add(web);
  cluster.run(30);
  ASSERT_EQ(cluster.count("NodeClaim"), 1U);
  const std::string name(json::get_string(*cluster.first("NodeClaim"), {"metadata", "name"}));
  cluster.remove("NodeClaim/" + name);
  cluster.run(60);
  EXPECT_TRUE(cluster.told("FailedDraining: pod default/web-0 has the annotation"));
  EXPECT_TRUE(cluster.documents_.contains("Node/" + name)) << "it waits";
  EXPECT_TRUE(cluster.documents_.contains("Pod/default/web-0"));
  cluster.run(70);
  EXPECT_FALSE(cluster.documents_.contains("Node/" + name)) << "after its grace period it does not";
  EXPECT_FALSE(cluster.documents_.contains("NodeClaim/" + name));
}

TEST(Keeper, ANodeDeletedByHandTakesItsClaimAlong) {
  FakeCluster cluster;
  cluster.add(pool_document("general", kOnDemand, kEager));
  cluster.scale("web", 0, 1, "1");
  cluster.run(10);
  const std::string name(json::get_string(*cluster.first("NodeClaim"), {"metadata", "name"}));
  cluster.remove("Node/" + name);
  cluster.run(15);
  EXPECT_FALSE(cluster.documents_.contains("NodeClaim/" + name));
  EXPECT_EQ(cluster.waiting(), 0U) << "its pod was evicted and has another node";
}

TEST(Keeper, AReplacementThatDoesNotComeLeavesTheNodeAsItWas) {
  FakeCluster cluster;
  cluster.add(pool_document("general", kOnDemand, "{disruption: {consolidateAfter: 5s, budgets: [{nodes: '100%'}]}}"));
  cluster.scale("web", 0, 7, "1");
  cluster.run(30);
  ASSERT_EQ(cluster.types(), "1 large");
  cluster.change("SimulatedNodeClass/default", "{spec: {bootDelay: never, registrationTimeout: 1m}}");
  cluster.scale("web", 7, 1, "1");
  cluster.run(40);
  EXPECT_EQ(cluster.types(), "1 large");
  cluster.run(40);
  EXPECT_TRUE(cluster.told("DisruptionGivenUp"));
  EXPECT_EQ(cluster.evictions_, 0U) << "nothing was evicted on a guess";
}

TEST(Keeper, OldClaimsExpireAndAPoolWithoutClassSaysSo) {
  FakeCluster cluster;
  cluster.add(pool_document("general", kOnDemand, kEager, "{expireAfter: 1m}"));
  json::Value lost = pool_document("lost", kOnDemand, kEager);
  json::set(lost, {"spec", "template", "spec", "nodeClassRef", "name"}, json::Value("nope"));
  cluster.add(lost);
  cluster.scale("web", 0, 1, "1");
  cluster.run(10);
  const std::string name(json::get_string(*cluster.first("NodeClaim"), {"metadata", "name"}));
  EXPECT_TRUE(cluster.told("there is no SimulatedNodeClass named \"nope\""));
  cluster.run(80);
  EXPECT_TRUE(cluster.told("Expired: it is older than 1m0s"));
  EXPECT_FALSE(cluster.documents_.contains("NodeClaim/" + name));
  EXPECT_EQ(cluster.waiting(), 0U);
}

TEST(Keeper, AChangedTemplateDrifts) {
  FakeCluster cluster;
  cluster.add(pool_document("general", kOnDemand, "{disruption: {consolidateAfter: Never, budgets: [{nodes: '100%'}]}}"));
  cluster.scale("web", 0, 1, "1");
  cluster.run(10);
  const std::string name(json::get_string(*cluster.first("NodeClaim"), {"metadata", "name"}));
  cluster.change("NodePool/general", "{spec: {template: {metadata: {labels: {generation: two}}}}}");
  cluster.run(60);
  EXPECT_FALSE(cluster.documents_.contains("NodeClaim/" + name));
  ASSERT_EQ(cluster.count("NodeClaim"), 1U);
  EXPECT_EQ(json::get_string(*cluster.first("Node"), {"metadata", "labels", "generation"}), "two");
  EXPECT_EQ(cluster.waiting(), 0U);
}

}  // namespace
}  // namespace berth::pools
