// DaemonSets under a virtual clock.
#include "model/internal_form.h"
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

TEST(DaemonSet, RunsOnMatchingNodesWithItsTolerations) {
  World world;
  world.api.engine.add(make_daemonset_controller());
  world.api.engine.start();
  for (const char* name : {"a", "b"})
    world.api.put(kinds().node, yaml(fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {}}}, spec: {{}}}}", name)));
  world.api.put(kinds().node, yaml("{apiVersion: v1, kind: Node, metadata: {name: c}, spec: {taints: [{key: k, effect: NoSchedule}]}}"));
  world.api.put(kinds().node, yaml("{apiVersion: v1, kind: Node, metadata: {name: d}, spec: {unschedulable: true, taints: [{key: "
                                   "node.kubernetes.io/unschedulable, effect: NoSchedule}]}}"));
  world.api.put(kinds().daemon_set, yaml(workload("DaemonSet", 0)));
  world.loop.run_for(seconds(2));
  EXPECT_EQ(world.pods(), 3u);
  EXPECT_EQ(json::get_int(world.api.get(kinds().daemon_set, "w"), {"status", "desiredNumberScheduled"}), 3);
  std::set<std::string> tolerated;
  const PodRef pod = make_pod_info(std::make_shared<Object>(world.api.all(kinds().pod)[0]));
  for (const Toleration& toleration : pod->no_execute_tolerations) tolerated.insert(toleration.key);
  EXPECT_TRUE(tolerated.contains("node.kubernetes.io/not-ready"));
  EXPECT_TRUE(tolerated.contains("node.kubernetes.io/unreachable"));
}

class Daemons : public ::testing::Test {
 protected:
  Daemons() {
    world.api.engine.add(make_daemonset_controller());
    world.api.engine.start();
  }
  void node(const std::string& name, const std::string& spec = "", const std::string& labels = "") {
    world.api.put(kinds().node, yaml(fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {}, labels: {{{}}}}}, spec: {{{}}}}}",
                                                 name, labels, spec)));
  }
  void put(const std::string& extra = "", const char* image = "a:1", const std::string& pod = "") {
    json::Value document =
        yaml(fmt::format("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: w, generation: 1}}\nspec:\n{}  selector: {{matchLabels: "
                         "{{app: w}}}}\n  template:\n    metadata: {{labels: {{app: w}}}}\n"
                         "    spec: {{{} containers: [{{name: c, image: '{}'}}]}}\n",
                         extra, pod, image));
    const json::Value before = set();
    if (!before.is_null()) document.at("metadata") = before.at("metadata");
    if (json::find(before, "status") != nullptr) document.get_object()["status"] = before.at("status");
    world.api.put(kinds().daemon_set, document);
  }
  json::Value set() const { return world.api.get(kinds().daemon_set, "w"); }
  /// The nodes that pods are held to.
  std::multiset<std::string> targets() const {
    std::multiset<std::string> all;
    for (const json::Value& pod : world.api.all(kinds().pod)) {
      const json::Value* terms =
          json::find(pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
      all.emplace(json::as_view(terms->at(0).at("matchFields").at(0).at("values").at(0)));
    }
    return all;
  }
  /// Binds every pod to the node it is held to, and makes it ready.
  void run() {
    world.loop.run_for(seconds(1));
    for (json::Value pod : world.api.all(kinds().pod)) {
      if (!json::get_string(pod, {"spec", "nodeName"}).empty()) continue;
      const json::Value* terms =
          json::find(pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
      json::set(pod, {"spec", "nodeName"}, json::Value(terms->at(0).at("matchFields").at(0).at("values").at(0)));
      json::set(pod, {"status"},
                json::Object{
                    {"phase", "Running"},
                    {"conditions", json::Array{json::Object{
                                       {"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", format_rfc3339(world.loop.now())}}}}});
      world.api.put(kinds().pod, std::move(pod));
    }
    world.loop.run_for(seconds(1));
  }
  int count(const char* image) const {
    int found = 0;
    for (const json::Value& pod : world.api.all(kinds().pod))
      found += json::get_string(pod.at("spec").at("containers").at(0), {"image"}) == image;
    return found;
  }
  World world;
};

TEST_F(Daemons, FollowNodesLabelsAndSelectors) {
  node("a", "", "disk: ssd");
  node("b");
  put("", "a:1", "nodeSelector: {disk: ssd},");
  run();
  EXPECT_EQ(targets(), (std::multiset<std::string>{"a"}));
  node("b", "", "disk: ssd");
  run();
  EXPECT_EQ(targets(), (std::multiset<std::string>{"a", "b"}));
  node("a");
  run();
  EXPECT_EQ(targets(), (std::multiset<std::string>{"b"}));
  node("c", "", "disk: ssd");
  run();
  EXPECT_EQ(targets(), (std::multiset<std::string>{"b", "c"}));
}

TEST_F(Daemons, APodWithoutTheLabelsIsLetGoAndReplaced) {
  node("a");
  put();
  run();
  json::Value pod = world.api.all(kinds().pod).at(0);
  const std::string name(json::get_string(pod, {"metadata", "name"}));
  json::set(pod, {"metadata", "labels", "app"}, "other");
  world.api.put(kinds().pod, pod);
  run();
  ASSERT_EQ(world.pods(), 2U);
  EXPECT_TRUE(json::get_array(world.api.get(kinds().pod, name), {"metadata", "ownerReferences"}).empty());
  pod = world.api.get(kinds().pod, name);
  json::set(pod, {"metadata", "labels", "app"}, "w");
  world.api.put(kinds().pod, pod);
  run();
  EXPECT_EQ(world.pods(), 1U) << "it is taken back, and one is too many";
}

/// As Kubernetes: a pod that somebody made with the set's labels and for no node is adopted, and then nobody counts, rolls or removes it.
TEST_F(Daemons, AnAdoptedPodThatIsMeantForNoNodeIsLeftAlone) {
  node("a");
  world.api.put(kinds().pod,
                yaml("{apiVersion: v1, kind: Pod, metadata: {name: stray, labels: {app: w}}, spec: {containers: [{name: c}]}}"));
  put();
  world.loop.run_for(seconds(5));
  EXPECT_EQ(world.pods(), 2U);
  EXPECT_EQ(json::get_array(world.api.get(kinds().pod, "stray"), {"metadata", "ownerReferences"}).size(), 1U);
  put("", "a:2");
  world.loop.run_for(minutes(5));
  EXPECT_FALSE(world.api.get(kinds().pod, "stray").is_null());
  EXPECT_EQ(world.pods(), 2U);
  EXPECT_EQ(json::get_int(set(), {"status", "currentNumberScheduled"}), 1);
}

TEST_F(Daemons, PodsThatAFormerSetLeftAreTakenOverAsTheyAre) {
  for (const char* name : {"a", "b", "c"}) node(name);
  put();
  run();
  const auto names = [&] {
    std::set<std::string> out;
    for (const json::Value& pod : world.api.all(kinds().pod)) out.emplace(json::get_string(pod, {"metadata", "name"}));
    return out;
  };
  const std::set<std::string> before = names();
  ASSERT_EQ(before.size(), 3U);
  world.api.erase(kinds().daemon_set, "default", "w");
  for (json::Value pod : world.api.all(kinds().pod)) {
    json::erase(pod, {"metadata", "ownerReferences"});
    world.api.put(kinds().pod, pod);
  }
  run();
  put();
  run();
  run();
  EXPECT_EQ(names(), before);
  for (const json::Value& pod : world.api.all(kinds().pod)) EXPECT_EQ(json::get_array(pod, {"metadata", "ownerReferences"}).size(), 1U);
  EXPECT_EQ(json::get_int(set(), {"status", "currentNumberScheduled"}), 3);
}

TEST_F(Daemons, RequiredAffinityDecidesLikeTheScheduler) {
  node("a", "", "size: '4'");
  node("b", "", "size: '16'");
  node("c");
  put("", "a:1",
      "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: size, "
      "operator: Gt, values: ['8']}]}, {matchFields: [{key: metadata.name, operator: In, values: [c]}]}]}}},");
  run();
  EXPECT_EQ(targets(), (std::multiset<std::string>{"b", "c"}));
}

TEST_F(Daemons, NoScheduleKeepsNewPodsAwayAndNoExecuteRemovesThem) {
  node("a");
  put();
  run();
  ASSERT_EQ(targets().size(), 1u);
  node("a", "taints: [{key: k, effect: NoSchedule}]");
  run();
  EXPECT_EQ(targets().size(), 1u) << "it may stay";
  EXPECT_EQ(json::get_int(set(), {"status", "numberMisscheduled"}), 1);
  EXPECT_EQ(json::get_int(set(), {"status", "desiredNumberScheduled"}), 0);
  node("a", "taints: [{key: k, effect: NoExecute}]");
  run();
  EXPECT_TRUE(targets().empty());
}

TEST_F(Daemons, RollWithinMaxUnavailable) {
  for (const char* name : {"a", "b", "c", "d"}) node(name);
  const char* two = "  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 2, maxSurge: 0}}\n";
  put(two);
  run();
  put(two, "a:2");
  world.loop.run_for(seconds(1));
  EXPECT_EQ(count("a:2"), 2);
  for (int i = 0; i < 4; ++i) run();
  EXPECT_EQ(count("a:2"), 4);
  EXPECT_EQ(json::get_int(set(), {"status", "updatedNumberScheduled"}), 4);
  EXPECT_EQ(world.api.all(kinds().controller_revision).size(), 2u);
}

/// A client that asks which revision a template is compares bytes, and Go writes maps by name.
TEST_F(Daemons, ARevisionsBytesAreInGosOrder) {
  node("a");
  put();
  run();
  const json::Value kept = *json::find(world.api.all(kinds().controller_revision).at(0), {"data"});
  EXPECT_EQ(json::serialize(kept), json::serialize(model::sorted_members(kept)));
  EXPECT_TRUE(json::serialize(kept).starts_with(R"({"spec":{"template":{"$patch":"replace",)")) << json::serialize(kept);
}

TEST_F(Daemons, ARevisionOfTheSameTemplateIsNotPassedForEver) {
  node("a");
  put();
  run();
  json::Value twin = world.api.all(kinds().controller_revision).at(0);
  for (const char* field : {"uid", "resourceVersion", "creationTimestamp"}) json::erase(twin, {"metadata", field});
  json::set(twin, {"metadata", "name"}, "by-hand");
  json::set(twin, {"revision"}, 2);
  world.api.put(kinds().controller_revision, std::move(twin));
  for (int i = 0; i < 5; ++i) run();
  std::int64_t newest = 0;
  for (const json::Value& one : world.api.all(kinds().controller_revision)) newest = std::max(newest, json::get_int(one, {"revision"}));
  EXPECT_EQ(newest, 2);
}

TEST_F(Daemons, SurgeRunsBothForAMoment) {
  for (const char* name : {"a", "b"}) node(name);
  const char* surge = "  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}\n";
  put(surge);
  run();
  put(surge, "a:2");
  world.loop.run_for(seconds(1));
  EXPECT_EQ(count("a:1"), 2);
  EXPECT_EQ(count("a:2"), 1) << "one node at a time";
  for (int i = 0; i < 4; ++i) run();
  EXPECT_EQ(count("a:1"), 0);
  EXPECT_EQ(count("a:2"), 2);
}

TEST_F(Daemons, SurgeDropsAnOldPodThatIsNotReady) {
  node("a");
  const char* surge = "  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}\n";
  put(surge);
  run();
  put(surge, "a:2");
  world.loop.run_for(seconds(1));
  ASSERT_EQ(count("a:2"), 1);
  for (json::Value pod : world.api.all(kinds().pod)) {
    if (json::get_string(pod.at("spec").at("containers").at(0), {"image"}) != "a:1") continue;
    pod.at("status").at("conditions").at(0).at("status") = "False";
    world.api.put(kinds().pod, pod);
  }
  world.loop.run_for(seconds(1));
  EXPECT_EQ(count("a:1"), 0) << "it gives nothing any more";
  EXPECT_EQ(count("a:2"), 1);
}

TEST_F(Daemons, APodThatIsEndingCountsUntilItIsGone) {
  node("a");
  put("  updateStrategy: {type: OnDelete}\n");
  run();
  json::Value pod = world.api.all(kinds().pod)[0];
  json::set(pod, {"metadata", "deletionTimestamp"}, json::Value(format_rfc3339(world.loop.now())));
  world.api.put(kinds().pod, pod);
  world.loop.run_for(seconds(1));
  EXPECT_EQ(count("a:1"), 1) << "the next comes when it is gone";
  EXPECT_EQ(json::get_int(set(), {"status", "currentNumberScheduled"}), 1);
  EXPECT_EQ(json::get_int(set(), {"status", "numberReady"}), 1);
}

TEST_F(Daemons, OnDeleteWaitsForTheUser) {
  node("a");
  put("  updateStrategy: {type: OnDelete}\n");
  run();
  put("  updateStrategy: {type: OnDelete}\n", "a:2");
  run();
  EXPECT_EQ(count("a:1"), 1);
  world.api.erase(kinds().pod, "default", std::string(json::get_string(world.api.all(kinds().pod)[0], {"metadata", "name"})));
  run();
  EXPECT_EQ(count("a:2"), 1);
}

TEST_F(Daemons, AFailedPodIsReplacedWithAnEvent) {
  node("a");
  put();
  run();
  json::Value pod = world.api.all(kinds().pod)[0];
  const std::string name(json::get_string(pod, {"metadata", "name"}));
  json::set(pod, {"status", "phase"}, "Failed");
  world.api.put(kinds().pod, pod);
  run();
  run();
  EXPECT_TRUE(world.api.get(kinds().pod, name).is_null());
  EXPECT_EQ(targets(), (std::multiset<std::string>{"a"}));
  EXPECT_TRUE(world.api.saw(fmt::format("FailedDaemonPod: Found failed daemon pod default/{} on node a, will try to kill it", name)));
}

TEST_F(Daemons, ANodeThatRefusesItsPodIsAskedLessAndLessOften) {
  node("a");
  put();
  int replaced = 0;
  std::string last;
  for (int second = 0; second < 60; ++second) {
    world.loop.run_for(seconds(1));
    for (json::Value pod : world.api.all(kinds().pod)) {
      const std::string name(json::get_string(pod, {"metadata", "name"}));
      if (name != last) ++replaced;
      last = name;
      json::set(pod, {"status", "phase"}, "Failed");
      world.api.put(kinds().pod, pod);
    }
  }
  EXPECT_GE(replaced, 5);
  EXPECT_LE(replaced, 8) << "1, 2, 4, 8, 16, 32 seconds";
}

TEST_F(Daemons, WithSurgeTheNextComesWhileTheLastOneEnds) {
  node("a");
  put("  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}\n");
  run();
  json::Value pod = world.api.all(kinds().pod)[0];
  json::set(pod, {"metadata", "deletionTimestamp"}, json::Value(format_rfc3339(world.loop.now())));
  json::set(pod, {"metadata", "finalizers"}, json::Array{"example.com/slow"});
  world.api.put(kinds().pod, pod);
  world.loop.run_for(seconds(1));
  EXPECT_EQ(count("a:1"), 2);
  node("a", "", "");
  json::Value elsewhere = world.api.get(kinds().node, "a");
  json::set(elsewhere, {"spec", "taints"}, yaml("[{key: k, effect: NoExecute}]"));
  world.api.put(kinds().node, elsewhere);
  world.loop.run_for(seconds(2));
  EXPECT_EQ(count("a:1"), 1) << "where it does not belong none comes";
}

}  // namespace
}  // namespace berth::controllers
