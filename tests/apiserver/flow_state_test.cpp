// What flow control keeps of requests, and that it is given back: figures that return to nothing, tables for people, rules by which
// requests belong somewhere.
#include <gtest/gtest.h>

#include <future>
#include <regex>

#include "apiserver/flow/controller.h"

namespace berth::apiserver::flow {
namespace {

UserInfo user(std::string name, std::vector<std::string> groups = {"system:authenticated"}) {
  return {std::move(name), "", std::move(groups), {}};
}

Attributes asks(std::string verb, std::string resource, std::string ns = "default", std::string subresource = "") {
  Attributes out;
  out.verb = std::move(verb);
  out.resource = std::move(resource);
  out.subresource = std::move(subresource);
  out.ns = std::move(ns);
  return out;
}

/// One level with a seat and queues, one without queues, each with a schema for its user.
std::vector<PriorityLevel> two_levels() { return {{"queued", "uq", false, 10, 0, 0, 4, 1, 2}, {"curt", "uc", false, 10, 0, 0, 0, 0, 0}}; }
std::vector<FlowSchema> two_schemas() {
  const auto schema = [](const char* name, const char* level) {
    FlowSchema out{.name = name, .uid = {}, .level = level, .precedence = 5};
    out.distinguisher = FlowSchema::Distinguisher::kByUser;
    out.rules = {{{{FlowSchema::Subject::Kind::kUser, name, {}}}, {{{"*"}, {"*"}, {"*"}, {"*"}, true}}, {}}};
    return out;
  };
  return {schema("jane", "queued"), schema("joe", "curt")};
}

class FlowState : public ::testing::Test {
 protected:
  FlowState() {
    Limits limits;
    limits.inflight_read = 20;
    limits.inflight_mutating = 0;
    limits.workers = 1;
    limits.longest_wait = std::chrono::minutes(5);
    controller_.emplace(limits, registry_);
    controller_->configure(two_levels(), two_schemas());
  }
  Work work(
      const char* who, std::function<void()> run = [] {}) {
    Work out;
    out.where = controller_->classify(user(who), asks("list", "pods"));
    out.cost_us = 1e6;
    out.run = [this, where = out.where, run = std::move(run)] {
      const Seats seats(*controller_, where, 1);
      run();
    };
    out.reject = [this](std::string_view reason, int) { refused_.emplace_back(reason); };
    return out;
  }
  /// The sum of a figure over its labels.
  [[nodiscard]] double sum(const std::string& name) const {
    double out = 0;
    const std::string text = registry_.expose();
    const std::regex line("(?:^|\n)apiserver_flowcontrol_" + name + R"((?:\{[^}]*\})? ([-0-9.e+]+))");
    for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) out += std::stod((*at)[1]);
    return out;
  }
  void all_is_given_back() {
    for (const char* name : {"current_executing_requests", "current_executing_seats", "current_inqueue_requests", "current_inqueue_seats"})
      EXPECT_EQ(sum(name), 0) << name;
  }
  metrics::Registry registry_;
  std::optional<Controller> controller_;
  std::vector<std::string> refused_;
};

TEST_F(FlowState, FiguresReturnToNothingWhenAllIsOver) {
  std::promise<void> begun, go;
  controller_->submit(work("jane", [&] {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();
  EXPECT_EQ(sum("current_executing_requests"), 1);
  EXPECT_EQ(sum("current_executing_seats"), 1);
  std::promise<void> last;
  controller_->submit(work("jane"));
  controller_->submit(work("jane", [&] { last.set_value(); }));
  EXPECT_EQ(sum("current_inqueue_requests"), 2);
  EXPECT_EQ(sum("current_inqueue_seats"), 2);
  controller_->submit(work("jane"));
  EXPECT_EQ(refused_, (std::vector<std::string>{"queue-full"})) << "of four queues one is hers, with two places";
  EXPECT_EQ(sum("rejected_requests_total"), 1);
  go.set_value();
  last.get_future().wait();
  controller_->stop();
  all_is_given_back();
  EXPECT_EQ(sum("dispatched_requests_total"), 3);
}

TEST_F(FlowState, WhatIsServedAtOnceAndWhatIsMovedBetweenThreadsIsGivenBack) {
  auto small = work("jane");
  small.cost_us = 10;
  controller_->submit(std::move(small));
  EXPECT_EQ(sum("dispatched_requests_total"), 1);
  all_is_given_back();
  const auto where = controller_->classify(user("jane"), asks("list", "pods"));
  ASSERT_TRUE(controller_->runs_here(where, 10, 1));
  Seats first(*controller_, where, 1);
  Seats second(std::move(first));
  Seats third;
  third = std::move(second);
  EXPECT_EQ(sum("current_executing_requests"), 1);
  third.reset();
  third.reset();
  all_is_given_back();
  controller_->stop();
}

/// What waited too long is told so, by what the client has of patience where that is less.
TEST_F(FlowState, AClientsOwnPatienceCounts) {
  std::promise<void> begun, go, told;
  controller_->submit(work("jane", [&] {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();
  auto hasty = work("jane");
  hasty.longest_wait = std::chrono::milliseconds(1);
  std::string reason;
  hasty.reject = [&](std::string_view why, int) {
    reason = why;
    told.set_value();
  };
  controller_->submit(std::move(hasty));
  told.get_future().wait();
  EXPECT_EQ(reason, "time-out");
  EXPECT_EQ(sum("current_inqueue_requests"), 0);
  EXPECT_EQ(sum("current_inqueue_seats"), 0);
  go.set_value();
  controller_->stop();
  all_is_given_back();
}

TEST_F(FlowState, ALevelWithoutQueuesTakesAsManyAsItHasSeats) {
  const auto place = controller_->classify(user("joe"), asks("list", "pods")).place();
  ASSERT_GE(place.nominal, 2);
  std::vector<Seats> held;
  const auto where = controller_->classify(user("joe"), asks("list", "pods"));
  int ran = 0;
  for (int i = 0; i < place.nominal + 3; ++i) {
    auto one = work("joe");
    one.cost_us = 10;
    one.run = [&] {
      held.emplace_back(*controller_, where, 1);
      ++ran;
    };
    controller_->submit(std::move(one));
  }
  EXPECT_EQ(ran, place.nominal);
  EXPECT_EQ(refused_, std::vector<std::string>(3, "concurrency-limit"));
  held.clear();
  all_is_given_back();
  auto again = work("joe");
  again.cost_us = 10;
  again.run = [&] {
    held.emplace_back(*controller_, where, 1);
    ++ran;
  };
  controller_->submit(std::move(again));
  EXPECT_EQ(ran, place.nominal + 1);
  held.clear();
  controller_->stop();
}

/// What is large waits for a thread; so many as there are seats do.
TEST_F(FlowState, ALevelWithoutQueuesLetsInWhatItHasSeatsFor) {
  const int seats = controller_->classify(user("joe"), asks("list", "pods")).place().nominal;
  std::promise<void> begun, go;
  controller_->submit(work("joe", [&] {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();
  for (int i = 1; i < seats; ++i) controller_->submit(work("joe"));
  EXPECT_TRUE(refused_.empty());
  EXPECT_EQ(sum("current_inqueue_requests"), seats - 1);
  controller_->submit(work("joe"));
  EXPECT_EQ(refused_, (std::vector<std::string>{"concurrency-limit"}));
  go.set_value();
  controller_->stop();
}

/// A thread that gave its time to small work leaves the rest to the queues; what is exempt goes on.
TEST_F(FlowState, AThreadThatIsWornOutRunsNothingItself) {
  std::thread([&] {
    const auto jane = controller_->classify(user("jane"), asks("list", "pods"));
    const auto admin = controller_->classify(user("admin", {"system:masters"}), asks("list", "pods"));
    EXPECT_TRUE(controller_->runs_here(jane, 10, 0));
    Controller::spent(std::chrono::steady_clock::now() - std::chrono::seconds(30));
    EXPECT_FALSE(controller_->runs_here(jane, 10, 0));
    EXPECT_TRUE(controller_->runs_here(admin, 10, 0));
    EXPECT_FALSE(controller_->runs_here(admin, 1e9, 0)) << "but nothing large";
  }).join();
  std::thread([&] { EXPECT_TRUE(controller_->runs_here(controller_->classify(user("jane"), asks("list", "pods")), 10, 0)); }).join();
  controller_->stop();
}

TEST_F(FlowState, AThreadThatWasWornOutRecovers) {
  std::thread([&] {
    using Clock = std::chrono::steady_clock;
    const auto jane = controller_->classify(user("jane"), asks("list", "pods"));
    const auto begun = Clock::now();
    Controller::spent(begun - std::chrono::milliseconds(60));
    EXPECT_FALSE(controller_->runs_here(jane, 10, 0));
    while (!controller_->runs_here(jane, 10, 0))
      if (Clock::now() - begun > std::chrono::seconds(20)) return ADD_FAILURE() << "it is worn out for ever";
  }).join();
  controller_->stop();
}

/// A client that asks again at once gets few answers at once: the rest wait, however many there are.
TEST_F(FlowState, AFloodIsAnsweredInPartAtOnce) {
  std::promise<void> begun, go;
  controller_->submit(work("jane", [&] {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();
  for (int i = 0; i < 2; ++i) controller_->submit(work("jane"));
  constexpr std::size_t kAtOnce = 20;
  for (std::size_t i = 0; i < 10 * kAtOnce; ++i) controller_->submit(work("jane"));
  EXPECT_GE(refused_.size(), kAtOnce);
  EXPECT_LE(refused_.size(), 3 * kAtOnce) << "so many in each second";
  EXPECT_EQ(sum("rejected_requests_total"), 10 * kAtOnce) << "counted at once";
  go.set_value();
  controller_->stop();
}

TEST_F(FlowState, ALevelThatBecomesExemptIsAnother) {
  const auto before = controller_->classify(user("jane"), asks("list", "pods"));
  const int seats = before.place().nominal;
  ASSERT_TRUE(controller_->runs_here(before, 10, seats));
  Seats held(*controller_, before, seats);
  EXPECT_FALSE(controller_->runs_here(before, 10, 1));
  auto levels = two_levels();
  levels[0] = {"queued", "uq", true, 10, 0, 0, 0, 0, 0};
  controller_->configure(levels, two_schemas());
  const auto exempt = controller_->classify(user("jane"), asks("list", "pods"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(controller_->runs_here(exempt, 10, seats)) << "whatever is taken";
    const Seats more(*controller_, exempt, seats);
  }
  controller_->configure(two_levels(), two_schemas());
  const auto again = controller_->classify(user("jane"), asks("list", "pods"));
  EXPECT_TRUE(controller_->runs_here(again, 10, again.place().nominal)) << "what the first level gave is its own";
  Seats last(*controller_, again, again.place().nominal);
  EXPECT_FALSE(controller_->runs_here(again, 10, 1));
  last.reset();
  held.reset();
  all_is_given_back();
  controller_->stop();
}

TEST_F(FlowState, OneRequestHasAPartOfItsLevelAtMost) {
  EXPECT_EQ(Controller::most_seats(controller_->classify(user("joe"), asks("list", "pods"))), 100)
      << "without queues nobody is kept waiting";
  const auto queued = controller_->classify(user("jane"), asks("list", "pods"));
  EXPECT_EQ(Controller::most_seats(queued), std::max(1, static_cast<int>(std::ceil(queued.place().nominal * 0.15))));
  auto levels = two_levels();
  levels[0].queues = 1;
  controller_->configure(levels, two_schemas());
  EXPECT_LT(Controller::most_seats(controller_->classify(user("jane"), asks("list", "pods"))), 100) << "one queue is a queue";
}

/// While memory is short, who is refused holds nothing, and has his answer a second later.
TEST_F(FlowState, WhoIsRefusedForMemoryHoldsNothing) {
  controller_->set_memory(Memory::kShort);
  int shrunk = 0;
  std::promise<std::string> told;
  auto one = work("jane");
  one.shrink = [&] { ++shrunk; };
  one.reject = [&](std::string_view reason, int) { told.set_value(std::string(reason)); };
  controller_->submit(std::move(one));
  EXPECT_EQ(shrunk, 1);
  auto answer = told.get_future();
  EXPECT_EQ(answer.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_EQ(answer.get(), "memory");
  controller_->stop();
}

std::vector<std::vector<std::string>> cells_of(const std::string& table) {
  std::vector<std::vector<std::string>> out;
  std::istringstream lines(table);
  std::vector<std::size_t> starts;
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> row;
    std::vector<std::size_t> at{0};
    for (std::size_t from = 0;;) {
      const auto comma = line.find(',', from);
      row.push_back(line.substr(from, comma == std::string::npos ? comma : comma - from));
      if (comma == std::string::npos) break;
      from = line.find_first_not_of(' ', comma + 1);
      if (from == std::string::npos) from = line.size();
      at.push_back(from);
    }
    // Cells that are not empty begin where those above them do.
    if (starts.empty()) starts = at;
    EXPECT_EQ(row.size(), starts.size()) << line;
    for (std::size_t i = 0; i < row.size() && i < starts.size(); ++i)
      if (!row[i].empty() && i < at.size()) {
        EXPECT_EQ(at[i], starts[i]) << line;
      }
    out.push_back(std::move(row));
  }
  return out;
}

TEST_F(FlowState, WhatWaitsIsShownInTables) {
  std::promise<void> begun, go;
  controller_->submit(work("jane", [&] {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();
  for (const char* name : {"first", "second"}) {
    auto waits = work("jane");
    waits.describe = [name] { return Description{"jane", "list", "/api/v1/pods", "default", name, "v1", "pods", "status"}; };
    controller_->submit(std::move(waits));
  }
  controller_->submit(work("jane"));
  const auto levels = cells_of(controller_->dump_priority_levels());
  using Row = std::vector<std::string>;
  EXPECT_EQ(levels.at(0), (Row{"PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests",
                               "DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests"}));
  const auto row = [&](const char* name) { return *std::ranges::find(levels, name, [](const Row& one) { return one[0]; }); };
  EXPECT_EQ(row("queued"), (Row{"queued", "1", "false", "false", "2", "1", "1", "1", "0", "0"}));
  EXPECT_EQ(row("curt"), (Row{"curt", "0", "true", "false", "0", "0", "0", "0", "0", "0"}));
  const auto queues = cells_of(controller_->dump_queues());
  ASSERT_EQ(queues.size(), 2U);
  EXPECT_EQ(queues[1][0], "queued");
  EXPECT_EQ(queues[1][2], "2") << "wait in it";
  EXPECT_EQ(queues[1][6], "2") << "seats that they want";
  const auto requests = cells_of(controller_->dump_requests(true));
  ASSERT_EQ(requests.size(), 3U);
  for (int i = 0; i < 2; ++i) {
    const Row& one = requests[static_cast<std::size_t>(i) + 1];
    EXPECT_EQ(Row(one.begin(), one.begin() + 2), (Row{"queued", "jane"}));
    EXPECT_EQ(one[3], std::to_string(i));
    EXPECT_EQ(one[4], "jane");
    EXPECT_EQ(one[6], "1");
    EXPECT_EQ(Row(one.begin() + 10, one.end()),
              (Row{"jane", "list", "/api/v1/pods", "default", i == 0 ? "first" : "second", "v1", "pods", "status"}));
  }
  EXPECT_EQ(cells_of(controller_->dump_requests(false)).at(1).size(), 10U);
  go.set_value();
  controller_->stop();
}

TEST_F(FlowState, ALevelThatIsGoneEndsWhenItIsEmpty) {
  std::promise<void> begun, go;
  controller_->submit(work("jane", [&] {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();
  controller_->configure({two_levels()[1]}, {two_schemas()[1]});
  EXPECT_EQ(controller_->classify(user("jane"), asks("list", "pods")).schema->config.name, "catch-all");
  const auto is_shown = [&](const char* quiescing) {
    for (const auto& row : cells_of(controller_->dump_priority_levels()))
      if (row[0] == "queued") return row[3] == quiescing;
    return false;
  };
  EXPECT_TRUE(is_shown("true")) << "what runs in it goes on";
  go.set_value();
  controller_->stop();
  controller_->configure({two_levels()[1]}, {two_schemas()[1]});
  EXPECT_FALSE(is_shown("true") || is_shown("false"));
}

TEST(FlowRules, WhoAndWhatBelongsToASchema) {
  using Kind = FlowSchema::Subject::Kind;
  const auto matches_who = [](FlowSchema::Subject subject, const UserInfo& who) {
    FlowSchema schema;
    schema.rules = {{{std::move(subject)}, {{{"*"}, {"*"}, {"*"}, {"*"}, true}}, {}}};
    return matches(schema, who, asks("get", "pods"));
  };
  EXPECT_TRUE(matches_who({Kind::kUser, "jane", ""}, user("jane")));
  EXPECT_FALSE(matches_who({Kind::kUser, "jane", ""}, user("joe")));
  EXPECT_TRUE(matches_who({Kind::kUser, "*", ""}, user("joe")));
  EXPECT_TRUE(matches_who({Kind::kGroup, "ops", ""}, user("joe", {"dev", "ops"})));
  EXPECT_FALSE(matches_who({Kind::kGroup, "ops", ""}, user("ops", {"dev"}))) << "a user is no group";
  EXPECT_TRUE(matches_who({Kind::kGroup, "*", ""}, user("joe", {})));
  const auto bot = user("system:serviceaccount:dev:bot");
  EXPECT_TRUE(matches_who({Kind::kServiceAccount, "bot", "dev"}, bot));
  EXPECT_TRUE(matches_who({Kind::kServiceAccount, "*", "dev"}, bot));
  EXPECT_FALSE(matches_who({Kind::kServiceAccount, "*", "prod"}, bot));
  EXPECT_FALSE(matches_who({Kind::kServiceAccount, "bo", "dev"}, bot));
  EXPECT_FALSE(matches_who({Kind::kServiceAccount, "*", "dev"}, user("dev:bot")));
  EXPECT_FALSE(matches_who({Kind::kServiceAccount, "*", "dev"}, user("system:serviceaccount:dev")));

  const auto matches_what = [](FlowSchema::ResourceRule rule, const Attributes& what) {
    FlowSchema schema;
    schema.rules = {{{{Kind::kUser, "*", ""}}, {std::move(rule)}, {}}};
    return matches(schema, user("x"), what);
  };
  EXPECT_TRUE(matches_what({{"get"}, {""}, {"pods"}, {"default"}, false}, asks("get", "pods")));
  EXPECT_FALSE(matches_what({{"get"}, {""}, {"pods"}, {"default"}, false}, asks("list", "pods")));
  EXPECT_FALSE(matches_what({{"get"}, {"apps"}, {"pods"}, {"default"}, false}, asks("get", "pods")));
  EXPECT_FALSE(matches_what({{"get"}, {""}, {"nodes"}, {"default"}, false}, asks("get", "pods")));
  EXPECT_FALSE(matches_what({{"get"}, {""}, {"pods"}, {"prod"}, true}, asks("get", "pods")));
  EXPECT_FALSE(matches_what({{"get"}, {""}, {"pods"}, {"default"}, false}, asks("get", "pods", "default", "log")));
  EXPECT_TRUE(matches_what({{"get"}, {""}, {"pods/log"}, {"default"}, false}, asks("get", "pods", "default", "log")));
  EXPECT_FALSE(matches_what({{"get"}, {""}, {"nodes"}, {"*"}, false}, asks("get", "nodes", ""))) << "not cluster-wide";
  EXPECT_TRUE(matches_what({{"get"}, {""}, {"nodes"}, {}, true}, asks("get", "nodes", "")));

  const auto matches_path = [](const char* url, const char* path, const char* verb = "get") {
    FlowSchema schema;
    schema.rules = {{{{Kind::kUser, "*", ""}}, {}, {{{"get"}, {url}}}}};
    Attributes what;
    what.is_resource = false;
    what.verb = verb;
    what.path = path;
    return matches(schema, user("x"), what);
  };
  EXPECT_TRUE(matches_path("/healthz", "/healthz"));
  EXPECT_TRUE(matches_path("/healthz", "/healthz/etcd"));
  EXPECT_FALSE(matches_path("/healthz", "/healthzz"));
  EXPECT_FALSE(matches_path("/healthz", "/health"));
  EXPECT_FALSE(matches_path("/healthz", "/healthz", "post"));
  EXPECT_TRUE(matches_path("/apis/*", "/apis/apps/v1"));
  EXPECT_FALSE(matches_path("/apis/*", "/api"));
  EXPECT_TRUE(matches_path("*", "/anything"));
}

TEST(FlowRules, ObjectsAreReadWholeAndWithTheirDefaults) {
  const auto level = read_level(*json::parse_yaml(R"(
metadata: {name: a, uid: u}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 7
    lendablePercent: 20
    borrowingLimitPercent: 30
    limitResponse: {type: Queue, queuing: {queues: 16, handSize: 3, queueLengthLimit: 9}}
)"));
  EXPECT_EQ(level.name, "a");
  EXPECT_EQ(level.uid, "u");
  EXPECT_FALSE(level.is_exempt);
  EXPECT_EQ(level.shares, 7);
  EXPECT_EQ(level.lendable_percent, 20);
  EXPECT_EQ(level.borrowing_limit_percent, 30);
  EXPECT_EQ(level.queues, 16);
  EXPECT_EQ(level.hand_size, 3);
  EXPECT_EQ(level.queue_length_limit, 9);
  const auto curt = read_level(*json::parse_yaml("metadata: {name: c}\nspec: {type: Limited, limited: {limitResponse: {type: Reject}}}\n"));
  EXPECT_EQ(curt.queues, 0);
  EXPECT_EQ(curt.shares, 30);
  EXPECT_FALSE(curt.borrowing_limit_percent);
  EXPECT_TRUE(read_level(*json::parse_yaml("metadata: {name: exempt}\nspec: {type: Exempt}\n")).is_exempt);
  for (const char* name : {"system", "node-high", "leader-election", "workload-high"})
    EXPECT_TRUE(read_level(*json::parse_yaml(fmt::format("metadata: {{name: {}}}\nspec: {{type: Limited}}\n", name))).is_vital()) << name;
  EXPECT_FALSE(curt.is_vital());
}

TEST(FlowAllocations, WhoIsRefusedLittleComesBackSoonAgain) {
  RetryAfter refusals;
  for (int i = 0; i < 10; ++i) refusals.refuse(100);
  EXPECT_EQ(refusals.refuse(101), 2);
  for (int second = 102; second < 140; ++second)
    for (int i = 0; i < 200; ++i) refusals.refuse(second);
  EXPECT_EQ(refusals.refuse(140), 32) << "never longer";
  int last = 32;
  for (int second = 1000; second < 40'000; second += 1000) {
    const int now = refusals.refuse(second);
    EXPECT_EQ(now, std::max(1, last - 1)) << second;
    last = now;
  }
  EXPECT_EQ(last, 1);
}

}  // namespace
}  // namespace berth::apiserver::flow
