// Days with NodePools: nodes come and go for what there is, the cost is told by pool and workload, and everybody comes to rest.
#include <fmt/format.h>

#include "tests/simulator/support.h"

namespace berth::simulator {
namespace {

constexpr const char* kPools = R"yaml(
start: 2026-03-02T00:00:00Z
instanceTypes:
  kind: InstanceTypeCatalogue
  currency: USD
  zones: [a, b]
  instanceTypes:
  - {name: small, cpu: 2, memory: 8Gi, pods: 30, prices: {on-demand: 0.10, spot: 0.04}}
  - {name: medium, cpu: 4, memory: 16Gi, pods: 60, prices: {on-demand: 0.20, spot: 0.08}}
  - {name: large, cpu: 8, memory: 32Gi, pods: 110, prices: {on-demand: 0.38, spot: 0.16}}
nodePools:
- apiVersion: karpenter.sh/v1
  kind: NodePool
  metadata: {name: general}
  spec:
    template:
      spec:
        nodeClassRef: {group: sim.berth.dev, kind: SimulatedNodeClass, name: machines}
        requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
    disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 2m, budgets: [{nodes: "100%"}]}
- {apiVersion: sim.berth.dev/v1alpha1, kind: SimulatedNodeClass, metadata: {name: machines}, spec: {bootDelay: 30s}}
)yaml";

TEST(Pools, NodesComeAndGoWithTheLoad) {
  const Outcome outcome = outcome_of(std::string(kPools) + R"yaml(
duration: 2h
workloads:
- {name: web, deployment: {replicas: 4}, pod: {cpu: "1", memory: 1Gi}}
- {name: peak, deployment: {replicas: 12}, pod: {cpu: "1", memory: 1Gi}, runFor: 1h}
assert:
- {name: all run, that: 'pods.running == 16', at: 10m}
- {name: the rest goes, that: 'nodes.total <= 2 && pods.running == 4', at: 90m}
- {name: nothing moves any more, that: quiet >= 1200.0}
)yaml");
  EXPECT_TRUE(outcome.ok()) << to_text(outcome);
  const Sample& end = outcome.samples.back();
  EXPECT_EQ(end.pending, 0);
  ASSERT_TRUE(end.cost_by_pool.contains("general"));
  EXPECT_NEAR(end.cost_by_pool.at("general"), end.cost, 1e-6);
  double sum = 0;
  for (const auto& [who, cost] : end.cost_by_workload) sum += cost;
  EXPECT_NEAR(sum, end.cost, 1e-6);
  EXPECT_GT(end.cost_by_workload.at("default/peak"), end.cost_by_workload.at("default/web"));
}

TEST(Pools, WithHpaDeschedulerAndFaultsTheyComeToRest) {
  for (const int seed : {1, 2}) {
    const Outcome outcome = outcome_of(std::string(kPools) + fmt::format("seed: {}\n", seed) + R"yaml(
duration: 10h
workloads:
- name: web
  deployment: {replicas: 6}
  pod: {cpu: "1", memory: 2Gi, readyAfter: 10s}
  budget: {minAvailable: 3}
  hpa: {min: 3, max: 20, cpu: 70%}
  load: {0h: 3, 1h: 12, 3h: 12, 4h: 4}
- {name: steady, deployment: {replicas: 8}, pod: {cpu: 600m, memory: 1Gi}}
- {name: batch, pod: {cpu: 2, memory: 4Gi}, arrivals: {rate: 12/h, until: 4h}, runFor: {mean: 20m}}
descheduler:
  every: 15m
  policy:
    apiVersion: descheduler/v1alpha1
    kind: DeschedulerPolicy
    strategies:
      RemoveDuplicates: {enabled: true}
      LowNodeUtilization: {enabled: true, params: {nodeResourceUtilizationThresholds: {thresholds: {cpu: 30, memory: 30, pods: 30}, targetThresholds: {cpu: 70, memory: 70, pods: 70}}}}
faults:
- {at: 90m, interrupt: 1}
- {at: 150m, lose: 1, for: 10m}
assert:
- {name: nothing moves any more, that: quiet >= 3600.0}
- {name: nobody waits, that: pods.pending == 0}
)yaml");
    EXPECT_TRUE(outcome.ok()) << "seed " << seed << "\n" << to_text(outcome);
  }
}

TEST(Pools, AnInterruptedNodeIsReplacedBeforeItGoes) {
  const Outcome outcome = outcome_of(std::string(kPools) + R"yaml(
duration: 30m
workloads: [{name: web, deployment: {replicas: 3}, pod: {cpu: "1", memory: 1Gi}}]
faults: [{at: 10m, interrupt: 1}]
assert:
- {name: never without a place for long, always: pods.pending == 0, after: 5m}
)yaml");
  EXPECT_TRUE(outcome.ok()) << to_text(outcome);
  EXPECT_GT(evictions(outcome, "api"), 0);
  EXPECT_EQ(evictions(outcome, "lostNode"), 0) << to_text(outcome);
}

TEST(Pools, MistakesAreToldWithTheirPlaces) {
  EXPECT_NE(problems_of("duration: 1h\nnodePools: [{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: a}}]")
                .find("instanceTypes: required with nodePools"),
            std::string::npos);
  EXPECT_NE(problems_of("duration: 1h\nnodes: [{name: a}]\ninstanceTypes: {kind: InstanceTypeCatalogue}").find("nobody buys of them"),
            std::string::npos);
  EXPECT_NE(problems_of("duration: 1h\ninstanceTypes: {kind: InstanceTypeCatalogue, instanceTypes: []}\nnodePools: [{apiVersion: v1, kind: "
                        "Pod, metadata: {name: a}}]")
                .find("nodePools[0].kind: \"Pod\" is no kind of node pools"),
            std::string::npos);
  const std::string typos = problems_of(
      "duration: 1h\ninstanceTypes: {kind: InstanceTypeCatalogue, instanceTypes: []}\nnodePools:\n- apiVersion: karpenter.sh/v1\n  kind: "
      "NodePool\n  metadata: {name: a}\n  spec:\n    disruption: {consolidatAfter: 5m}\n    template: {spec: {nodeClassRef: {group: "
      "sim.berth.dev, kind: SimulatedNodeClass, name: m}, requirements: [{key: a, operator: Inn, values: [b]}]}}\n");
  EXPECT_NE(typos.find("nodePools[0].spec.disruption.consolidatAfter: unknown field; did you mean \"consolidateAfter\"?"),
            std::string::npos)
      << typos;
  EXPECT_NE(typos.find("Unsupported value: \"Inn\""), std::string::npos) << typos;
}

}  // namespace
}  // namespace berth::simulator
