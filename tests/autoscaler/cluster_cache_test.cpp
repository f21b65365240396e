#include "autoscaler/cluster_cache.h"

#include "autoscaler/provider.h"
#include "autoscaler/status_report.h"
#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

TEST(ClusterCache, OpenShiftsAnnotationsDescribeANodeToCome) {
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

TEST(ClusterCache, MalformedCapacityIsNoTemplate) {
  for (const char* annotations :
       {"{}", "{machine.openshift.io/vCPU: '4'}", "{machine.openshift.io/vCPU: four, machine.openshift.io/memoryMb: '1024'}",
        "{machine.openshift.io/vCPU: '4', machine.openshift.io/memoryMb: 16Gi}",
        "{capacity.cluster-autoscaler.kubernetes.io/cpu: x, capacity.cluster-autoscaler.kubernetes.io/memory: 1Gi}"})
    EXPECT_EQ(template_of(yaml(fmt::format("metadata: {{annotations: {}}}", annotations))), nullptr) << annotations;
}

TEST(ClusterCache, AGroupIsASetWithBoundsAndItsMachines) {
  TestCluster cluster;
  cluster.set("a", {.min = 1, .max = 3, .replicas = 2});
  cluster.machine("a", "a-1");
  cluster.machine("a", "a-2", false, true);
  cluster.put("kind: MachineSet\nmetadata: {namespace: m, name: free}\nspec: {replicas: 1}");
  const Snapshot snapshot = cluster.cache.snapshot();
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

TEST(ClusterCache, ANodeFindsItsMachineByProviderIdToo) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 1});
  cluster.put(
      "kind: Machine\nmetadata: {namespace: m, name: x, ownerReferences: [{kind: MachineSet, name: a, uid: a}]}\nspec: {providerID: "
      "'aws:///i-1'}");
  cluster.put("kind: Node\nmetadata: {name: ip-10-0-0-1}\nspec: {providerID: 'aws:///i-1'}");
  EXPECT_EQ(cluster.cache.snapshot().groups[0].instances[0].node, "ip-10-0-0-1");
}

/// Cluster API's own group: the MachineDeployment is scaled, its MachineSets are its controller's.
TEST(ClusterCache, AMachineDeploymentIsAGroupWithTheMachinesOfItsSets) {
  ClusterCache cache;
  const auto put = [&](const std::string& text) { cache.upsert(yaml("apiVersion: cluster.x-k8s.io/v1beta1\n" + text)); };
  put("kind: MachineDeployment\nmetadata: {namespace: m, name: d, annotations: "
      "{cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size: "
      "'1', cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size: '4', cluster.x-k8s.io/autoscaling-options-scaledownunneededtime: "
      "2m0s}}\nspec: {replicas: 3}");
  for (const char* set : {"d-old", "d-new"}) {
    put(
        fmt::format("kind: MachineSet\nmetadata: {{namespace: m, name: {0}, ownerReferences: [{{kind: MachineDeployment, name: d}}], "
                    "annotations: {{cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size: '4'}}}}\nspec: {{replicas: 1}}",
                    set));
    put(fmt::format("kind: Machine\nmetadata: {{namespace: m, name: {0}-1, ownerReferences: [{{kind: MachineSet, name: {0}}}]}}", set));
  }
  cache.upsert(
      yaml("kind: Node\nmetadata: {name: n1, annotations: {cluster.x-k8s.io/machine: d-new-1, cluster.x-k8s.io/cluster-namespace: m}}"));
  const Snapshot snapshot = cache.snapshot();
  ASSERT_EQ(snapshot.groups.size(), 1U) << "the sets below it are nobody's to scale";
  const NodeGroup& group = snapshot.groups[0];
  EXPECT_EQ(group.id, "MachineDeployment/m/d");
  EXPECT_EQ(std::tuple(group.min, group.max, group.target), std::tuple(1, 4, 3));
  EXPECT_EQ(group.overrides.unneeded_time, std::chrono::minutes(2));
  ASSERT_EQ(group.instances.size(), 2U);
  EXPECT_EQ(group.instances[0].node, "n1");
  const GroupPlace place = cache.place_of(group.id);
  EXPECT_EQ(std::tuple(place.scalable.group, place.scalable.resource, place.machines.group, place.ns, place.name),
            std::tuple("cluster.x-k8s.io", "machinedeployments", "cluster.x-k8s.io", "m", "d"));
  cache.remove("cluster.x-k8s.io/MachineDeployment", "m", "d");
  EXPECT_TRUE(cache.snapshot().groups.empty());
}

TEST(ClusterCache, BoundsStandInEitherFormOfTheAnnotationsOnEitherGroup) {
  for (const auto& [api, prefix, resource_group] : {std::tuple("machine.openshift.io", "cluster.x-k8s.io", "machine.openshift.io"),
                                                    std::tuple("cluster.x-k8s.io", "machine.openshift.io", "cluster.x-k8s.io")}) {
    ClusterCache cache;
    cache.upsert(
        yaml(fmt::format("apiVersion: {0}/v1beta1\nkind: MachineSet\nmetadata: {{namespace: m, name: a, annotations: "
                         "{{{1}/cluster-api-autoscaler-node-group-max-size: '7'}}}}\nspec: {{replicas: 2}}",
                         api, prefix)));
    const Snapshot snapshot = cache.snapshot();
    ASSERT_EQ(snapshot.groups.size(), 1U) << api;
    EXPECT_EQ(snapshot.groups[0].max, 7);
    EXPECT_EQ(snapshot.groups[0].id, "MachineSet/m/a");
    EXPECT_EQ(cache.place_of("MachineSet/m/a").scalable.group, resource_group);
  }
}

TEST(ClusterCache, AMachineMarkedForClusterApisControllerIsLeaving) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 1});
  cluster.put(
      "kind: Machine\nmetadata: {namespace: m, name: x, annotations: {cluster.x-k8s.io/delete-machine: now}, ownerReferences: [{kind: "
      "MachineSet, name: a, uid: a}]}");
  EXPECT_TRUE(cluster.cache.snapshot().groups[0].instances[0].is_leaving);
}

TEST(ClusterCache, SnapshotsLeaveOutWhatIsGone) {
  TestCluster cluster;
  cluster.set("a", {.replicas = 1});
  cluster.machine("a", "a-1");
  cluster.pod("p", {.node = "a-1"});
  cluster.cache.remove("Pod", "default", "p");
  cluster.cache.remove("Node", "", "a-1");
  cluster.cache.remove("Machine", "m", "a-1");
  cluster.cache.remove("MachineSet", "m", "a");
  EXPECT_TRUE(cluster.cache.pods().empty());
  EXPECT_TRUE(cluster.cache.snapshot().groups.empty());
  EXPECT_EQ(cluster.cache.cluster().node_count(), 0U);
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

/// A node is marked incomplete while the snapshot is made: the sums that are handed out know it.
TEST(ClusterCache, TheSumsOverNodesKnowOfTheGroupsThatAProviderTellsOf) {
  ClusterCache cache;
  cache.upsert(yaml("kind: Node\nmetadata: {name: n1}\nstatus: {conditions: [{type: Ready, status: 'True'}]}"));
  EXPECT_EQ(cache.snapshot().totals->working, 1);
  ProviderState told;
  told.groups.push_back({.id = "g", .instances = {{.id = "m", .node = "n1"}}, .template_slices = {yaml("spec: {driver: gpus}")}});
  const Snapshot snapshot = cache.snapshot(std::move(told));
  EXPECT_EQ(snapshot.totals->working, 0);
  EXPECT_EQ(snapshot.totals->not_working, std::vector<std::string>{"n1"});
}

}  // namespace
}  // namespace berth::autoscaler::testing
