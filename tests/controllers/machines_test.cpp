#include "controllers/machines.h"

#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

std::string set_text(int replicas, const std::string& annotations = "{}", const std::string& policy = "Random") {
  return fmt::format(
      "metadata: {{name: w, generation: 1, annotations: {1}}}\n"
      "spec:\n  replicas: {0}\n  deletePolicy: {2}\n  selector: {{matchLabels: {{set: w}}}}\n"
      "  template:\n    metadata: {{labels: {{set: w}}}}\n    spec:\n      metadata: {{labels: {{pool: burst}}}}\n"
      "      taints: [{{key: t, value: v, effect: NoSchedule}}]\n"
      "      providerSpec: {{value: {{instanceType: m5.xlarge, placement: {{availabilityZone: z1, region: r1}}}}}}\n",
      replicas, annotations, policy);
}

struct MachinesTest : ::testing::Test {
  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
  void SetUp() override {
    api.engine.add(make_machine_set_controller());
    api.engine.add(make_simulated_machine_controller());
    api.engine.add(make_machine_autoscaler_controller());
    api.engine.start();
  }
  std::vector<json::Value> machines() { return api.all(kinds().machine); }
  std::vector<json::Value> nodes() { return api.all(kinds().node); }
  void put_set(const std::string& text) {
    json::Value set = api.get(kinds().machine_set, "w");
    json::Value wanted = yaml(text);
    if (set.is_object()) {
      json::set(set, {"spec"}, *json::find(wanted, "spec"));
      api.put(kinds().machine_set, set);
    } else {
      api.put(kinds().machine_set, wanted);
    }
  }
  void make_nodes_ready() {
    for (json::Value node : nodes()) {
      json::set(node, {"status", "conditions"},
                json::Array{json::Object{{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", format_rfc3339(loop.now())}}});
      api.put(kinds().node, node);
    }
    loop.run_for(seconds(2));
  }
  std::string annotation(std::string_view name) {
    return std::string(json::get_string(api.get(kinds().machine_set, "w"), {"metadata", "annotations", name}));
  }
};

TEST_F(MachinesTest, AMachineBecomesANode) {
  put_set(set_text(1));
  loop.run_for(seconds(2));
  ASSERT_EQ(machines().size(), 1u);
  ASSERT_EQ(nodes().size(), 1u);
  const json::Value node = nodes()[0];
  const std::string name(json::get_string(machines()[0], {"metadata", "name"}));
  EXPECT_EQ(json::get_string(node, {"metadata", "name"}), name);
  EXPECT_EQ(json::get_string(node, {"metadata", "annotations", "machine.openshift.io/machine"}), "default/" + name);
  EXPECT_EQ(json::get_string(node, {"metadata", "annotations", "sim.berth.dev/fleet"}), "default");
  EXPECT_EQ(json::get_string(node, {"metadata", "annotations", "sim.berth.dev/capacity"}), "cpu=4,memory=16384Mi,pods=110");
  EXPECT_EQ(json::get_string(node, {"metadata", "labels", "pool"}), "burst");
  EXPECT_EQ(json::get_string(node, {"metadata", "labels", "topology.kubernetes.io/zone"}), "z1");
  EXPECT_EQ(json::get_array(node, {"spec", "taints"}).size(), 1u);
  EXPECT_EQ(json::get_string(machines()[0], {"status", "phase"}), "Provisioned");
  make_nodes_ready();
  EXPECT_EQ(json::get_string(machines()[0], {"status", "phase"}), "Running");
  EXPECT_EQ(json::get_string(machines()[0], {"status", "nodeRef", "name"}), name);
  EXPECT_EQ(json::get_string(machines()[0], {"spec", "providerID"}), json::get_string(node, {"spec", "providerID"}));
  EXPECT_EQ(json::get_int(api.get(kinds().machine_set, "w"), {"status", "readyReplicas"}), 1);
}

TEST_F(MachinesTest, ASetLearnsItsCapacityByTheInstanceType) {
  put_set(set_text(0));
  loop.run_for(seconds(1));
  EXPECT_EQ(annotation("machine.openshift.io/vCPU"), "4");
  EXPECT_EQ(annotation("machine.openshift.io/memoryMb"), "16384");
}

TEST_F(MachinesTest, ABootTakesItsTime) {
  put_set(set_text(1, "{sim.berth.dev/boot-delay: 30s}"));
  loop.run_for(seconds(29));
  EXPECT_TRUE(nodes().empty());
  EXPECT_EQ(json::get_string(machines()[0], {"status", "phase"}), "Provisioning");
  loop.run_for(seconds(3));
  EXPECT_EQ(nodes().size(), 1u);
}

TEST_F(MachinesTest, SomeMachinesNeverBoot) {
  put_set(set_text(1, "{sim.berth.dev/boot-delay: never}"));
  loop.run_for(seconds(3600));
  EXPECT_TRUE(nodes().empty());
}

TEST_F(MachinesTest, AFailedMachineIsTriedNoMore) {
  put_set(set_text(1, "{sim.berth.dev/boot-delay: 30s}"));
  loop.run_for(seconds(5));
  json::Value machine = machines()[0];
  json::set(machine, {"status", "phase"}, "Failed");
  json::set(machine, {"status", "errorReason"}, "InvalidConfiguration");
  api.put(kinds().machine, machine);
  loop.run_for(seconds(60));
  EXPECT_TRUE(nodes().empty());
  EXPECT_EQ(json::get_string(machines()[0], {"status", "phase"}), "Failed");
}

TEST_F(MachinesTest, TheMarkedMachineGoesFirst) {
  put_set(set_text(3));
  loop.run_for(seconds(2));
  make_nodes_ready();
  ASSERT_EQ(machines().size(), 3u);
  json::Value marked = machines()[1];
  const std::string name(json::get_string(marked, {"metadata", "name"}));
  json::set(marked, {"metadata", "annotations"}, json::Object{{"machine.openshift.io/cluster-api-delete-machine", "x"}});
  api.put(kinds().machine, marked);
  put_set(set_text(2));
  loop.run_for(seconds(3));
  ASSERT_EQ(machines().size(), 2u);
  for (const json::Value& left : machines()) EXPECT_NE(json::get_string(left, {"metadata", "name"}), name);
  EXPECT_EQ(nodes().size(), 2u);
}

TEST_F(MachinesTest, AMarkThatComesALittleLaterStillCounts) {
  put_set(set_text(3));
  loop.run_for(seconds(2));
  make_nodes_ready();
  const std::string name(json::get_string(machines()[2], {"metadata", "name"}));
  put_set(set_text(2));
  loop.run_for(milliseconds(200));
  ASSERT_EQ(machines().size(), 3u);
  json::Value marked = machines()[2];
  json::set(marked, {"metadata", "annotations"}, json::Object{{"machine.openshift.io/delete-machine", "x"}});
  api.put(kinds().machine, marked);
  loop.run_for(seconds(3));
  ASSERT_EQ(machines().size(), 2u);
  for (const json::Value& left : machines()) EXPECT_NE(json::get_string(left, {"metadata", "name"}), name);
}

TEST_F(MachinesTest, AnUnmarkedSurplusGoesByThePolicy) {
  put_set(set_text(1, "{}", "Newest"));
  loop.run_for(seconds(2));
  const std::string first(json::get_string(machines()[0], {"metadata", "name"}));
  loop.run_for(seconds(5));
  put_set(set_text(2, "{}", "Newest"));
  loop.run_for(seconds(2));
  put_set(set_text(1, "{}", "Newest"));
  loop.run_for(seconds(3));
  ASSERT_EQ(machines().size(), 1u);
  EXPECT_EQ(json::get_string(machines()[0], {"metadata", "name"}), first);
}

TEST_F(MachinesTest, AMachineAutoscalerSetsAndTakesBackBounds) {
  put_set(set_text(0));
  api.put(kinds().machine_autoscaler,
          yaml("metadata: {name: ma}\nspec: {minReplicas: 1, maxReplicas: 5, scaleTargetRef: {kind: MachineSet, name: w}}\n"));
  loop.run_for(seconds(1));
  EXPECT_EQ(annotation("machine.openshift.io/cluster-api-autoscaler-node-group-min-size"), "1");
  EXPECT_EQ(annotation("machine.openshift.io/cluster-api-autoscaler-node-group-max-size"), "5");
  EXPECT_EQ(json::get_string(api.get(kinds().machine_autoscaler, "ma"), {"status", "lastTargetRef", "name"}), "w");
  json::Value going = api.get(kinds().machine_autoscaler, "ma");
  json::set(going, {"metadata", "deletionTimestamp"}, json::Value("2026-01-05T10:00:01Z"));
  api.put(kinds().machine_autoscaler, going);
  loop.run_for(seconds(2));
  EXPECT_EQ(annotation("machine.openshift.io/cluster-api-autoscaler-node-group-max-size"), "");
  EXPECT_TRUE(json::get_array(api.get(kinds().machine_autoscaler, "ma"), {"metadata", "finalizers"}).empty());
}

TEST(InstanceSize, AwsFamilies) {
  for (const auto& [type, cores, memory] :
       {std::tuple("m5.large", 2, 8192), std::tuple("m4.xlarge", 4, 16384), std::tuple("c5.2xlarge", 8, 16384),
        std::tuple("r5.4xlarge", 16, 131072), std::tuple("Standard_D4s_v3", 4, 16384), std::tuple("m5.", 4, 16384),
        std::tuple("m5.0xlarge", 4, 16384), std::tuple("", 4, 16384)}) {
    EXPECT_EQ(instance_size(type).cores, cores) << type;
    EXPECT_EQ(instance_size(type).memory_mib, memory) << type;
  }
}

TEST_F(MachinesTest, ANodeHasWhatTheSetsAnnotationsSay) {
  const auto capacity = [&](const std::string& annotations) {
    put_set(set_text(0));
    json::Value set = api.get(kinds().machine_set, "w");
    json::set(set, {"metadata", "annotations"}, yaml(annotations));
    api.put(kinds().machine_set, set);
    loop.run_for(seconds(5));
    put_set(set_text(1));
    loop.run_for(seconds(2));
    EXPECT_EQ(nodes().size(), 1u) << annotations;
    const std::string said(nodes().empty() ? "" : json::get_string(nodes()[0], {"metadata", "annotations", "sim.berth.dev/capacity"}));
    put_set(set_text(0));
    loop.run_for(seconds(5));
    EXPECT_TRUE(nodes().empty());
    return said;
  };
  EXPECT_EQ(capacity("{machine.openshift.io/vCPU: '2', machine.openshift.io/memoryMb: '1024', machine.openshift.io/GPU: '4'}"),
            "cpu=2,memory=1024Mi,pods=110,nvidia.com/gpu=4");
  EXPECT_EQ(capacity("{machine.openshift.io/vCPU: '2', machine.openshift.io/memoryMb: '1024', machine.openshift.io/GPU: '0'}"),
            "cpu=2,memory=1024Mi,pods=110");
  const std::string prefix = "capacity.cluster-autoscaler.kubernetes.io/";
  EXPECT_EQ(capacity(fmt::format("{{{0}cpu: '3', {0}memory: 7Gi, {0}maxPods: '20', {0}ephemeral-disk: 9Gi, {0}gpu-count: '2', {0}gpu-type: "
                                 "example.com/chip, machine.openshift.io/vCPU: '2'}}",
                                 prefix)),
            "cpu=3,memory=7Gi,pods=20,ephemeral-storage=9Gi,example.com/chip=2")
      << "the newer names count before the older";
  EXPECT_EQ(capacity(fmt::format("{{{0}gpu-count: '2', {0}dra-driver: gpu.example.com}}", prefix)), "cpu=4,memory=16384Mi,pods=110")
      << "devices of a driver are counted by its slices";
}

TEST_F(MachinesTest, ASetCountsWhoHasTheLabelsOfItsTemplate) {
  put_set(set_text(2));
  loop.run_for(seconds(2));
  const auto labelled = [&] { return json::get_int(api.get(kinds().machine_set, "w"), {"status", "fullyLabeledReplicas"}); };
  EXPECT_EQ(labelled(), 2);
  json::Value set = api.get(kinds().machine_set, "w");
  json::set(set, {"spec", "template", "metadata", "labels", "tier"}, "front");
  api.put(kinds().machine_set, set);
  loop.run_for(seconds(2));
  EXPECT_EQ(labelled(), 0) << "those that are there were made of the former template";
  json::Value one = machines()[0];
  json::set(one, {"metadata", "labels", "tier"}, "front");
  api.put(kinds().machine, one);
  loop.run_for(seconds(2));
  EXPECT_EQ(labelled(), 1);
}

TEST_F(MachinesTest, ANameThatIsTakenIsToldUntilItIsFree) {
  api.put(kinds().node, yaml("metadata: {name: m1}\nspec: {}\n"));
  api.put(kinds().machine, yaml("metadata: {name: m1}\nspec: {providerSpec: {value: {instanceType: m5.large}}}\n"));
  loop.run_for(seconds(2));
  const auto machine = [&] { return api.get(kinds().machine, "m1"); };
  EXPECT_EQ(json::get_string(machine(), {"status", "phase"}), "Failed");
  EXPECT_NE(json::get_string(machine(), {"status", "errorReason"}), "");
  EXPECT_EQ(json::get_string(machine(), {"status", "errorMessage"}), "a node named m1 is there already");
  EXPECT_EQ(json::find(machine(), {"status", "nodeRef"}), nullptr);
  const std::string written(json::get_string(machine(), {"status", "lastUpdated"}));
  api.erase(kinds().node, "", "m1");
  json::Value touched = machine();
  json::set(touched, {"metadata", "labels", "look"}, "again");
  api.put(kinds().machine, touched);
  loop.run_for(seconds(5));
  EXPECT_EQ(nodes().size(), 1U) << "the name is free by now";
  make_nodes_ready();
  EXPECT_EQ(json::get_string(machine(), {"status", "phase"}), "Running");
}

}  // namespace
}  // namespace berth::controllers
