// Simulated nodes whose process ends and begins anew in the middle of it all.
#include <map>

#include "tests/integration/world.h"

namespace berth::integration {
namespace {

using std::chrono::seconds;

class SimulatedNodeStories : public ::testing::Test {
 protected:
  void bound_pod(const std::string& name, const std::string& more = "") {
    world_.create(fmt::format(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{nodeName: {}, {} containers: [{{name: c, image: nginx}}]}}\n", name,
        node_, more));
  }
  std::map<std::string, std::string> addresses() {
    std::map<std::string, std::string> out;
    for (const json::Value& pod : world_.pods())
      out[std::string(json::get_string(pod, {"metadata", "name"}))] = json::get_string(pod, {"status", "podIP"});
    return out;
  }

  World world_{{.nodes = 1}};
  const std::string node_ = "node-1";
};

TEST_F(SimulatedNodeStories, WhoCameWhileNobodyWasThereGetsNoAddressOfThoseWhoRun) {
  for (const char* name : {"m", "r", "z"}) bound_pod(name);
  world_.run(seconds(5));
  const auto before = addresses();
  ASSERT_EQ(before.size(), 3U);
  world_.stop_nodes();
  // They are listed before, between and behind those that run.
  for (const char* name : {"a", "mm", "zz"}) bound_pod(name);
  world_.start_nodes();
  world_.run(seconds(5));
  std::map<std::string, std::string> holders;
  for (const auto& [name, address] : addresses()) {
    EXPECT_NE(address, "") << name;
    const auto [other, is_new] = holders.emplace(address, name);
    EXPECT_TRUE(is_new) << address << " is " << name << "'s and " << other->second << "'s";
    if (before.contains(name)) {
      EXPECT_EQ(address, before.at(name)) << name;
    }
  }
  EXPECT_EQ(holders.size(), 6U);
}

TEST_F(SimulatedNodeStories, ANodeKeepsItsAddressThoughOneThatHasNoneYetIsListedBefore) {
  const auto address_of = [&](const std::string& node) {
    const json::Value object = world_.get("", "nodes", node);
    for (const json::Value& address : json::get_array(object, {"status", "addresses"}))
      if (json::get_string(address, {"type"}) == "InternalIP") return std::string(json::get_string(address, {"address"}));
    return std::string();
  };
  world_.run(seconds(5));
  const std::string before = address_of(node_);
  ASSERT_NE(before, "");
  world_.stop_nodes();
  world_.create("apiVersion: v1\nkind: Node\nmetadata: {name: a, annotations: {sim.berth.dev/fleet: default}}\n");
  world_.start_nodes();
  world_.run(seconds(5));
  EXPECT_EQ(address_of(node_), before);
  const std::string of_a = address_of("a");
  EXPECT_NE(of_a, "");
  EXPECT_NE(of_a, before);
  // What it told is its own from then on, too.
  world_.stop_nodes();
  world_.create("apiVersion: v1\nkind: Node\nmetadata: {name: '0', annotations: {sim.berth.dev/fleet: default}}\n");
  world_.start_nodes();
  world_.run(seconds(5));
  EXPECT_EQ(address_of("a"), of_a);
}

TEST_F(SimulatedNodeStories, APodWhoseNodeHasAnotherAddressThanItsStatusTellsSaysSo) {
  bound_pod("a");
  world_.run(seconds(5));
  const json::Value told = world_.get("", "pods", "a");
  world_.stop_nodes();
  client::Call call{.verb = "patch", .gvr = {"", "v1", "pods"}, .ns = "default", .name = "a", .subresource = "status"};
  call.content_type = "application/merge-patch+json";
  call.body = R"({"status":{"hostIP":"192.168.7.7","hostIPs":[{"ip":"192.168.7.7"}],)"
              R"("conditions":[{"type":"Ready","status":"False","reason":"NodeNotReady"}]}})";
  ASSERT_TRUE(world_.client().call_and_wait(std::move(call)));
  world_.start_nodes();
  world_.run(seconds(5));
  const json::Value now = world_.get("", "pods", "a");
  for (const char* field : {"hostIP", "hostIPs"})
    EXPECT_EQ(json::serialize(*json::find(now, {"status", field})), json::serialize(*json::find(told, {"status", field})));
}

TEST_F(SimulatedNodeStories, WhatANodeControllerSaysOfAPodThatRunsIsSetRight) {
  bound_pod("a");
  world_.run(seconds(5));
  const auto readiness = [&] {
    const json::Value pod = world_.get("", "pods", "a");
    for (const json::Value& condition : json::get_array(pod, {"status", "conditions"}))
      if (json::get_string(condition, {"type"}) == "Ready") return std::string(json::get_string(condition, {"status"}));
    return std::string();
  };
  ASSERT_EQ(readiness(), "True");
  for (int i = 0; i < 2; ++i) {
    client::Call call{.verb = "patch", .gvr = {"", "v1", "pods"}, .ns = "default", .name = "a", .subresource = "status"};
    call.content_type = "application/strategic-merge-patch+json";
    call.body = R"({"status":{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})";
    ASSERT_TRUE(world_.client().call_and_wait(std::move(call)));
    EXPECT_EQ(readiness(), "False");
    world_.run(seconds(2));
    EXPECT_EQ(readiness(), "True") << "the node is alive, and its word counts";
  }
  const json::Value then = world_.get("", "pods", "a");
  world_.run(seconds(60));
  const json::Value now = world_.get("", "pods", "a");
  EXPECT_EQ(json::get_string(now, {"metadata", "resourceVersion"}), json::get_string(then, {"metadata", "resourceVersion"}))
      << "and is not said again";
}

TEST_F(SimulatedNodeStories, WhatIsAskedOfAPodThatRunsIsTaken) {
  world_.create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {nodeName: node-1, containers: [{name: c, image: nginx, resources: "
      "{requests: {cpu: 50m}}}]}\n");
  world_.run(seconds(5));
  const auto patch = [&](const char* subresource, const char* body) {
    client::Call call{.verb = "patch", .gvr = {"", "v1", "pods"}, .ns = "default", .name = "a", .subresource = subresource};
    call.content_type = "application/strategic-merge-patch+json";
    call.body = body;
    EXPECT_TRUE(world_.client().call_and_wait(std::move(call)));
    world_.run(seconds(5));
    json::Value pod = world_.get("", "pods", "a");
    EXPECT_EQ(json::get_int(pod, {"status", "observedGeneration"}), json::get_int(pod, {"metadata", "generation"}));
    return pod;
  };
  json::Value pod = patch("", R"({"spec":{"containers":[{"name":"c","image":"nginx:2"}]}})");
  EXPECT_EQ(json::get_string(json::get_array(pod, {"status", "containerStatuses"})[0], {"image"}), "nginx:2");
  EXPECT_EQ(json::get_int(json::get_array(pod, {"status", "containerStatuses"})[0], {"restartCount"}), 1);
  pod = patch("resize", R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"100m"}}}]}})");
  EXPECT_EQ(json::get_string(json::get_array(pod, {"status", "containerStatuses"})[0], {"allocatedResources", "cpu"}), "100m");
  pod = patch("ephemeralcontainers", R"({"spec":{"ephemeralContainers":[{"name":"shell","image":"busybox"}]}})");
  ASSERT_EQ(json::get_array(pod, {"status", "ephemeralContainerStatuses"}).size(), 1U);
  EXPECT_NE(json::find(json::get_array(pod, {"status", "ephemeralContainerStatuses"})[0], {"state", "running"}), nullptr);
}

/// More nodes than may have a report under way.
TEST(SimulatedNodesInGreatNumber, ThoseWhoWaitForAnswersLetTheOthersGoOn) {
  std::vector<std::function<void(net::HttpResponse)>> unanswered;
  bool holds = false;
  WorldOptions options{.nodes = 300};
  options.intercept_nodes = [&](const net::HttpRequest& request, std::function<void(net::HttpResponse)>& done) {
    if (!holds || request.path.find("/leases/") == std::string::npos) return false;
    unanswered.push_back(std::move(done));
    return true;
  };
  World world(options);
  holds = true;
  world.run(seconds(15));
  EXPECT_EQ(unanswered.size(), 256U) << "no more are sent";
  world.create("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: nginx}]}\n");
  holds = false;
  for (const auto& done : std::exchange(unanswered, {})) done({200, {}, "{}"});
  world.run(seconds(60));
  for (const json::Value& pod : world.pods()) EXPECT_EQ(json::get_string(pod, {"status", "phase"}), "Running");
  EXPECT_TRUE(unanswered.empty());
}

}  // namespace
}  // namespace berth::integration
