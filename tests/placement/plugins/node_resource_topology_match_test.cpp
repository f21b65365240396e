// NodeResourceTopologyMatch: a pod goes where the node will take it, by its NUMA nodes.
#include <gtest/gtest.h>

#include "placement/explain.h"
#include "placement/numa/node_alignment.h"
#include "tests/placement/plugins/plugin_world.h"
#include "tests/placement/random_cluster.h"

namespace berth::placement::testing {
namespace {

constexpr const char* kPlugin = "NodeResourceTopologyMatch";

class Numa : public ::testing::Test {
 protected:
  Numa() {
    for (auto* point : {&world.profile.pre_filter, &world.profile.filter, &world.profile.score}) point->push_back({kPlugin, 1});
  }
  void args(json::Value value) { world.profile.args.own[kPlugin] = std::move(value); }
  void node(const std::string& name) {
    world.add(
        fmt::format("{{kind: Node, metadata: {{name: {}}}, status: {{allocatable: {{cpu: '32', memory: 128Gi, pods: '99', "
                    "example.com/gpu: '4'}}}}}}",
                    name));
  }
  /// Two NUMA nodes with so many CPUs free of 16, two GPUs and 64Gi each.
  void topology(const std::string& name, int first, int second, const std::string& attributes,
                const std::string& policy = "single-numa-node") {
    const auto zone = [](int number, int free) {
      return fmt::format(
          "{{name: node-{}, type: Node, costs: [{{name: node-0, value: {}}}, {{name: node-1, value: {}}}], resources: ["
          "{{name: cpu, capacity: 16, allocatable: 16, available: {}}}, "
          "{{name: memory, capacity: 64Gi, allocatable: 64Gi, available: 64Gi}}, "
          "{{name: example.com/gpu, capacity: 2, allocatable: 2, available: 2}}]}}",
          number, number == 0 ? 10 : 20, number == 0 ? 20 : 10, free);
    };
    world.add(
        fmt::format("{{kind: NodeResourceTopology, metadata: {{name: {}}}, attributes: [{{name: topologyManagerPolicy, value: {}}}{}], "
                    "zones: [{}, {}]}}",
                    name, policy, attributes, zone(0, first), zone(1, second)));
  }
  std::string own(int cpus, const std::string& more = "") {
    return fmt::format("{{name: c{2}, resources: {{limits: {{cpu: '{0}', memory: 1Gi{1}}}, requests: {{cpu: '{0}', memory: 1Gi{1}}}}}}}",
                       cpus, more, ++containers_);
  }
  [[nodiscard]] PodInfoPtr pod(const std::string& containers, const std::string& name = "pod") const {
    return world.pod("{containers: [" + containers + "]}", "{}", name);
  }
  PluginWorld world{Era::k136};

 private:
  int containers_ = 0;
};

const std::string kPodScope = ", {name: topologyManagerScope, value: pod}";

TEST_F(Numa, AContainerOfOneNumaNode) {
  node("a");
  topology("a", 6, 8, "");
  EXPECT_EQ(world.verdict("a", pod(own(8))), "fits");
  EXPECT_EQ(world.verdict("a", pod(own(9))), "NodeResourceTopologyMatch Unschedulable: cannot align container");
  EXPECT_EQ(world.verdict("a", pod(own(6) + ", " + own(8))), "fits") << "each from a NUMA node of its own";
  EXPECT_EQ(world.verdict("a", pod(own(7) + ", " + own(7))), "NodeResourceTopologyMatch Unschedulable: cannot align container")
      << "the first has taken what the second would need";
  EXPECT_EQ(world.verdict("a", world.pod("{initContainers: [" + own(9) + "], containers: [" + own(1) + "]}")),
            "NodeResourceTopologyMatch Unschedulable: cannot align init container");
  EXPECT_EQ(world.verdict("a", world.pod("{containers: [{name: c, resources: {requests: {cpu: '9'}}}]}")), "fits")
      << "who is not Guaranteed has nothing of its own";
  EXPECT_EQ(world.verdict("a", pod(own(9, ", example.com/gpu: '1'"))), "NodeResourceTopologyMatch Unschedulable: cannot align container");
}

TEST_F(Numa, APodAsOneHasAllOfOneNumaNode) {
  node("a");
  topology("a", 6, 8, kPodScope);
  EXPECT_EQ(world.verdict("a", pod(own(4) + ", " + own(4))), "fits");
  EXPECT_EQ(world.verdict("a", pod(own(6) + ", " + own(8))), "NodeResourceTopologyMatch Unschedulable: cannot align pod");
  EXPECT_EQ(world.verdict("a", world.pod("{initContainers: [" + own(8) + "], containers: [" + own(8) + "]}")), "fits")
      << "eight at a time, not sixteen";
}

TEST_F(Numa, RestrictedTakesAsManyNumaNodesAsItMust) {
  node("a");
  const std::string cpus_alone = ", {name: berth.dev/memoryManagerPolicy, value: None}";
  topology("a", 10, 10, "", "restricted");
  EXPECT_EQ(world.verdict("a", pod(own(18))), "NodeResourceTopologyMatch Unschedulable: cannot align container")
      << "memory from one, processors from two";
  topology("a", 10, 10, cpus_alone, "restricted");
  EXPECT_EQ(world.verdict("a", pod(own(12))), "NodeResourceTopologyMatch Unschedulable: cannot align container")
      << "sixteen are on one, were nobody there";
  EXPECT_EQ(world.verdict("a", pod(own(18))), "fits") << "no NUMA node has as many: two are as few as can be";
  topology("a", 10, 10, "", "best-effort");
  EXPECT_EQ(world.verdict("a", pod(own(12))), "fits");
  EXPECT_EQ(world.verdict("a", pod(own(21))),
            "NodeResourceTopologyMatch Unschedulable: node(s) had no CPUs, memory or devices left for the pod alone")
      << "the policy does not mind, and there are not as many";
  topology("a", 10, 10, "", "none");
  EXPECT_EQ(world.verdict("a", pod(own(12))), "fits");
}

TEST_F(Numa, WhatTheNodeDoesNotGiveIsNoMatter) {
  node("a");
  topology("a", 2, 2, ", {name: berth.dev/cpuManagerPolicy, value: none}, {name: berth.dev/memoryManagerPolicy, value: None}");
  EXPECT_EQ(world.verdict("a", pod(own(8))), "fits");
  EXPECT_EQ(world.verdict("a", pod(own(8, ", example.com/gpu: '3'"))), "NodeResourceTopologyMatch Unschedulable: cannot align container")
      << "devices lie near NUMA nodes all the same";
  topology("a", 16, 16, ", {name: berth.dev/fullPCPUsOnly, value: '2'}");
  EXPECT_EQ(world.verdict("a", pod(own(4))), "fits");
  EXPECT_EQ(world.verdict("a", pod(own(5))), "NodeResourceTopologyMatch Unschedulable: node(s) give whole cores only");
  node("b");
  EXPECT_EQ(world.verdict("b", pod(own(17))), "fits") << "nothing is known of its NUMA nodes";
}

TEST_F(Numa, TheOldWordForPolicyAndScopeIsRead) {
  node("a");
  world.add(
      "{kind: NodeResourceTopology, metadata: {name: a}, topologyPolicies: [SingleNUMANodePodLevel], zones: [{name: node-0, type: Node, "
      "resources: [{name: cpu, capacity: 16, allocatable: 16, available: 5}]}, {name: socket-0, type: Socket, resources: [{name: cpu, "
      "capacity: 99, allocatable: 99, available: 99}]}]}");
  EXPECT_EQ(world.verdict("a", pod(own(3) + ", " + own(3))), "NodeResourceTopologyMatch Unschedulable: cannot align pod");
  EXPECT_EQ(world.verdict("a", pod(own(3) + ", " + own(2))), "fits");
}

/// Who has what is told.
const std::string kTold = ", {name: berth.dev/tellsHolders, value: 'true'}";

TEST_F(Numa, PodsThatTheNodeHasNotToldOfYetCountInTheOrderInWhichTheyCame) {
  node("a");
  topology("a", 16, 16, kTold);
  for (const char* name : {"p", "q"}) world.run(name, "a", "{containers: [" + own(10) + "]}");
  EXPECT_EQ(world.verdict("a", pod(own(6))), "fits");
  EXPECT_EQ(world.verdict("a", pod(own(7))), "NodeResourceTopologyMatch Unschedulable: cannot align container");
  args(json::Object{{"cacheResyncPeriodSeconds", 5}});
  EXPECT_EQ(world.verdict("a", pod(own(1))), "NodeResourceTopologyMatch Unschedulable: cannot align container")
      << "wherever they are: ten of both, twice";
  EXPECT_EQ(world.verdict("a", world.pod("{containers: [{name: c}]}")), "fits");
  args(json::Object{{"discardReservedNodes", true}});
  EXPECT_EQ(world.verdict("a", pod(own(1))), "NodeResourceTopologyMatch Unschedulable: invalid node topology data");
  topology("a", 6, 6,
           kTold + ", {name: berth.dev/holds.p, value: '0:cpu=10 0:memory=1073741824'}, {name: berth.dev/holds.q, value: '1:cpu=10'}");
  EXPECT_EQ(world.verdict("a", pod(own(6))), "fits") << "both are told of";
}

TEST_F(Numa, WhatPodsHadWhoAreGoneIsFree) {
  node("a");
  topology("a", 6, 6, kTold + ", {name: berth.dev/holds.p, value: '0:cpu=10'}, {name: berth.dev/holds.q, value: '1:cpu=10'}");
  world.run("q", "a", "{containers: [" + own(10) + "]}");
  EXPECT_EQ(world.verdict("a", pod(own(16))), "fits") << "p is not there any more, whatever the node has said";
  EXPECT_EQ(world.verdict("a", pod(own(15) + ", " + own(7))), "NodeResourceTopologyMatch Unschedulable: cannot align container");
}

TEST_F(Numa, OfOthersTopologiesPodsCountThatHaveBegun) {
  node("a");
  topology("a", 6, 16, "");
  const auto run = [&](const std::string& status) {
    world.add(
        fmt::format("{{kind: Pod, metadata: {{name: p, uid: p}}, spec: {{nodeName: a, containers: [{}]}}, status: {}}}", own(10), status));
  };
  run("{}");
  EXPECT_EQ(world.verdict("a", pod(own(16))), "NodeResourceTopologyMatch Unschedulable: cannot align container")
      << "it has not begun, and the first has six: it will be of the second";
  EXPECT_EQ(world.verdict("a", pod(own(6))), "fits");
  run("{startTime: '2026-01-05T10:00:00Z'}");
  EXPECT_EQ(world.verdict("a", pod(own(16))), "fits") << "it is among what the first lacks";
}

TEST_F(Numa, ScoresByWhatNumaNodesHaveFree) {
  node("full");
  topology("full", 8, 8, "");
  node("empty");
  topology("empty", 16, 16, "");
  world.score_by(kPlugin);
  const auto scores = [&](const char* strategy) {
    args(json::Object{
        {"scoringStrategy", json::Object{{"type", strategy}, {"resources", json::Array{json::Object{{"name", "cpu"}, {"weight", 99}}}}}}});
    return world.scores(kPlugin, pod(own(4)));
  };
  // Memory has weight 1 of 100, and 1Gi of 64Gi.
  EXPECT_EQ(scores("LeastAllocated"), (Scores{{"full", (99 * 50 + 98) / 100}, {"empty", (99 * 75 + 98) / 100}}));
  EXPECT_EQ(scores("MostAllocated"), (Scores{{"full", (99 * 50 + 1) / 100}, {"empty", (99 * 25 + 1) / 100}}));
  EXPECT_EQ(scores("LeastNUMANodes"), (Scores{{"full", 94}, {"empty", 94}})) << "one NUMA node, and none is nearer than itself";
  const auto balanced = scores("BalancedAllocation");
  EXPECT_LT(balanced.at("full"), balanced.at("empty"));
  EXPECT_EQ(world.scores(kPlugin, world.pod("{containers: [{name: c}]}")), (Scores{{"full", 100}, {"empty", 100}}));
  topology("full", 8, 8, "", "restricted");
  args(json::Object{{"scoringStrategy", json::Object{{"type", "LeastNUMANodes"}}}});
  EXPECT_EQ(world.scores(kPlugin, pod(own(20))), Scores{}) << "nobody has as many";
}

TEST_F(Numa, MistakesInTheArgumentsAreTold) {
  const auto* registration = find_plugin(kPlugin);
  ASSERT_NE(registration, nullptr);
  const auto error = [&](json::Value value) {
    args(std::move(value));
    const auto made = make_plugin(*registration, world.profile);
    return made ? "" : made.error().message;
  };
  EXPECT_EQ(error(json::Object{}), "");
  EXPECT_NE(error(json::Object{{"scoringStrategy", json::Object{{"type", "Most"}}}}).find("LeastNUMANodes"), std::string::npos);
  EXPECT_NE(error(json::Object{{"cacheResyncPeriodSeconds", -1}}).find("must not be negative"), std::string::npos);
  EXPECT_NE(error(json::Object{{"cacheResyncPeriodSecond", 1}}).find("did you mean"), std::string::npos);
}

TEST_F(Numa, IsSaidBeforehandWhateverTheProfile) {
  node("a");
  topology("a", 6, 2, "");
  world.profile = default_profile(Era::k136);
  const auto asked = pod(own(8));
  EXPECT_EQ(world.verdict("a", asked), "fits") << "the default plugins know nothing of NUMA nodes";
  const auto said = [&](const PodInfoPtr& of) { return numa::refusal_beforehand(*world.cluster.find_node("a"), *of); };
  EXPECT_EQ(said(asked), "a would refuse it: no NUMA node has 8 exclusive CPUs free (TopologyAffinityError)");
  EXPECT_EQ(said(pod(own(5) + ", " + own(5))), "a would refuse it: no NUMA node has 5 exclusive CPUs free (TopologyAffinityError)")
      << "the first container has them";
  EXPECT_EQ(said(pod(own(20))), "a would refuse it: no NUMA node has 20 exclusive CPUs (TopologyAffinityError)");
  EXPECT_EQ(said(pod(own(1))), "");
  const Explanation explained = explain(framework_of(world.profile), world.cluster, asked);
  ASSERT_EQ(explained.nodes.size(), 1U);
  EXPECT_EQ(explained.nodes[0].would_refuse, said(asked));
  EXPECT_NE(to_text(explained, false).find("no NUMA node has 8 exclusive CPUs free"), std::string::npos);
  for (auto* point : {&world.profile.pre_filter, &world.profile.filter}) point->push_back({kPlugin, 1});
  const Explanation refused = explain(framework_of(world.profile), world.cluster, asked);
  ASSERT_FALSE(refused.nodes.empty());
  EXPECT_EQ(refused.nodes[0].lacks, std::vector<std::string>{"a NUMA node with 8 exclusive CPUs free"});
}

}  // namespace
}  // namespace berth::placement::testing
