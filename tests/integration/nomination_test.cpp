// The life of status.nominatedNodeName (SPEC C4), step by step. Victims take as long to stop as their grace period says.
#include "tests/integration/world.h"

namespace berth::integration {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

struct PodOptions {
  std::string priority_class, node;  ///< Empty: none.
  int grace_seconds = 60;
};

class Nomination : public ::testing::Test {
 protected:
  Nomination() : world_(options()) {
    for (const auto& [name, value] : {std::pair{"middle", 100}, {"high", 1000}, {"top", 5000}})
      world_.create(fmt::format("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {}}}\nvalue: {}\n", name, value));
  }

  WorldOptions options() {
    WorldOptions out{.nodes = 2, .node_cpu = "4"};
    out.stop_delay = hours(24);
    out.intercept = [this](const net::HttpRequest& request, std::function<void(net::HttpResponse)>& done) {
      for (auto& rule : rules_)
        if (request.method == rule.method && request.path == rule.path && rule.times > 0) {
          --rule.times;
          ++rule.hits;
          if (rule.status == kNever)
            held_.push_back([this, request, done] { forward(request, done); });
          else
            done({rule.status, {}, fmt::format(R"({{"kind":"Status","status":"Failure","message":"made up","code":{}}})", rule.status)});
          return true;
        }
      return false;
    };
    return out;
  }

  /// The scheduler's next requests of the kind are answered with the status; kNever: held back until let_through().
  static constexpr int kNever = -1;
  struct Rule {
    std::string method, path;
    int status = 500, times = 1, hits = 0;
  };
  Rule& on_request(std::string method, const std::string& pod, const std::string& subresource, int status, int times) {
    rules_.push_back({std::move(method), "/api/v1/namespaces/default/pods/" + pod + subresource, status, times, 0});
    return rules_.back();
  }
  void forward(const net::HttpRequest& request, const std::function<void(net::HttpResponse)>& done) {
    world_.client().transport()->send(request, done);
  }
  void let_through() {
    for (const auto& one : std::exchange(held_, {})) one();
  }

  void pod(const std::string& name, const std::string& cpu, const PodOptions& o = {}) {
    world_.create(
        fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{priorityClassName: \"{}\", terminationGracePeriodSeconds: "
                    "{}, {} containers: [{{name: c, image: nginx, resources: {{requests: {{cpu: \"{}\"}}}}}}]}}\n",
                    name, o.priority_class, o.grace_seconds,
                    o.node.empty() ? "" : fmt::format("nodeSelector: {{kubernetes.io/hostname: {}}},", o.node), cpu));
    world_.run(seconds(3));
  }
  void label(const std::string& name, const std::string& value) {
    client::Call call;
    call.verb = "patch";
    call.gvr = {"", "v1", "pods"};
    call.ns = "default";
    call.name = name;
    call.content_type = "application/merge-patch+json";
    call.body = fmt::format(R"({{"metadata":{{"labels":{{"round":"{}"}}}}}})", value);
    ASSERT_TRUE(world_.client().call_and_wait(call));
  }
  void remove(const std::string& name, const char* resource = "pods", const char* query = "gracePeriodSeconds=0") {
    client::Call call;
    call.verb = "delete";
    call.gvr = {"", "v1", resource};
    call.ns = std::string_view(resource) == "pods" ? "default" : "";
    call.name = name;
    call.query = query;
    ASSERT_TRUE(world_.client().call_and_wait(call));
  }
  std::string field(const std::string& name, std::initializer_list<std::string_view> path) {
    return std::string(json::get_string(world_.get("", "pods", name), path));
  }
  std::string nominated(const std::string& name) { return field(name, {"status", "nominatedNodeName"}); }
  std::string node(const std::string& name) { return field(name, {"spec", "nodeName"}); }
  bool is_going(const std::string& name) { return !field(name, {"metadata", "deletionTimestamp"}).empty(); }
  std::string condition(const std::string& name, std::string_view type, std::string_view key) {
    const json::Value document = world_.get("", "pods", name);
    for (const json::Value& one : json::get_array(document, {"status", "conditions"}))
      if (json::get_string(one, {"type"}) == type) return std::string(json::get_string(one, {key}));
    return {};
  }
  std::vector<json::Value> events(const std::string& name, std::string_view reason) {
    std::vector<json::Value> out;
    auto page = world_.client().list_and_wait({"events.k8s.io", "v1", "events"}, "default");
    EXPECT_TRUE(page);
    for (const json::Value& one : page->items)
      if (json::get_string(one, {"regarding", "name"}) == name && json::get_string(one, {"reason"}) == reason) out.push_back(one);
    return out;
  }
  /// node-1 is full of one low pod, node-2 of one that nobody here beats; "vip" counts on node-1.
  void vip_waits_for_node_1(int grace_seconds = 60) {
    pod("held", "4", {.node = "node-1", .grace_seconds = grace_seconds});
    pod("other", "4", {.priority_class = "top", .node = "node-2"});
    pod("vip", "4", {.priority_class = "high"});
    ASSERT_EQ(nominated("vip"), "node-1");
  }

  std::deque<Rule> rules_;
  std::vector<std::function<void()>> held_;
  World world_;
};

TEST_F(Nomination, IsWrittenTheVictimIsMarkedAndBothSidesAreTold) {
  vip_waits_for_node_1(30);
  EXPECT_EQ(node("vip"), "");
  EXPECT_EQ(condition("vip", "PodScheduled", "status"), "False");
  EXPECT_EQ(condition("vip", "PodScheduled", "reason"), "Unschedulable");
  EXPECT_EQ(condition("vip", "PodScheduled", "message"), "0/2 nodes are available: 2 Insufficient cpu.");
  EXPECT_TRUE(is_going("held"));
  EXPECT_EQ(json::get_int(world_.get("", "pods", "held"), {"metadata", "deletionGracePeriodSeconds"}), 30);
  EXPECT_EQ(condition("held", "DisruptionTarget", "status"), "True");
  EXPECT_EQ(condition("held", "DisruptionTarget", "reason"), "PreemptionByScheduler");
  EXPECT_EQ(condition("held", "DisruptionTarget", "message"), "default-scheduler: preempting to accommodate a higher priority pod");
  const auto told = events("held", "Preempted");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(json::get_string(told[0], {"note"}), fmt::format("Preempted by pod {} on node node-1", field("vip", {"metadata", "uid"})));
  EXPECT_EQ(json::get_string(told[0], {"type"}), "Normal");
  EXPECT_EQ(json::get_string(told[0], {"action"}), "Preempting");
  EXPECT_EQ(json::get_string(told[0], {"related", "name"}), "vip");
  EXPECT_EQ(json::get_string(told[0], {"reportingController"}), "default-scheduler");
  EXPECT_EQ(events("vip", "FailedScheduling").size(), 1u);
  EXPECT_EQ(events("vip", "Preempting").size(), 1u);
  world_.run(seconds(20));
  EXPECT_EQ(node("vip"), "") << "the victim has its grace period";
  world_.run(seconds(20));
  EXPECT_EQ(node("vip"), "node-1");
}

TEST_F(Nomination, ReservesTheRoomAgainstLowerAndEqualPodsAndSurvivesARestart) {
  pod("held", "2", {.node = "node-1", .grace_seconds = 300});
  pod("light", "1", {.node = "node-1"});
  pod("other", "4", {.priority_class = "top", .node = "node-2"});
  pod("vip", "4", {.priority_class = "high"});
  ASSERT_EQ(nominated("vip"), "node-1");
  world_.run(seconds(100));
  ASSERT_EQ(world_.get("", "pods", "light"), json::Value());
  // Half of the room is free already; nobody lower or equal gets it, before and after a restart of the scheduler.
  pod("lower", "1", {.priority_class = "middle"});
  pod("equal", "1", {.priority_class = "high"});
  EXPECT_EQ(node("lower") + node("equal"), "");
  world_.stop_scheduler();
  world_.run(seconds(5));
  world_.start_scheduler();
  world_.run(seconds(60));
  EXPECT_EQ(nominated("vip"), "node-1");
  EXPECT_EQ(node("lower") + node("equal"), "");
  EXPECT_FALSE(is_going("other"));
  world_.run(seconds(200));
  EXPECT_EQ(node("vip"), "node-1");
  EXPECT_EQ(node("lower") + node("equal"), "");
}

TEST_F(Nomination, AHigherPodThatFitsBesideTheVictimsTakesTheRoom) {
  pod("held", "2", {.node = "node-1", .grace_seconds = 300});
  pod("other", "4", {.priority_class = "top", .node = "node-2"});
  pod("vip", "4", {.priority_class = "high"});
  ASSERT_EQ(nominated("vip"), "node-1");
  pod("king", "2", {.priority_class = "top"});
  EXPECT_EQ(node("king"), "node-1");
  world_.run(seconds(320));
  EXPECT_EQ(node("vip"), "");
  EXPECT_EQ(nominated("vip"), "") << "the room it counted on is gone";
}

TEST_F(Nomination, IsClearedByAHigherPodThatPreemptsOnTheSameNode) {
  pod("held", "2", {.node = "node-1", .grace_seconds = 300});
  pod("more", "2", {.priority_class = "high", .node = "node-1", .grace_seconds = 300});
  pod("other", "4", {.priority_class = "top", .node = "node-2"});
  pod("vip", "2", {.priority_class = "high"});
  ASSERT_EQ(nominated("vip"), "node-1");
  pod("king", "4", {.priority_class = "top", .node = "node-1"});
  EXPECT_EQ(nominated("king"), "node-1");
  EXPECT_EQ(nominated("vip"), "");
  world_.run(seconds(400));
  EXPECT_EQ(node("king"), "node-1");
  EXPECT_EQ(node("vip"), "");
}

TEST_F(Nomination, ThePodMayLandElsewhereWhenRoomComesThereFirst) {
  vip_waits_for_node_1();
  remove("other");
  world_.run(seconds(20));
  EXPECT_EQ(node("vip"), "node-2");
  world_.run(seconds(60));
  pod("next", "4");
  EXPECT_EQ(node("next"), "node-1") << "the room is not reserved any more";
}

TEST_F(Nomination, ItsRoomGoesToOthersAtOnceWhenThePodIsDeleted) {
  pod("held", "2", {.node = "node-1", .grace_seconds = 600});
  pod("other", "4", {.priority_class = "top", .node = "node-2"});
  pod("vip", "4", {.priority_class = "high"});
  ASSERT_EQ(nominated("vip"), "node-1");
  pod("lower", "1", {.priority_class = "middle"});
  ASSERT_EQ(node("lower"), "");
  remove("vip");
  world_.run(seconds(12));
  EXPECT_EQ(node("lower"), "node-1");
}

TEST_F(Nomination, ItsRoomGoesToOthersAtOnceWhenThePodLandsElsewhere) {
  pod("held", "2", {.node = "node-1", .grace_seconds = 600});
  pod("other", "4", {.priority_class = "top", .node = "node-2"});
  pod("vip", "4", {.priority_class = "high"});
  ASSERT_EQ(nominated("vip"), "node-1");
  pod("lower", "1", {.priority_class = "middle"});
  ASSERT_EQ(node("lower"), "");
  remove("other");
  world_.run(seconds(12));
  EXPECT_EQ(node("vip"), "node-2");
  EXPECT_EQ(node("lower"), "node-1");
}

TEST_F(Nomination, OfANodeThatIsDeletedIsDroppedAndAnotherNodeIsFound) {
  pod("held", "4", {.node = "node-1", .grace_seconds = 600});
  pod("spare", "4", {.priority_class = "middle", .node = "node-2", .grace_seconds = 1});
  pod("vip", "4", {.priority_class = "high"});
  ASSERT_EQ(nominated("vip"), "node-1") << "the lower victim is preferred";
  remove("node-1", "nodes");
  world_.run(seconds(20));
  EXPECT_EQ(node("vip"), "node-2");
  const auto told = events("vip", "Preempting");
  ASSERT_EQ(told.size(), 2u) << "each preemption with its own node and pods, not the first one twice";
  std::set<std::string> notes;
  for (const json::Value& event : told) notes.emplace(json::get_string(event, {"note"}));
  EXPECT_EQ(notes, (std::set<std::string>{"Preempting 1 pod(s) on node node-1: default/held",
                                          "Preempting 1 pod(s) on node node-2: default/spare"}));
}

TEST_F(Nomination, WaitsForAVictimThatRefusesToDieInsteadOfEvictingMore) {
  pod("held", "4", {.node = "node-1", .grace_seconds = 80'000});
  pod("spare", "4", {.priority_class = "middle", .node = "node-2"});
  pod("vip", "4", {.priority_class = "high"});
  ASSERT_EQ(nominated("vip"), "node-1");
  for (int i = 0; i < 10; ++i) {
    label("spare", fmt::format("{}", i));
    world_.run(minutes(1));  // Twice past the five minutes after which every pod is tried again.
  }
  EXPECT_FALSE(is_going("spare"));
  EXPECT_EQ(nominated("vip"), "node-1");
  EXPECT_EQ(
      condition("vip", "PodScheduled", "message"),
      "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to a terminating pod on the "
      "nominated node.");
  remove("held");
  world_.run(seconds(20));
  EXPECT_EQ(node("vip"), "node-1");
}

TEST_F(Nomination, TheDeletionsAreWaitedForAndThePodIsNotTriedMeanwhile) {
  pod("held", "4", {.node = "node-1"});
  pod("other", "4", {.priority_class = "top", .node = "node-2"});
  on_request("DELETE", "held", "", kNever, 1);
  pod("vip", "4", {.priority_class = "high"});
  ASSERT_EQ(held_.size(), 1u);
  EXPECT_EQ(nominated("vip"), "node-1");
  // Lower pods go on meanwhile; events that could help do not lead to a second plan.
  pod("small", "1");
  remove("small");
  world_.run(minutes(2));
  EXPECT_FALSE(is_going("held"));
  EXPECT_EQ(events("vip", "Preempting").size(), 1u);
  EXPECT_EQ(events("vip", "FailedScheduling").size(), 1u);
  let_through();
  world_.run(seconds(90));
  EXPECT_EQ(node("vip"), "node-1");
}

TEST_F(Nomination, ARefusedDeletionIsTriedAgain) {
  for (const int status : {403, 409, 429, 500}) {
    const std::string suffix = fmt::format("{}", status), held = "held" + suffix, vip = "vip" + suffix;
    pod(held, "4", {.node = "node-1", .grace_seconds = 1});
    if (status == 403) pod("other", "4", {.priority_class = "top", .node = "node-2"});
    const Rule& refusal = on_request("DELETE", held, "", status, 2);
    pod(vip, "4", {.priority_class = "high", .grace_seconds = 1});
    world_.run(seconds(30));
    EXPECT_EQ(refusal.hits, 2) << status;
    EXPECT_EQ(node(vip), "node-1") << status;
    EXPECT_EQ(events(held, "Preempted").size(), 1u) << status;
    remove(vip);
    world_.run(seconds(3));
  }
}

TEST_F(Nomination, AVictimThatIsGoneAlreadyIsNoFailure) {
  pod("held", "4", {.node = "node-1", .grace_seconds = 1});
  pod("other", "4", {.priority_class = "top", .node = "node-2"});
  // Marked, and then the API server knows it no more.
  on_request("DELETE", "held", "", kNever, 1);
  pod("vip", "4", {.priority_class = "high"});
  remove("held");
  let_through();
  world_.run(seconds(10));
  EXPECT_EQ(node("vip"), "node-1");
  EXPECT_EQ(events("held", "Preempted").size(), 0u);
}

TEST_F(Nomination, HoldsTheRoomThoughItCouldNotBeWrittenToTheApi) {
  pod("held", "2", {.node = "node-1", .grace_seconds = 300});
  pod("other", "4", {.priority_class = "top", .node = "node-2"});
  const Rule& failing = on_request("PATCH", "vip", "/status", 500, 1);
  pod("vip", "4", {.priority_class = "high"});
  ASSERT_EQ(failing.hits, 1);
  EXPECT_EQ(nominated("vip"), "");
  EXPECT_TRUE(is_going("held"));
  pod("lower", "1", {.priority_class = "middle"});
  world_.run(seconds(30));
  EXPECT_EQ(node("lower"), "");
  world_.run(seconds(300));
  EXPECT_EQ(node("vip"), "node-1");
}

TEST_F(Nomination, OfTwoEqualPodsOnOneNodeBothHold) {
  for (const char* name : {"low-1", "low-2"}) pod(name, "2", {.node = "node-1"});
  pod("other", "4", {.priority_class = "top", .node = "node-2"});
  pod("vip-1", "2", {.priority_class = "high"});
  pod("vip-2", "2", {.priority_class = "high"});
  EXPECT_EQ(nominated("vip-1"), "node-1");
  EXPECT_EQ(nominated("vip-2"), "node-1");
  EXPECT_TRUE(is_going("low-1") && is_going("low-2"));
  world_.run(minutes(2));
  EXPECT_EQ(node("vip-1"), "node-1");
  EXPECT_EQ(node("vip-2"), "node-1");
}

TEST_F(Nomination, AnEqualPodDoesNotTakeIt) {
  vip_waits_for_node_1(600);
  pod("equal", "4", {.priority_class = "high"});
  EXPECT_EQ(nominated("equal"), "");
  EXPECT_EQ(nominated("vip"), "node-1");
}

TEST_F(Nomination, TheConditionKeepsTheTimeSinceWhichThePodWaits) {
  pod("p", "5");
  const std::string since = condition("p", "PodScheduled", "lastTransitionTime"), message = condition("p", "PodScheduled", "message");
  ASSERT_NE(since, "");
  client::Call cordon{.verb = "patch", .gvr = {"", "v1", "nodes"}, .name = "node-2"};
  cordon.content_type = "application/merge-patch+json";
  cordon.body = R"({"spec":{"unschedulable":true}})";
  ASSERT_TRUE(world_.client().call_and_wait(std::move(cordon)));
  label("p", "again");
  world_.run(minutes(6));  // Beyond the longest wait of a pod that nothing woke.
  EXPECT_NE(condition("p", "PodScheduled", "message"), message) << "it was tried again";
  EXPECT_EQ(condition("p", "PodScheduled", "lastTransitionTime"), since);
}

TEST_F(Nomination, IsGoneFromTheApiOnceThePodIsBound) {
  vip_waits_for_node_1(10);
  world_.run(seconds(20));
  EXPECT_EQ(node("vip"), "node-1");
  EXPECT_EQ(nominated("vip"), "");
}

TEST_F(Nomination, IsClearedWhenTheBindingFails) {
  vip_waits_for_node_1(10);
  const Rule& refusal = on_request("POST", "vip", "/binding", 403, 1);
  while (refusal.hits == 0) world_.run(std::chrono::milliseconds(50));
  world_.run(std::chrono::milliseconds(200));
  EXPECT_EQ(condition("vip", "PodScheduled", "reason"), "SchedulerError");
  EXPECT_EQ(condition("vip", "PodScheduled", "message"), "running Bind plugin \"DefaultBinder\": made up");
  EXPECT_EQ(nominated("vip"), "");
  world_.run(seconds(20));
  EXPECT_EQ(node("vip"), "node-1");
}

TEST_F(Nomination, AVictimWhoseVolumesAreStillBeingBoundIsNotDeletedButQueuesAgain) {
  world_.create(
      "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: slow}\nprovisioner: example.com/slow\nvolumeBindingMode: "
      "WaitForFirstConsumer\n");
  world_.create(
      "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {storageClassName: slow, accessModes: [ReadWriteOnce], "
      "resources: {requests: {storage: 1Gi}}}\n");
  pod("other", "4", {.priority_class = "top", .node = "node-2"});
  world_.create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: low}\nspec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: "
      "\"4\"}}}], "
      "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}\n");
  world_.run(seconds(5));
  ASSERT_EQ(node("low"), "");
  EXPECT_EQ(nominated("low"), "node-1") << "where it will be is announced while its volume is provisioned";
  pod("vip", "4", {.priority_class = "high"});
  EXPECT_EQ(node("vip"), "node-1");
  EXPECT_EQ(node("low"), "");
  EXPECT_FALSE(is_going("low"));
  EXPECT_EQ(nominated("low"), "");
  EXPECT_EQ(condition("low", "DisruptionTarget", "status"), "");
  const auto told = events("low", "Preempted");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(json::get_string(told[0], {"note"}),
            fmt::format("Preempted by pod {} on node node-1 (in kube-scheduler memory).", field("vip", {"metadata", "uid"})));
}

}  // namespace
}  // namespace berth::integration
