// Fleets of simulated nodes under a virtual clock.
#include <gtest/gtest.h>

#include "tests/node/simulated_pods.h"

namespace berth::node::simulated {
namespace {

using namespace std::chrono_literals;

/// Answers every write as a server would, and keeps what was written.
struct FakeServer {
  Fleet fleet;
  TimePoint now = kStart;
  std::vector<Write> writes;
  explicit FakeServer(FleetOptions o = {}) : fleet(std::move(o)) {}
  void drain(int code = 200) {
    while (auto write = fleet.next_write(now)) {
      writes.push_back(*write);
      fleet.finish_write(*write, {code, "uid-" + write->name, "1"}, now);
    }
  }
  void run_until(TimePoint until) {
    drain();
    while (const auto next = fleet.next_wake()) {
      if (*next > until) break;
      now = std::max(now, *next);
      fleet.advance(now);
      drain();
    }
    now = until;
  }
  [[nodiscard]] int count(Write::Kind kind) const {
    return static_cast<int>(std::ranges::count_if(writes, [&](const Write& w) { return w.kind == kind; }));
  }
};

Fleet::NodeSpec node_spec(int i) { return {"node-" + std::to_string(i + 1), "zone-a", "region-1", i, {}}; }

TEST(Fleet, RegistersNodesAndRenewsTheirLeasesEvenly) {
  FakeServer server;
  for (int i = 0; i < 1000; ++i) server.fleet.add_node(node_spec(i), kStart);
  server.run_until(kStart);
  EXPECT_EQ(server.count(Write::Kind::kCreateNode), 1000);
  EXPECT_EQ(server.count(Write::Kind::kNodeStatus), 1000);
  EXPECT_EQ(server.count(Write::Kind::kCreateLease), 1000);
  EXPECT_EQ(server.fleet.ready_count(), 1000u);
  server.run_until(kStart + 15s);
  server.writes.clear();
  server.run_until(kStart + 16s);
  EXPECT_NEAR(server.count(Write::Kind::kRenewLease), 100, 10) << "a tenth of the nodes in a tenth of the period";
  server.writes.clear();
  server.run_until(kStart + 5min + 20s);
  EXPECT_NEAR(server.count(Write::Kind::kNodeStatus), 1000, 20) << "one status heartbeat each";
}

TEST(Fleet, PodsReportBeforeNodesThatMerelyLiveUntilLeasesAreLate) {
  FakeServer server;
  for (int i = 0; i < 100; ++i) server.fleet.add_node(node_spec(i), kStart);
  server.run_until(kStart);
  for (int i = 0; i < 100; ++i) server.fleet.observe_pod(simple_pod("p" + std::to_string(i)), server.now);
  const auto kinds_of_the_next = [&](int count) {
    std::map<Write::Kind, int> out;
    for (; count > 0; --count) {
      const auto write = server.fleet.next_write(server.now);
      if (!write) break;
      ++out[write->kind];
    }
    return out;
  };
  using Kinds = std::map<Write::Kind, int>;
  // All heartbeats are due, and wait with all pods.
  server.now = kStart + 11s;
  server.fleet.advance(server.now);
  EXPECT_EQ(kinds_of_the_next(40), (Kinds{{Write::Kind::kPodStatus, 40}}));
  server.now = kStart + 31s;
  EXPECT_EQ(kinds_of_the_next(100).count(Write::Kind::kPodStatus), 0U) << "nodes would soon be taken for lost";
  EXPECT_EQ(kinds_of_the_next(100), (Kinds{{Write::Kind::kPodStatus, 60}}));
}

TEST(Fleet, ALeaseThatHasNoTimeToLoseIsRenewedBeforeAnyPodReports) {
  FleetOptions options;
  options.lease_period = 40s;  // As long as the Lease lasts.
  FakeServer server(options);
  server.fleet.add_node(node_spec(0), kStart);
  server.run_until(kStart);
  server.now = kStart + 39s;
  for (int i = 0; i < 10; ++i) server.fleet.observe_pod(simple_pod("p" + std::to_string(i)), server.now);
  EXPECT_EQ(server.fleet.next_write(server.now)->kind, Write::Kind::kPodStatus);
  server.now = kStart + 40s;
  server.fleet.advance(server.now);
  EXPECT_EQ(server.fleet.next_write(server.now)->kind, Write::Kind::kNodeStatus) << "its first report is due as well";
  server.fleet.finish_write({Write::Kind::kNodeStatus, "", "node-1", "", ""}, {}, server.now);
  EXPECT_EQ(server.fleet.next_write(server.now)->kind, Write::Kind::kRenewLease);
  EXPECT_EQ(server.fleet.next_write(server.now)->kind, Write::Kind::kPodStatus);
}

TEST(Fleet, HeartbeatsGoOnOnceNoPodHasReportedForAWhile) {
  FakeServer server;
  for (int i = 0; i < 10; ++i) server.fleet.add_node(node_spec(i), kStart);
  server.run_until(kStart + 15s);
  server.fleet.observe_pod(simple_pod("p"), server.now);
  server.drain();
  server.writes.clear();
  server.run_until(server.now + 10s);
  EXPECT_EQ(server.count(Write::Kind::kRenewLease), 10) << "none is lost, none comes twice";
}

TEST(Fleet, NewNodesAreMadeHoweverMuchPodsHaveToTell) {
  FakeServer server;
  server.fleet.add_node(node_spec(0), kStart);
  server.run_until(kStart);
  for (int i = 0; i < 100; ++i) server.fleet.observe_pod(simple_pod("p" + std::to_string(i)), server.now);
  server.fleet.add_node(node_spec(1), server.now);
  int before = 0;
  for (auto write = server.fleet.next_write(server.now); write && write->kind != Write::Kind::kCreateNode;
       write = server.fleet.next_write(server.now))
    ++before;
  EXPECT_LE(before, 1) << "they take turns";
}

TEST(Fleet, RenewsAndReportsAsItsKubeletsAreTold) {
  FleetOptions options;
  options.kubelet.node_lease_duration_seconds = 80;
  options.kubelet.node_status_report_frequency_ns = 25'000'000'000;
  FakeServer server(options);
  server.fleet.add_node(node_spec(0), kStart);
  server.run_until(kStart + 5s);
  server.writes.clear();
  server.run_until(kStart + 105s);
  EXPECT_EQ(server.count(Write::Kind::kRenewLease), 5);
  EXPECT_EQ(server.count(Write::Kind::kNodeStatus), 4);
  EXPECT_NE(server.writes.back().body.find(R"("leaseDurationSeconds":80)"), std::string::npos) << server.writes.back().body;
}

TEST(Fleet, OnePatchStartsAPodAndOneDeleteEndsIt) {
  FakeServer server;
  server.fleet.add_node(node_spec(0), kStart);
  server.run_until(kStart);
  server.writes.clear();
  json::Value pod = simple_pod("a");
  server.fleet.observe_pod(pod, server.now);
  server.drain();
  ASSERT_EQ(server.writes.size(), 1u);
  EXPECT_EQ(server.writes[0].kind, Write::Kind::kPodStatus);
  EXPECT_NE(server.writes[0].body.find(R"("phase":"Running")"), std::string::npos);
  EXPECT_NE(server.writes[0].body.find(R"("uid":"uid-a")"), std::string::npos) << "a pod made anew under the name must not get this status";
  server.writes.clear();
  json::set(pod, {"metadata", "deletionTimestamp"}, "2026-01-01T00:00:30Z");
  json::set(pod, {"metadata", "deletionGracePeriodSeconds"}, 30);
  server.fleet.observe_pod(pod, server.now);
  server.run_until(kStart + 100ms);
  EXPECT_TRUE(server.writes.empty()) << "its containers are still stopping";
  server.run_until(kStart + 1s);
  ASSERT_EQ(server.writes.size(), 1u);
  EXPECT_EQ(server.writes[0].kind, Write::Kind::kDeletePod);
  EXPECT_EQ(server.writes[0].uid, "uid-a");
  server.fleet.forget_pod("uid-a");
  EXPECT_EQ(server.fleet.pod_count(), 0u);
}

TEST(Fleet, APodWithFinalizersShowsHowItEndedBeforeItIsDeleted) {
  FakeServer server;
  server.fleet.add_node(node_spec(0), kStart);
  json::Value pod = simple_pod("a");
  json::set(pod, {"metadata", "finalizers"}, json::Array{"batch.kubernetes.io/job-tracking"});
  server.fleet.observe_pod(pod, server.now);
  server.run_until(kStart);
  server.writes.clear();
  json::set(pod, {"metadata", "deletionTimestamp"}, "2026-01-01T00:00:30Z");
  server.fleet.observe_pod(pod, server.now);
  server.run_until(kStart + 5s);
  ASSERT_EQ(server.writes.size(), 2u);
  EXPECT_NE(server.writes[0].body.find(R"("phase":"Failed")"), std::string::npos);
  EXPECT_EQ(server.writes[1].kind, Write::Kind::kDeletePod);
}

TEST(Fleet, LeavesOthersNodesAndPodsAlone) {
  FakeServer server;
  EXPECT_FALSE(server.fleet.adopt_node(*json::parse(R"({"metadata":{"name":"ks-1-a","uid":"u"}})"), {}, kStart));
  EXPECT_FALSE(server.fleet.adopt_node(*json::parse(R"({"metadata":{"name":"x","uid":"u","annotations":{"sim.berth.dev/fleet":"other"}}})"),
                                       {}, kStart));
  server.fleet.observe_pod(simple_pod("a"), kStart);
  server.run_until(kStart + 1min);
  EXPECT_TRUE(server.writes.empty());
}

TEST(Fleet, TakesOverAFormerProcessesNodesAndPods) {
  FakeServer server;
  const json::Value node =
      *json::parse(R"({"metadata":{"name":"node-7","uid":"u7","annotations":{"sim.berth.dev/fleet":"default","sim.berth.dev/index":"6"}},
      "status":{"capacity":{"cpu":"4","memory":"8Gi","pods":"20"},"allocatable":{"cpu":"3","memory":"7Gi","pods":"20"},
      "conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2025-06-01T00:00:00Z"}]}})");
  ASSERT_TRUE(server.fleet.adopt_node(node, {}, kStart));
  server.run_until(kStart);
  EXPECT_EQ(server.count(Write::Kind::kCreateNode), 0);
  const std::string& status = server.writes.at(0).body;
  EXPECT_NE(status.find(R"("cpu":"3")"), std::string::npos);
  EXPECT_NE(status.find("2025-06-01T00:00:00Z"), std::string::npos) << "it has been ready all the time";
}

TEST(Fleet, APodThatWasElsewhereTellsItsAddressesOnceInThePlaceOfOthers) {
  FakeServer server;
  server.fleet.add_node(node_spec(0), server.now);
  server.drain();
  json::Value pod = simple_pod("a");
  json::set(pod, {"status"}, *json::parse(R"({"phase":"Running","hostIP":"192.168.7.7","hostIPs":[{"ip":"192.168.7.7"}]})"));
  const auto last_host = [&] {
    std::string out;
    for (const Write& write : server.writes)
      if (const auto body = json::parse(write.body); write.kind == Write::Kind::kPodStatus)
        for (const json::Value& one : json::get_array(*body, {"status", "hostIPs"})) out = json::serialize(one);
    return out;
  };
  server.fleet.observe_pod(pod, server.now);
  server.drain(500);
  EXPECT_EQ(last_host(), R"({"$patch":"replace"})");
  server.run_until(server.now + 10s);
  EXPECT_EQ(last_host(), R"({"$patch":"replace"})") << "nobody took the first";
  json::set(pod, {"metadata", "annotations", "sim.berth.dev/ready"}, "false");
  server.fleet.observe_pod(pod, server.now);
  server.drain();
  EXPECT_EQ(last_host(), R"({"ip":"172.16.0.1"})") << "it is known now";
}

TEST(Fleet, ResourcesOfANodesAnnotationComeOverTheFleetsOwn) {
  FakeServer server;
  const json::Value node = *json::parse(R"({"metadata":{"name":"n","uid":"u","annotations":{"sim.berth.dev/fleet":"default",
      "sim.berth.dev/capacity":"cpu=4"}}})");
  ASSERT_TRUE(server.fleet.adopt_node(node, {}, kStart));
  server.run_until(kStart);
  const json::Value status = json::parse(server.writes.at(0).body)->at("status");
  for (const char* list : {"capacity", "allocatable"}) {
    EXPECT_EQ(json::get_string(status, {list, "cpu"}), "4") << list;
    EXPECT_EQ(json::get_string(status, {list, "pods"}), "110") << list;
  }
}

TEST(Fleet, AHundredThousandNodesHaveAddressesOfTheirOwn) {
  const auto network = [](int index) {
    Fleet fleet{FleetOptions{}};
    fleet.add_node(node_spec(index), kStart);
    return std::string(json::get_string(*json::parse(fleet.next_write(kStart)->body), {"spec", "podCIDR"}));
  };
  EXPECT_EQ(network(59'999), "10.249.249.0/24");
  EXPECT_EQ(network(60'000), "240.0.0.0/24");
  EXPECT_EQ(network(60'256), "240.1.0.0/24");
  FakeServer server;
  ASSERT_TRUE(
      server.fleet.adopt_node(*json::parse(R"({"metadata":{"name":"node-1","uid":"u","annotations":{"sim.berth.dev/fleet":"default"}},
                       "spec":{"podCIDR":"241.0.7.0/24"}})"),
                              {}, kStart));
  server.run_until(kStart);
  server.writes.clear();
  server.fleet.observe_pod(simple_pod("a"), server.now);
  server.drain();
  EXPECT_NE(server.writes.at(0).body.find(R"("podIP":"241.0.7.2")"), std::string::npos) << server.writes.at(0).body;
}

TEST(Fleet, ADeadNodeFallsSilentAndComesBack) {
  FakeServer server;
  server.fleet.add_node(node_spec(0), kStart);
  server.run_until(kStart);
  json::Value node = *json::parse(
      R"({"metadata":{"name":"node-1","uid":"uid-node-1","annotations":{"sim.berth.dev/fleet":"default","sim.berth.dev/dead":"true"}}})");
  server.fleet.observe_node(node, server.now);
  server.writes.clear();
  server.fleet.observe_pod(simple_pod("a"), server.now);
  server.run_until(kStart + 2min);
  EXPECT_TRUE(server.writes.empty());
  json::erase(node, {"metadata", "annotations", "sim.berth.dev/dead"});
  server.fleet.observe_node(node, server.now);
  server.run_until(kStart + 2min + 10s);
  EXPECT_GE(server.count(Write::Kind::kNodeStatus), 1);
  EXPECT_GE(server.count(Write::Kind::kRenewLease), 1);
  EXPECT_EQ(server.count(Write::Kind::kPodStatus), 1);
}

TEST(Fleet, RetriesWhatTheServerCouldNotTake) {
  FakeServer server;
  server.fleet.add_node(node_spec(0), kStart);
  server.run_until(kStart);
  server.fleet.observe_pod(simple_pod("a"), server.now);
  server.writes.clear();
  server.drain(503);
  ASSERT_EQ(server.writes.size(), 1u);
  server.run_until(kStart + 2s);
  EXPECT_EQ(server.count(Write::Kind::kPodStatus), 2);
}

TEST(Fleet, ANodeThatRunsOutOfMemoryEvictsTheRightPodAndRecovers) {
  FleetOptions options;
  options.kubelet.eviction_hard = eviction::StatementMap{{"memory.available", "1Gi"}};
  options.kubelet.eviction_pressure_transition_period_ns = 30'000'000'000;
  FakeServer server(options);
  Fleet::NodeSpec spec = node_spec(0);
  spec.node_template.change([](NodeTemplate& one) { one.capacity["memory"] = "8Gi"; });
  server.fleet.add_node(spec, kStart);
  const json::Value hog = simple_pod("hog", R"({"sim.berth.dev/memory":"0s=1Gi,2m=9Gi"})");
  const json::Value good = pod_document("good", R"({"nodeName":"node-1","restartPolicy":"Always","containers":[{"name":"c","image":"x",
      "resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1","memory":"1Gi"}}}]})");
  server.fleet.set_document_source([&](const std::string&, const std::string& name) { return std::optional(name == "hog" ? hog : good); });
  server.fleet.observe_pod(hog, kStart);
  server.fleet.observe_pod(good, kStart);
  server.run_until(kStart + 1min);
  EXPECT_EQ(server.fleet.find_pod("default", "hog")->phase(), PodPhase::kRunning);
  server.run_until(kStart + 85s);  // Above 6 Gi after 75 s.
  const PodSimulation* evicted = server.fleet.find_pod("default", "hog");
  EXPECT_EQ(evicted->state().failure_reason, "Evicted");
  EXPECT_TRUE(evicted->state().failure_message.starts_with("The node was low on resource: memory. Threshold quantity: 1Gi, available: "))
      << evicted->state().failure_message;
  EXPECT_EQ(server.fleet.find_pod("default", "good")->phase(), PodPhase::kRunning);
  const auto last_status = [&] {
    for (auto it = server.writes.rbegin(); it != server.writes.rend(); ++it)
      if (it->kind == Write::Kind::kNodeStatus) return it->body;
    return std::string();
  };
  EXPECT_NE(last_status().find("KubeletHasInsufficientMemory"), std::string::npos) << last_status();
  server.run_until(kStart + 2min);
  EXPECT_NE(last_status().find("KubeletHasSufficientMemory"), std::string::npos) << "after the transition period";
}

TEST(Fleet, AContainerOverItsLimitIsOomKilledAndRestarted) {
  FakeServer server;
  server.fleet.add_node(node_spec(0), kStart);
  server.fleet.observe_pod(
      pod_document(
          "leak",
          R"({"nodeName":"node-1","restartPolicy":"Always","containers":[{"name":"c","image":"x","resources":{"limits":{"memory":"100Mi"}}}]})",
          R"({"sim.berth.dev/memory":"0s=10Mi,1m=200Mi"})"),
      kStart);
  server.run_until(kStart + 1min);
  const PodSimulation* pod = server.fleet.find_pod("default", "leak");
  EXPECT_EQ(pod->state().containers[0].restart_count, 1);
  ASSERT_TRUE(pod->state().containers[0].last);
  EXPECT_EQ(pod->state().containers[0].last->reason, "OOMKilled");
  EXPECT_EQ(pod->state().containers[0].last->exit_code, 137);
}

std::vector<json::Value> pod_statuses(Fleet& fleet, TimePoint now) {
  std::vector<json::Value> out;
  while (const auto write = fleet.next_write(now)) {
    if (write->kind == Write::Kind::kPodStatus) out.push_back(json::parse(write->body)->at("status"));
    fleet.finish_write(*write, {200, write->kind == Write::Kind::kCreateNode ? "node-uid" : "", ""}, now);
  }
  return out;
}

TEST(Fleet, ANodeRefusesWhatItHasNoRoomForInTheKubeletsWords) {
  Fleet fleet{FleetOptions{}};
  Fleet::NodeSpec spec;
  spec.name = "node-1";
  spec.node_template.change([](NodeTemplate& one) { one.capacity = {{"cpu", "2"}, {"memory", "1Gi"}, {"pods", "2"}}; });
  fleet.add_node(spec, kStart);
  const auto admit = [&](std::string_view name, std::string_view container, std::string_view more = "") {
    fleet.observe_pod(pod_document(name, fmt::format(R"({{"nodeName":"node-1",{}"containers":[{{"name":"c",{}}}]}})", more, container)),
                      kStart);
    return pod_statuses(fleet, kStart).back();
  };
  EXPECT_EQ(json::get_string(admit("first", R"("resources":{"requests":{"cpu":"1500m"}},"ports":[{"containerPort":1,"hostPort":80}])"),
                             {"phase"}),
            "Running");
  const json::Value refused = admit("second", R"("resources":{"requests":{"cpu":"501m"}})");
  EXPECT_EQ(json::get_string(refused, {"phase"}), "Failed");
  EXPECT_EQ(json::get_string(refused, {"reason"}), "OutOfcpu");
  EXPECT_EQ(json::get_string(refused, {"message"}),
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 501, used: 1500, capacity: 2000");
  EXPECT_FALSE(json::find(refused, "containerStatuses")) << "nothing was ever started";
  EXPECT_EQ(json::get_string(admit("memory", R"("resources":{"requests":{"memory":"2Gi"}})"), {"reason"}), "OutOfmemory");
  EXPECT_EQ(json::get_string(admit("port", R"("ports":[{"containerPort":1,"hostPort":80}])"), {"reason"}), "NodePorts");
  EXPECT_EQ(json::get_string(admit("elsewhere", R"("image":"x")", R"("nodeSelector":{"zone":"b"},)"), {"reason"}), "NodeAffinity");
  EXPECT_EQ(json::get_string(admit("third", R"("resources":{"requests":{"cpu":"500m"}})"), {"phase"}), "Running");
  const json::Value full = admit("fourth", R"("image":"x")");
  EXPECT_EQ(json::get_string(full, {"message"}),
            "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2");
}

TEST(Fleet, ALabelThatComesAfterItsPodStillCounts) {
  Fleet fleet{FleetOptions{}};
  const json::Value pod = pod_document("a", R"({"nodeName":"node-1","nodeSelector":{"zone":"b"},"containers":[{"name":"c","image":"x"}]})");
  fleet.set_document_source([&](const std::string&, const std::string&) { return std::optional<json::Value>(pod); });
  Fleet::NodeSpec spec;
  spec.name = "node-1";
  fleet.add_node(spec, kStart);
  fleet.observe_pod(pod, kStart);
  EXPECT_TRUE(pod_statuses(fleet, kStart).empty()) << "neither started nor refused yet";
  fleet.observe_node(*json::parse(R"({"metadata":{"name":"node-1","uid":"node-uid","labels":{"zone":"b"},
    "annotations":{"sim.berth.dev/fleet":"default"}}})"),
                     kStart + 500ms);
  fleet.advance(kStart + 1s);
  const std::vector<json::Value> statuses = pod_statuses(fleet, kStart + 1s);
  ASSERT_FALSE(statuses.empty());
  EXPECT_EQ(json::get_string(statuses.back(), {"phase"}), "Running");
}

TEST(Fleet, OfThoseDueAtOnceTheFirstComesFirst) {
  // Memory that earlier ones left is used again in an order of its own.
  FakeServer server;
  const auto add_nodes = [&](int first) {
    for (int i = first; i < first + 20; ++i) server.fleet.add_node(node_spec(i), kStart);
  };
  add_nodes(0);
  server.run_until(kStart);
  for (int i = 0; i < 20; ++i) server.fleet.observe_pod(simple_pod(fmt::format("old-{}", i)), server.now);
  server.drain();
  for (int i = 19; i >= 0; --i) server.fleet.forget_pod(fmt::format("uid-old-{}", i * 7 % 20));
  std::vector<std::string> expected, got;
  for (int i = 0; i < 20; ++i) {
    const std::string name = fmt::format("new-{:02}", i);
    server.fleet.observe_pod(simple_pod(name, R"({"sim.berth.dev/start-delay":"2s"})"), server.now);
    expected.push_back(name);
  }
  server.drain();
  server.writes.clear();
  server.run_until(server.now + 3s);
  for (const Write& write : server.writes)
    if (write.kind == Write::Kind::kPodStatus) got.push_back(write.name);
  EXPECT_EQ(got, expected);
}

TEST(Fleet, GoneNodesAreNotWrittenAgain) {
  FakeServer server;
  server.fleet.add_node(node_spec(0), kStart);
  server.fleet.observe_pod(simple_pod("a"), kStart);
  server.run_until(kStart);
  server.fleet.remove_node("node-1");
  server.writes.clear();
  server.run_until(kStart + 10min);
  EXPECT_TRUE(server.writes.empty());
  EXPECT_EQ(server.fleet.pod_count(), 0u);
}

}  // namespace
}  // namespace berth::node::simulated
