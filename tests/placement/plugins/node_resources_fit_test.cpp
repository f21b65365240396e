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

/// component-helpers/resource of v0.36.2: what a step's status says of a resize counts for nothing.
TEST(NodeResourcesFit, OfInitContainersSidecarsAloneGoByTheirStatus) {
  const auto cpu = [](const char* sidecar, const char* step) {
    const auto status = [](const char* name, const char* amount) {
      return fmt::format("{{name: {}, allocatedResources: {{cpu: {}}}, resources: {{requests: {{cpu: {}}}}}}}", name, amount, amount);
    };
    const auto pod = json::parse_yaml(fmt::format(
        "# A pod under resize.\n{{kind: Pod, metadata: {{name: p}}, spec: {{containers: [{{name: c, resources: {{requests: {{cpu: "
        "100m}}}}}}], initContainers: [{{name: sidecar, restartPolicy: Always, resources: {{requests: {{cpu: 100m}}}}}}, {{name: step, "
        "resources: {{requests: {{cpu: 1}}}}}}]}}, status: {{initContainerStatuses: [{}, {}]}}}}",
        status("sidecar", sidecar), status("step", step)));
    return pod_request(model::PodView::parse(*pod), Era::k136, true).total.cpu_milli;
  };
  EXPECT_EQ(cpu("100m", "1"), 1100);
  EXPECT_EQ(cpu("300m", "1"), 1300);
  EXPECT_EQ(cpu("100m", "5"), 1100);
  EXPECT_EQ(cpu("2", "5"), 3000) << "and the step runs beside it";
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

/// A pod with a status, as a node would report it.
PodInfoPtr with_status(Era era, const std::string& spec, const std::string& status) {
  const auto yaml = "{kind: Pod, metadata: {name: pod, namespace: default}, spec: " + spec + ", status: " + status + "}";
  return PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(*json::parse_yaml("--- " + yaml))), era);
}

TEST(NodeResourcesFit, WhatRunsCountsOnTheNodeAndNotForAPodThatIsToBePlaced) {
  const std::string status = "{containerStatuses: [{name: c, resources: {requests: {cpu: '3'}}, allocatedResources: {cpu: '2'}}]}";
  const auto pod = with_status(Era::k136, asks("cpu: '1'"), status);
  EXPECT_EQ(pod->request.total.cpu_milli, 3000) << "where it runs";
  EXPECT_EQ(pod->wanted().cpu_milli, 1000);
  EXPECT_EQ(pod->scoring_request.cpu_milli, 1000);
  const auto silent = with_status(Era::k136, asks("cpu: '1'"), "{containerStatuses: [{name: c, allocatedResources: {cpu: '2'}}]}");
  EXPECT_EQ(silent->request.total.cpu_milli, 1000) << "a status that does not say what runs does not count";
}

/// As nodes report it of every pod that nobody resizes.
TEST(NodeResourcesFit, AStatusThatSaysWhatIsAskedForChangesNothing) {
  const std::string resources = "resources: {requests: {cpu: '1', memory: 64Mi}}",
                    allocated = "allocatedResources: {cpu: '1', memory: 64Mi}";
  for (const auto& [spec, status] :
       {std::pair("{containers: [{name: c, " + resources + "}, {name: d}]}",
                  "{containerStatuses: [{name: c, " + resources + ", " + allocated + "}, {name: d}]}"),
        std::pair("{containers: [{name: c, " + resources + "}], initContainers: [{name: i, restartPolicy: Always, " + resources + "}]}",
                  "{containerStatuses: [{name: c, " + resources + "}], initContainerStatuses: [{name: i, " + resources + "}]}")}) {
    const auto bare = with_status(Era::k136, spec, "{}"), reported = with_status(Era::k136, spec, status);
    EXPECT_EQ(reported->request, bare->request) << spec;
    EXPECT_EQ(reported->scoring_request, bare->scoring_request) << spec;
    EXPECT_EQ(reported->wanted(), bare->wanted()) << spec;
  }
  const auto other = with_status(Era::k136, "{containers: [{name: c, " + resources + "}]}",
                                 "{containerStatuses: [{name: c, " + resources + ", allocatedResources: {cpu: '3', memory: 64Mi}}]}");
  EXPECT_EQ(other->request.total.cpu_milli, 3000) << "what the node has set aside is more";
}

TEST(NodeResourcesFit, OnlySidecarsAmongInitContainersCanBeResized) {
  const auto cpu = [&](const std::string& policy) {
    return with_status(Era::k136, "{containers: [{name: c}], initContainers: [{name: i, " + policy + "resources: {requests: {cpu: '1'}}}]}",
                       "{initContainerStatuses: [{name: i, resources: {requests: {cpu: '2'}}}]}")
        ->request.total.cpu_milli;
  };
  EXPECT_EQ(cpu(""), 1000);
  EXPECT_EQ(cpu("restartPolicy: Always, "), 2000);
}

TEST(NodeResourcesFit, APodLevelResizeCountsAndItsContainersNeedNoDefaults) {
  const std::string spec = "{resources: {requests: {cpu: '1'}}, containers: [{name: c}, {name: d}]}";
  const auto plain = with_status(Era::k136, spec, "{}");
  EXPECT_EQ(plain->request.nonzero_cpu_milli, 1000);
  EXPECT_EQ(plain->request.nonzero_memory_bytes, 2 * 200LL * 1024 * 1024) << "nobody asks for memory";
  const auto resized = with_status(Era::k136, spec, "{resources: {requests: {cpu: '2'}}, allocatedResources: {cpu: 1500m}}");
  EXPECT_EQ(resized->request.total.cpu_milli, 2000);
  const auto infeasible = with_status(Era::k136, "{resources: {requests: {cpu: '9'}}, containers: [{name: c}]}",
                                      "{resources: {requests: {cpu: '2'}}, conditions: [{type: PodResizePending, reason: Infeasible}]}");
  EXPECT_EQ(infeasible->request.total.cpu_milli, 2000);
  EXPECT_EQ(infeasible->wanted().cpu_milli, 9000);
}

}  // namespace
}  // namespace berth::placement::testing
