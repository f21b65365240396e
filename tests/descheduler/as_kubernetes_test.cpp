// Without the placement engine's word the strategies choose as kubernetes-sigs/descheduler does.
#include "tests/descheduler/world.h"

namespace berth::descheduler::test {
namespace {

World without_check() {
  World out;
  out.options.check = PlacementCheck::kOff;
  return out;
}

TEST(AsKubernetes, WhoeverHasTheAntiAffinityGoes) {
  World world = without_check();
  const std::string anti =
      "{spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, "
      "labelSelector: {matchLabels: {app: a}}}]}}}}";
  world.node("n1").node("n2").pod("a", "n1", "{metadata: {labels: {app: a}}}").pod("b", "n1", anti).pod("c", "n1", anti);
  EXPECT_EQ(evicted(world.run(one_plugin("RemovePodsViolatingInterPodAntiAffinity", "{}"))), (Names{"b", "c"}));
}

TEST(AsKubernetes, TopologySpreadGivesUpHighPrioritiesFirst) {
  World world = without_check();
  world.node("n1").node("n2");
  const std::string spread =
      "topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: "
      "{matchLabels: {app: web}}}]";
  world.pod("low", "n1", "{spec: {priority: 1, " + spread + "}}").pod("high", "n1", "{spec: {priority: 5, " + spread + "}}");
  EXPECT_EQ(evicted(world.run(one_plugin("RemovePodsViolatingTopologySpreadConstraint", "{}"))), (Names{"high"}));
}

TEST(AsKubernetes, TheFewestReplicasAreCountedWhenPodsAreChosen) {
  World world = without_check();
  world.node("n1").node("n2").pods("web", 2, "n1");
  EXPECT_EQ(world.run(one_plugin("PodLifeTime", "{maxPodLifeTimeSeconds: 60}", "{minReplicas: 2}")).evicted(), 2U);
}

TEST(AsKubernetes, TolerationsCompareNumbers) {
  World world = without_check();
  world.node("n1", "{spec: {taints: [{key: tier, value: '50', effect: NoSchedule}]}}").node("n2");
  const auto tolerates = [](const std::string& op, const std::string& value) {
    return "{spec: {tolerations: [{key: tier, operator: " + op + ", value: '" + value + "', effect: NoSchedule}]}}";
  };
  world.pod("above", "n1", tolerates("Gt", "10")).pod("below", "n1", tolerates("Lt", "60")).pod("equal", "n1", tolerates("Gt", "50"));
  world.pod("padded", "n1", tolerates("Gt", "010"));
  EXPECT_EQ(evicted(world.run(one_plugin("RemovePodsViolatingNodeTaints", "{}"))), (Names{"equal", "padded"}));
}

TEST(AsKubernetes, WhatItTakesOfPolicies) {
  const auto daemons = parse_policy(
      "apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\nevictDaemonSetPods: true\nstrategies: {RemoveDuplicates: {enabled: "
      "true}}\n",
      "policy.yaml");
  ASSERT_TRUE(daemons) << daemons.error().message;
  EXPECT_FALSE(daemons->profiles[0].evictor.protects_daemon_sets);
  const auto with_provider = [](const std::string& provider) {
    return one_plugin("RemoveDuplicates", "{}", "{}", "metricsProviders: [" + provider + "]\n");
  };
  EXPECT_FALSE(parse_policy(with_provider("{source: Prometheus}"), "policy.yaml"));
  EXPECT_FALSE(parse_policy(with_provider("{source: Prometheus, prometheus: {url: 'http://p', authToken: {}}}"), "policy.yaml"));
  EXPECT_TRUE(parse_policy(with_provider("{source: Prometheus, prometheus: {url: 'http://p'}}"), "policy.yaml"));
  // Broken, and the real one runs with it all the same: refused here, but in a replay.
  const std::string selector = one_plugin("RemoveDuplicates", "{}", "{nodeSelector: 'a in ('}");
  EXPECT_FALSE(parse_policy(selector, "policy.yaml"));
  EXPECT_TRUE(parse_policy(selector, "policy.yaml", true));
}

}  // namespace
}  // namespace berth::descheduler::test
