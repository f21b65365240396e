// What the actuator makes of a node's removal, against a server that can say no, say nothing, and change meanwhile.
#include "autoscaler/actuator.h"

#include "autoscaler/machine_api.h"
#include "autoscaler/own_writes.h"
#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

/// Objects by their paths; merge patches with their locks, evictions with their preconditions. Every change is seen by the cache.
class FakeServer final : public client::Transport {
 public:
  explicit FakeServer(ClusterCache& cache) : cache_(cache) {}

  void put(const std::string& path, json::Value object) {
    json::set(object, {"metadata", "resourceVersion"}, json::Value(std::to_string(++revision_)));
    cache_.upsert(object);
    objects[path] = std::move(object);
  }
  void erase(const std::string& path) {
    const json::Value object = objects.at(path);
    objects.erase(path);
    cache_.remove(json::get_string(object, {"kind"}), json::get_string(object, {"metadata", "namespace"}),
                  json::get_string(object, {"metadata", "name"}));
  }

  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override {
    requests.push_back(request.method + " " + request.path);
    if (before) before(request);
    if (const int status = answer_instead ? answer_instead(request) : -1; status >= 0)
      return done({status, {}, fmt::format(R"({{"kind":"Status","status":"Failure","message":"made up","code":{}}})", status)});
    done(answer(request));
  }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest, net::StreamCallbacks) override { return nullptr; }
  void upgrade(net::HttpRequest, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)>) override {}

  [[nodiscard]] std::int64_t count(std::string_view request) const { return std::ranges::count(requests, request); }

  std::map<std::string, json::Value> objects;
  std::vector<std::string> requests;
  std::function<void(const net::HttpRequest&)> before;
  std::function<int(const net::HttpRequest&)> answer_instead;  ///< An HTTP status; negative: the server answers.

 private:
  static net::HttpResponse refusal(int code) {
    return {code, {}, fmt::format(R"({{"kind":"Status","status":"Failure","reason":"x","message":"no","code":{}}})", code)};
  }
  static void merge(json::Value& target, const json::Value& patch) {
    if (!patch.is_object()) {
      target = patch;
      return;
    }
    if (!target.is_object()) target = json::Object{};
    for (const auto& field : patch.get_object()) {
      if (field.value().is_null())
        target.get_object().erase(field.key());
      else
        merge(target.get_object()[field.key()], field.value());
    }
  }

  net::HttpResponse answer(const net::HttpRequest& request) {
    if (request.path == "/api/v1/pods") return list(request.query);
    if (request.method == "POST" && request.path.ends_with("/events")) return {201, {}, request.body};
    const json::Value body = request.body.empty() ? json::Value() : *json::parse(request.body);
    if (constexpr std::string_view kEviction = "/eviction"; request.path.ends_with(kEviction)) {
      const std::string pod = request.path.substr(0, request.path.size() - kEviction.size());
      const auto found = objects.find(pod);
      if (found == objects.end()) return refusal(404);
      const auto uid = json::get_string(body, {"deleteOptions", "preconditions", "uid"});
      if (!uid.empty() && uid != json::get_string(found->second, {"metadata", "uid"})) return refusal(409);
      erase(pod);
      return {201, {}, R"({"kind":"Status","status":"Success"})"};
    }
    const auto found = objects.find(request.path);
    if (found == objects.end()) return refusal(404);
    if (request.method == "PATCH") {
      const auto locked = json::get_string(body, {"metadata", "resourceVersion"});
      if (!locked.empty() && locked != json::get_string(found->second, {"metadata", "resourceVersion"})) return refusal(409);
      json::Value changed = found->second;
      merge(changed, body);
      put(request.path, std::move(changed));
    }
    return {200, {}, json::serialize(objects.at(request.path))};
  }

  net::HttpResponse list(const std::string& query) {
    json::Array items;
    for (const auto& [path, object] : objects)
      if (path.find("/pods/") != std::string::npos &&
          query.find("spec.nodeName%3D" + std::string(json::get_string(object, {"spec", "nodeName"}))) != std::string::npos)
        items.push_back(object);
    return {200, {}, json::serialize(json::Object{{"kind", "PodList"}, {"metadata", json::Object{}}, {"items", std::move(items)}})};
  }

  ClusterCache& cache_;
  int revision_ = 0;
};

class ActuatorTest : public ::testing::Test {
 protected:
  static constexpr const char* kNode = "/api/v1/nodes/a-1";
  static constexpr const char* kMachine = "/apis/machine.openshift.io/v1beta1/namespaces/m/machines/a-1";
  static constexpr const char* kSet = "/apis/machine.openshift.io/v1beta1/namespaces/m/machinesets/a";

  ActuatorTest() {
    server->put(kNode, yaml("kind: Node\nmetadata: {name: a-1, uid: n}\nstatus: {allocatable: {cpu: '8', memory: 8Gi, pods: '110'}}"));
    server->put(kMachine, yaml("kind: Machine\nmetadata: {namespace: m, name: a-1, uid: ma}"));
    server->put(kSet, yaml("kind: MachineSet\nmetadata: {namespace: m, name: a, uid: sa}\nspec: {replicas: 3}"));
  }

  void pod(const std::string& name, const std::string& uid, const std::string& node = "a-1") {
    server->put("/api/v1/namespaces/default/pods/" + name,
                yaml(fmt::format("kind: Pod\nmetadata: {{namespace: default, name: {}, uid: {}}}\n"
                                 "spec: {{nodeName: {}, containers: [{{name: c}}]}}\nstatus: {{phase: Running}}",
                                 name, uid, node)));
  }
  void remove() {
    NodeRemoval removal{"a-1", "MachineSet/m/a", "m/a-1", 0, {}};
    for (const auto& [key, pod] : cache.pods()) removal.evict.push_back(pod);
    Actions actions;
    actions.remove.push_back(removal);
    actuator.carry_out(actions, {});
  }

  [[nodiscard]] bool is_tainted() const { return !json::get_array(server->objects.at(kNode), {"spec", "taints"}).empty(); }
  [[nodiscard]] bool is_marked() const { return !json::get_object(server->objects.at(kMachine), {"metadata", "annotations"}).empty(); }
  [[nodiscard]] std::int64_t replicas() const { return json::get_int(server->objects.at(kSet), {"spec", "replicas"}); }

  ClusterCache cache;
  std::shared_ptr<FakeServer> server = std::make_shared<FakeServer>(cache);
  VirtualLoop loop{*parse_rfc3339("2026-01-01T00:00:00Z")};
  client::Client client{server, &loop, "test"};
  client::EventRecorder events{client, {.component = "cluster-autoscaler"}};
  std::vector<bool> ended;
  std::string why_not;
  bool stands_still = false;  ///< The clock that nobody sets.
  OwnWrites writes;
  Actuator actuator{
      client,
      cache,
      events,
      {.grown = [](const auto&...) {},
       .grow_failed = [](const auto&...) {},
       .removal_ended = [this](const auto&, bool, bool succeeded) { ended.push_back(succeeded); },
       .evicted = [](auto) {},
       .why_not = [this](const auto&) { return why_not; },
       .steady_clock = [this] { return stands_still ? Duration(0) : loop.now().time_since_epoch(); }},
      std::make_shared<MachineApi>(
          client, cache,
          WriteCallbacks{.write_started = [this](const std::string& resource) { writes.started(resource); },
                         .write_ended = [this](const std::string& resource, std::int64_t revision) { writes.ended(resource, revision); }})};
};

TEST_F(ActuatorTest, AnEmptyNodesMachineIsMarkedAndTheSetShrinks) {
  remove();
  loop.run_for(1s);
  EXPECT_EQ(ended, std::vector{true});
  EXPECT_TRUE(is_marked());
  EXPECT_EQ(replicas(), 2);
}

TEST_F(ActuatorTest, EvictedPodsHaveTheirOwnGraceUpToTheLongestAllowed) {
  for (const auto& [name, grace] :
       {std::pair{"short", "terminationGracePeriodSeconds: 7, "}, {"usual", ""}, {"long", "terminationGracePeriodSeconds: 3600, "}})
    server->put(fmt::format("/api/v1/namespaces/default/pods/{}", name),
                yaml(fmt::format("kind: Pod\nmetadata: {{namespace: default, name: {0}, uid: u-{0}}}\n"
                                 "spec: {{nodeName: a-1, {1}containers: [{{name: c}}]}}\nstatus: {{phase: Running}}",
                                 name, grace)));
  std::map<std::string, std::int64_t> graces;
  server->before = [&](const net::HttpRequest& request) {
    if (!request.path.ends_with("/eviction")) return;
    const json::Value body = *json::parse(request.body);
    graces[std::string(json::get_string(body, {"metadata", "name"}))] = json::get_int(body, {"deleteOptions", "gracePeriodSeconds"}, -1);
  };
  remove();
  loop.run_for(60s);
  EXPECT_EQ(graces, (std::map<std::string, std::int64_t>{{"short", 7}, {"usual", 30}, {"long", 600}}));
  EXPECT_EQ(ended, std::vector{true});
}

TEST_F(ActuatorTest, APodThatCameBeforeTheTaintKeepsTheNode) {
  server->before = [this](const net::HttpRequest& request) {
    if (request.method == "PATCH" && request.path == kNode) {
      server->before = nullptr;
      // Bound, and the watch has not said so: the server alone knows.
      server->objects["/api/v1/namespaces/default/pods/late"] =
          yaml("kind: Pod\nmetadata: {namespace: default, name: late, uid: l}\nspec: {nodeName: a-1, containers: [{name: c}]}");
    }
  };
  remove();
  loop.run_for(1s);
  EXPECT_EQ(ended, std::vector{false});
  EXPECT_FALSE(is_tainted());
  EXPECT_FALSE(is_marked());
  EXPECT_EQ(replicas(), 3);
}

TEST_F(ActuatorTest, APodThatCameWhileOthersWereEvictedKeepsTheNode) {
  pod("old", "o");
  server->before = [this](const net::HttpRequest& request) {
    if (!request.path.ends_with("/eviction")) return;
    server->before = nullptr;
    server->objects["/api/v1/namespaces/default/pods/late"] =
        yaml("kind: Pod\nmetadata: {namespace: default, name: late, uid: l}\nspec: {nodeName: a-1, containers: [{name: c}]}");
  };
  remove();
  loop.run_for(60s);
  EXPECT_EQ(ended, std::vector{false});
  EXPECT_FALSE(is_tainted());
  EXPECT_EQ(replicas(), 3);
}

// A lost machine's pods have no kubelet that would end them.
TEST_F(ActuatorTest, APodThatShouldHaveEndedLongAgoDoesNotKeepTheNode) {
  server->objects["/api/v1/namespaces/default/pods/stuck"] = yaml(
      "kind: Pod\nmetadata: {namespace: default, name: stuck, uid: s, deletionTimestamp: '2025-12-31T23:59:00Z'}\n"
      "spec: {nodeName: a-1, terminationGracePeriodSeconds: 0, containers: [{name: c}]}");
  remove();
  loop.run_for(1s);
  EXPECT_EQ(ended, std::vector{true});
  EXPECT_EQ(replicas(), 2);
}

TEST_F(ActuatorTest, APodThatMayStillEndDoesKeepIt) {
  server->objects["/api/v1/namespaces/default/pods/ending"] = yaml(
      "kind: Pod\nmetadata: {namespace: default, name: ending, uid: s, deletionTimestamp: '2025-12-31T23:59:45Z'}\n"
      "spec: {nodeName: a-1, terminationGracePeriodSeconds: 0, containers: [{name: c}]}");
  remove();
  loop.run_for(1s);
  EXPECT_EQ(ended, std::vector{false});
}

TEST_F(ActuatorTest, DaemonsAndFinishedPodsDoNotKeepTheNode) {
  server->objects["/api/v1/namespaces/default/pods/daemon"] = yaml(
      "kind: Pod\nmetadata: {namespace: default, name: daemon, uid: d, ownerReferences: [{kind: DaemonSet, name: x, uid: x, controller: "
      "true}]}\nspec: {nodeName: a-1, containers: [{name: c}]}");
  server->objects["/api/v1/namespaces/default/pods/done"] = yaml(
      "kind: Pod\nmetadata: {namespace: default, name: done, uid: e}\nspec: {nodeName: a-1, containers: [{name: c}]}\n"
      "status: {phase: Failed}");
  remove();
  loop.run_for(1s);
  EXPECT_EQ(ended, std::vector{true});
}

TEST_F(ActuatorTest, ANamesakeOfAnEvictedPodIsSpared) {
  pod("db-0", "first");
  server->before = [this](const net::HttpRequest& request) {
    if (!request.path.ends_with("/eviction")) return;
    server->before = nullptr;
    server->objects.at("/api/v1/namespaces/default/pods/db-0") =
        yaml("kind: Pod\nmetadata: {namespace: default, name: db-0, uid: second}\nspec: {nodeName: b-1, containers: [{name: c}]}");
  };
  remove();
  loop.run_for(1s);
  EXPECT_TRUE(server->objects.contains("/api/v1/namespaces/default/pods/db-0"));
}

TEST_F(ActuatorTest, AFailedShrinkTakesTheMarksOffMachineAndNode) {
  server->answer_instead = [](const net::HttpRequest& request) { return request.method == "PATCH" && request.path == kSet ? 403 : -1; };
  remove();
  loop.run_for(60s);
  EXPECT_EQ(ended, std::vector{false});
  EXPECT_FALSE(is_marked());
  EXPECT_FALSE(is_tainted());
  EXPECT_EQ(replicas(), 3);
}

TEST_F(ActuatorTest, MarksAreTakenBackHoweverLongTheServerIsAway) {
  bool is_away = false;
  server->answer_instead = [&](const net::HttpRequest& request) {
    is_away = is_away || (request.method == "PATCH" && request.path == kSet);
    return is_away ? 0 : -1;
  };
  remove();
  loop.run_for(120s);
  EXPECT_TRUE(is_marked());
  EXPECT_TRUE(is_tainted());
  server->answer_instead = nullptr;
  loop.run_for(60s);
  EXPECT_FALSE(is_marked());
  EXPECT_FALSE(is_tainted());
  EXPECT_EQ(replicas(), 3);
}

TEST_F(ActuatorTest, AShrinkWhoseAnswerIsLostIsNotRepeated) {
  server->answer_instead = [this](const net::HttpRequest& request) {
    if (request.method != "PATCH" || request.path != kSet) return -1;
    json::Value set = server->objects.at(kSet);
    json::set(set, {"spec", "replicas"}, json::Value(2));
    server->put(kSet, std::move(set));
    server->answer_instead = nullptr;
    return 0;
  };
  remove();
  loop.run_for(60s);
  EXPECT_EQ(ended, std::vector{true});
  EXPECT_EQ(replicas(), 2);
  EXPECT_EQ(server->count(std::string("PATCH ") + kSet), 1);
}

TEST_F(ActuatorTest, TheNextPassIsToldOfWritesUntilTheyAreAnsweredAndSeen) {
  const auto outstanding = [this](std::int64_t seen) { return writes.outstanding([seen](const std::string&) { return seen; }); };
  server->answer_instead = [this](const net::HttpRequest& request) {
    if (request.method != "PATCH" || request.path != kSet) return -1;
    server->answer_instead = nullptr;
    return 0;  // The answer is lost: nobody knows yet whether the set has grown.
  };
  Actions actions;
  actions.grow.push_back({"MachineSet/m/a", 3, 5, 10});
  actuator.carry_out(actions, {});
  loop.run_for(100ms);
  EXPECT_EQ(outstanding(INT64_MAX), std::vector<std::string>{"machinesets.machine.openshift.io"});
  loop.run_for(60s);
  EXPECT_EQ(replicas(), 5);
  EXPECT_EQ(outstanding(0), std::vector<std::string>{"machinesets.machine.openshift.io"});
  EXPECT_TRUE(
      outstanding(std::atoll(std::string(json::get_string(server->objects.at(kSet), {"metadata", "resourceVersion"})).c_str())).empty());
}

TEST_F(ActuatorTest, ARemovalIsOutstandingInMachinesAndSets) {
  remove();
  loop.run_for(1s);
  EXPECT_EQ(writes.outstanding([](const std::string&) { return std::int64_t{0}; }),
            (std::vector<std::string>{"machines.machine.openshift.io", "machinesets.machine.openshift.io"}));
}

TEST_F(ActuatorTest, ANodeThatSomebodyIsNotDoneWithWaits) {
  const auto delayed = [this](const std::string& annotations) {
    server->put(kNode,
                yaml(fmt::format("kind: Node\nmetadata: {{name: a-1, uid: n, annotations: {{{}}}}}\nstatus: {{allocatable: {{cpu: '8', "
                                 "memory: 8Gi, pods: '110'}}}}",
                                 annotations)));
  };
  delayed(std::string(kDelayDeletion) + "volumes: x");
  remove();
  loop.run_for(60s);
  EXPECT_TRUE(ended.empty());
  delayed("");
  loop.run_for(5s);
  EXPECT_EQ(ended, std::vector{true});
}

TEST_F(ActuatorTest, ButNotForEver) {
  server->put(kNode, yaml(fmt::format("kind: Node\nmetadata: {{name: a-1, uid: n, annotations: {{{}volumes: x}}}}\nstatus: {{allocatable: "
                                      "{{cpu: '8', memory: 8Gi, pods: '110'}}}}",
                                      kDelayDeletion)));
  remove();
  loop.run_for(125s);
  EXPECT_EQ(ended, std::vector{true});
}

TEST_F(ActuatorTest, AClockThatIsSetShortensNoWait) {
  stands_still = true;
  server->put(kNode, yaml(fmt::format("kind: Node\nmetadata: {{name: a-1, uid: n, annotations: {{{}volumes: x}}}}\nstatus: {{allocatable: "
                                      "{{cpu: '8', memory: 8Gi, pods: '110'}}}}",
                                      kDelayDeletion)));
  remove();
  loop.run_for(3600s);
  EXPECT_TRUE(ended.empty()) << "two hours by the clock that was set, none by the other";
  EXPECT_FALSE(is_marked());
}

TEST_F(ActuatorTest, ARemovalThatNobodyWantsAnyMoreEndsBeforeItsMachineGoes) {
  server->put(kNode, yaml(fmt::format("kind: Node\nmetadata: {{name: a-1, uid: n, annotations: {{{}volumes: x}}}}\nstatus: {{allocatable: "
                                      "{{cpu: '8', memory: 8Gi, pods: '110'}}}}",
                                      kDelayDeletion)));
  remove();
  loop.run_for(10s);
  EXPECT_TRUE(is_tainted());
  why_not = "its group is gone";
  loop.run_for(10s);
  EXPECT_EQ(ended, std::vector{false});
  EXPECT_FALSE(is_tainted());
  EXPECT_FALSE(is_marked());
  EXPECT_EQ(replicas(), 3);
}

TEST_F(ActuatorTest, NobodyIsEvictedForARemovalThatIsGivenUp) {
  pod("web", "w");
  why_not = "scale-down was switched off";
  remove();
  loop.run_for(10s);
  EXPECT_EQ(server->count("POST /api/v1/namespaces/default/pods/web/eviction"), 0);
  EXPECT_EQ(ended, std::vector{false});
  EXPECT_FALSE(is_tainted());
}

TEST_F(ActuatorTest, DaemonsOfThePlanAreEvictedAndNobodyWaitsForThem) {
  server->put("/api/v1/namespaces/default/pods/daemon", yaml("kind: Pod\nmetadata: {namespace: default, name: daemon, uid: d, "
                                                             "ownerReferences: [{kind: DaemonSet, name: x, uid: x, controller: "
                                                             "true}]}\nspec: {nodeName: a-1, containers: [{name: c}]}"));
  server->answer_instead = [](const net::HttpRequest& request) { return request.path.ends_with("/eviction") ? 429 : -1; };
  NodeRemoval removal{"a-1", "MachineSet/m/a", "m/a-1", 0, {}};
  removal.daemons.push_back(cache.pods().at("default/daemon"));
  Actions actions;
  actions.remove.push_back(removal);
  actuator.carry_out(actions, {});
  loop.run_for(1s);
  EXPECT_EQ(server->count("POST /api/v1/namespaces/default/pods/daemon/eviction"), 1);
  EXPECT_EQ(ended, std::vector{true});
}

}  // namespace
}  // namespace berth::autoscaler::testing
