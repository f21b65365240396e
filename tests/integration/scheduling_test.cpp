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

/// What events of this reason say of a pod.
std::vector<std::string> notes_of(World& world, const char* pod, std::string_view reason) {
  std::vector<std::string> out;
  const auto page = world.client().list_and_wait({"events.k8s.io", "v1", "events"}, "default");
  EXPECT_TRUE(page);
  for (const json::Value& event : page->items)
    if (json::get_string(event, {"regarding", "name"}) == pod && json::get_string(event, {"reason"}) == reason)
      out.emplace_back(json::get_string(event, {"note"}));
  return out;
}

TEST(World, TheDocumentsZoneIsOnTheNodesAndAKeyThatIsNowhereIsSaidOnce) {
  World world({.nodes = 3});
  const auto near = [&](const char* name, const char* key) {
    world.create(
        fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: {}, labels: {{security: S1}}}}\nspec: {{affinity: {{podAffinity: "
                    "{{requiredDuringSchedulingIgnoredDuringExecution: [{{labelSelector: {{matchExpressions: [{{key: security, "
                    "operator: In, values: [S1]}}]}}, topologyKey: {}}}]}}}}, containers: [{{name: c, image: nginx}}]}}\n",
                    name, key));
  };
  near("first", "failure-domain.beta.kubernetes.io/zone");
  near("second", "failure-domain.beta.kubernetes.io/zone");
  near("lost", "example.com/rack");
  world.run(seconds(600));
  EXPECT_EQ(world.running(), 2u);
  const auto told = notes_of(world, "lost", "TopologyKeyNotFound");
  ASSERT_EQ(told.size(), 1u) << "though it was tried again and again";
  EXPECT_TRUE(told[0].starts_with("No node has the label example.com/rack, which the pod's podAffinity names as topologyKey; nodes have "))
      << told[0];
  EXPECT_NE(told[0].find("failure-domain.beta.kubernetes.io/zone"), std::string::npos) << told[0];
  EXPECT_TRUE(condition(world.get("", "pods", "lost"), "PodScheduled", "message").find("rack") == std::string::npos)
      << "the condition keeps kube-scheduler's words";
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

TEST(World, ARelabelBetweenDecisionAndBindingIsSeen) {
  std::vector<std::function<void()>> held;
  World* running = nullptr;
  WorldOptions options{.nodes = 2};
  options.intercept = [&](const net::HttpRequest& request, std::function<void(net::HttpResponse)>& done) {
    if (running == nullptr || request.method != "POST" || !request.path.ends_with("/binding")) return false;
    held.push_back([&, request, done] { running->client().transport()->send(request, done); });
    return true;
  };
  World world(options);
  running = &world;
  world.create("apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {app: web}}\nspec: {containers: [{name: c, image: i}]}\n");
  world.run(seconds(1));
  ASSERT_EQ(held.size(), 1U);
  client::Call call;
  call.verb = "patch";
  call.gvr = {"", "v1", "pods"};
  call.ns = "default";
  call.name = "a";
  call.content_type = "application/merge-patch+json";
  call.body = R"({"metadata":{"labels":{"app":"lonely"}}})";
  ASSERT_TRUE(world.client().call_and_wait(call));
  world.run(seconds(1));
  for (const auto& one : held) one();
  world.run(seconds(2));
  const auto seen = world.scheduler().cluster().find_pod("default/a");
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(*seen->view().meta.labels.get("app"), "lonely") << "who keeps away from such pods must know";
}

/// A node without a kubelet, whose status and taints the test writes itself.
class ByHand : public ::testing::Test {
 protected:
  void node(const std::string& name, const std::string& cpu, const std::string& taints = "[]") {
    world_.create(fmt::format(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: {}, labels: {{made: by-hand}}}}\nspec: {{taints: {}}}\nstatus: {{allocatable: "
        "{{cpu: \"{}\", memory: 8Gi, pods: \"10\"}}, conditions: [{{type: Ready, status: \"True\"}}]}}\n",
        name, taints, cpu));
    open(name, taints);
  }
  /// Replaces the taints, those that admission set included.
  void open(const std::string& name, const std::string& taints = "[]") {
    patch("nodes", name, "", fmt::format(R"({{"spec":{{"taints":{}}}}})", json::serialize(*json::parse_yaml(taints))));
  }
  void pod(const std::string& name, const std::string& cpu, const std::string& metadata = "", const std::string& spec = "") {
    world_.create(fmt::format(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {}{}}}\nspec: {{nodeSelector: {{made: by-hand}}{}, containers: [{{name: c, image: i, "
        "resources: {{requests: {{cpu: \"{}\"}}}}}}]}}\n",
        name, metadata, spec, cpu));
    world_.run(seconds(3));
  }
  void patch(const std::string& resource, const std::string& name, const std::string& subresource, const std::string& body) {
    client::Call call;
    call.verb = "patch";
    call.gvr = {"", "v1", resource};
    call.ns = resource == "pods" ? "default" : "";
    call.name = name;
    call.subresource = subresource;
    call.content_type = "application/merge-patch+json";
    call.body = body;
    const auto done = world_.client().call_and_wait(call);
    ASSERT_TRUE(done) << done.error().message;
  }
  std::string where(const std::string& pod) { return std::string(json::get_string(world_.get("", "pods", pod), {"spec", "nodeName"})); }
  std::string why(const std::string& pod, std::string_view field = "message") {
    return condition(world_.get("", "pods", pod), "PodScheduled", field);
  }

  World world_{{.nodes = 1}};
};

TEST_F(ByHand, ANodeThatComesTaintedIsUsedOnceItIsOpen) {
  node("small", "1");
  pod("p", "2");
  EXPECT_TRUE(why("p").starts_with("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match")) << why("p");
  node("late", "4", "[{key: k, effect: NoSchedule}]");
  world_.run(seconds(3));
  EXPECT_NE(why("p").find("1 node(s) had untolerated taint(s)"), std::string::npos) << why("p");
  open("late");
  world_.run(seconds(3));
  EXPECT_EQ(where("p"), "late");
}

TEST_F(ByHand, WhatIsSaidOfAPendingPodKeepsUpWithTheNodes) {
  node("one", "1");
  pod("p", "2");
  patch("nodes", "one", "", R"({"spec":{"unschedulable":true}})");
  world_.run(seconds(3));
  node("two", "4", "[{key: k, effect: NoSchedule}]");
  world_.run(seconds(3));
  EXPECT_TRUE(
      why("p").starts_with("0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated "
                           "taint(s), 1 node(s) were unschedulable."))
      << why("p");
}

TEST_F(ByHand, APodThatShrinksInPlaceMakesRoom) {
  node("one", "2");
  pod("big", "2");
  ASSERT_EQ(where("big"), "one");
  pod("p", "1");
  ASSERT_EQ(where("p"), "");
  patch("pods", "big", "resize", R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}})");
  const auto runs_with = [&](const char* cpu) {
    patch("pods", "big", "status",
          fmt::format(R"({{"status":{{"containerStatuses":[{{"name":"c","image":"i","imageID":"i","ready":true,"restartCount":0,)"
                      R"("resources":{{"requests":{{"cpu":"{0}"}}}},"allocatedResources":{{"cpu":"{0}"}}}}]}}}})",
                      cpu));
    world_.run(seconds(3));
  };
  runs_with("2");
  runs_with("1");
  EXPECT_EQ(where("p"), "one");
}

TEST_F(ByHand, APendingPodThatIsDeletedIsLeftAloneAndTheEventSaysSo) {
  node("one", "1");
  pod("p", "2", ", finalizers: [example.com/hold]");
  client::Call call;
  call.verb = "delete";
  call.gvr = {"", "v1", "pods"};
  call.ns = "default";
  call.name = "p";
  ASSERT_TRUE(world_.client().call_and_wait(call));
  world_.run(seconds(3));
  node("two", "4");
  world_.run(seconds(3));
  EXPECT_EQ(where("p"), "");
  auto page = world_.client().list_and_wait({"events.k8s.io", "v1", "events"}, "default");
  ASSERT_TRUE(page);
  EXPECT_TRUE(std::ranges::any_of(page->items, [](const json::Value& one) {
    return json::get_string(one, {"note"}) == "skip schedule deleting pod: default/p" &&
           json::get_string(one, {"reason"}) == "FailedScheduling" && json::get_string(one, {"type"}) == "Warning";
  }));
}

TEST(World, WithoutNodesPodsAreUnschedulableNotInError) {
  World world({.nodes = 0});
  world.create(deployment_yaml("web", 1, "100m"));
  world.run(seconds(10));
  ASSERT_EQ(world.pods().size(), 1u);
  EXPECT_EQ(condition(world.pods()[0], "PodScheduled", "reason"), "Unschedulable");
  EXPECT_EQ(condition(world.pods()[0], "PodScheduled", "message"), "no nodes available to schedule pods");
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

TEST(World, ABindingThatMeansAnotherPodBindsNobody) {
  World world;
  world.create("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {schedulerName: somebody, containers: [{name: c, image: nginx}]}\n");
  const json::Value pod = world.get("", "pods", "p");
  const auto bind = [&](const std::string& metadata) {
    client::Call call{.verb = "create", .gvr = {"", "v1", "pods"}, .ns = "default", .name = "p", .subresource = "binding"};
    call.body = fmt::format(
        R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"p"{}}},"target":{{"kind":"Node","name":"node-1"}}}})", metadata);
    const auto answer = world.client().call_and_wait(std::move(call));
    return answer ? 201 : answer.error().code;
  };
  EXPECT_EQ(bind(R"(,"uid":"another")"), 409);
  EXPECT_EQ(bind(R"(,"resourceVersion":"1")"), 409);
  EXPECT_EQ(json::get_string(world.get("", "pods", "p"), {"spec", "nodeName"}), "");
  EXPECT_EQ(bind(fmt::format(R"(,"uid":"{}","resourceVersion":"{}")", json::get_string(pod, {"metadata", "uid"}),
                             json::get_string(pod, {"metadata", "resourceVersion"}))),
            201);
  EXPECT_EQ(json::get_string(world.get("", "pods", "p"), {"spec", "nodeName"}), "node-1");
  EXPECT_EQ(bind(""), 409) << "it is assigned already";
}

}  // namespace
}  // namespace berth::integration
