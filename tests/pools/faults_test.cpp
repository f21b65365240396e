// What befalls machines: told, survived, and over again when it is over.
#include <gtest/gtest.h>

#include "tests/pools/fake_cluster.h"

namespace berth::pools {
namespace {

using namespace tests;

constexpr const char* kSpot = "[{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]";
constexpr const char* kCalm = "{disruption: {consolidateAfter: Never, budgets: [{nodes: '0'}]}}";

std::string name_of(const json::Value* document) {
  return document == nullptr ? std::string() : std::string(json::get_string(*document, {"metadata", "name"}));
}

std::string condition(const FakeCluster& cluster, const std::string& claim, std::string_view type) {
  const auto at = cluster.documents_.find("NodeClaim/" + claim);
  if (at == cluster.documents_.end()) return "";
  for (const json::Value& one : json::get_array(at->second, {"status", "conditions"}))
    if (json::get_string(one, {"type"}) == type)
      return fmt::format("{} {}", json::get_string(one, {"status"}), json::get_string(one, {"reason"}));
  return "";
}

/// One pod on one node; the node's name.
std::string with_one_node(FakeCluster& cluster, const char* requirements, const char* more = kCalm) {
  cluster.add(pool_document("general", requirements, more));
  cluster.scale("web", 0, 1, "1");
  cluster.run(15);
  EXPECT_EQ(cluster.waiting(), 0U);
  return name_of(cluster.first("Node"));
}

/// Another one has the pod by now.
void expect_replaced(FakeCluster& cluster, const std::string& node) {
  EXPECT_FALSE(cluster.documents_.contains("Node/" + node));
  EXPECT_FALSE(cluster.documents_.contains("NodeClaim/" + node));
  EXPECT_EQ(cluster.count("Node"), 1U);
  EXPECT_EQ(cluster.count("NodeClaim"), 1U);
  EXPECT_EQ(cluster.waiting(), 0U);
}

TEST(Interruption, WhatComesInsteadIsThereBeforeTheMachineGoes) {
  FakeCluster cluster;
  cluster.change("SimulatedNodeClass/default", "{spec: {bootDelay: 20s}}");
  cluster.add(pool_document("general", kSpot, kCalm));
  cluster.scale("web", 0, 1, "1");
  cluster.run(40);
  const std::string node = name_of(cluster.first("Node"));
  ASSERT_EQ(cluster.waiting(), 0U);
  cluster.change("Node/" + node, "{metadata: {annotations: {sim.berth.dev/interruption: 2m}}}");
  cluster.run(15);
  EXPECT_TRUE(cluster.told("SpotInterrupted: its machine will be taken away in 2m"));
  EXPECT_EQ(condition(cluster, node, "Interrupted"), "True SpotInterrupted");
  EXPECT_EQ(cluster.waiting(), 0U) << "the pod stays until the new node is there";
  EXPECT_EQ(cluster.evictions_, 0U);
  cluster.run(25);
  EXPECT_EQ(cluster.evictions_, 1U);
  cluster.run(10);
  expect_replaced(cluster, node);
  EXPECT_FALSE(cluster.told("InstanceTerminated")) << "it went before its machine did";
}

TEST(Interruption, TheSameSpotIsNotBoughtAgainForAWhileAndThenItIs) {
  FakeCluster cluster;
  const std::string node = with_one_node(cluster, "[{key: node.kubernetes.io/instance-type, operator: In, values: [small]}]");
  EXPECT_EQ(cluster.types(), "1 small");
  cluster.change("Node/" + node, "{metadata: {annotations: {sim.berth.dev/interruption: 2m}}}");
  cluster.run(40);
  expect_replaced(cluster, node);
  const json::Value& other = *cluster.first("Node");
  EXPECT_NE(json::get_string(other, {"metadata", "labels", "topology.kubernetes.io/zone"}), "a") << "this spot was taken away in zone a";
  cluster.end_pods();
  cluster.remove("NodeClaim/" + name_of(&other));
  cluster.run(200);
  ASSERT_EQ(cluster.count("Node"), 0U);
  cluster.scale("web", 0, 1, "1");
  cluster.run(15);
  EXPECT_EQ(json::get_string(*cluster.first("Node"), {"metadata", "labels", "topology.kubernetes.io/zone"}), "a") << "forgotten";
}

TEST(Interruption, WhereNothingComesInsteadThePodsGoInTimeAllTheSame) {
  FakeCluster cluster;
  const std::string node = with_one_node(cluster, kSpot);
  cluster.change("SimulatedNodeClass/default", "{spec: {bootDelay: never}}");
  cluster.refuses_evictions_ = true;
  cluster.change("Node/" + node, "{metadata: {annotations: {sim.berth.dev/interruption: 2m}}}");
  cluster.run(85);
  EXPECT_TRUE(cluster.documents_.contains("Node/" + node));
  EXPECT_EQ(cluster.count("Pod"), 1U) << "three quarters of the notice are waited for what comes instead";
  cluster.run(20);
  EXPECT_EQ(cluster.count("Pod"), 0U) << "by force, for its own grace to end before the machine does";
  EXPECT_FALSE(cluster.documents_.contains("Node/" + node));
  EXPECT_FALSE(cluster.documents_.contains("NodeClaim/" + node));
}

TEST(Interruption, ANoticeThatIsTakenBackAtOnceCostsNothing) {
  FakeCluster cluster;
  const std::string node = with_one_node(cluster, kSpot);
  cluster.change("Node/" + node, "{metadata: {annotations: {sim.berth.dev/interruption: 2m}}}");
  cluster.run(1);
  EXPECT_EQ(condition(cluster, node, "Interrupted"), "True SpotInterrupted");
  cluster.change("Node/" + node, "{metadata: {annotations: {sim.berth.dev/interruption: null}}}");
  cluster.run(1);
  EXPECT_EQ(condition(cluster, node, "Interrupted"), "False NoticeTakenBack");
}

TEST(Interruption, SpotMachinesOfAClassLastAsLongAsItSays) {
  FakeCluster cluster;
  const std::string node = with_one_node(cluster, kSpot);
  cluster.change("SimulatedNodeClass/default", "{spec: {spotLasts: 10m}}");
  cluster.run(4 * 60);
  EXPECT_TRUE(cluster.documents_.contains("Node/" + node)) << "half of it at least";
  cluster.run(13 * 60);
  EXPECT_FALSE(cluster.documents_.contains("Node/" + node)) << "one and a half of it at most";
  EXPECT_EQ(cluster.waiting(), 0U);
}

TEST(Repair, ANodeThatIsNotReadyForLongIsReplaced) {
  FakeCluster cluster;
  const std::string node = with_one_node(cluster, kOnDemand);
  cluster.change("SimulatedNodeClass/default",
                 "{spec: {repairPolicies: [{conditionType: Ready, conditionStatus: Unknown, tolerationDuration: 60s}]}}");
  const auto turn = [&](const char* status) {
    cluster.change("Node/" + node, fmt::format("{{status: {{conditions: [{{type: Ready, status: '{}', lastTransitionTime: '{}'}}]}}}}",
                                               status, format_rfc3339(cluster.now())));
  };
  turn("Unknown");
  cluster.run(50);
  EXPECT_EQ(condition(cluster, node, "Unhealthy"), "Unknown Tolerated");
  turn("True");
  cluster.run(30);
  EXPECT_EQ(condition(cluster, node, "Unhealthy"), "False Healthy") << "it is well again: nothing goes";
  EXPECT_TRUE(cluster.documents_.contains("Node/" + node));
  turn("Unknown");
  cluster.run(62);
  EXPECT_TRUE(cluster.told("Unhealthy: its condition Ready is Unknown; after 1m0s it is replaced"));
  cluster.run(40);
  expect_replaced(cluster, node);
}

TEST(Repair, MoreThanAFifthOfAPoolIsNotReplaced) {
  FakeCluster cluster;
  cluster.change("SimulatedNodeClass/default",
                 "{spec: {repairPolicies: [{conditionType: Ready, conditionStatus: 'False', tolerationDuration: 10s}]}}");
  cluster.add(pool_document("general", "[{key: node.kubernetes.io/instance-type, operator: In, values: [small]}]", kCalm));
  cluster.scale("web", 0, 5, "1900m");
  cluster.run(20);
  ASSERT_EQ(cluster.count("Node"), 5U);
  std::vector<std::string> keys;
  for (const auto& [key, one] : cluster.documents_)
    if (key.starts_with("Node/")) keys.push_back(key);
  const auto turn = [&](std::size_t i, const char* status) {
    cluster.change(keys[i], fmt::format("{{status: {{conditions: [{{type: Ready, status: '{}', lastTransitionTime: '{}'}}]}}}}", status,
                                        format_rfc3339(cluster.now())));
  };
  turn(0, "False");
  turn(1, "False");
  cluster.run(30);
  EXPECT_TRUE(cluster.told("NodeRepairBlocked: more than 20% of the nodes of NodePool general are unhealthy"));
  EXPECT_TRUE(cluster.documents_.contains(keys[0]) && cluster.documents_.contains(keys[1]));
  turn(1, "True");
  cluster.run(40);
  EXPECT_FALSE(cluster.documents_.contains(keys[0])) << "one of five may";
  EXPECT_TRUE(cluster.documents_.contains(keys[1]));
}

TEST(Provider, NodesThatAreSmallerThanSaidAreCountedSoFromThenOn) {
  FakeCluster cluster;
  cluster.change("SimulatedNodeClass/default", "{spec: {shortfall: {cpu: 500m}}}");
  cluster.add(pool_document("general",
                            "[{key: node.kubernetes.io/instance-type, operator: In, values: [small, medium]}, {key: "
                            "karpenter.sh/capacity-type, operator: In, values: [on-demand]}]",
                            kCalm));
  cluster.scale("web", 0, 1, "1800m");
  cluster.run(30);
  EXPECT_TRUE(cluster.told("SmallerThanSaid: its node offers 1500m cpu, and small was to offer 2"));
  cluster.run(30);
  EXPECT_EQ(cluster.types(), "1 medium, 1 small") << "not a second one that is too small";
  EXPECT_EQ(cluster.waiting(), 0U);
}

TEST(Provider, APoolSaysWhetherItsNodesCome) {
  FakeCluster cluster;
  const auto health = [&] {
    for (const json::Value& one : json::get_array(*cluster.first("NodePool"), {"status", "conditions"}))
      if (json::get_string(one, {"type"}) == "NodeRegistrationHealthy") return std::string(json::get_string(one, {"status"}));
    return std::string();
  };
  cluster.change("SimulatedNodeClass/default", "{spec: {bootDelay: never, registrationTimeout: 30s}}");
  cluster.add(pool_document("general", kOnDemand, kEager));
  cluster.scale("web", 0, 1, "1");
  cluster.run(10);
  EXPECT_EQ(health(), "");
  cluster.run(30);
  EXPECT_EQ(health(), "False");
  cluster.change("SimulatedNodeClass/default", "{spec: {bootDelay: 0s}}");
  cluster.run(30);
  EXPECT_EQ(health(), "True");
}

TEST(Pool, ThatBecomesImpossibleKeepsWhatHasNoOtherPlace) {
  FakeCluster cluster;
  const std::string node = with_one_node(cluster, kOnDemand, "{disruption: {consolidateAfter: 5s, budgets: [{nodes: '100%'}]}}");
  cluster.change("NodePool/general",
                 "{spec: {template: {spec: {requirements: [{key: kubernetes.io/arch, operator: In, values: [s390x]}]}}}}");
  cluster.run(60);
  EXPECT_TRUE(cluster.told("NotReady: no instance type of the catalogue meets the requirements"));
  EXPECT_TRUE(cluster.told("it has drifted, and its pods have no other place"));
  EXPECT_TRUE(cluster.documents_.contains("Node/" + node));
  EXPECT_EQ(cluster.waiting(), 0U);
  cluster.change("NodePool/general",
                 "{spec: {template: {spec: {requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}}}}");
  cluster.run(60);
  EXPECT_EQ(cluster.types(), "1 arm") << "possible again, and drifted";
}

}  // namespace
}  // namespace berth::pools
