// Groups of no nodes yet whose nodes have GPUs or devices, and groups alike in several zones: answers worked out by hand.
#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

constexpr const char* kTwoDevices =
    ", capacity.cluster-autoscaler.kubernetes.io/dra-driver: gpu.example.com, capacity.cluster-autoscaler.kubernetes.io/gpu-count: '2'";

/// A group of nodes with two devices each, and a class of such devices.
struct WithDevices : TestCluster {
  WithDevices() {
    put("kind: DeviceClass\nmetadata: {name: gpu}\nspec: {selectors: [{cel: {expression: \"device.driver == 'gpu.example.com' && "
        "device.attributes['gpu.example.com'].type == 'gpu'\"}}]}");
    set_of(0);
  }
  void set_of(int replicas) { set("g", {.replicas = replicas, .annotations = kTwoDevices}); }
  void publish(const std::string& node) {
    put(
        fmt::format("kind: ResourceSlice\nmetadata: {{name: s-{0}}}\nspec: {{driver: gpu.example.com, nodeName: {0}, pool: {{name: {0}, "
                    "generation: 1, resourceSliceCount: 1}}, devices: [{{name: g0, attributes: {{type: {{string: gpu}}}}}}, {{name: g1, "
                    "attributes: {{type: {{string: gpu}}}}}}]}}",
                    node));
  }
  void users(int count) {
    for (int i = 0; i < count; ++i) put_user(fmt::format("p{}", i));
  }
  /// A pod that waits for a device of the class, without its claim's class being made anew.
  void put_user(const std::string& name) {
    put(fmt::format(
        "kind: ResourceClaim\nmetadata: {{namespace: default, name: made-{0}, uid: claim-{0}, ownerReferences: [{{apiVersion: v1, "
        "kind: Pod, name: {0}, uid: {0}, controller: true}}]}}\nspec: {{devices: {{requests: [{{name: r, exactly: "
        "{{deviceClassName: gpu, allocationMode: ExactCount, count: 1}}}}]}}}}",
        name));
    put(fmt::format(
        "kind: Pod\nmetadata: {{namespace: default, name: {0}, uid: {0}, creationTimestamp: '{1}'}}\nspec: {{containers: "
        "[{{name: c, image: i}}], resourceClaims: [{{name: c, resourceClaimTemplateName: t}}]}}\nstatus: {{phase: Pending, "
        "resourceClaimStatuses: [{{name: c, resourceClaimName: made-{0}}}], conditions: [{{type: PodScheduled, status: 'False', "
        "reason: Unschedulable}}]}}",
        name, format_rfc3339(now)));
  }
};

TEST(DevicesFromZero, TwoANodeMakeTwoNodesOfThree) {
  WithDevices cluster;
  cluster.set("plain", {});
  cluster.users(3);
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/g 0->2 (max: 10)}]");
}

TEST(DevicesFromZero, TheyAreNoResource) {
  WithDevices cluster;
  cluster.pod("p",
              {.extra_spec =
                   ", initContainers: [{name: i, image: i, resources: {requests: {nvidia.com/gpu: '1'}, limits: {nvidia.com/gpu: '1'}}}]"});
  EXPECT_TRUE(cluster.step().grow.empty());
}

TEST(DevicesFromZero, ANodeWhoseDriverIsStillToComeIsStillToComeItself) {
  WithDevices cluster;
  cluster.set_of(1);
  cluster.machine("g", "m0");
  cluster.users(2);
  const Actions without = cluster.step();
  EXPECT_TRUE(without.grow.empty());
  EXPECT_EQ(without.status.groups[0].not_started, 1);
  cluster.publish("m0");
  const Actions with = cluster.step();
  EXPECT_TRUE(with.grow.empty());
  EXPECT_EQ(with.status.groups[0].ready, 1);
  cluster.users(3);
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/g 1->2 (max: 10)}]");
}

TEST(DevicesFromZero, WhatANodeHadIsRememberedWhenTheLastHasGone) {
  WithDevices cluster;
  cluster.set("g", {.replicas = 1});  // Nobody says what its nodes have.
  cluster.machine("g", "m0");
  cluster.publish("m0");
  cluster.now += 10min;
  (void)cluster.step();
  cluster.cache.remove("Node", "", "m0");
  cluster.cache.remove("Machine", "m", "m0");
  cluster.cache.remove("ResourceSlice", "", "s-m0");
  cluster.set("g", {});
  cluster.users(3);
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/g 0->2 (max: 10)}]");
}

TEST(DevicesFromZero, TheLastNodeGoesWhenNobodyUsesItsDevices) {
  WithDevices cluster;
  cluster.options.scale_down_enabled = true;
  cluster.set_of(1);
  cluster.machine("g", "m0");
  cluster.publish("m0");
  put_device_user(cluster, "user", "m0", "g0");
  EXPECT_FALSE(cluster.run_until_removal(30min));
  cluster.cache.remove("Pod", "default", "user");
  cluster.cache.remove("ResourceClaim", "default", "made-user");
  const auto down = cluster.run_until_removal(30min);
  ASSERT_TRUE(down);
  EXPECT_EQ(down->remove[0].node, "m0");
}

TEST(GpusFromZero, AreCountedByTheirResource) {
  TestCluster cluster;
  const auto gpus = [](const char* type) {
    return fmt::format(", capacity.cluster-autoscaler.kubernetes.io/gpu-type: {}, capacity.cluster-autoscaler.kubernetes.io/gpu-count: '4'",
                       type);
  };
  cluster.set("amd", {.cpu = "64", .annotations = gpus("amd.com/gpu")});
  cluster.set("intel", {.cpu = "64", .annotations = gpus("gpu.intel.com/xe")});
  // Two a pod, four a node: five pods need three nodes.
  cluster.pods(
      5, {.extra_spec = ", initContainers: [{name: i, image: i, resources: {limits: {amd.com/gpu: '2'}, requests: {amd.com/gpu: '2'}}}]"});
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/amd 0->3 (max: 10)}]");
  // A limit of eight is two nodes.
  TestCluster limited;
  limited.options = options_of("{resourceLimits: {gpus: [{type: amd.com/gpu, min: 0, max: 8}]}}");
  limited.set("amd", {.cpu = "64", .annotations = gpus("amd.com/gpu")});
  limited.pods(
      5, {.extra_spec = ", initContainers: [{name: i, image: i, resources: {limits: {amd.com/gpu: '2'}, requests: {amd.com/gpu: '2'}}}]"});
  EXPECT_EQ(grown(limited.step()), "[{MachineSet/m/amd 0->2 (max: 10)}]");
}

TEST(GpusFromZero, TheOlderAnnotationsSayTheSame) {
  TestCluster cluster;
  cluster.put(
      fmt::format("kind: MachineSet\nmetadata: {{namespace: m, name: g, uid: g, annotations: {{{}: '0', {}: '5', "
                  "machine.openshift.io/vCPU: '8', machine.openshift.io/memoryMb: '32768', machine.openshift.io/GPU: '1'}}}}\nspec: "
                  "{{replicas: 0, template: {{spec: {{}}}}}}",
                  kMinSize, kMaxSize));
  cluster.pods(
      2, {.extra_spec =
              ", initContainers: [{name: i, image: i, resources: {limits: {nvidia.com/gpu: '1'}, requests: {nvidia.com/gpu: '1'}}}]"});
  EXPECT_EQ(grown(cluster.step()), "[{MachineSet/m/g 0->2 (max: 5)}]");
}

std::map<std::string, std::int64_t> sizes_of(const Actions& actions) {
  std::map<std::string, std::int64_t> out;
  for (const Resize& resize : actions.grow) out[resize.group] = resize.to;
  return out;
}

struct Zones : TestCluster {
  Zones() {
    options = options_of("{balanceSimilarNodeGroups: true}");
    for (const char* zone : {"a", "b", "c"})
      set(zone, {.spec = fmt::format("{{providerSpec: {{value: {{placement: {{availabilityZone: zone-{}}}}}}}}}", zone)});
  }
};

TEST(ZonesFromZero, NodesAreSpreadOverThem) {
  Zones cluster;
  cluster.pods(6, {.cpu = "7"});
  EXPECT_EQ(sizes_of(cluster.step()),
            (std::map<std::string, std::int64_t>{{"MachineSet/m/a", 2}, {"MachineSet/m/b", 2}, {"MachineSet/m/c", 2}}));
}

TEST(ZonesFromZero, AZoneThatAPodMayNotUseGetsNone) {
  Zones cluster;
  cluster.pods(4, {.cpu = "7",
                   .extra_spec = ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
                                 "[{matchExpressions: [{key: topology.kubernetes.io/zone, operator: NotIn, values: [zone-b]}]}]}}}"});
  EXPECT_EQ(sizes_of(cluster.step()), (std::map<std::string, std::int64_t>{{"MachineSet/m/a", 2}, {"MachineSet/m/c", 2}}));
}

/// What daemons leave of a node counts: in zone a they take a quarter of it.
TEST(ZonesFromZero, GroupsWhoseDaemonsTakeMoreAreNotAlike) {
  Zones cluster;
  cluster.put(
      "kind: DaemonSet\nmetadata: {namespace: default, name: logs, uid: logs}\nspec: {template: {spec: {nodeSelector: "
      "{topology.kubernetes.io/zone: zone-a}, containers: [{name: c, image: i, resources: {requests: {cpu: '2'}}}]}}}");
  cluster.pods(4, {.cpu = "5"});
  const auto sizes = sizes_of(cluster.step());
  using Sizes = std::map<std::string, std::int64_t>;
  EXPECT_TRUE(sizes == (Sizes{{"MachineSet/m/a", 4}}) || sizes == (Sizes{{"MachineSet/m/b", 2}, {"MachineSet/m/c", 2}}));
}

TEST(ZonesFromZero, GroupsWithOtherDevicesAreNotAlike) {
  TestCluster cluster;
  cluster.options = options_of("{balanceSimilarNodeGroups: true}");
  cluster.set("with", {.annotations = kTwoDevices});
  cluster.set("without", {});
  cluster.pods(4, {.cpu = "7"});
  EXPECT_EQ(sizes_of(cluster.step()).size(), 1U);
}

}  // namespace
}  // namespace berth::autoscaler::testing
