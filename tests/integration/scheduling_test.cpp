#include <map>

#include "tests/integration/world.h"

namespace berth::integration {
namespace {

using std::chrono::seconds;

std::string condition(const json::Value& pod, std::string_view type, std::string_view field) {
  for (const json::Value& one : json::get_array(pod, {"status", "conditions"}))
    if (json::get_string(one, {"type"}) == type) return std::string(json::get_string(one, {field}));
  return {};
}

TEST(World, ADeploymentsPodsAreSpreadAndRun) {
  World world;
  world.create(deployment_yaml("web", 6, "100m"));
  world.run(seconds(10));
  EXPECT_EQ(world.running(), 6u);
  std::map<std::string, int> per_node;
  for (const json::Value& pod : world.pods()) ++per_node[std::string(json::get_string(pod, {"spec", "nodeName"}))];
  for (const auto& [node, count] : per_node) EXPECT_EQ(count, 2) << node;
  EXPECT_EQ(json::get_int(world.get("apps", "deployments", "web"), {"status", "availableReplicas"}), 6);
}

TEST(World, APodThatFitsNowhereSaysWhyAndIsPlacedWhenRoomComes) {
  World world({.nodes = 2, .node_cpu = "4"});
  world.create(deployment_yaml("big", 3, "3"));
  world.run(seconds(10));
  EXPECT_EQ(world.running(), 2u);
  std::string message;
  for (const json::Value& pod : world.pods())
    if (json::get_string(pod, {"spec", "nodeName"}).empty()) {
      EXPECT_EQ(condition(pod, "PodScheduled", "status"), "False");
      EXPECT_EQ(condition(pod, "PodScheduled", "reason"), "Unschedulable");
      message = condition(pod, "PodScheduled", "message");
    }
  EXPECT_TRUE(message.starts_with("0/2 nodes are available: 2 Insufficient cpu.")) << message;
  // Scaling down frees a node; nobody has to touch the pending pod.
  const auto victim = world.pods("app=big");
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  for (const json::Value& pod : victim)
    if (!json::get_string(pod, {"spec", "nodeName"}).empty()) {
      client::Call call;
      call.verb = "delete";
      call.gvr = {"", "v1", "pods"};
      call.ns = "default";
      call.name = json::get_string(pod, {"metadata", "name"});
      call.query = "gracePeriodSeconds=0";
      ASSERT_TRUE(world.client().call_and_wait(call));
      break;
    }
  world.run(seconds(15));
  EXPECT_EQ(world.running(), 2u);
}

TEST(World, AHigherPodPreemptsTheFewestLowerOnes) {
  World world({.nodes = 2, .node_cpu = "4"});
  world.create("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n");
  world.create(deployment_yaml("low", 4, "2"));
  world.run(seconds(10));
  ASSERT_EQ(world.running("app=low"), 4u);
  world.create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: vip}\nspec:\n  priorityClassName: high\n  containers: [{name: c, image: nginx, "
      "resources: {requests: {cpu: \"2\"}}}]\n");
  world.run(seconds(20));
  const json::Value vip = world.get("", "pods", "vip");
  EXPECT_EQ(json::get_string(vip, {"status", "phase"}), "Running");
  EXPECT_EQ(world.running("app=low"), 3u);  // One went; its replacement finds no room.
}

TEST(World, NoPodIsLostOrDoubledWhenTheSchedulerDiesAtAnyMoment) {
  World world({.nodes = 4, .node_cpu = "8"});
  world.create(deployment_yaml("web", 40, "500m"));
  for (int i = 0; i < 12; ++i) {
    world.run(std::chrono::milliseconds(3));
    world.stop_scheduler();
    world.start_scheduler();
  }
  world.run(seconds(30));
  EXPECT_EQ(world.running(), 40u);
  std::map<std::string, int> cpu_milli;
  for (const json::Value& pod : world.pods()) cpu_milli[std::string(json::get_string(pod, {"spec", "nodeName"}))] += 500;
  for (const auto& [node, used] : cpu_milli) EXPECT_LE(used, 8000) << node;
}

TEST(World, GatedPodsWaitUntilTheGateOpens) {
  World world;
  world.create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: gated}\nspec:\n  schedulingGates: [{name: example.com/wait}]\n  containers: [{name: c, "
      "image: nginx}]\n");
  world.run(seconds(5));
  EXPECT_EQ(json::get_string(world.get("", "pods", "gated"), {"spec", "nodeName"}), "");
  client::Call call;
  call.verb = "patch";
  call.gvr = {"", "v1", "pods"};
  call.ns = "default";
  call.name = "gated";
  call.content_type = "application/merge-patch+json";
  call.body = R"({"spec":{"schedulingGates":null}})";
  ASSERT_TRUE(world.client().call_and_wait(call));
  world.run(seconds(5));
  EXPECT_EQ(json::get_string(world.get("", "pods", "gated"), {"status", "phase"}), "Running");
}

}  // namespace
}  // namespace berth::integration
