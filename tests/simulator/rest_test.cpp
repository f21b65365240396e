// Components that move pods come to rest, whatever the seed; and the figures by which that is judged see what they should.
#include <fmt/format.h>

#include <filesystem>

#include "simulator/cluster.h"
#include "simulator/invariants.h"
#include "tests/simulator/support.h"
#include "tests/support/source_dir.h"

namespace berth::simulator {
namespace {

TEST(Rest, PackingAndSpreadingDoNotUndoEachOther) {
  log::set_level(log::Level::kError);
  const auto loaded =
      load_scenario((std::filesystem::path(berth::testing::source_dir()) / "examples/simulate/packing-against-spreading.yaml").string());
  ASSERT_TRUE(loaded) << loaded.error().message;
  for (const std::uint64_t seed : {1, 2, 3}) {
    Scenario scenario = loaded->variants.front().scenario;
    scenario.seed = seed;
    const auto outcome = run(scenario);
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_TRUE(outcome->ok()) << "seed " << seed << "\n" << to_text(*outcome);
    EXPECT_GT(evictions(*outcome, "api"), 0) << "nobody moved anything: the scenario says nothing";
  }
}

/// The scenario's first hours, by the assertions that hold always; a seed that found a fault once.
void expect_no_pod_moved_twice(const std::string& scenario_file, std::uint64_t seed, Duration hours) {
  log::set_level(log::Level::kError);
  const auto loaded = load_scenario((std::filesystem::path(berth::testing::source_dir()) / "examples/simulate" / scenario_file).string());
  ASSERT_TRUE(loaded) << loaded.error().message;
  Scenario scenario = loaded->variants.front().scenario;
  scenario.seed = seed;
  scenario.duration = hours;
  scenario.checks.clear();
  const auto outcome = run(scenario);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_GT(evictions(*outcome, "api"), 0) << "nobody moved anything: the scenario says nothing";
  EXPECT_EQ(outcome->samples.back().moved_again, 0) << to_text(*outcome);
  EXPECT_EQ(outcome->samples.back().moved_to_new_nodes, 0) << to_text(*outcome);
}

// The autoscaler drained a node, and the descheduler moved the same pods on (seed 7 of rest.yaml); what was moved to make room was moved
// again to fill nodes (seed 1 of rest-packing.yaml).
TEST(Rest, NoPodThatADrainMovedIsMovedOn) { expect_no_pod_moved_twice("rest.yaml", 7, std::chrono::minutes(270)); }
TEST(Rest, NoPodThatMadeRoomIsMovedOn) { expect_no_pod_moved_twice("rest-packing.yaml", 1, std::chrono::hours(5)); }

// Their pods never end, for there is nobody to end them.
TEST(Rest, LostMachinesNodesGo) {
  const Outcome outcome = outcome_of(R"yaml(
duration: 2h
nodes: [{name: box, count: 2, cpu: "4", memory: 8Gi}]
groups: [{name: spot, min: 0, max: 3, size: 1, cpu: "4", memory: 8Gi, bootDelay: 1m, labels: {tier: spot}}]
autoscaler: true
workloads: [{name: web, deployment: {replicas: 9}, pod: {cpu: 1, memory: 256Mi}}]
faults: [{at: 30m, lose: {selector: "tier=spot"}}]
)yaml");
  const Sample& end = outcome.samples.back();
  EXPECT_EQ(end.nodes - end.ready_nodes, 0) << to_text(outcome);
  EXPECT_EQ(end.running, 9) << to_text(outcome);
}

// Its pressure is looked at no more: that moment was waited for over and over, and time stood still.
TEST(Rest, TimeGoesOnWhenANodeWithGrowingPodsIsLost) {
  const Outcome outcome = outcome_of(R"yaml(
duration: 2h
nodes: [{name: box, count: 3, cpu: "4", memory: 8Gi}]
workloads: [{name: web, deployment: {replicas: 6}, pod: {cpu: 500m, memory: 256Mi, usage: {memory: "0s=100Mi,30m=300Mi"}}}]
faults: [{at: 30m, lose: 1, for: 20m}]
)yaml");
  EXPECT_EQ(outcome.samples.back().running, 6) << to_text(outcome);
  EXPECT_EQ(outcome.samples.back().ready_nodes, 3);
}

// A policy by which every pod is too old after a minute: nobody is moved for whom there is no better place.
TEST(Rest, APolicyThatWouldTurnForEverTurnsNotAtAll) {
  const Outcome outcome = outcome_of(R"yaml(
duration: 2h
nodes: [{name: box, count: 3, cpu: "4", memory: 8Gi}]
workloads: [{name: web, deployment: {replicas: 3}, pod: {cpu: 500m, memory: 256Mi}}]
descheduler:
  every: 10m
  policy: {apiVersion: descheduler/v1alpha1, kind: DeschedulerPolicy, strategies: {PodLifeTime: {enabled: true, params: {podLifeTime: {maxPodLifeTimeSeconds: 60}}}}}
)yaml");
  const Sample& end = outcome.samples.back();
  EXPECT_EQ(evictions(outcome, "api"), 0) << to_text(outcome);
  EXPECT_EQ(end.moved_again, 0);
  EXPECT_EQ(end.quiet_seconds, 7200);
}

/// A workload that comes and goes, a node that goes, with one of the controllers away.
std::string failures_without(const std::string& controller) {
  const Outcome outcome = outcome_of(fmt::format(R"yaml(
duration: 1h
nodes: [{{name: box, count: 3, cpu: "4", memory: 8Gi}}]
controllers: {{flags: ["--controllers=*,-{}"]}}
workloads:
- {{name: web, deployment: {{replicas: 6}}, pod: {{cpu: 500m, memory: 256Mi}}}}
- {{name: brief, deployment: {{replicas: 2}}, pod: {{cpu: 500m, memory: 256Mi}}, runFor: 10m}}
faults: [{{at: 20m, delete: [box-1]}}]
assert: [{{name: whole, that: broken.total == 0}}, {{name: slowly, always: broken.zoneRates == 0}}]
)yaml",
                                                 controller));
  std::string out;
  for (const auto& failure : outcome.failures) out += failure.name + ": " + failure.message + "\n";
  return out;
}

TEST(Rest, WhatABrokenClusterIsLeftWithIsNamed) {
  EXPECT_EQ(failures_without("bootstrap-signer-controller"), "") << "nobody whom this cluster needs";
  EXPECT_NE(failures_without("garbage-collector-controller").find("its Deployment brief is gone"), std::string::npos);
  EXPECT_NE(failures_without("pod-garbage-collector-controller").find("is on box-1, which is not there"), std::string::npos);
  EXPECT_NE(failures_without("replicaset-controller").find("readyReplicas is 0 instead of 6"), std::string::npos);
}

TEST(Rest, ZonesThatAreEmptiedTooFastAreSeen) {
  // The rate that is asked of the controllers is kept: so the judge is told another one.
  Scenario scenario = scenario_of(R"yaml(
duration: 1h
nodes: [{name: box, count: 12, cpu: "4", memory: 8Gi, zones: [a]}]
controllers: {flags: [--node-eviction-rate=0.5]}
workloads: [{name: web, deployment: {replicas: 24}, pod: {cpu: 500m, memory: 256Mi}}]
faults: [{at: 20m, lose: 3}]
assert: [broken.zoneRates == 0]
)yaml");
  const auto kept = run(scenario);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_TRUE(kept->ok()) << to_text(*kept);
  RunOptions options;
  options.judged_eviction_rate = 0.1;
  const auto judged = run(scenario, options);
  ASSERT_TRUE(judged) << judged.error().message;
  EXPECT_FALSE(judged->ok()) << "three nodes in six seconds";
}

TEST(Rest, AnEvictionThatLeavesABudgetShortIsSeen) {
  log::set_level(log::Level::kError);
  // A server alone: the budget's status is what it is told to be, and is wrong.
  ClusterOptions options;
  options.start = *parse_rfc3339("2026-03-02T00:00:00Z");
  auto cluster = Cluster::create(options);
  ASSERT_TRUE(cluster);
  ASSERT_TRUE((*cluster)->start("server"));
  const auto write = [&](std::string verb, client::Gvr gvr, std::string ns, std::string name, std::string subresource, const char* yaml) {
    client::Call call{.verb = std::move(verb), .gvr = std::move(gvr), .ns = std::move(ns), .name = std::move(name)};
    call.subresource = std::move(subresource);
    if (call.verb == "patch") call.content_type = "application/merge-patch+json";
    call.body = json::serialize(json::parse_yaml_stream(yaml)->front());
    const auto done = (*cluster)->client().call_and_wait(std::move(call));
    EXPECT_TRUE(done) << done.error().message;
  };
  const client::Gvr pods{"", "v1", "pods"}, budgets{"policy", "v1", "poddisruptionbudgets"};
  write("create", {"", "v1", "namespaces"}, "", "", "", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}");
  for (const char* name : {"a", "b", "c"}) {
    write("create", pods, "shop", "", "",
          fmt::format(
              "{{apiVersion: v1, kind: Pod, metadata: {{name: {}, labels: {{app: web}}}}, spec: {{containers: [{{name: c, image: i}}]}}}}",
              name)
              .c_str());
    write("patch", pods, "shop", name, "status", "{status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}");
  }
  write("create", budgets, "shop", "", "",
        "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {minAvailable: 2, selector: {matchLabels: {app: "
        "web}}}}");
  write("patch", budgets, "shop", "web", "status",
        "{status: {observedGeneration: 1, disruptionsAllowed: 2, currentHealthy: 3, desiredHealthy: 2, expectedPods: 3}}");
  const Invariants invariants(**cluster, 0);
  const auto evict = [&](const char* name) {
    write("create", pods, "shop", name, "eviction",
          fmt::format("{{apiVersion: policy/v1, kind: Eviction, metadata: {{name: {}, namespace: shop}}}}", name).c_str());
  };
  evict("a");
  EXPECT_EQ(json::get_int(invariants.now(), {"budgets"}), 0) << "two are left, as it wants";
  evict("b");
  EXPECT_EQ(json::get_int(invariants.now(), {"budgets"}), 1);
  const std::string first(json::as_view(json::get_array(invariants.now(), {"first"})[0]));
  EXPECT_TRUE(first.starts_with("budget shop/web wants 2 healthy pods, and the eviction of b at ")) << first;
}

TEST(Rest, ANodeForAHomelessPodIsSeen) {
  // The drained node's pods fit nowhere: a node is bought for them.
  const Outcome outcome = outcome_of(R"yaml(
duration: 2h
nodes: [{name: box, count: 2, cpu: "4", memory: 8Gi}]
groups: [{name: g, min: 0, max: 3, cpu: "4", memory: 8Gi, bootDelay: 1m}]
autoscaler: true
workloads: [{name: web, deployment: {replicas: 6}, pod: {cpu: 1, memory: 256Mi}}]
changes: [{at: 30m, drain: [box-1]}]
)yaml");
  EXPECT_GT(outcome.samples.back().moved_to_new_nodes, 0) << to_text(outcome);
  EXPECT_EQ(outcome.samples.back().moved_again, 0) << to_text(outcome);
}

TEST(Rest, WhoTookThePlaceOfAPodThatWasMadeAnewLateIsNoEviction) {
  // A Job makes its evicted pod anew ten seconds later. Alone, it is the eviction that a node is bought for; new load came first otherwise.
  const auto nodes_for_homeless = [](const std::string& others) {
    return outcome_of(R"yaml(
duration: 10m
nodes: [{name: box, count: 2, cpu: "4", memory: 8Gi}]
groups: [{name: g, min: 0, max: 3, cpu: "4", memory: 8Gi, bootDelay: 1m}]
autoscaler: true
workloads:
- {name: task, job: {completions: 2, parallelism: 2}, pod: {cpu: 3, memory: 256Mi}, runFor: 30m}
)yaml" + others + "changes: [{at: 2m, drain: [box-1]}]\n")
        .samples.back()
        .moved_to_new_nodes;
  };
  EXPECT_EQ(nodes_for_homeless(""), 1);
  EXPECT_EQ(nodes_for_homeless("- {name: dust, pod: {cpu: 1m, memory: 1Mi}, arrivals: {rate: 3600/h, until: 3m}, runFor: 10s}\n"), 0);
}

}  // namespace
}  // namespace berth::simulator
