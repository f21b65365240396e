// The rules of the node life cycle one by one (SPEC D3, D4): heartbeats, conditions, taints, zones and their rates.
#include "controllers/zones.h"
#include "tests/controllers/node_world.h"

namespace berth::controllers {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::NodeWorld;
using testing::yaml;

NodeLifecycleOptions with_grace(Duration grace) {
  NodeLifecycleOptions options;
  options.monitor_grace_period = grace;
  return options;
}

const auto kOneZone = [](int) { return 0; };

TEST(NodeLifecycle, TheGracePeriodEndsWhenItIsOverAndNotBefore) {
  NodeWorld world(2, with_grace(seconds(40)));
  world.put_condition("n1", "NetworkUnavailable", "False");
  world.put_condition("n1", "MemoryPressure", "True");
  const TimePoint last = world.loop.now();
  world.run(seconds(40), 1);
  EXPECT_EQ(condition_status(world.api.get(kinds().node, "n1"), "Ready"), "True");
  world.run(seconds(1), 1);
  const json::Value node = world.api.get(kinds().node, "n1");
  for (const char* type : {"Ready", "MemoryPressure"}) {
    const json::Value* condition = find_condition(node, type);
    ASSERT_NE(condition, nullptr) << type;
    EXPECT_EQ(json::get_string(*condition, {"status"}), "Unknown") << type;
    EXPECT_EQ(json::get_string(*condition, {"reason"}), "NodeStatusUnknown") << type;
    EXPECT_EQ(json::get_string(*condition, {"message"}), "Kubelet stopped posting node status.") << type;
  }
  EXPECT_EQ(json::get_string(*find_condition(node, "MemoryPressure"), {"lastHeartbeatTime"}), format_rfc3339(last))
      << "the last sign of life stays visible";
  EXPECT_EQ(json::get_string(*find_condition(node, "DiskPressure"), {"reason"}), "NodeStatusNeverUpdated");
  EXPECT_EQ(condition_status(node, "NetworkUnavailable"), "False") << "the network's state is not the kubelet's to tell";
}

TEST(NodeLifecycle, ANodeThatNeverReportsGetsTheStartupGracePeriod) {
  NodeWorld world;
  world.api.put(kinds().node, yaml("{apiVersion: v1, kind: Node, metadata: {name: fresh}, spec: {}}"));
  world.run(seconds(59), 1);
  EXPECT_EQ(find_condition(world.api.get(kinds().node, "fresh"), "Ready"), nullptr);
  world.run(seconds(3), 1);
  const json::Value node = world.api.get(kinds().node, "fresh");
  for (const char* type : {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}) {
    const json::Value* condition = find_condition(node, type);
    ASSERT_NE(condition, nullptr) << type;
    EXPECT_EQ(json::get_string(*condition, {"status"}), "Unknown");
    EXPECT_EQ(json::get_string(*condition, {"reason"}), "NodeStatusNeverUpdated");
    EXPECT_EQ(json::get_string(*condition, {"message"}), "Kubelet never posted node status.");
    EXPECT_EQ(json::get_string(*condition, {"lastHeartbeatTime"}), json::get_string(node, {"metadata", "creationTimestamp"}));
  }
}

TEST(NodeLifecycle, ANodeThatWasWellForLongIsLookedAtWhenItChangesAndWhenItFallsSilent) {
  NodeWorld world(2, with_grace(seconds(40)));
  world.run(minutes(5), 2);
  world.taint(fmt::format("[{{key: '{}', effect: NoSchedule}}, {{key: mine, effect: NoSchedule}}]", kTaintNotReady));
  world.run(seconds(10), 2);
  EXPECT_FALSE(world.has_taint("n0", kTaintNotReady, "NoSchedule")) << "nothing asks for it";
  EXPECT_TRUE(world.has_taint("n0", "mine", "NoSchedule"));
  world.put_condition("n0", "DiskPressure", "True");
  world.run(minutes(2), 2);
  EXPECT_TRUE(world.has_taint("n0", kTaintDiskPressure, "NoSchedule"));
  world.run(seconds(41), 0);
  EXPECT_EQ(condition_status(world.api.get(kinds().node, "n0"), "Ready"), "Unknown");
  world.run(seconds(10), 2);
  world.put_condition("n0", "Ready", "True");
  world.run(minutes(1), 2);
  EXPECT_FALSE(world.has_taint("n0", kTaintUnreachable, "NoSchedule"));
  world.run(seconds(41), 0);
  EXPECT_EQ(condition_status(world.api.get(kinds().node, "n0"), "Ready"), "Unknown") << "and again";
}

TEST(NodeLifecycle, TimeInWhichTheControllerHadNoTurnIsNoSilence) {
  struct NoKeys : KeySink {
    void add(std::string, Duration) override {}
  } sink;
  const auto controller = make_node_lifecycle_controller(with_grace(seconds(40)));
  Cache cache;
  const auto show = [&](Kind kind, const char* text, TimePoint now) {
    controller->on_event(cache.apply(kind, std::make_shared<client::Object>(yaml(text)), false), cache, now, sink);
  };
  TimePoint now = testing::kStart;
  show(kinds().node, "{apiVersion: v1, kind: Node, metadata: {name: n0}, status: {conditions: [{type: Ready, status: 'True'}]}}", now);
  const auto is_lost = [&] {
    const Plan plan = controller->reconcile("node/n0", now, cache);
    return std::ranges::any_of(plan.writes, [](const Write& write) { return write.subresource == "status"; });
  };
  const auto listen = [&](Duration time) {
    for (const TimePoint until = now + time; now < until;) controller->reconcile("zones", now += seconds(5), cache);
  };
  listen(seconds(30));
  EXPECT_FALSE(is_lost());
  now += minutes(10);  // A laptop that was closed.
  EXPECT_FALSE(is_lost()) << "it listened for half a minute";
  listen(seconds(10));
  EXPECT_FALSE(is_lost());
  listen(seconds(5));
  EXPECT_TRUE(is_lost()) << "and has now heard nothing for longer than the grace period";
}

TEST(NodeLifecycle, StatusAloneIsASignOfLife) {
  NodeWorld world(2);
  for (int i = 0; i < 6; ++i) {
    world.put_condition("n1", "Ready", "True");
    world.run(seconds(40), 1);
  }
  EXPECT_EQ(condition_status(world.api.get(kinds().node, "n1"), "Ready"), "True");
}

TEST(NodeLifecycle, AReportThatSaysNothingNewMendsWhatWasMeantToBeMended) {
  NodeWorld world(2, with_grace(seconds(40)));
  world.put_condition("n1", "Ready", "True");
  world.run(seconds(10), 1);
  for (int i = 0; i < 3; ++i) {
    world.put_condition("n1", "Ready", "True");
    world.run(seconds(39), 1);
    EXPECT_EQ(condition_status(world.api.get(kinds().node, "n1"), "Ready"), "True") << "it speaks by its status alone";
  }
  world.run(seconds(2), 1);
  EXPECT_EQ(condition_status(world.api.get(kinds().node, "n1"), "Ready"), "Unknown") << "and then no more";
  EXPECT_TRUE(world.has_taint("n1", kTaintUnreachable, "NoExecute"));
}

TEST(NodeLifecycle, EachConditionHasItsTaint) {
  struct Case {
    const char *type, *status, *taint;
  };
  for (const Case& c : {Case{"MemoryPressure", "True", kTaintMemoryPressure}, Case{"DiskPressure", "True", kTaintDiskPressure},
                        Case{"PIDPressure", "True", kTaintPidPressure}, Case{"NetworkUnavailable", "True", kTaintNetworkUnavailable},
                        Case{"Ready", "False", kTaintNotReady}, Case{"Ready", "Unknown", kTaintUnreachable}}) {
    NodeWorld world(2, {}, kOneZone);
    world.put_condition("n0", c.type, c.status);
    world.run(seconds(1), 2);
    EXPECT_TRUE(world.has_taint("n0", c.taint, "NoSchedule")) << c.type;
    EXPECT_EQ(world.has_taint("n0", c.taint, "NoExecute"), std::string_view(c.type) == "Ready") << c.type << ": only readiness evicts";
    world.put_condition("n0", c.type, std::string_view(c.type) == "Ready" ? "True" : "False");
    world.run(seconds(1), 2);
    EXPECT_TRUE(node_taints(world.api.get(kinds().node, "n0")).empty()) << c.type << ": gone with the condition";
  }
  NodeWorld world;
  world.put_condition("n0", "MemoryPressure", "Unknown");
  world.run(seconds(1), 1);
  EXPECT_TRUE(node_taints(world.api.get(kinds().node, "n0")).empty()) << "unknown pressure is no pressure";
}

TEST(NodeLifecycle, NotReadyAndUnreachableReplaceEachOtherAtOnce) {
  NodeWorld world(4, {}, kOneZone);
  world.put_condition("n0", "Ready", "False");
  world.put_condition("n1", "Ready", "False");
  world.run(seconds(1), 4);
  const bool first = world.has_taint("n0", kTaintNotReady, "NoExecute");
  const std::string had = first ? "n0" : "n1", waits = first ? "n1" : "n0";
  EXPECT_FALSE(world.has_taint(waits, kTaintNotReady, "NoExecute")) << "its turn comes ten seconds later";
  world.put_condition(had, "Ready", "Unknown");
  world.run(seconds(1), 4);
  EXPECT_TRUE(world.has_taint(had, kTaintUnreachable, "NoExecute")) << "no second turn is needed";
  EXPECT_FALSE(world.has_taint(had, kTaintNotReady, "NoExecute"));
  EXPECT_FALSE(world.has_taint(waits, kTaintNotReady, "NoExecute"));
}

TEST(NodeLifecycle, PodsOfALostNodeAreNotReadyAndTheEventsSaySo) {
  NodeWorld world(4);
  world.put_pod("p", "n3", "[{operator: Exists}]");
  json::Value pod = world.api.get(kinds().pod, "p");
  pod.at("status").at("conditions").as_array()[0].get_object()["reason"] = "Own";
  world.api.put(kinds().pod, pod);
  world.run(minutes(1), 3);
  pod = world.api.get(kinds().pod, "p");
  EXPECT_EQ(condition_status(pod, "Ready"), "False");
  EXPECT_TRUE(world.api.saw("NodeNotReady: Node n3 status is now: NodeNotReady"));
  EXPECT_TRUE(world.api.saw("NodeNotReady: Node is not ready"));
  EXPECT_TRUE(world.api.saw("RegisteredNode: Node n3 event: Registered Node n3 in Controller"));
  world.api.erase(kinds().node, "", "n3");
  world.run(seconds(1), 3);
  EXPECT_TRUE(world.api.saw("RemovingNode: Node n3 event: Removing Node n3 from Controller"));
}

TEST(NodeLifecycle, AKubeletThatIsNotReadySpeaksForItsPods) {
  NodeWorld world(2);
  world.put_pod("p", "n1", "[{operator: Exists}]");
  world.put_condition("n1", "Ready", "False");
  world.run(seconds(20), 2);
  EXPECT_EQ(condition_status(world.api.get(kinds().pod, "p"), "Ready"), "True");
  EXPECT_FALSE(world.api.saw("NodeNotReady: Node n1 status is now: NodeNotReady"));
}

TEST(NodeLifecycle, OldLabelNamesFollowThePresentOnes) {
  NodeWorld world;
  json::Value node = world.api.get(kinds().node, "n0");
  json::set(node, {"metadata", "labels"}, yaml("{kubernetes.io/os: linux, kubernetes.io/arch: amd64, beta.kubernetes.io/arch: arm}"));
  world.api.put(kinds().node, node);
  world.run(seconds(1), 1);
  node = world.api.get(kinds().node, "n0");
  EXPECT_EQ(json::get_string(node, {"metadata", "labels", "beta.kubernetes.io/os"}), "linux");
  EXPECT_EQ(json::get_string(node, {"metadata", "labels", "beta.kubernetes.io/arch"}), "amd64");
}

TEST(NodeLifecycle, ZonesOldNameFollowsWhereANodeHasIt) {
  NodeWorld world;
  json::Value node = world.api.get(kinds().node, "n0");
  json::set(node, {"metadata", "labels"},
            yaml("{topology.kubernetes.io/zone: new, failure-domain.beta.kubernetes.io/zone: old, topology.kubernetes.io/region: r}"));
  world.api.put(kinds().node, node);
  world.run(seconds(1), 1);
  node = world.api.get(kinds().node, "n0");
  EXPECT_EQ(json::get_string(node, {"metadata", "labels", "failure-domain.beta.kubernetes.io/zone"}), "new");
  EXPECT_EQ(json::get_object(node, {"metadata", "labels"}).size(), 3U) << "a node that came without the old name keeps to the present one";
}

TEST(NodeLifecycle, AZoneIsEvictedAtExactlyItsRate) {
  // Nodes 0..3 are another zone and stay; zone 1 of a thousand is lost as a whole.
  NodeWorld world(1004, {}, [](int node) { return node < 4 ? 0 : 1; });
  world.run(seconds(60 + 10'000), 4);
  const std::vector<TimePoint> times = world.eviction_times();
  ASSERT_EQ(times.size(), 1000U);
  for (std::size_t i = 1; i < times.size(); ++i) EXPECT_GE(times[i] - times[i - 1], seconds(9)) << i;  // timeAdded is cut to the second.
  EXPECT_GE(times.back() - times.front(), seconds(9990 - 1));
  EXPECT_LE(times.back() - times.front(), seconds(9990 + 1)) << "0.1 a second, no more and no less";
}

TEST(NodeLifecycle, APartlyLostBigZoneGoesAtTheSecondaryRate) {
  NodeWorld world(64, {}, [](int node) { return node < 4 ? 0 : 1; });  // Zone 1 has 60 nodes.
  world.run(seconds(60 + 1000), 24);                                   // 40 of them fall silent.
  const std::vector<TimePoint> times = world.eviction_times();
  ASSERT_GE(times.size(), 10U);
  ASSERT_LE(times.size(), 12U) << "a hundredth a second, and the one or two whose turn came before the zone was known to be disrupted";
  for (std::size_t i = 3; i < times.size(); ++i) EXPECT_GE(times[i] - times[i - 1], seconds(99)) << i;
}

TEST(NodeLifecycle, APartlyLostSmallZoneStops) {
  NodeWorld world(54, {}, [](int node) { return node < 4 ? 0 : 1; });  // Zone 1 has 50 nodes.
  world.run(seconds(60 + 1000), 14);                                   // 40 of them fall silent.
  EXPECT_LE(world.eviction_times().size(), 1U);
}

TEST(NodeLifecycle, AllZonesDownTakesTheTaintsBackAndRecoveryGoesOn) {
  NodeWorld world(8);
  world.run(seconds(70), 7);
  EXPECT_EQ(world.eviction_times().size(), 1U);
  world.run(seconds(70), 0);
  EXPECT_TRUE(world.eviction_times().empty()) << "who sees nobody may be the one who is cut off";
  world.run(minutes(60), 0);
  EXPECT_TRUE(world.eviction_times().empty());
  for (int i = 0; i < 7; ++i) world.put_condition(fmt::format("n{}", i), "Ready", "True");
  world.run(seconds(20), 7);
  EXPECT_EQ(world.eviction_times().size(), 1U) << "the node that stayed away";
}

TEST(NodeLifecycle, ExcludedNodesDoNotCountForTheZone) {
  NodeWorld world(4, {}, kOneZone);
  for (int i = 1; i < 4; ++i) {
    json::Value node = world.api.get(kinds().node, fmt::format("n{}", i));
    json::set(node, {"metadata", "labels", "node.kubernetes.io/exclude-disruption"}, "");
    world.api.put(kinds().node, node);
  }
  world.run(seconds(100), 1);
  EXPECT_EQ(world.eviction_times().size(), 3U) << "three of four silent would have stopped a small zone";
}

// The arithmetic of zones alone.

std::map<std::string, Zones::Counts> zone(int ready, int not_ready) { return {{"z", {ready, not_ready}}, {"other", {1, 0}}}; }

TEST(Zones, StatesByThreshold) {
  struct Case {
    int ready, not_ready;
    ZoneState state;
  };
  for (const Case& c : {Case{10, 0, ZoneState::kNormal}, Case{1, 2, ZoneState::kNormal}, Case{2, 3, ZoneState::kPartialDisruption},
                        Case{46, 54, ZoneState::kNormal}, Case{45, 55, ZoneState::kPartialDisruption},
                        Case{1, 99, ZoneState::kPartialDisruption}, Case{0, 1, ZoneState::kFullDisruption}}) {
    Zones zones{NodeLifecycleOptions{}};
    zones.update(zone(c.ready, c.not_ready), TimePoint{} + seconds(1));
    EXPECT_EQ(zones.state("z"), c.state) << c.ready << " ready, " << c.not_ready << " not";
  }
}

TEST(Zones, TheSizeThresholdIsFiftyAndFiftyIsSmall) {
  for (const int size : {50, 51}) {
    Zones zones{NodeLifecycleOptions{}};
    TimePoint now = TimePoint{} + seconds(1);
    zones.update(zone(size - 40, 40), now);
    for (int i = 0; i < 40; ++i) zones.add("z", fmt::format("n{}", i));
    std::size_t taken = 0;
    for (int i = 0; i < 3600; ++i, now += seconds(1)) taken += zones.take(now).size();
    EXPECT_EQ(taken, size == 50 ? 0U : 36U) << size;
  }
}

TEST(Zones, NoIntervalHoldsMoreThanTheRateAllows) {
  Zones zones{NodeLifecycleOptions{}};
  TimePoint now = TimePoint{} + seconds(1);
  for (int i = 0; i < 200; ++i) zones.add("z", fmt::format("n{}", i));
  std::vector<TimePoint> times;
  // The zone's state changes to and fro: a change of the rate gives no turn for free.
  for (int i = 0; i < 20'000; ++i, now += milliseconds(100)) {
    zones.update(i / 50 % 2 == 0 ? zone(100, 100) : zone(60, 140), now);
    for (const std::string& node : zones.take(now)) {
      times.push_back(now);
      zones.remove(node);
    }
  }
  ASSERT_GT(times.size(), 50U);
  for (std::size_t i = 1; i < times.size(); ++i) EXPECT_GE(times[i] - times[i - 1], milliseconds(9'999)) << i;
}

TEST(Zones, ATaintThatFailedCostsNoTurn) {
  Zones zones{NodeLifecycleOptions{}};
  const TimePoint now = TimePoint{} + seconds(1);
  zones.update(zone(5, 2), now);
  zones.add("z", "a");
  zones.add("z", "b");
  ASSERT_EQ(zones.take(now), std::vector<std::string>{"a"});
  zones.put_back("a");
  EXPECT_EQ(zones.take(now), std::vector<std::string>{"a"});
  EXPECT_TRUE(zones.take(now + seconds(9)).empty());
  EXPECT_EQ(zones.take(now + seconds(10)), std::vector<std::string>{"b"});
}

TEST(NodeLifecycle, ALeaseThatIsWrittenAndNotRenewedIsNoSignOfLife) {
  NodeWorld world(2, with_grace(seconds(40)));
  json::Value lease = world.api.objects.at({kinds().lease, "kube-node-lease", "n1"});
  for (int i = 0; i < 5; ++i) {
    json::set(lease, {"metadata", "annotations", "touched"}, json::Value(std::to_string(i)));
    world.api.put(kinds().lease, lease);
    world.run(seconds(9), 1);
  }
  EXPECT_EQ(condition_status(world.api.get(kinds().node, "n1"), "Ready"), "Unknown");
}

/// Simulated nodes say once that they go on, and once that they do not.
TEST(NodeLifecycle, ASteadyLeaseNeedsNoRenewalUntilItSaysThatItEnded) {
  NodeWorld world(2, with_grace(seconds(40)));
  const auto say = [&](const std::string& heartbeats) {
    json::Value lease = world.api.objects.at({kinds().lease, "kube-node-lease", "n1"});
    json::set(lease, {"metadata", "annotations", "sim.berth.dev/heartbeats"}, json::Value(heartbeats));
    world.api.put(kinds().lease, lease);
  };
  const auto ready = [&] { return condition_status(world.api.get(kinds().node, "n1"), "Ready"); };
  say("steady");
  world.run(minutes(10), 1);
  EXPECT_EQ(ready(), "True");
  say("ended 10s ago");
  world.run(seconds(29), 1);
  EXPECT_EQ(ready(), "True") << "ten seconds of its forty are over";
  world.run(seconds(3), 1);
  EXPECT_EQ(ready(), "Unknown");
  world.beat(1);
  world.run(seconds(1), 2);
  world.put_condition("n1", "Ready", "True");
  say("steady");
  world.run(minutes(10), 1);
  EXPECT_EQ(ready(), "True");
  say("ended 50s ago");
  world.run(seconds(1), 1);
  EXPECT_EQ(ready(), "Unknown") << "at once";
}

TEST(NodeLifecycle, PodsAreMarkedEachTimeTheirNodeIsLost) {
  NodeWorld world(4);
  world.put_pod("p", "n3", "[{operator: Exists}]");
  const auto ready = [&] { return condition_status(world.api.get(kinds().pod, "p"), "Ready"); };
  world.run(minutes(1), 3);
  EXPECT_EQ(ready(), "False");
  for (int round = 0; round < 2; ++round) {
    world.beat(3);
    world.put_condition("n3", "Ready", "True");
    world.run(seconds(5), 4);
    json::Value pod = world.api.get(kinds().pod, "p");
    pod.at("status").at("conditions").as_array()[0].get_object()["status"] = "True";
    world.api.put(kinds().pod, pod);
    world.run(seconds(30), 4);
    EXPECT_EQ(ready(), "True") << round;
    world.run(minutes(1), 3);
    EXPECT_EQ(ready(), "False") << round;
  }
}

TEST(NodeLifecycle, ANodeThatIsGoneCountsNoMoreForItsZone) {
  NodeWorld world(4, {}, kOneZone);
  world.run(seconds(70), 2);
  for (const char* name : {"n2", "n3"}) world.api.erase(kinds().node, "", name);
  world.run(minutes(1), 2);
  world.run(seconds(80), 1);  // One of two: half of the zone, which is no disruption.
  EXPECT_TRUE(world.has_taint("n1", kTaintUnreachable, "NoExecute"));
}

}  // namespace
}  // namespace berth::controllers
