#include "autoscaler/world.h"

#include "autoscaler/status_report.h"
#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

TEST(World, OpenShiftsAnnotationsDescribeANodeToCome) {
  const auto node = template_of(yaml(R"(
kind: MachineSet
metadata:
  namespace: openshift-machine-api
  name: worker
  annotations: {machine.openshift.io/vCPU: '4', machine.openshift.io/memoryMb: '16384', machine.openshift.io/GPU: '1', machine.openshift.io/maxPods: '50'}
spec:
  template:
    spec:
      metadata: {labels: {tier: web}}
      taints: [{key: dedicated, value: web, effect: NoSchedule}]
      providerSpec: {value: {instanceType: m5.xlarge, placement: {availabilityZone: us-east-1a, region: us-east-1}}}
)"));
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(model::find_resource(node->allocatable, "cpu")->value(), 4);
  EXPECT_EQ(model::find_resource(node->allocatable, "memory")->value(), 16LL << 30);
  EXPECT_EQ(model::find_resource(node->allocatable, "nvidia.com/gpu")->value(), 1);
  EXPECT_EQ(model::find_resource(node->allocatable, "pods")->value(), 50);
  EXPECT_EQ(*node->labels().get("tier"), "web");
  EXPECT_EQ(*node->labels().get("topology.kubernetes.io/zone"), "us-east-1a");
  EXPECT_EQ(*node->labels().get("failure-domain.beta.kubernetes.io/zone"), "us-east-1a") << "as the machine's node will have it";
  EXPECT_EQ(*node->labels().get("node.kubernetes.io/instance-type"), "m5.xlarge");
  ASSERT_EQ(node->taints.size(), 1U);
}

TEST(World, MalformedCapacityIsNoTemplate) {
  for (const char* annotations :
       {"{}", "{machine.openshift.io/vCPU: '4'}", "{machine.openshift.io/vCPU: four, machine.openshift.io/memoryMb: '1024'}",
        "{machine.openshift.io/vCPU: '4', machine.openshift.io/memoryMb: 16Gi}",
        "{capacity.cluster-autoscaler.kubernetes.io/cpu: x, capacity.cluster-autoscaler.kubernetes.io/memory: 1Gi}"})
    EXPECT_EQ(template_of(yaml(fmt::format("metadata: {{annotations: {}}}", annotations))), nullptr) << annotations;
}

TEST(World, AGroupIsASetWithBoundsAndItsMachines) {
  TestCluster cluster;
  cluster.set("a", {.min = 1, .max = 3, .replicas = 2});
  cluster.machine("a", "a-1");
  cluster.machine("a", "a-2", false, true);
  cluster.put("kind: MachineSet\nmetadata: {namespace: m, name: free}\nspec: {replicas: 1}");
  const Snapshot snapshot = cluster.world.snapshot();
  ASSERT_EQ(snapshot.groups.size(), 1U);
  const NodeGroup& group = snapshot.groups[0];
  EXPECT_EQ(group.id, "MachineSet/m/a");
  EXPECT_EQ(std::tuple(group.min, group.max, group.target), std::tuple(1, 3, 2));
  ASSERT_EQ(group.instances.size(), 2U);
  EXPECT_EQ(group.instances[0].node, "a-1");
  EXPECT_FALSE(group.instances[0].is_leaving);
  EXPECT_TRUE(group.instances[1].is_leaving);
  EXPECT_EQ(split_group_id(group.id), (std::pair<std::string, std::string>{"m", "a"}));
}

TEST(World, ANodeFindsItsMachineByProviderIdToo) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 1});
  cluster.put(
      "kind: Machine\nmetadata: {namespace: m, name: x, ownerReferences: [{kind: MachineSet, name: a, uid: a}]}\nspec: {providerID: "
      "'aws:///i-1'}");
  cluster.put("kind: Node\nmetadata: {name: ip-10-0-0-1}\nspec: {providerID: 'aws:///i-1'}");
  EXPECT_EQ(cluster.world.snapshot().groups[0].instances[0].node, "ip-10-0-0-1");
}

TEST(World, SnapshotsLeaveOutWhatIsGone) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 1});
  cluster.machine("a", "a-1");
  cluster.pod("p", {.node = "a-1"});
  cluster.world.remove("Pod", "default", "p");
  cluster.world.remove("Node", "", "a-1");
  cluster.world.remove("Machine", "m", "a-1");
  cluster.world.remove("MachineSet", "m", "a");
  EXPECT_TRUE(cluster.world.pods().empty());
  EXPECT_TRUE(cluster.world.snapshot().groups.empty());
  EXPECT_EQ(cluster.world.cluster().node_count(), 0U);
}

TEST(StatusReport, ShowsGroupsAndKeepsTimesOfChange) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 1});
  cluster.machine("a", "a-1");
  StatusReport report;
  report.write(cluster.step().status, cluster.now);
  cluster.now += 10s;
  const json::Value shown = yaml(report.write(cluster.step().status, cluster.now));
  EXPECT_EQ(json::get_string(shown, {"clusterWide", "health", "status"}), "Healthy");
  EXPECT_EQ(json::get_string(shown, {"clusterWide", "health", "lastTransitionTime"}), "2026-01-01T00:00:00Z");
  EXPECT_EQ(json::get_string(shown, {"clusterWide", "health", "lastProbeTime"}), "2026-01-01T00:00:10Z");
  EXPECT_EQ(json::get_string(shown, {"clusterWide", "scaleDown", "status"}), "CandidatesPresent");
  const json::Value& group = json::get_array(shown, {"nodeGroups"})[0];
  EXPECT_EQ(json::get_string(group, {"name"}), "MachineSet/m/a");
  EXPECT_EQ(json::get_int(group, {"health", "nodeCounts", "registered", "ready"}), 1);
  EXPECT_EQ(json::get_int(group, {"health", "maxSize"}), 10);
}

}  // namespace
}  // namespace berth::autoscaler::testing
