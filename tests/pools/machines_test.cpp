// NodePools that buy machines of groups: of MachineSets, and of an external provider.
#include "pools/machines.h"

#include <gtest/gtest.h>

#include "autoscaler/provider.h"
#include "tests/pools/fake_cluster.h"

namespace berth::pools {
namespace {

using namespace tests;

constexpr const char* kClass =
    "{apiVersion: berth.dev/v1alpha1, kind: MachineNodeClass, metadata: {name: local}, spec: {registrationTimeout: 60s}}";

json::Value machine_pool(const std::string& name, const std::string& spec = "{}", const std::string& more = kEager) {
  json::Value out = pool_document(name, "[]", more, spec);
  json::set(out, {"spec", "template", "spec", "nodeClassRef"},
            json::Object{{"group", "berth.dev"}, {"kind", "MachineNodeClass"}, {"name", "local"}});
  return out;
}

class Machines : public testing::Test {
 protected:
  Machines() {
    cluster.add(read(kClass));
    cluster.add_machine_set("tiny", 2, 2, "0.10");
    cluster.add_machine_set("huge", 8, 2, "2.00");
  }
  [[nodiscard]] std::int64_t replicas(const std::string& set) {
    return json::get_int(cluster.documents_.at("MachineSet/machines/" + set), {"spec", "replicas"});
  }
  FakeCluster cluster;
};

TEST_F(Machines, SetsGrowForClaimsAndExactlyTheirMachinesGo) {
  cluster.add(machine_pool("local", "{taints: [{key: mine, effect: NoSchedule}], startupTaints: []}"));
  cluster.scale("web", 0, 2, "1500m", "{tolerations: [{key: mine, operator: Exists}, {key: of-set, operator: Exists}]}");
  cluster.run(20);
  EXPECT_EQ(cluster.waiting(), 0U);
  EXPECT_EQ(replicas("tiny"), 2);
  EXPECT_EQ(cluster.types(), "2 tiny") << "the type is called as the set";
  const json::Value claim = *cluster.first("NodeClaim");
  EXPECT_TRUE(NodeClaim::parse(claim).is("Initialized"));
  const std::string id(json::get_string(claim, {"status", "providerID"}));
  EXPECT_TRUE(id.starts_with("machine:///machines/tiny-")) << id;
  const std::string node_name(json::get_string(claim, {"status", "nodeName"}));
  const json::Value node = cluster.documents_.at("Node/" + node_name);
  EXPECT_EQ(json::get_string(node, {"metadata", "labels", kPoolLabel}), "local");
  EXPECT_EQ(json::get_string(node, {"metadata", "annotations", autoscaler::kPriceAnnotation}), "0.1000 USD");
  EXPECT_NE(json::serialize(node).find("\"mine\""), std::string::npos) << "the pool's taints come to it";
  EXPECT_NE(json::serialize(node).find("\"of-set\""), std::string::npos) << "its own stay";
  cluster.remove("NodeClaim/" + std::string(json::get_string(claim, {"metadata", "name"})));
  cluster.scale("web", 2, 1, "1500m");
  cluster.run(60);
  EXPECT_EQ(cluster.count("NodeClaim"), 1U);
  EXPECT_EQ(cluster.count("Machine"), 1U);
  EXPECT_EQ(replicas("tiny"), 1);
  EXPECT_FALSE(cluster.documents_.contains("Node/" + node_name) && cluster.documents_.contains("Machine/machines/" + node_name))
      << "exactly that machine went, or its pod's";
  cluster.end_pods();
  cluster.run(60);
  EXPECT_EQ(cluster.count("Machine"), 0U);
  EXPECT_EQ(cluster.count("Node"), 0U);
  EXPECT_EQ(replicas("tiny"), 0);
  const std::size_t before = cluster.machine_writes_.size();
  cluster.run(600);
  EXPECT_EQ(cluster.machine_writes_.size(), before) << "it comes to rest";
}

TEST_F(Machines, WhoToleratesTheEndOfANodeIsNotEvictedFromIt) {
  cluster.add(machine_pool("local"));
  cluster.scale("web", 0, 1, "1500m", "{tolerations: [{operator: Exists}]}");
  cluster.run(15);
  ASSERT_TRUE(cluster.documents_.contains("Pod/default/web-0"));
  const std::string claim(json::get_string(*cluster.first("NodeClaim"), {"metadata", "name"}));
  cluster.remove("NodeClaim/" + claim);
  cluster.run(30);
  EXPECT_FALSE(cluster.documents_.contains("NodeClaim/" + claim));
  EXPECT_EQ(cluster.evictions_, 0) << "it would come back, and be evicted again, without end";
}

TEST_F(Machines, AMaximumIsWhatCanBeHad) {
  cluster.add(machine_pool("local"));
  cluster.scale("web", 0, 7, "1500m");
  cluster.run(30);
  EXPECT_EQ(cluster.waiting(), 0U);
  EXPECT_EQ(cluster.types(), "1 huge, 2 tiny") << "two tiny ones are all there are";
  cluster.scale("db", 0, 2, "7");
  cluster.run(30);
  EXPECT_EQ(cluster.types(), "2 huge, 2 tiny");
  EXPECT_EQ(cluster.waiting(), 1U);
  EXPECT_TRUE(cluster.told("has as many machines as it may have")) << "and the pod is told";
  EXPECT_FALSE(cluster.told("InsufficientCapacity")) << "nobody asks for what is not there";
}

TEST_F(Machines, TheAutoscalerLeavesThemAlone) {
  std::vector<std::string> problems;
  autoscaler::ClusterCache& cache = cluster.keeper().cache().cluster();
  EXPECT_TRUE(cache.snapshot().groups.empty());
  ASSERT_EQ(cache.groups_of_pools(problems).size(), 2U);
  EXPECT_EQ(cache.groups_of_pools(problems).front().node_class, "local");
}

TEST_F(Machines, AMachineThatStandsThereForLongIsNobodysToTake) {
  cluster.change("MachineSet/machines/tiny", "{spec: {replicas: 1}}");
  cluster.run(5);
  ASSERT_EQ(cluster.count("Node"), 1U);
  const std::string old =
      cluster.first("Node") == nullptr ? "" : std::string(json::get_string(*cluster.first("Node"), {"metadata", "name"}));
  cluster.add(pod("full-0", "2", "1Gi", "{}", old));
  cluster.add(machine_pool("local"));
  cluster.scale("web", 0, 1, "1500m");
  cluster.run(20);
  EXPECT_EQ(replicas("tiny"), 2) << "it grew by one";
  EXPECT_NE(json::get_string(*cluster.first("NodeClaim"), {"status", "nodeName"}), old);
  cluster.end_pods();
  cluster.run(60);
  EXPECT_EQ(replicas("tiny"), 1);
  EXPECT_TRUE(cluster.documents_.contains("Node/" + old)) << "what nobody bought stays";
}

TEST_F(Machines, AClaimDeletedBeforeItsMachineCameTakesItAlong) {
  cluster.machines_start_ = false;
  cluster.add(machine_pool("local"));
  cluster.scale("web", 0, 1, "1500m");
  cluster.run(6);
  ASSERT_EQ(cluster.count("NodeClaim"), 1U);
  ASSERT_EQ(replicas("tiny"), 1);
  const std::string name(json::get_string(*cluster.first("NodeClaim"), {"metadata", "name"}));
  cluster.end_pods();
  cluster.remove("NodeClaim/" + name);
  cluster.run(20);
  EXPECT_EQ(cluster.count("NodeClaim"), 0U);
  EXPECT_EQ(replicas("tiny"), 0);
  EXPECT_EQ(cluster.count("Machine"), 0U);
}

TEST_F(Machines, AMachineThatNeverBecomesANodeGoesAgainAndAnotherTypeIsTried) {
  cluster.machines_start_ = false;
  cluster.add(machine_pool("local"));
  cluster.scale("web", 0, 1, "1500m");
  cluster.run(70);
  EXPECT_TRUE(cluster.told("RegistrationTimeout"));
  cluster.machines_start_ = true;
  cluster.run(20);
  EXPECT_EQ(cluster.types(), "1 huge") << "what did not come is not asked for again at once";
  EXPECT_EQ(replicas("tiny"), 0);
  EXPECT_EQ(cluster.waiting(), 0U);
}

TEST_F(Machines, AGroupThatDoesNotGrowIsToldAndAnotherTaken) {
  cluster.machine_error_ = "quota";
  cluster.add(machine_pool("local"));
  cluster.scale("web", 0, 1, "1500m");
  cluster.run(5);
  EXPECT_EQ(replicas("tiny"), 0);
  cluster.run(2);
  EXPECT_TRUE(cluster.told("InsufficientCapacity: MachineSet/machines/tiny does not grow: quota"));
  cluster.machine_error_.clear();
  cluster.run(20);
  EXPECT_EQ(cluster.types(), "1 huge");
}

TEST_F(Machines, WhoDeletesAMachineTakesItsClaimAlong) {
  cluster.add(machine_pool("local"));
  cluster.scale("web", 0, 1, "1500m");
  cluster.run(15);
  const std::string claim(json::get_string(*cluster.first("NodeClaim"), {"metadata", "name"}));
  const std::string machine(json::get_string(*cluster.first("NodeClaim"), {"status", "nodeName"}));
  cluster.change("MachineSet/machines/tiny", "{spec: {replicas: 0}}");
  cluster.remove("Machine/machines/" + machine);
  cluster.run(30);
  EXPECT_TRUE(cluster.told("MachineGoing") || cluster.told("MachineGone") || cluster.told("NodeDeleted"));
  EXPECT_FALSE(cluster.documents_.contains("NodeClaim/" + claim));
  EXPECT_EQ(cluster.waiting(), 0U) << "its pod has another one";
  EXPECT_EQ(replicas("tiny"), 1);
}

TEST_F(Machines, AMachineThatItsSetMakesInsteadOfADeletedOneIsNobodysForNothing) {
  cluster.add(machine_pool("local", "{taints: [{key: mine, effect: NoSchedule}]}"));
  cluster.scale("web", 0, 1, "1500m", "{tolerations: [{key: mine, operator: Exists}], nodeSelector: {karpenter.sh/nodepool: local}}");
  cluster.run(15);
  const std::string machine(json::get_string(*cluster.first("NodeClaim"), {"status", "nodeName"}));
  cluster.remove("Machine/machines/" + machine);
  cluster.run(60);
  EXPECT_EQ(cluster.waiting(), 0U);
  EXPECT_EQ(cluster.count("NodeClaim"), 1U);
  EXPECT_EQ(cluster.count("Machine"), 1U) << "not the set's own and another one";
  EXPECT_EQ(replicas("tiny"), 1);
  cluster.end_pods();
  cluster.run(60);
  EXPECT_EQ(cluster.count("Machine"), 0U);
  EXPECT_EQ(replicas("tiny"), 0);
}

TEST_F(Machines, ARestartInTheMiddleLosesNothing) {
  cluster.machines_start_ = false;
  cluster.add(machine_pool("local"));
  cluster.scale("web", 0, 1, "1500m");
  cluster.run(6);
  cluster.restart();
  cluster.machines_start_ = true;
  cluster.run(20);
  EXPECT_EQ(cluster.types(), "1 tiny");
  EXPECT_EQ(cluster.count("Machine"), 1U);
}

TEST_F(Machines, APoolWithoutAGroupIsToldWhatIsMissing) {
  cluster.add(read("{apiVersion: berth.dev/v1alpha1, kind: MachineNodeClass, metadata: {name: other}}"));
  json::Value other = machine_pool("other");
  json::set(other, {"spec", "template", "spec", "nodeClassRef", "name"}, "other");
  cluster.add(other);
  cluster.run(2);
  EXPECT_TRUE(cluster.told("no group of machines has the label berth.dev/machine-node-class=other in its template"));
  cluster.change("MachineSet/machines/tiny",
                 "{metadata: {annotations: {machine.openshift.io/cluster-api-autoscaler-node-group-max-size: null}}}");
  cluster.run(2);
  EXPECT_TRUE(cluster.told("how many machines it may have at most is not said"));
}

/// A provider of one group that grows when it is told to.
struct FakeProvider {
  autoscaler::NodeGroup group;
  int made = 0;
  FakeProvider() {
    group = {.id = "rack", .min = 0, .max = 3, .target = 0};
    auto node = std::make_shared<model::NodeView>(model::NodeView::parse(
        read("{metadata: {name: template, labels: {berth.dev/machine-node-class: local, kubernetes.io/hostname: template, "
             "topology.kubernetes.io/zone: z, kubernetes.io/arch: amd64, kubernetes.io/os: linux}}, status: {capacity: {cpu: '4', memory: "
             "16Gi, pods: '110'}, allocatable: {cpu: '4', memory: 16Gi, pods: '110'}}}")));
    group.template_node = node;
    group.node_class = "local";
    group.price_per_hour = 0.05;
  }
  [[nodiscard]] autoscaler::ProviderState state() const { return {.groups = {group}}; }
};

class External : public testing::Test {
 protected:
  External() {
    cluster.add(read(kClass));
    cluster.add(machine_pool("local"));
    see();
  }
  void see() { cluster.keeper().cache().see_provider(provider.state()); }
  /// A second, and what was asked for is done at once.
  void run(int seconds) {
    for (; seconds > 0; --seconds) {
      const std::size_t before = cluster.machine_writes_.size();
      cluster.run(1);
      for (std::size_t i = before; i < cluster.machine_writes_.size(); ++i) carry_out(cluster.machine_writes_[i]);
      if (cluster.machine_writes_.size() > before) see();
    }
  }
  void carry_out(const MachineWrite& write) {
    ASSERT_TRUE(write.is_external);
    if (write.kind == MachineWrite::Kind::kGrow) {
      for (provider.group.target = write.to; std::ssize(provider.group.instances) < provider.group.target;) {
        const std::string name = fmt::format("rack-{}", ++provider.made);
        provider.group.instances.push_back({.id = "rack://" + name, .node = name});
        cluster.add(
            read(fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {0}, labels: {{kubernetes.io/hostname: {0}, "
                             "kubernetes.io/arch: amd64, kubernetes.io/os: linux}}}}, spec: {{providerID: 'rack://{0}'}}, status: "
                             "{{capacity: {{cpu: '4', memory: 16Gi, pods: '110'}}, allocatable: {{cpu: '4', memory: 16Gi, pods: "
                             "'110'}}}}}}",
                             name)));
      }
    } else if (write.kind == MachineWrite::Kind::kRemove) {
      std::erase_if(provider.group.instances, [&](const autoscaler::Instance& one) { return one.id == write.instance; });
      provider.group.target = std::ssize(provider.group.instances);
    }
  }
  FakeCluster cluster;
  FakeProvider provider;
};

TEST_F(External, AProvidersGroupIsBoughtFromAndGivenBack) {
  cluster.scale("web", 0, 2, "3");
  run(15);
  EXPECT_EQ(cluster.waiting(), 0U);
  EXPECT_EQ(cluster.types(), "2 rack");
  EXPECT_EQ(json::get_string(*cluster.first("NodeClaim"), {"status", "providerID"}).substr(0, 7), "rack://");
  EXPECT_EQ(json::get_string(*cluster.first("Node"), {"metadata", "labels", kZoneLabel}), "z") << "the template's place";
  cluster.scale("web", 2, 1, "3");
  run(60);
  EXPECT_EQ(provider.group.target, 1);
  EXPECT_EQ(cluster.count("Node"), 1U) << "its Node goes after the machine, whoever deletes it";
  cluster.end_pods();
  run(60);
  EXPECT_EQ(provider.group.target, 0);
  EXPECT_EQ(cluster.count("NodeClaim"), 0U);
}

TEST_F(External, WhileAProviderIsSilentNothingOfItIsWantedAndNothingGoes) {
  cluster.scale("web", 0, 1, "3");
  run(15);
  ASSERT_EQ(cluster.types(), "1 rack");
  cluster.keeper().cache().see_provider({.is_usable = false});
  cluster.end_pods();
  const std::size_t before = cluster.machine_writes_.size();
  cluster.run(60);
  EXPECT_EQ(cluster.machine_writes_.size(), before);
  EXPECT_EQ(cluster.count("Node"), 1U);
  cluster.scale("db", 0, 2, "4");
  cluster.run(30);
  EXPECT_EQ(cluster.machine_writes_.size(), before);
  see();
  run(90);
  EXPECT_EQ(cluster.waiting(), 0U) << "it is back";
}

}  // namespace
}  // namespace berth::pools
