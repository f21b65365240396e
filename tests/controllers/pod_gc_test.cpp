// Pods that nobody else removes.
#include "controllers/cluster.h"
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

class PodGc : public ::testing::Test {
 protected:
  void start(std::int64_t threshold = 12500) {
    PodGarbageCollectorOptions options;
    options.terminated_pod_threshold = threshold;
    world.api.engine.add(make_pod_garbage_collector(options));
    world.api.put(kinds().node, yaml("{apiVersion: v1, kind: Node, metadata: {name: n1}}"));
    world.api.engine.start();
  }
  void pod(const std::string& name, const std::string& node, const char* phase, const std::string& meta = "") {
    world.api.put(kinds().pod,
                  yaml(fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: {}{}}}\nspec: {{nodeName: '{}'}}\nstatus: {{phase: {}}}\n",
                                   name, meta, node, phase)));
  }
  bool there(const char* name) const { return !world.api.get(kinds().pod, name).is_null(); }
  World world;
};

TEST_F(PodGc, PodsOfAMissingNodeGoAfterTheQuarantine) {
  start();
  pod("lost", "gone", "Running");
  pod("kept", "n1", "Running");
  std::string marked;
  world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.subresource == "status") marked = json::serialize(write.body);
    return std::nullopt;
  };
  world.loop.run_for(seconds(35));
  EXPECT_TRUE(there("lost"));
  world.loop.run_for(seconds(40));
  EXPECT_FALSE(there("lost"));
  EXPECT_TRUE(there("kept"));
  EXPECT_NE(marked.find("\"Failed\""), std::string::npos) << "marked before it goes: " << marked;
  EXPECT_NE(marked.find("DeletionByPodGC"), std::string::npos);
  EXPECT_NE(marked.find("PodGC: node no longer exists"), std::string::npos);
}

TEST_F(PodGc, ANodeThatComesBackKeepsItsPods) {
  start();
  pod("p", "late", "Running");
  world.loop.run_for(seconds(30));
  world.api.put(kinds().node, yaml("{apiVersion: v1, kind: Node, metadata: {name: late}}"));
  world.loop.run_for(minutes(5));
  EXPECT_TRUE(there("p"));
}

TEST_F(PodGc, ANodeThatWasFoundMissingIsAskedAboutAgainForTheNextPods) {
  start();
  int asked = 0;
  world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    asked += write.verb == Write::Verb::kGet;
    return std::nullopt;
  };
  pod("first", "late", "Running");
  world.loop.run_for(minutes(2));
  EXPECT_FALSE(there("first"));
  EXPECT_EQ(asked, 1);
  world.loop.run_for(minutes(2));
  // The server has the node by now, and the watch does not show it yet.
  world.api.hold_back(kinds().node);
  world.api.put(kinds().node, yaml("{apiVersion: v1, kind: Node, metadata: {name: late}}"));
  pod("second", "late", "Running");
  world.loop.run_for(minutes(2));
  EXPECT_TRUE(there("second"));
  EXPECT_GT(asked, 1);
}

TEST_F(PodGc, ANodeThatCameAndWentAgainIsAskedAboutAgain) {
  start();
  std::vector<std::string> asked;
  bool is_refused = true;
  world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.verb == Write::Verb::kGet) asked.push_back(write.name);
    if (write.verb == Write::Verb::kDelete && is_refused) return model::internal_error("not now");
    return std::nullopt;
  };
  pod("p", "late", "Running");
  world.loop.run_for(minutes(1));
  EXPECT_EQ(asked, std::vector<std::string>{"late"});
  world.api.put(kinds().node, yaml("{apiVersion: v1, kind: Node, metadata: {name: late}}"));
  world.api.erase(kinds().node, "", "late");
  is_refused = false;
  world.loop.run_for(seconds(30));
  EXPECT_TRUE(there("p")) << "it has the whole quarantine again";
  world.loop.run_for(minutes(1));
  EXPECT_FALSE(there("p"));
  EXPECT_EQ(asked, (std::vector<std::string>{"late", "late"}));
}

TEST_F(PodGc, TheOldestFinishedPodsGoBeyondTheThreshold) {
  start(2);
  for (int i = 0; i < 4; ++i)
    pod(fmt::format("done{}", i), "n1", i % 2 == 0 ? "Succeeded" : "Failed",
        fmt::format(", creationTimestamp: '2026-01-05T0{}:00:00Z'", i));
  pod("running", "n1", "Running", ", creationTimestamp: '2026-01-01T00:00:00Z'");
  world.loop.run_for(minutes(1));
  EXPECT_FALSE(there("done0"));
  EXPECT_FALSE(there("done1"));
  EXPECT_TRUE(there("done2"));
  EXPECT_TRUE(there("done3"));
  EXPECT_TRUE(there("running"));
}

TEST_F(PodGc, AThresholdOfZeroCollectsNone) {
  start(0);
  for (int i = 0; i < 4; ++i) pod(fmt::format("done{}", i), "n1", "Succeeded");
  world.loop.run_for(minutes(5));
  EXPECT_EQ(world.pods(), 4u);
}

TEST_F(PodGc, ATerminatingPodWithoutANodeGoes) {
  start();
  pod("p", "", "Pending", ", deletionTimestamp: '2026-01-05T09:00:00Z'");
  pod("waiting", "", "Pending");
  world.loop.run_for(minutes(1));
  EXPECT_FALSE(there("p"));
  EXPECT_TRUE(there("waiting"));
}

TEST_F(PodGc, TerminatingPodsOfANodeOutOfServiceGo) {
  start();
  world.api.put(kinds().node,
                yaml("{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {taints: [{key: node.kubernetes.io/out-of-service, value: "
                     "nodeshutdown, effect: NoExecute}]}, status: {conditions: [{type: Ready, status: Unknown}]}}"));
  pod("leaving", "n1", "Running", ", deletionTimestamp: '2026-01-05T09:00:00Z'");
  pod("staying", "n1", "Running");
  world.loop.run_for(minutes(1));
  EXPECT_FALSE(there("leaving"));
  EXPECT_TRUE(there("staying"));
}

TEST_F(PodGc, WhatHasEndedGoesAsItIs) {
  start();
  pod("done", "gone", "Succeeded");
  int patches = 0;
  world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    patches += write.verb == Write::Verb::kPatch;
    return std::nullopt;
  };
  world.loop.run_for(seconds(75));
  EXPECT_FALSE(there("done"));
  EXPECT_EQ(patches, 0) << "nobody disrupted it";
}

TEST_F(PodGc, PodsThatEndLaterAreCountedThen) {
  start(2);
  for (int i = 0; i < 3; ++i) pod(fmt::format("p{}", i), "n1", "Running", fmt::format(", creationTimestamp: '2026-01-05T0{}:00:00Z'", i));
  world.loop.run_for(minutes(1));
  EXPECT_EQ(world.pods(), 3u);
  for (int i = 2; i >= 0; --i) {
    json::Value one = world.api.get(kinds().pod, fmt::format("p{}", i));
    json::set(one, {"status", "phase"}, "Succeeded");
    world.api.put(kinds().pod, one);
  }
  world.loop.run_for(minutes(1));
  EXPECT_EQ(world.pods(), 2u);
  EXPECT_FALSE(there("p0"));
  pod("p3", "n1", "Failed", ", creationTimestamp: '2026-01-05T03:00:00Z'");
  world.loop.run_for(minutes(1));
  EXPECT_EQ(world.pods(), 2u) << "and again, each time";
  EXPECT_FALSE(there("p1"));
}

}  // namespace
}  // namespace berth::controllers
