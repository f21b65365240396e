// NodeResourcesFit: requests must fit; in 1.36 it scores by the configured strategy.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

std::string asks(const std::string& requests) { return "{containers: [{name: c, resources: {requests: {" + requests + "}}}]}"; }

TEST(NodeResourcesFit, SaysWhatIsMissingAndWhetherEvictionCouldHelp) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add("{kind: Node, metadata: {name: node}}").run("other", "node", asks("cpu: '3', memory: 3Gi"));
    EXPECT_EQ(world.verdict("node", world.pod(asks("cpu: '2'"))), "NodeResourcesFit Unschedulable: Insufficient cpu");
    EXPECT_EQ(world.verdict("node", world.pod(asks("cpu: '2', memory: 2Gi"))),
              "NodeResourcesFit Unschedulable: Insufficient cpu, Insufficient memory");
    EXPECT_EQ(world.verdict("node", world.pod(asks("cpu: '1', memory: 1Gi, ephemeral-storage: 10Gi"))), "fits");
    const std::string code = era == Era::k120 ? "Unschedulable" : "UnschedulableAndUnresolvable";
    EXPECT_EQ(world.verdict("node", world.pod(asks("cpu: '5'"))), "NodeResourcesFit " + code + ": Insufficient cpu")
        << "more than the node has";
    EXPECT_EQ(world.verdict("node", world.pod(asks("example.com/gpu: '1'"))),
              "NodeResourcesFit " + code + ": Insufficient example.com/gpu");
    EXPECT_EQ(world.verdict("node", world.pod(asks("hugepages-2Mi: 2Mi"))), "NodeResourcesFit " + code + ": Insufficient hugepages-2Mi");
  }
}

TEST(NodeResourcesFit, AFullNodeTakesNotEvenAPodThatAsksForNothing) {
  PluginWorld world(Era::k136);
  world.add("{kind: Node, metadata: {name: node}, status: {allocatable: {cpu: '1', memory: 1Gi, pods: '1'}}}").run("other", "node", "{}");
  EXPECT_EQ(world.verdict("node", world.pod("{}")), "NodeResourcesFit Unschedulable: Too many pods");
}

TEST(NodeResourcesFit, AnOvercommittedResourceRejectsARequestOfZeroIn120) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add("{kind: Node, metadata: {name: node}}").run("other", "node", asks("memory: 9Gi"));
    EXPECT_EQ(world.verdict("node", world.pod(asks("cpu: '1'"))),
              era == Era::k120 ? "NodeResourcesFit Unschedulable: Insufficient memory" : "fits");
    EXPECT_EQ(world.verdict("node", world.pod("{}")), "fits");
  }
}

TEST(NodeResourcesFit, IgnoredResourcesAndGroups) {
  PluginWorld world(Era::k136);
  world.add("{kind: Node, metadata: {name: node}}");
  world.profile.args.fit.ignored_resources = {"example.com/foo"};
  world.profile.args.fit.ignored_resource_groups = {"vendor.io"};
  EXPECT_EQ(world.verdict("node", world.pod(asks("example.com/foo: '2', vendor.io/bar: '1'"))), "fits");
  EXPECT_EQ(world.verdict("node", world.pod(asks("example.com/bar: '2'"))),
            "NodeResourcesFit UnschedulableAndUnresolvable: Insufficient example.com/bar");
}

TEST(NodeResourcesFit, CountsSidecarsInitStepsPodLevelAndOverhead) {
  const std::string spec =
      "{overhead: {cpu: 50m}, containers: [{name: c, resources: {requests: {cpu: 500m}}}], initContainers: ["
      "{name: sidecar, restartPolicy: Always, resources: {requests: {cpu: 600m}}}, {name: step, resources: {requests: {cpu: 1400m}}}]}";
  const auto cpu = [&](Era era, const std::string& of) { return PluginWorld(era).pod(of)->request.total.cpu_milli; };
  EXPECT_EQ(cpu(Era::k136, spec), 2050) << "the step runs beside the sidecar";
  EXPECT_EQ(cpu(Era::k120, spec), 1450) << "1.20 knows no sidecars";
  EXPECT_EQ(cpu(Era::k136, spec.substr(0, spec.size() - 1) + ", resources: {requests: {cpu: 700m}}}"), 750)
      << "the pod's own request decides";
}

TEST(NodeResourcesFit, ScoresByStrategyIn136) {
  PluginWorld world(Era::k136);
  world.add("{kind: Node, metadata: {name: big}}")
      .add("{kind: Node, metadata: {name: small}, status: {allocatable: {cpu: '2', memory: 2Gi, pods: '10'}}}");
  const auto pod = world.pod(asks("cpu: '1', memory: 1Gi"));
  EXPECT_EQ(world.scores("NodeResourcesFit", pod), (Scores{{"big", 75}, {"small", 50}}));
  world.profile.args.fit.strategy = ScoringStrategyType::kMostAllocated;
  EXPECT_EQ(world.scores("NodeResourcesFit", pod), (Scores{{"big", 25}, {"small", 50}}));
  world.profile.args.fit.strategy = ScoringStrategyType::kRequestedToCapacityRatio;
  world.profile.args.fit.shape = {{0, 10}, {50, 0}, {100, 4}};
  EXPECT_EQ(world.scores("NodeResourcesFit", pod), (Scores{{"big", 50}, {"small", 0}}));
  world.profile.args.fit.strategy = ScoringStrategyType::kLeastAllocated;
  world.profile.args.fit.resources = {{"cpu", 3}, {"memory", 1}};
  EXPECT_EQ(world.scores("NodeResourcesFit", world.pod(asks("cpu: '1', memory: 2Gi"))),
            (Scores{{"big", (75 * 3 + 50) / 4}, {"small", (50 * 3 + 0) / 4}}));
}

}  // namespace
}  // namespace berth::placement::testing
