#include "tests/controllers/node_world.h"

namespace berth::controllers {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::FakeApi;
using testing::kStart;
using testing::NodeWorld;
using testing::yaml;

TEST(NodeLifecycle, ASilentNodeBecomesUnknownIsTaintedAndComesBack) {
  NodeWorld world(4);
  world.put_pod("p", "n3", "[]");
  world.run(seconds(45), 3);
  EXPECT_EQ(condition_status(world.api.get(kinds().node, "n3"), "Ready"), "True");
  world.run(seconds(10), 3);
  const json::Value node = world.api.get(kinds().node, "n3");
  EXPECT_EQ(condition_status(node, "Ready"), "Unknown");
  EXPECT_EQ(json::get_string(*find_condition(node, "Ready"), {"reason"}), "NodeStatusUnknown");
  EXPECT_TRUE(world.has_taint("n3", kTaintUnreachable, "NoSchedule"));
  EXPECT_TRUE(world.has_taint("n3", kTaintUnreachable, "NoExecute"));
  EXPECT_FALSE(world.has_pod("p"));
  EXPECT_EQ(condition_status(world.api.get(kinds().node, "n0"), "Ready"), "True");
  json::Value back = node;
  json::set(back, {"status", "conditions"},
            json::Array{json::Object{{"type", "Ready"}, {"status", "True"}, {"lastHeartbeatTime", format_rfc3339(world.loop.now())}}});
  world.api.put(kinds().node, world.api.get(kinds().node, "n3"));
  json::set(back, {"spec"}, json::get_object(world.api.get(kinds().node, "n3"), {"spec"}));
  world.api.put(kinds().node, back);
  world.loop.run_for(std::chrono::milliseconds(500));
  EXPECT_TRUE(node_taints(world.api.get(kinds().node, "n3")).empty()) << "within a second of Ready";
}

TEST(NodeLifecycle, WhenAllNodesAreSilentNobodyIsEvicted) {
  NodeWorld world(6);
  world.put_pod("p", "n3", "[]");
  world.run(minutes(10), 0);
  EXPECT_EQ(condition_status(world.api.get(kinds().node, "n3"), "Ready"), "Unknown");
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(world.has_taint(fmt::format("n{}", i), kTaintUnreachable, "NoExecute")) << i;
}

TEST(NodeLifecycle, ConditionsAndCordonBecomeTaints) {
  NodeWorld world;
  json::Value node = world.api.get(kinds().node, "n0");
  json::set(node, {"spec", "unschedulable"}, true);
  json::set(node, {"spec", "taints"}, yaml("[{key: node.cloudprovider.kubernetes.io/uninitialized, value: 'true', effect: NoSchedule}]"));
  node.at("status").at("conditions").as_array().push_back(json::Object{{"type", "PIDPressure"}, {"status", "True"}});
  world.api.put(kinds().node, node);
  world.loop.run_for(seconds(1));
  EXPECT_TRUE(world.has_taint("n0", kTaintPidPressure, "NoSchedule"));
  EXPECT_TRUE(world.has_taint("n0", kTaintUnschedulable, "NoSchedule"));
  EXPECT_TRUE(world.has_taint("n0", "node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule")) << "somebody else's taint";
}

TEST(TaintEviction, GoesByTolerations) {
  NodeWorld world;
  world.put_pod("none", "n0", "[]");
  world.put_pod("forever", "n0", "[{key: k, operator: Exists, effect: NoExecute}]");
  world.put_pod("later", "n0", "[{key: k, operator: Equal, value: v, effect: NoExecute, tolerationSeconds: 3600}]");
  world.put_pod("smallest", "n0",
                "[{key: k, operator: Exists, tolerationSeconds: 3600}, {key: l, operator: Exists, tolerationSeconds: 60}]");
  world.taint("[{key: k, value: v, effect: NoSchedule}]");
  world.run(seconds(5), 1);
  EXPECT_TRUE(world.has_pod("none")) << "NoSchedule evicts nobody";
  world.taint("[{key: k, value: v, effect: NoExecute}]");
  world.run(seconds(5), 1);
  EXPECT_FALSE(world.has_pod("none"));
  EXPECT_TRUE(world.api.saw("TaintManagerEviction: Marking for deletion Pod default/none"));
  world.taint("[{key: k, value: v, effect: NoExecute}, {key: l, effect: NoExecute}]");
  world.run(seconds(50), 1);
  EXPECT_TRUE(world.has_pod("smallest"));
  EXPECT_FALSE(world.has_pod("later")) << "the second taint is not tolerated";
  world.run(seconds(20), 1);
  EXPECT_FALSE(world.has_pod("smallest")) << "the smallest tolerationSeconds counts";
}

TEST(TaintEviction, IsCancelledWhenTheTaintGoes) {
  NodeWorld world;
  world.put_pod("p", "n0", "[{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 30}]");
  world.taint("[{key: k, effect: NoExecute}]");
  world.run(seconds(20), 1);
  world.taint("[]");
  world.run(minutes(5), 1);
  EXPECT_TRUE(world.has_pod("p"));
  EXPECT_TRUE(world.api.saw("TaintManagerEviction: Cancelling deletion of Pod default/p"));
}

TEST(TaintEviction, TimersGoOnAfterARestart) {
  NodeWorld world;
  world.api.engine.stop();
  world.put_pod("p", "n0", "[{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]");
  world.taint(fmt::format("[{{key: k, effect: NoExecute, timeAdded: '{}'}}]", format_rfc3339(kStart - seconds(290))));
  json::Value pod = world.api.get(kinds().pod, "p");
  json::set(pod, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(kStart - minutes(60))));
  world.api.put(kinds().pod, pod);
  // Another process finds what the API has.
  testing::FakeApi next{world.loop};
  next.engine.add(make_taint_eviction_controller());
  for (const auto& [key, document] : world.api.objects) next.put(std::get<0>(key), document);
  next.engine.start();
  world.loop.run_for(seconds(8));
  EXPECT_FALSE(next.get(kinds().pod, "p").is_null());
  world.loop.run_for(seconds(4));
  EXPECT_TRUE(next.get(kinds().pod, "p").is_null());
}

}  // namespace
}  // namespace berth::controllers
