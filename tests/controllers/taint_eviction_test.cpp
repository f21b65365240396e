// Pods leave tainted nodes (SPEC D2), and pods that nobody else removes are collected: the rules one by one.
#include "tests/controllers/node_world.h"

namespace berth::controllers {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::FakeApi;
using testing::NodeWorld;
using testing::yaml;

TEST(TaintEviction, ThePodIsMarkedBeforeItIsDeleted) {
  NodeWorld world;
  std::vector<std::string> writes;
  json::Value condition;
  world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.kind != kinds().pod) return std::nullopt;
    writes.emplace_back(write.verb == Write::Verb::kPatch ? "patch " + write.subresource : "delete");
    if (write.verb == Write::Verb::kPatch) condition = json::get_array(write.body, {"status", "conditions"}).at(0);
    return std::nullopt;
  };
  world.put_pod("p", "n0", "[]");
  world.taint("[{key: k, effect: NoExecute}]");
  world.run(seconds(1), 1);
  EXPECT_EQ(writes, (std::vector<std::string>{"patch status", "delete"}));
  EXPECT_EQ(json::get_string(condition, {"type"}), "DisruptionTarget");
  EXPECT_EQ(json::get_string(condition, {"status"}), "True");
  EXPECT_EQ(json::get_string(condition, {"reason"}), "DeletionByTaintManager");
  EXPECT_EQ(json::get_string(condition, {"message"}), "Taint manager: deleting due to NoExecute taint");
}

TEST(TaintEviction, ARefusedDeletionIsTriedAgain) {
  NodeWorld world;
  int refused = 0;
  world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.kind != kinds().pod || write.verb != Write::Verb::kDelete || refused == 3) return std::nullopt;
    ++refused;
    return model::internal_error("the store is away");
  };
  world.put_pod("p", "n0", "[]");
  world.taint("[{key: k, effect: NoExecute}]");
  world.run(seconds(5), 1);
  EXPECT_EQ(refused, 3);
  EXPECT_FALSE(world.has_pod("p"));
}

TEST(TaintEviction, ATolerationThatComesInTheLastMomentCounts) {
  NodeWorld world;
  bool has_come = false;
  world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.kind == kinds().pod && !std::exchange(has_come, true)) world.put_pod("p", "n0", "[{operator: Exists}]");
    return std::nullopt;
  };
  world.put_pod("p", "n0", "[]");
  world.taint("[{key: k, effect: NoExecute}]");
  world.run(seconds(5), 1);
  EXPECT_TRUE(has_come);
  EXPECT_TRUE(world.has_pod("p"));
}

TEST(TaintEviction, ANamesakeOfAnEvictedPodIsNeitherMarkedNorDeleted) {
  NodeWorld world;
  bool is_replaced = false;
  world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.kind != kinds().pod || std::exchange(is_replaced, true)) return std::nullopt;
    world.api.erase(kinds().pod, "default", "p");
    world.put_pod("p", "n1", "[]");
    return std::nullopt;
  };
  world.put_pod("p", "n0", "[]");
  world.taint("[{key: k, effect: NoExecute}]");
  world.run(seconds(5), 1);
  EXPECT_TRUE(is_replaced);
  ASSERT_TRUE(world.has_pod("p"));
  EXPECT_EQ(find_condition(world.api.get(kinds().pod, "p"), "DisruptionTarget"), nullptr);
}

TEST(TaintEviction, ANamesakeThatCameBeforeTheAnswerIsEvictedAsWell) {
  NodeWorld world;
  int deletions = 0;
  world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.kind != kinds().pod || write.verb != Write::Verb::kDelete || ++deletions > 1) return std::nullopt;
    world.api.erase(kinds().pod, "default", "p");
    world.put_pod("p", "n0", "[]");
    return model::not_found("", "pods", "p");
  };
  world.put_pod("p", "n0", "[]");
  world.taint("[{key: k, effect: NoExecute}]");
  world.run(seconds(30), 1);
  EXPECT_EQ(deletions, 2);
  EXPECT_FALSE(world.has_pod("p"));
}

TEST(TaintEviction, NoughtAndLessMeanAtOnce) {
  NodeWorld world;
  world.put_pod("nought", "n0", "[{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 0}]");
  world.put_pod("less", "n0", "[{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: -5}]");
  world.taint("[{key: k, effect: NoExecute}]");
  world.run(seconds(1), 1);
  EXPECT_FALSE(world.has_pod("nought"));
  EXPECT_FALSE(world.has_pod("less"));
}

TEST(TaintEviction, TheFirstTolerationThatMatchesATaintCounts) {
  NodeWorld world;
  world.put_pod("stays", "n0",
                "[{key: k, operator: Exists, effect: NoExecute}, {key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]");
  world.put_pod("other-value", "n0", "[{key: k, value: w, effect: NoExecute}]");
  world.put_pod("everything", "n0", "[{operator: Exists}]");
  world.put_pod("wrong-effect", "n0", "[{key: k, operator: Exists, effect: NoSchedule}]");
  world.taint("[{key: k, value: v, effect: NoExecute}]");
  world.run(seconds(20), 1);
  EXPECT_TRUE(world.has_pod("stays"));
  EXPECT_TRUE(world.has_pod("everything"));
  EXPECT_FALSE(world.has_pod("other-value"));
  EXPECT_FALSE(world.has_pod("wrong-effect"));
}

TEST(TaintEviction, APodThatComesToATaintedNodeHasItsWholeTime) {
  NodeWorld world;
  world.taint("[{key: k, effect: NoExecute}]");
  world.run(minutes(10), 1);
  world.put_pod("p", "n0", "[{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]");
  world.run(seconds(58), 1);
  EXPECT_TRUE(world.has_pod("p"));
  world.run(seconds(4), 1);
  EXPECT_FALSE(world.has_pod("p"));
}

TEST(TaintEviction, AnotherMachinesClockNeitherShortensNorLengthensAStay) {
  for (const seconds off : {seconds(-600), seconds(600)}) {
    NodeWorld world;
    world.taint(fmt::format("[{{key: k, effect: NoExecute, timeAdded: '{}'}}]", format_rfc3339(world.loop.now() + off)));
    world.run(minutes(2), 1);
    world.api.put(kinds().pod,
                  yaml(fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{nodeName: n0, tolerations: [{{key: k, "
                                   "operator: Exists, effect: NoExecute, tolerationSeconds: 60}}]}}, status: {{phase: Running, "
                                   "conditions: [{{type: PodScheduled, status: 'True', lastTransitionTime: '{}'}}]}}}}",
                                   format_rfc3339(world.loop.now() + off))));
    world.run(seconds(58), 1);
    EXPECT_TRUE(world.has_pod("p")) << off.count();
    world.run(seconds(4), 1);
    EXPECT_FALSE(world.has_pod("p")) << off.count();
  }
}

TEST(TaintEviction, ATolerationAddedLaterKeepsThePod) {
  NodeWorld world;
  world.put_pod("p", "n0", "[{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 30}]");
  world.taint("[{key: k, effect: NoExecute}]");
  world.run(seconds(10), 1);
  json::Value pod = world.api.get(kinds().pod, "p");
  json::set(pod, {"spec", "tolerations"}, yaml("[{key: k, operator: Exists, effect: NoExecute}]"));
  world.api.put(kinds().pod, pod);
  world.run(minutes(5), 1);
  EXPECT_TRUE(world.has_pod("p"));
}

TEST(TaintEviction, TimersOfTaintsWithoutATimeGoOnAfterARestart) {
  NodeWorld world;
  world.put_pod("p", "n0", "[{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 100}]");
  world.taint("[{key: k, effect: NoExecute}]");
  world.run(seconds(90), 1);
  world.api.engine.stop();
  // Another process finds what the API has.
  FakeApi next{world.loop};
  next.engine.add(make_taint_eviction_controller());
  for (const auto& [key, document] : world.api.objects) next.put(std::get<0>(key), document);
  next.engine.start();
  world.loop.run_for(seconds(7));
  EXPECT_FALSE(next.get(kinds().pod, "p").is_null());
  world.loop.run_for(seconds(5));
  EXPECT_TRUE(next.get(kinds().pod, "p").is_null()) << "100 s after the taint, not after the restart";
}

TEST(TaintEviction, ATaintIsDatedOnceHoweverManyWaitForIt) {
  NodeWorld world;
  int dated = 0;
  world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    dated += write.kind == kinds().node && json::find(write.body, {"spec", "taints"}) != nullptr;
    return std::nullopt;
  };
  world.put_pod("p", "n0", "[{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 600}]");
  world.taint("[{key: k, effect: NoExecute}]");
  world.run(seconds(10), 1);
  EXPECT_EQ(dated, 1);
  world.put_pod("q", "n0", "[{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 600}]");
  world.run(seconds(10), 1);
  EXPECT_EQ(dated, 1);
  world.taint("[{key: other, effect: NoExecute}]");
  world.put_pod("p", "n0", "[{key: other, operator: Exists, effect: NoExecute, tolerationSeconds: 600}]");
  world.run(seconds(10), 1);
  EXPECT_EQ(dated, 2) << "another taint";
}

TEST(TaintEviction, OfSeveralTaintsTheOneWhoseTimeIsOverFirstCounts) {
  for (const bool short_first : {true, false}) {
    NodeWorld world;
    const std::string hasty = "{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 20}",
                      patient = "{key: b, operator: Exists, effect: NoExecute, tolerationSeconds: 300}";
    world.put_pod("p", "n0", fmt::format("[{}, {}]", hasty, patient));
    world.taint(short_first ? "[{key: a, effect: NoExecute}, {key: b, effect: NoExecute}]"
                            : "[{key: b, effect: NoExecute}, {key: a, effect: NoExecute}]");
    world.run(seconds(15), 1);
    EXPECT_TRUE(world.has_pod("p"));
    world.run(seconds(10), 1);
    EXPECT_FALSE(world.has_pod("p")) << short_first;
  }
}

TEST(TaintEviction, TaintsNobodyWaitsForAreLeftAsTheyAre) {
  NodeWorld world;
  world.put_pod("p", "n0", "[{key: k, operator: Exists, effect: NoExecute}]");
  world.taint("[{key: k, effect: NoExecute}]");
  world.run(seconds(30), 1);
  EXPECT_EQ(json::serialize(*json::find(world.api.get(kinds().node, "n0"), {"spec", "taints"})), R"([{"key":"k","effect":"NoExecute"}])");
}

struct GarbageWorld {
  VirtualLoop loop{testing::kStart};
  FakeApi api{loop};
  explicit GarbageWorld(PodGarbageCollectorOptions options = {}) {
    api.engine.add(make_pod_garbage_collector(options));
    api.put(kinds().node,
            yaml("{apiVersion: v1, kind: Node, metadata: {name: n0}, status: {conditions: [{type: Ready, status: 'True'}]}}"));
    api.engine.start();
  }
  void put(const std::string& name, const std::string& node, const std::string& status, const std::string& metadata = "") {
    api.put(kinds().pod, yaml(fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}{}}}, spec: {{nodeName: '{}'}}, status: {}}}",
                                          name, metadata, node, status)));
  }
  bool has(const std::string& name) { return !api.get(kinds().pod, name).is_null(); }
};

TEST(PodGarbage, PodsOfADeletedNodeGoAfterTheQuarantineMarkedAsDisrupted) {
  GarbageWorld world;
  json::Value marked;
  world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.verb == Write::Verb::kPatch) marked = write.body;
    return std::nullopt;
  };
  world.put("p", "n0", "{phase: Running}");
  world.loop.run_for(seconds(5));
  world.api.erase(kinds().node, "", "n0");
  world.loop.run_for(seconds(35));
  EXPECT_TRUE(world.has("p"));
  world.loop.run_for(seconds(30));
  EXPECT_FALSE(world.has("p"));
  EXPECT_EQ(json::get_string(marked, {"status", "phase"}), "Failed");
  const json::Value condition = json::get_array(marked, {"status", "conditions"}).at(0);
  EXPECT_EQ(json::get_string(condition, {"reason"}), "DeletionByPodGC");
  EXPECT_EQ(json::get_string(condition, {"message"}), "PodGC: node no longer exists");
}

TEST(PodGarbage, ANodeThatComesBackInTimeKeepsItsPods) {
  GarbageWorld world;
  world.put("p", "n0", "{phase: Running}");
  world.loop.run_for(seconds(5));
  const json::Value node = world.api.get(kinds().node, "n0");
  world.api.erase(kinds().node, "", "n0");
  world.loop.run_for(seconds(30));
  world.api.put(kinds().node, node);
  world.loop.run_for(minutes(5));
  EXPECT_TRUE(world.has("p"));
}

TEST(PodGarbage, FinishedPodsBeyondTheThresholdGoTheEvictedFirstThenTheOldest) {
  PodGarbageCollectorOptions options;
  options.terminated_pod_threshold = 2;
  GarbageWorld world(options);
  const auto born = [](int minute) { return fmt::format(", creationTimestamp: '2026-01-05T09:{:02}:00Z'", minute); };
  world.put("old", "n0", "{phase: Succeeded}", born(1));
  world.put("newer", "n0", "{phase: Failed}", born(2));
  world.put("newest", "n0", "{phase: Succeeded}", born(3));
  world.put("evicted", "n0", "{phase: Failed, reason: Evicted}", born(4));
  world.put("runs", "n0", "{phase: Running}", born(0));
  world.loop.run_for(minutes(1));
  EXPECT_FALSE(world.has("evicted"));
  EXPECT_FALSE(world.has("old"));
  EXPECT_TRUE(world.has("newer"));
  EXPECT_TRUE(world.has("newest"));
  EXPECT_TRUE(world.has("runs"));
}

TEST(PodGarbage, TerminatingPodsGoWhereNobodyCanEndThem) {
  GarbageWorld world;
  const std::string deleting = ", deletionTimestamp: '2026-01-05T09:00:00Z', finalizers: []";
  world.put("nowhere", "", "{phase: Pending}", deleting);
  world.put("here", "n0", "{phase: Running}", deleting);
  world.loop.run_for(seconds(30));
  EXPECT_FALSE(world.has("nowhere"));
  EXPECT_TRUE(world.has("here")) << "its kubelet ends it";
  json::Value node = world.api.get(kinds().node, "n0");
  json::set(node, {"spec", "taints"}, yaml("[{key: node.kubernetes.io/out-of-service, value: nodeshutdown, effect: NoExecute}]"));
  world.api.put(kinds().node, node);
  world.loop.run_for(seconds(30));
  EXPECT_TRUE(world.has("here")) << "the node still is Ready";
  json::set(node, {"status", "conditions"}, yaml("[{type: Ready, status: Unknown}]"));
  world.api.put(kinds().node, node);
  world.loop.run_for(seconds(30));
  EXPECT_FALSE(world.has("here"));
}

TEST(TaintEviction, APodOnItsWayOutIsMarkedOnceAllTheSame) {
  NodeWorld world;
  world.put_pod("p", "n0", "[]");
  json::Value ending = world.api.get(kinds().pod, "p");
  json::set(ending, {"metadata", "deletionTimestamp"}, "2026-01-05T10:00:00Z");
  json::set(ending, {"metadata", "generation"}, 2);
  json::set(ending, {"metadata", "finalizers"}, json::Array{"example.com/hold"});
  world.api.put(kinds().pod, ending);
  world.taint("[{key: k, effect: NoExecute}]");
  world.run(seconds(3), 1);
  EXPECT_EQ(std::ranges::count(world.api.events, "TaintManagerEviction: Marking for deletion Pod default/p"), 1);
  const json::Value pod = world.api.get(kinds().pod, "p");
  const json::Value* condition = find_condition(pod, "DisruptionTarget");
  ASSERT_NE(condition, nullptr);
  EXPECT_EQ(json::get_int(*condition, {"observedGeneration"}), 2);
}

TEST(TaintEviction, APodThatGoesBeforeItsTimeCancelsIt) {
  NodeWorld world;
  world.put_pod("p", "n0", "[{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]");
  world.taint("[{key: k, effect: NoExecute}]");
  world.run(seconds(2), 1);
  world.api.erase(kinds().pod, "default", "p");
  world.run(seconds(2), 1);
  EXPECT_TRUE(world.api.saw("TaintManagerEviction: Cancelling deletion of Pod default/p"));
}

TEST(NodeTtl, GrowsWithTheCluster) {
  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
  api.engine.add(make_node_ttl_controller());
  api.engine.start();
  const auto put = [&](int i) {
    api.put(kinds().node, yaml(fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: n{}}}}}", i)));
    loop.run_for(seconds(1));
    return std::string(
        json::get_string(api.get(kinds().node, fmt::format("n{}", i)), {"metadata", "annotations", "node.alpha.kubernetes.io/ttl"}));
  };
  for (int i = 0; i < 100; ++i) EXPECT_EQ(put(i), "0");
  EXPECT_EQ(put(100), "15");
  for (int i = 20; i < 35; ++i) api.erase(kinds().node, "", fmt::format("n{}", i));
  loop.run_for(seconds(1));
  EXPECT_EQ(put(200), "0") << "below ninety it shrinks again";
}

TEST(TaintEviction, AnotherValueIsAnotherTaint) {
  NodeWorld world;
  world.put_pod("old", "n0", "[{key: k, value: v, effect: NoExecute}]");
  world.put_pod("any", "n0", "[{key: k, operator: Exists, effect: NoExecute}]");
  world.taint("[{key: k, value: v, effect: NoExecute}]");
  world.run(seconds(5), 1);
  EXPECT_TRUE(world.has_pod("old"));
  world.taint("[{key: k, value: w, effect: NoExecute}]");
  world.run(seconds(5), 1);
  EXPECT_FALSE(world.has_pod("old"));
  EXPECT_TRUE(world.has_pod("any"));
}

}  // namespace
}  // namespace berth::controllers
