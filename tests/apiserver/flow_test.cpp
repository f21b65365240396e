// Flow control: where requests belong, who is served next, what is refused, and what never waits.
#include <gtest/gtest.h>

#include <future>
#include <latch>

#include "apiserver/flow/controller.h"
#include "model/flow_control.h"
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::flow {
namespace {

UserInfo user(std::string name, std::vector<std::string> groups = {"system:authenticated"}) {
  return {std::move(name), "", std::move(groups), {}};
}

Attributes asks(std::string verb, std::string resource, std::string group = "", std::string ns = "default") {
  Attributes out;
  out.verb = std::move(verb);
  out.resource = std::move(resource);
  out.group = std::move(group);
  out.ns = std::move(ns);
  return out;
}

/// Kubernetes' own objects, as a cluster has them that nobody has changed.
void use_defaults(Controller& controller) {
  std::vector<PriorityLevel> levels;
  std::vector<FlowSchema> schemas;
  for (const auto& one : model::flow_control::bootstrap_levels()) levels.push_back(read_level(one.document));
  for (const auto& one : model::flow_control::bootstrap_schemas()) schemas.push_back(read_schema(one.document));
  controller.configure(std::move(levels), std::move(schemas));
}

TEST(FlowSchemas, EverybodyBelongsSomewhere) {
  metrics::Registry registry;
  Controller controller({}, registry);
  use_defaults(controller);
  const auto classify = [&](const UserInfo& who, const Attributes& what) { return controller.classify(who, what); };
  const auto schema_of = [&](const UserInfo& who, const Attributes& what) { return classify(who, what).schema->config.name; };
  EXPECT_EQ(schema_of(user("admin", {"system:masters", "system:authenticated"}), asks("list", "pods")), "exempt");
  const auto node = user("system:node:a", {"system:nodes", "system:authenticated"});
  EXPECT_EQ(schema_of(node, asks("update", "leases", "coordination.k8s.io", "kube-node-lease")), "system-node-high");
  auto status = asks("patch", "nodes");
  status.subresource = "status";
  EXPECT_EQ(schema_of(node, status), "system-node-high");
  EXPECT_EQ(schema_of(node, asks("list", "pods")), "system-nodes");
  const auto scheduler = user("system:kube-scheduler");
  EXPECT_EQ(schema_of(scheduler, asks("update", "leases", "coordination.k8s.io", "kube-system")), "system-leader-election");
  EXPECT_EQ(schema_of(scheduler, asks("create", "events")), "kube-scheduler");
  const auto account = [](const std::string& ns) {
    return user("system:serviceaccount:" + ns + ":x", {"system:serviceaccounts", "system:serviceaccounts:" + ns, "system:authenticated"});
  };
  EXPECT_EQ(schema_of(account("kube-system"), asks("list", "pods")), "kube-system-service-accounts");
  EXPECT_EQ(schema_of(account("shop"), asks("list", "pods")), "service-accounts");
  EXPECT_EQ(schema_of(user("jane"), asks("list", "pods")), "global-default");
  Attributes probe;
  probe.is_resource = false;
  probe.verb = "get";
  probe.path = "/readyz";
  EXPECT_EQ(schema_of(user("system:anonymous", {"system:unauthenticated"}), probe), "probes");
  // Flows: by user, by namespace, or one for all.
  EXPECT_EQ(classify(user("jane"), asks("list", "pods")).flow, "jane");
  EXPECT_EQ(classify(scheduler, asks("create", "events", "", "shop")).flow, "shop");
}

TEST(FairQueue, FlowsTakeTurnsHoweverMuchOneAsksFor) {
  FairQueue queue(64, 6, 50);
  std::string served;
  const auto ask = [&](char who, double work) {
    return queue.push(flow_hash("s", std::string(1, who)), {work, 1, 0, [&served, who] { served += who; }});
  };
  for (int i = 0; i < 300; ++i) ask('a', 100);
  for (int i = 0; i < 10; ++i) ask('b', 100);
  // One asker has six queues of the 64, another has his own six; each queue is served alike.
  for (int i = 0; i < 30; ++i) {
    auto next = queue.pop();
    ASSERT_TRUE(next);
    next->item();
  }
  EXPECT_GE(std::ranges::count(served, 'b'), 9) << served;
  EXPECT_EQ(queue.size(), 280U);
}

TEST(FairQueue, CostlyWorkCountsForMore) {
  FairQueue queue(2, 1, 1000);
  // Two flows with a queue each.
  std::string light = "x", heavy;
  for (char c = 'a'; heavy.empty(); ++c) {
    FairQueue probe(2, 1, 1);
    probe.push(flow_hash("s", light), {1, 1, 0, [] {}});
    if (probe.push(flow_hash("s", std::string(1, c)), {1, 1, 0, [] {}})) heavy = c;
  }
  int light_served = 0, heavy_served = 0;
  for (int i = 0; i < 500; ++i) {
    queue.push(flow_hash("s", light), {10, 1, 0, [&] { ++light_served; }});
    queue.push(flow_hash("s", heavy), {100, 1, 0, [&] { ++heavy_served; }});
  }
  for (int i = 0; i < 220; ++i) queue.pop()->item();
  EXPECT_NEAR(light_served, 200, 5);
  EXPECT_NEAR(heavy_served, 20, 5);
}

/// What a queue was served beyond the present counts against it, however many others have come and gone.
TEST(FairQueue, RemembersWhoWasServedBeyondThePresent) {
  FairQueue queue(1000, 1, 10);
  const auto push = [&](std::uint64_t flow, double work, std::size_t name) {
    Waiting waiting;
    waiting.work = work;
    waiting.bytes = name;
    return queue.push(flow, std::move(waiting));
  };
  ASSERT_TRUE(push(1, 1e6, 0));
  EXPECT_EQ(queue.pop()->bytes, 0U);
  for (std::uint64_t flow = 100; flow < 500; ++flow) {
    ASSERT_TRUE(push(flow, 1, 0));
    ASSERT_TRUE(queue.pop());
  }
  ASSERT_TRUE(push(1, 1, 1));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(push(2, 10, 2));
  std::vector<std::size_t> order;
  while (const auto next = queue.pop()) order.push_back(next->bytes);
  EXPECT_EQ(order, (std::vector<std::size_t>{2, 2, 2, 1}));
}

TEST(FairQueue, EndsAtItsLength) {
  FairQueue queue(8, 2, 3);
  int taken = 0;
  for (int i = 0; i < 20; ++i) taken += queue.push(flow_hash("s", "a"), {1, 1, 0, [] {}}) ? 1 : 0;
  EXPECT_EQ(taken, 6);  // Two queues of three.
  EXPECT_FALSE(FairQueue(0, 0, 0).push(1, {1, 1, 0, [] {}}));
}

class FlowController : public ::testing::Test {
 protected:
  static Work work(
      const Controller& controller, const UserInfo& who, double cost, std::function<void()> run,
      std::function<void(std::string_view)> reject = [](std::string_view) {}) {
    Work out;
    out.where = controller.classify(who, asks("list", "pods"));
    out.cost_us = cost;
    out.run = std::move(run);
    out.reject = [reject = std::move(reject)](std::string_view reason, int) { reject(reason); };
    return out;
  }
  metrics::Registry registry_;
};

TEST_F(FlowController, SmallWorkRunsHereAndLargeWorkElsewhere) {
  Controller controller({}, registry_);
  use_defaults(controller);
  std::thread::id small, large;
  std::promise<void> done;
  controller.submit(work(controller, user("jane"), 10, [&] { small = std::this_thread::get_id(); }));
  controller.submit(work(controller, user("jane"), 1e6, [&] {
    large = std::this_thread::get_id();
    done.set_value();
  }));
  done.get_future().wait();
  EXPECT_EQ(small, std::this_thread::get_id());
  EXPECT_NE(large, std::this_thread::get_id());
}

/// All workers are held by one user's work: his queue fills and he is refused, while an administrator's large work and everybody's small
/// work go on.
TEST_F(FlowController, OneUserFillsHisOwnQueuesAlone) {
  Limits limits;
  limits.workers = 2;
  Controller controller(limits, registry_);
  use_defaults(controller);
  std::latch running(2), go(1);
  std::atomic<int> finished{0}, refused{0};
  for (int i = 0; i < 2; ++i)
    controller.submit(work(controller, user("greedy"), 1e6, [&] {
      running.count_down();
      go.wait();
      ++finished;
    }));
  running.wait();
  for (int i = 0; i < 400; ++i)
    controller.submit(work(
        controller, user("greedy"), 1e6, [&] { ++finished; },
        [&](std::string_view reason) {
          EXPECT_EQ(reason, "queue-full");
          ++refused;
        }));
  // Six queues of fifty are his; of what is refused the first twenty are told at once.
  EXPECT_GE(refused, 20);
  std::promise<void> admin;
  controller.submit(work(controller, user("admin", {"system:masters"}), 1e6, [&] { admin.set_value(); }));
  admin.get_future().wait();
  // Another user's work comes next, before the 300 that wait.
  std::promise<int> jane;
  controller.submit(work(controller, user("jane"), 1e6, [&] { jane.set_value(finished); }));
  go.count_down();
  EXPECT_LE(jane.get_future().get(), 20);
  controller.stop();
}

TEST_F(FlowController, BodiesThatWaitAreCounted) {
  Limits limits;
  limits.workers = 1;
  limits.waiting_bytes = 9000;  // Two of 400, and 4 KiB each beside their bodies.
  Controller controller(limits, registry_);
  use_defaults(controller);
  std::latch running(1), go(1);
  controller.submit(work(controller, user("jane"), 1e6, [&] {
    running.count_down();
    go.wait();
  }));
  running.wait();
  int refused = 0;
  for (int i = 0; i < 3; ++i) {
    auto large = work(
        controller, user("jane"), 1e6, [] {}, [&](std::string_view) { ++refused; });
    large.bytes = 400;
    controller.submit(std::move(large));
  }
  EXPECT_EQ(refused, 1);
  go.count_down();
  controller.stop();
}

TEST_F(FlowController, SeatsAreGivenBack) {
  Limits limits;
  limits.inflight_read = 12;
  limits.inflight_mutating = 0;
  Controller controller(limits, registry_);
  use_defaults(controller);
  const auto jane = user("jane");
  const auto where = controller.classify(jane, asks("list", "pods"));
  std::vector<Seats> held;
  std::atomic<int> ran{0};
  const auto ask = [&](bool keep) {
    controller.submit(work(controller, jane, 10, [&, keep] {
      Seats seats(controller, where, 1);
      if (keep) held.push_back(std::move(seats));
      ++ran;
    }));
  };
  ask(true);  // The level's one seat.
  EXPECT_EQ(ran, 1);
  std::promise<void> later;
  controller.submit(work(controller, jane, 10, [&] {
    Seats seats(controller, where, 1);
    later.set_value();
  }));
  auto served = later.get_future();
  EXPECT_EQ(served.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  held.clear();
  served.wait();
  controller.stop();
}

/// All that one user asks for hangs (at a webhook, a node): another finds a seat, and so does what is left of his own when it is over.
TEST_F(FlowController, WhatHangsForOneLeavesSeatsToOthers) {
  Controller controller({}, registry_);
  use_defaults(controller);
  std::mutex mutex;
  std::vector<Seats> held;
  int ran = 0, refused = 0;
  std::promise<void> all;
  bool keeps = true;
  constexpr int kAsked = 250;
  const auto greedy = user("greedy");
  const auto where = controller.classify(greedy, asks("list", "pods"));
  for (int i = 0; i < kAsked; ++i)
    controller.submit(work(
        controller, greedy, 10,
        [&] {
          Seats seats(controller, where, 1);  // Given back when it goes, after the lock.
          const std::lock_guard lock(mutex);
          if (keeps) held.push_back(std::move(seats));
          if (++ran == kAsked) all.set_value();
        },
        [&](std::string_view) { ++refused; }));
  const auto jane = user("jane");
  std::promise<void> served;
  controller.submit(work(controller, jane, 1e6, [&] {
    const Seats seats(controller, controller.classify(jane, asks("list", "pods")), 1);
    served.set_value();
  }));
  EXPECT_EQ(served.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(refused, 0);
  std::vector<Seats> over;
  {
    const std::lock_guard lock(mutex);
    EXPECT_GE(ran, where.place().nominal / 3) << "he has much of it as long as nobody else asks";
    EXPECT_LT(ran, where.place().nominal) << "but never all";
    keeps = false;
    over.swap(held);
  }
  over.clear();
  EXPECT_EQ(all.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  controller.stop();
}

TEST_F(FlowController, NothingNewBeginsWhenMemoryIsScarce) {
  Controller controller({}, registry_);
  use_defaults(controller);
  controller.set_memory(Memory::kShort);
  bool admin = false, jane = false, node = false;
  controller.submit(work(controller, user("admin", {"system:masters"}), 10, [&] { admin = true; }));
  controller.submit(work(controller, user("jane"), 10, [&] { jane = true; }));
  controller.submit(work(controller, user("system:node:a", {"system:nodes", "system:authenticated"}), 10, [&] { node = true; }));
  EXPECT_TRUE(admin);
  EXPECT_TRUE(node);
  EXPECT_FALSE(jane);
  controller.set_memory(Memory::kAmple);
  controller.submit(work(controller, user("jane"), 10, [&] { jane = true; }));
  EXPECT_TRUE(jane);
}

TEST_F(FlowController, WhenMemoryIsTightControllersMakeNothingAndEverybodyElseGoesOn) {
  Controller controller({}, registry_);
  use_defaults(controller);
  const auto asks = [&](const UserInfo& who, std::string_view verb, std::string_view resource, std::string_view subresource = "") {
    Attributes attributes;
    attributes.verb = verb;
    attributes.resource = resource;
    attributes.subresource = subresource;
    attributes.ns = "default";
    Work asked;
    asked.where = controller.classify(who, attributes);
    bool ran = false;
    asked.run = [&] { ran = true; };
    asked.reject = [](std::string_view, int) {};
    controller.submit(std::move(asked));
    return ran;
  };
  // As in `berth up`, where controllers are in the process, and exempt.
  const UserInfo manager = user("system:kube-controller-manager", {"system:masters"});
  const UserInfo account = user("system:serviceaccount:kube-system:job-controller",
                                {"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"});
  for (const Memory memory : {Memory::kTight, Memory::kShort}) {
    controller.set_memory(memory);
    for (const UserInfo& who : {manager, account}) {
      EXPECT_FALSE(asks(who, "create", "pods"));
      EXPECT_TRUE(asks(who, "delete", "pods")) << "that makes room";
      EXPECT_TRUE(asks(who, "update", "pods"));
      EXPECT_TRUE(asks(who, "create", "pods", "eviction"));
      EXPECT_TRUE(asks(who, "create", "events")) << "people are told why nothing comes";
    }
    EXPECT_EQ(asks(user("jane"), "create", "pods"), memory == Memory::kTight);
    EXPECT_TRUE(asks(user("system:node:a", {"system:nodes", "system:authenticated"}), "create", "pods"));
  }
  controller.set_memory(Memory::kAmple);
  EXPECT_TRUE(asks(manager, "create", "pods"));
}

TEST_F(FlowController, WhatWaitedTooLongGivesItsBytesBack) {
  Limits limits;
  limits.workers = 1;
  limits.longest_wait = std::chrono::milliseconds(500);  // Both are there long before.
  limits.waiting_bytes = 100'000;
  Controller controller(limits, registry_);
  use_defaults(controller);
  // The only worker is held up, so that nothing leaves the queues but by its time.
  std::promise<void> begun, go;
  controller.post(work(controller, user("jane"), 10'000, [&] {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();
  for (int round = 0; round < 2; ++round) {
    std::promise<std::string> first, second;
    const auto waits = [&](std::promise<std::string>& told) {
      Work large = work(controller, user("jane"), 10'000, [] {});
      large.bytes = 60'000;
      large.reject = [&told](std::string_view reason, int) { told.set_value(std::string(reason)); };
      controller.submit(std::move(large));
    };
    waits(first);
    waits(second);
    EXPECT_EQ(second.get_future().get(), "queue-full") << "there is room for one";
    EXPECT_EQ(first.get_future().get(), "time-out");
  }
  go.set_value();
  controller.stop();
}

TEST_F(FlowController, WhatHasBegunIsNeverRefused) {
  Limits limits;
  limits.workers = 1;
  Controller controller(limits, registry_);
  use_defaults(controller);
  std::latch done(500);
  for (int i = 0; i < 500; ++i) {  // More than a user's queues hold.
    auto rest = work(controller, user("jane"), 1e6, {});
    rest.run = [&controller, &done, where = rest.where] {
      const Seats seats(controller, where, 1);
      done.count_down();
    };
    controller.post(std::move(rest));
  }
  done.wait();
  controller.stop();
}

TEST_F(FlowController, ALevelOfOnesOwnStarvesNobodyOfTheCluster) {
  Limits limits;
  limits.workers = 1;
  Controller controller(limits, registry_);
  std::vector<PriorityLevel> levels;
  std::vector<FlowSchema> schemas;
  for (const auto& one : model::flow_control::bootstrap_levels()) levels.push_back(read_level(one.document));
  for (const auto& one : model::flow_control::bootstrap_schemas()) schemas.push_back(read_schema(one.document));
  // The worst that a level can be: all shares, and as many queues as there may be.
  levels.push_back({"own", "u", false, INT32_MAX, 0, {}, 10'000'000, 2, INT32_MAX});
  FlowSchema own = schemas.front();
  own.name = own.level = "own";
  own.precedence = 2;
  own.rules[0].subjects = {{FlowSchema::Subject::Kind::kUser, "greedy", {}}};
  schemas.push_back(own);
  controller.configure(levels, schemas);
  const int its_seats = work(controller, user("greedy"), 1e6, {}).where.place().nominal;
  EXPECT_GT(its_seats, 0);
  EXPECT_LE(its_seats, limits.inflight_read + limits.inflight_mutating) << "all shares are not more than all seats";
  const auto submit = [&](const UserInfo& who, std::function<void()> run) {
    auto one = work(controller, who, 1e6, {});
    one.run = [&controller, where = one.where, run = std::move(run)] {
      const Seats seats(controller, where, 1);
      run();
    };
    controller.submit(std::move(one));
  };
  std::latch running(1), go(1);
  std::atomic<int> greedy{0};
  submit(user("greedy"), [&] {
    running.count_down();
    go.wait();
  });
  running.wait();
  for (int i = 0; i < 5000; ++i) submit(user("greedy"), [&] { ++greedy; });
  const auto node = user("system:node:a", {"system:nodes", "system:authenticated"});
  std::promise<int> tenth;
  for (int i = 0; i < 10; ++i) submit(node, [&, i] { i == 9 ? tenth.set_value(greedy) : void(); });
  go.count_down();
  // Half of the turns are the cluster's; of those a level that has no work takes none.
  EXPECT_LE(tenth.get_future().get(), 80);
  controller.stop();
}

TEST_F(FlowController, WithoutQueuesTheExcessIsRefused) {
  Limits limits;
  limits.inflight_read = 2;
  limits.inflight_mutating = 1;
  limits.is_fair = false;
  Controller controller(limits, registry_);
  std::vector<Seats> held;
  std::string why;
  const auto ask = [&](const UserInfo& who) {
    const auto where = controller.classify(who, asks("list", "pods"));
    bool ran = false;
    controller.submit(work(
        controller, who, 10,
        [&] {
          held.emplace_back(controller, where, 1);
          ran = true;
        },
        [&](std::string_view reason) { why = reason; }));
    return ran;
  };
  EXPECT_TRUE(ask(user("jane")));
  EXPECT_TRUE(ask(user("joe")));
  EXPECT_FALSE(ask(user("jane")));
  EXPECT_EQ(why, "concurrency-limit");
  EXPECT_TRUE(ask(user("admin", {"system:masters"})));
  held.clear();
  EXPECT_TRUE(ask(user("jane")));
  held.clear();
  controller.stop();
}

TEST_F(FlowController, WaitingEndsWithoutATurn) {
  Limits limits;
  limits.inflight_read = 12;
  limits.inflight_mutating = 0;
  limits.longest_wait = std::chrono::milliseconds(1);
  Controller controller(limits, registry_);
  use_defaults(controller);
  std::vector<Seats> held;
  const auto jane = user("jane");
  while (controller.runs_here(controller.classify(jane, asks("list", "pods")), 10, 1))
    held.emplace_back(controller, controller.classify(jane, asks("list", "pods")), 1);
  std::atomic<int> turns{0};
  std::promise<std::string> refused;
  controller.submit(work(
      controller, jane, 10, [&] { ++turns; }, [&](std::string_view reason) { refused.set_value(std::string(reason)); }));
  EXPECT_EQ(refused.get_future().get(), "time-out");
  held.clear();
  // Who comes when there is room has a turn, and who was refused is not given one behind it.
  std::promise<void> served;
  controller.post(work(controller, jane, 10, [&] { served.set_value(); }));
  served.get_future().wait();
  controller.stop();
  EXPECT_EQ(turns, 0);
}

TEST(FlowAllocation, IdleLevelsLend) {
  // Three levels of 100 seats that lend half of theirs: one wants 190, the others nothing.
  const auto shared = allocate(300, {{50, 400, 50}, {50, 400, 50}, {100, 400, 190}});
  ASSERT_TRUE(shared);
  EXPECT_NEAR(shared->seats[0] + shared->seats[1] + shared->seats[2], 300, 1e-6);
  EXPECT_NEAR(shared->seats[2], 300 * 190.0 / 290, 1e-6);
  // A bound that holds one leaves the rest to the others.
  const auto bound = allocate(300, {{50, 60, 50}, {50, 400, 50}, {100, 400, 190}});
  ASSERT_TRUE(bound);
  EXPECT_NEAR(bound->seats[0], 51.72, 0.01);
  const auto held = allocate(300, {{50, 50, 50}, {100, 400, 100}, {100, 120, 190}});
  EXPECT_FALSE(held && held->seats[2] > 120);
  EXPECT_FALSE(allocate(10, {{50, 60, 50}}));
  EXPECT_FALSE(allocate(100, {{50, 60, 50}}));
  EXPECT_TRUE(allocate(50, {{50, 60, 50}}));
  EXPECT_TRUE(allocate(60, {{50, 60, 50}}));
  EXPECT_FALSE(allocate(49.99, {{50, 60, 50}}));
  EXPECT_FALSE(allocate(60.01, {{50, 60, 50}}));
  // What no level can mean.
  EXPECT_FALSE(allocate(10, {{-1, 60, 50}}));
  EXPECT_FALSE(allocate(10, {{10, 9, 10}}));
  EXPECT_FALSE(allocate(10, {{10, 60, 9}}));
  EXPECT_FALSE(allocate(15, {{5, 60, 5}, {10, 60, 9}})) << "one is enough";
  EXPECT_TRUE(allocate(15, {{0, 0, 0}, {10, 60, 10}}));
}

TEST(FlowAllocation, DemandIsWeighedByTime) {
  DemandMeter meter;
  meter.set(0, 10);
  meter.set(9, 110);
  const auto& period = meter.close(10);
  EXPECT_EQ(period.highest, 110);
  EXPECT_NEAR(period.average, 20, 1e-9);
  EXPECT_NEAR(period.deviation, 30, 1e-9);
  EXPECT_NEAR(period.smoothed, 50, 1e-9);
  // It falls slowly.
  meter.set(10, 0);
  EXPECT_NEAR(meter.close(20).smoothed, 0.977 * 50, 1e-9);
}

TEST(FlowAllocation, WhoIsRefusedMuchStaysAwayLonger) {
  RetryAfter refusals;
  EXPECT_EQ(refusals.refuse(100), 1);
  for (int i = 0; i < 10; ++i) refusals.refuse(100);
  EXPECT_EQ(refusals.refuse(101), 2);
  for (int i = 0; i < 30; ++i) refusals.refuse(102);
  EXPECT_EQ(refusals.refuse(103), 4);
  EXPECT_EQ(refusals.refuse(200), 3);
}

/// The whole server, with threads: answers say where the request belonged, and what is large is served elsewhere all the same.
TEST(FlowControlServer, AnswersSayWhereTheyBelong) {
  ThreadLoop loop("test");
  auto cache = open_object_cache(store::make_memory_store(), loop, {}, false);
  ASSERT_TRUE(cache);
  ServerOptions options;
  options.cache = std::move(*cache);
  options.loop = &loop;
  const auto trusting = std::make_shared<TrustingAuth>();
  options.authenticator = trusting;
  options.authorizer = trusting;
  auto server = ApiServer::create(std::move(options));
  ASSERT_TRUE(server) << server.error().message;
  const auto send = [&](std::string method, std::string path, std::string body, std::string name) {
    net::HttpRequest request;
    request.method = std::move(method);
    request.path = std::move(path);
    request.body = std::move(body);
    request.headers.add("Content-Type", "application/json");
    request.headers.add("Accept", "application/yaml");
    request.peer = net::PeerCertificate{std::move(name), {"system:authenticated"}};
    auto response = std::make_shared<testing::RecordedResponse>();
    std::promise<void> answered;
    response->on_close([&answered] { answered.set_value(); });
    (*server)->handle(std::move(request), response);
    answered.get_future().wait();
    return response;
  };
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  std::string large = R"({"metadata":{"name":"large"},"data":{"k":")" + std::string(300'000, 'x') + "\"}}";
  const auto made = send("POST", maps, large, "jane");
  EXPECT_EQ(made->status, 201) << made->body;
  EXPECT_TRUE(made->body.starts_with("apiVersion: v1\n")) << made->body.substr(0, 100);
  const auto uid_of = [&](const std::string& level) {
    const auto object = (*server)->cache().get("/flowcontrol.apiserver.k8s.io/prioritylevelconfigurations//" + level);
    return object == nullptr ? std::string() : std::string(object->meta.uid);
  };
  EXPECT_EQ(made->headers.get("X-Kubernetes-PF-PriorityLevel-UID"), uid_of("global-default"));
  const auto scheduler = send("GET", maps + "/large", "", "system:kube-scheduler");
  EXPECT_EQ(scheduler->status, 200);
  EXPECT_EQ(scheduler->headers.get("X-Kubernetes-PF-PriorityLevel-UID"), uid_of("workload-high"));
}

}  // namespace
}  // namespace berth::apiserver::flow
