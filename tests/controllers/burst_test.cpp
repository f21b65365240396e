// However much a user's numbers ask for, a step holds a burst of it; and a server that is short of memory is asked again when it said.
#include "controllers/machines.h"
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using testing::World;
using testing::yaml;

constexpr const char* kAll = "2147483647";
constexpr std::size_t kMost = Plan::kMostBytes * 2 + Plan::kMostWrites * 1024;

struct Asked {
  const char* name;
  ControllerPtr (*make)();
  Kind (*kind)();
  std::string text;
};

std::string pod_template(std::size_t bytes) {
  return fmt::format(
      "  template:\n    metadata: {{labels: {{app: w}}, annotations: {{big: '{}'}}}}\n    spec: {{restartPolicy: Never, containers: "
      "[{{name: "
      "c, image: 'a:1'}}]}}\n",
      std::string(bytes, 'x'));
}

std::vector<Asked> asked(std::size_t bytes) {
  const std::string selector = "  selector: {matchLabels: {app: w}}\n", head = "metadata: {name: w, generation: 1, uid: u-w}\nspec:\n";
  const std::string replicas = fmt::format("  replicas: {}\n", kAll), pod = pod_template(bytes);
  const std::string apps = "apiVersion: apps/v1\nkind: ", batch = "apiVersion: batch/v1\nkind: Job\n";
  const std::string parallel = "  podManagementPolicy: Parallel\n  serviceName: s\n";
  std::string claims = "  volumeClaimTemplates:\n";
  for (int i = 0; i < 50; ++i) claims += fmt::format("  - {{metadata: {{name: c{}}}, spec: {{}}}}\n", i);
  const std::string job = fmt::format("  parallelism: {0}\n  completions: {0}\n", kAll);
  return {
      {"ReplicaSet", [] { return make_replicaset_controller(); }, [] { return kinds().replica_set; },
       apps + "ReplicaSet\n" + head + replicas + selector + pod},
      {"ReplicationController", [] { return make_replication_controller(); }, [] { return kinds().replication_controller; },
       "apiVersion: v1\nkind: ReplicationController\n" + head + replicas + "  selector: {app: w}\n" + pod},
      {"StatefulSet", [] { return make_statefulset_controller(); }, [] { return kinds().stateful_set; },
       apps + "StatefulSet\n" + head + replicas + parallel + selector + pod},
      {"StatefulSet that starts late", [] { return make_statefulset_controller(); }, [] { return kinds().stateful_set; },
       apps + "StatefulSet\n" + head + replicas + parallel + "  ordinals: {start: 2147483647}\n" + selector + pod},
      {"StatefulSet with claims", [] { return make_statefulset_controller(); }, [] { return kinds().stateful_set; },
       apps + "StatefulSet\n" + head + replicas + parallel + selector + claims + pod},
      {"Job", [] { return make_job_controller(); }, [] { return kinds().job; }, batch + head + job + selector + pod},
      {"Indexed Job", [] { return make_job_controller(); }, [] { return kinds().job; },
       batch + head + "  completionMode: Indexed\n" + job + selector + pod},
      {"MachineSet", [] { return make_machine_set_controller(); }, [] { return kinds().machine_set; },
       "apiVersion: machine.openshift.io/v1beta1\nkind: MachineSet\n" + head + replicas + selector + pod},
  };
}

TEST(Burst, NoStepHoldsWhatAUsersNumbersAskFor) {
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{200'000}})
    for (const Asked& one : asked(bytes)) {
      World world;
      std::size_t peak = 0;
      int creates = 0;
      world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
        peak = std::max(peak, world.api.engine.bytes_in_flight());
        if (write.verb != Write::Verb::kCreate || write.kind == kinds().controller_revision) return std::nullopt;
        ++creates;
        return model::forbidden("", "pods", "", "no");
      };
      world.api.engine.add(one.make());
      world.api.engine.start();
      world.api.put(one.kind(), yaml(one.text));
      world.loop.run_for(std::chrono::milliseconds(3));
      EXPECT_GT(creates, 0) << one.name;
      EXPECT_GT(peak, bytes) << one.name;
      EXPECT_LE(peak, kMost) << one.name << " with a template of " << bytes;
    }
}

TEST(Burst, ASetGrowsBurstByBurstAndAsFarAsItIsAsked) {
  World world;
  world.api.engine.add(make_statefulset_controller());
  world.api.engine.start();
  world.api.put(kinds().stateful_set, yaml(testing::workload("StatefulSet", 1200, "  podManagementPolicy: Parallel\n  serviceName: s\n")));
  world.loop.run_for(std::chrono::seconds(1));
  EXPECT_EQ(world.pods(), 1200U);
}

class HeldBack : public ::testing::Test {
 protected:
  HeldBack() {
    world.api.engine.add(make_replicaset_controller());
    world.api.engine.start();
    world.api.refuse = [this](const Write& write) -> std::optional<ApiStatus> {
      if (write.verb != Write::Verb::kCreate) return std::nullopt;
      ++asked;
      if (!is_short) return std::nullopt;
      ApiStatus status;
      status.code = 429;
      status.message = "later";
      status.retry_after_seconds = 8;
      return status;
    };
    world.api.put(kinds().replica_set, yaml(testing::workload("ReplicaSet", 300)));
  }
  World world;
  bool is_short = true;
  int asked = 0;
};

TEST_F(HeldBack, TheServerIsAskedWhenItSaidAndNothingIsLost) {
  world.loop.run_for(std::chrono::minutes(4));
  EXPECT_EQ(world.pods(), 0U);
  EXPECT_GE(asked, 20);
  EXPECT_LE(asked, 40);
  EXPECT_TRUE(world.api.events.empty()) << world.api.events.front();
  EXPECT_EQ(condition_status(world.api.get(kinds().replica_set, "w"), "ReplicaFailure"), "True");
  is_short = false;
  world.loop.run_for(std::chrono::seconds(9));
  EXPECT_EQ(world.pods(), 300U) << "no back-off grew meanwhile";
  world.loop.run_for(std::chrono::seconds(1));
  EXPECT_EQ(condition_status(world.api.get(kinds().replica_set, "w"), "ReplicaFailure"), "");
}

TEST_F(HeldBack, WhatHappensMeanwhileIsNoReasonToAskAtOnce) {
  for (int i = 0; i < 100; ++i) {
    json::Value set = world.api.get(kinds().replica_set, "w");
    json::set(set, {"metadata", "annotations", "i"}, json::Value(std::to_string(i)));
    world.api.put(kinds().replica_set, std::move(set));
    world.loop.run_for(std::chrono::milliseconds(100));
  }
  EXPECT_LE(asked, 11);
}

TEST_F(HeldBack, WhoWantsFewerNeedNotWait) {
  is_short = false;
  world.loop.run_for(std::chrono::seconds(1));
  is_short = true;
  json::Value set = world.api.get(kinds().replica_set, "w");
  json::set(set, {"spec", "replicas"}, json::Value(400));
  world.api.put(kinds().replica_set, set);
  world.loop.run_for(std::chrono::milliseconds(500));
  set = world.api.get(kinds().replica_set, "w");
  json::set(set, {"spec", "replicas"}, json::Value(2));
  world.api.put(kinds().replica_set, set);
  world.loop.run_for(std::chrono::seconds(2));
  EXPECT_EQ(world.pods(), 2U);
}

/// Answers when it is told to.
struct SilentApi final : Api {
  void send(const Write&, std::function<void(ApiResult<json::Value>)> done) override { waiting.push_back(std::move(done)); }
  void note(std::string_view, const EventNote&) override {}
  void answer_all(const ApiResult<json::Value>& answer) {
    for (auto& done : std::exchange(waiting, {})) done(answer);
  }
  std::vector<std::function<void(ApiResult<json::Value>)>> waiting;
};

TEST(Engine, NoStepStartsWhilePlansHoldTooMuch) {
  VirtualLoop loop{testing::kStart};
  SilentApi api;
  EngineOptions options;
  options.bytes_in_flight = 1'000'000;
  Engine engine(loop, api, options, nullptr);
  engine.add(make_replicaset_controller());
  engine.start();
  for (int i = 0; i < 10; ++i) {
    json::Value set = yaml(testing::workload("ReplicaSet", 1000));
    for (const char* field : {"name", "uid"}) json::set(set, {"metadata", field}, json::Value(fmt::format("w{}", i)));
    json::set(set, {"metadata", "namespace"}, json::Value("default"));
    json::set(set, {"metadata", "resourceVersion"}, json::Value(std::to_string(i + 1)));
    engine.observe(kinds().replica_set, std::make_shared<client::Object>(set), false);
  }
  loop.run_for(std::chrono::seconds(1));
  EXPECT_EQ(engine.steps(), 1U);
  // What ends makes room for the next.
  for (int i = 0; i < 3; ++i) {
    api.answer_all(std::unexpected(model::forbidden("", "pods", "", "no")));
    loop.run_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(engine.steps(), 2U);
  EXPECT_LE(engine.bytes_in_flight(), 4'000'000U);
}

/// One write of so many bytes, again and again, or nothing.
class Busy final : public Controller {
 public:
  Busy(std::string name, std::size_t bytes) : name_(std::move(name)), bytes_(bytes) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {}; }
  void on_event(const Event&, const Cache&, TimePoint, KeySink&) override {}
  void on_start(const Cache&, TimePoint, KeySink& sink) override {
    for (const char* key : {"a/a", "b/b", "c/c"}) sink.add(key);
  }
  Plan reconcile(const std::string& key, TimePoint, const Cache&) override {
    Plan plan;
    if (bytes_ == 0) return plan;
    plan.add({.verb = Write::Verb::kDelete, .kind = kinds().pod, .ns = "default", .name = "p"}, bytes_);
    plan.enqueue.push_back(key);
    return plan;
  }
  std::string name_;
  std::size_t bytes_;
};

TEST(Engine, WhoAlwaysHasMuchToDoKeepsNobodyWaiting) {
  VirtualLoop loop{testing::kStart};
  SilentApi api;
  EngineOptions options;
  options.bytes_in_flight = 500'000;
  Engine engine(loop, api, options, nullptr);
  engine.add(std::make_unique<Busy>("greedy", 600'000));
  engine.add(std::make_unique<Busy>("other", 0));
  engine.start();
  loop.run_for(std::chrono::milliseconds(1));
  EXPECT_EQ(engine.steps(), 1U) << "the first plan is as much as there may be";
  for (int i = 0; i < 3; ++i) {
    api.answer_all(json::Value(json::Object{}));
    loop.run_for(std::chrono::milliseconds(1));
  }
  // Three more of the one, and between them the three keys of the other.
  EXPECT_EQ(engine.steps(), 7U);
}

}  // namespace
}  // namespace berth::controllers
