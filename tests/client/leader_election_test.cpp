#include "client/leader_election.h"

#include <gtest/gtest.h>

#include <random>

#include "client/leadership.h"

namespace berth::client::test {
namespace {

using namespace std::chrono_literals;

/// One Lease, with optimistic concurrency; can be made unreachable for one candidate (by user agent) or for all.
class LeaseServer final : public net::Handler {
 public:
  json::Value lease;
  std::set<std::string> cut_off, forbidden;
  std::set<std::string> unanswered;  ///< Whose requests are taken, and never answered: a stopped process closes no connection.
  std::vector<std::shared_ptr<net::ResponseWriter>> held;
  bool lose_answers = false;
  bool answers_late = false;  ///< What is asked is done, and answered when somebody says so.
  std::vector<std::function<void()>> late;
  int writes = 0;

  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    if (cut_off.contains(std::string(request.headers.get("User-Agent"))))
      return writer->respond({.status = 0, .headers = {}, .body = "no route"});
    if (unanswered.contains(std::string(request.headers.get("User-Agent")))) return held.push_back(std::move(writer));
    if (forbidden.contains(request.method)) return refuse(*writer, 403, "Forbidden");
    auto body = json::parse(request.body.empty() ? "{}" : request.body).value();
    if (request.method == "GET") {
      if (lease.is_null()) return refuse(*writer, 404, "NotFound");
      return writer->respond({.status = 200, .headers = {}, .body = json::serialize(lease)});
    }
    const bool is_create = request.method == "POST";
    if (is_create && !lease.is_null()) return refuse(*writer, 409, "AlreadyExists");
    if (!is_create && lease.is_null()) return refuse(*writer, 404, "NotFound");
    if (!is_create && json::get_string(body, {"metadata", "resourceVersion"}) != json::get_string(lease, {"metadata", "resourceVersion"})) {
      return refuse(*writer, 409, "Conflict");
    }
    lease = std::move(body);
    json::set(lease, {"metadata", "resourceVersion"}, json::Value(std::string_view(std::to_string(++writes))));
    if (lose_answers) return writer->respond({.status = 0, .headers = {}, .body = "lost"});
    if (answers_late)
      return late.push_back([writer, is_create, text = json::serialize(lease)] {
        writer->respond({.status = is_create ? 201 : 200, .headers = {}, .body = text});
      });
    writer->respond({.status = is_create ? 201 : 200, .headers = {}, .body = json::serialize(lease)});
  }

  [[nodiscard]] std::string holder() const { return std::string(json::get_string(lease, {"spec", "holderIdentity"})); }

 private:
  static void refuse(net::ResponseWriter& writer, int code, const std::string& reason) {
    writer.respond({.status = code, .headers = {}, .body = fmt::format(R"({{"kind":"Status","reason":"{}","code":{}}})", reason, code)});
  }
};

struct Candidate {
  Candidate(LeaseServer& server, EventLoop& loop, const std::string& name)
      : client(make_in_process_transport(server, {}), &loop, name), elector(client, config(name), callbacks()) {}
  static LeaderElectionConfig config(const std::string& name) {
    return {.name = "scheduler", .identity = name, .seed = std::hash<std::string>{}(name)};
  }
  LeaderCallbacks callbacks() {
    return {.on_started_leading = [this] { ++started; },
            .on_resumed_leading = [this] { ++resumed; },
            .on_stopped_leading = [this] { ++stopped; },
            .on_new_leader = [this](const std::string& id) { seen.push_back(id); },
            .on_waiting = [this](const std::string& why) { waited.push_back(why); }};
  }
  std::vector<std::string> waited;
  int started = 0, resumed = 0, stopped = 0;
  std::vector<std::string> seen;
  Client client;
  LeaderElector elector;
};

class LeaderElectionTest : public ::testing::Test {
 protected:
  VirtualLoop loop{*parse_rfc3339("2026-01-02T03:04:05Z")};
  LeaseServer server;
};

TEST_F(LeaderElectionTest, WhoWaitsSaysForWhomAndAgainOnlyAfterAWhile) {
  Candidate a(server, loop, "a"), b(server, loop, "b");
  a.elector.start();
  loop.run_for(1s);
  b.elector.start();
  loop.run_for(1min);
  EXPECT_EQ(b.waited, std::vector<std::string>{"waiting for leader a on Lease kube-system/scheduler"});
  loop.run_for(10min);
  EXPECT_EQ(b.waited.size(), 3u);
  EXPECT_TRUE(a.waited.empty());
}

TEST_F(LeaderElectionTest, WhoMayNotHaveItsOwnLeaseLeadsWithoutUntilItMay) {
  // As the role of the documents' second scheduler: a Lease may be made, and neither read nor renewed.
  server.forbidden = {"GET", "PUT"};
  auto config = Candidate::config("a");
  config.goes_without = true;
  int started = 0, stopped = 0;
  std::vector<std::string> said;
  Client client(make_in_process_transport(server, {}), &loop, "a");
  LeaderElector elector(client, config,
                        {.on_started_leading = [&] { ++started; },
                         .on_stopped_leading = [&] { ++stopped; },
                         .on_waiting = [&](const std::string& why) { said.push_back(why); }});
  elector.start();
  loop.run_for(10min);
  EXPECT_TRUE(elector.is_leader());
  EXPECT_EQ(started, 1);
  EXPECT_EQ(stopped, 0);
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said[0].find("leading without the Lease kube-system/scheduler"), std::string::npos);
  server.forbidden.clear();
  loop.run_for(2min);
  EXPECT_EQ(server.holder(), "a") << "the right was given";
  EXPECT_EQ(started, 1);
}

TEST_F(LeaderElectionTest, WhoMayNotHaveASharedLeaseWaits) {
  server.forbidden = {"GET", "POST", "PUT"};
  Candidate a(server, loop, "a");
  a.elector.start();
  loop.run_for(10min);
  EXPECT_FALSE(a.elector.is_leader());
}

TEST_F(LeaderElectionTest, TheFirstCandidateLeadsAndTheLeaseSaysSo) {
  Candidate a(server, loop, "a");
  a.elector.start();
  loop.run_ready();
  EXPECT_TRUE(a.elector.is_leader());
  EXPECT_EQ(a.started, 1);
  EXPECT_EQ(a.seen, std::vector<std::string>{"a"});
  const auto spec = *json::find(server.lease, "spec");
  EXPECT_EQ(
      json::serialize(spec),
      R"({"acquireTime":"2026-01-02T03:04:05.000000Z","leaseTransitions":0,"holderIdentity":"a","leaseDurationSeconds":15,"renewTime":"2026-01-02T03:04:05.000000Z"})");
  loop.run_for(1h);
  EXPECT_EQ(a.stopped, 0);
  EXPECT_EQ(json::get_string(server.lease, {"spec", "acquireTime"}), "2026-01-02T03:04:05.000000Z");
  EXPECT_GT(server.writes, 1700) << "renewed every two seconds";
}

TEST_F(LeaderElectionTest, AnotherTakesOverOnlyWhenTheLeaseExpired) {
  Candidate a(server, loop, "a"), b(server, loop, "b");
  a.elector.start();
  loop.run_ready();
  b.elector.start();
  loop.run_for(60s);
  EXPECT_FALSE(b.elector.is_leader());
  EXPECT_EQ(b.elector.leader(), "a");
  server.cut_off.insert("a");
  loop.run_for(11s);
  EXPECT_TRUE(a.elector.is_leader());
  loop.run_for(2s);
  EXPECT_FALSE(a.elector.is_leader()) << "it steps back before the lease expires for others";
  EXPECT_EQ(a.stopped, 1);
  EXPECT_FALSE(b.elector.is_leader());
  loop.run_for(10s);
  EXPECT_TRUE(b.elector.is_leader());
  EXPECT_EQ(json::get_int(server.lease, {"spec", "leaseTransitions"}), 1);
  EXPECT_EQ(b.seen, (std::vector<std::string>{"a", "b"}));
}

TEST_F(LeaderElectionTest, WhoComesBackGoesOnWhereNobodyElseHasLed) {
  Candidate a(server, loop, "a"), b(server, loop, "b");
  const auto lose_and_return = [&](Duration away) {
    server.cut_off.insert("a");
    loop.run_for(away);
    EXPECT_FALSE(a.elector.is_leader());
    server.cut_off.clear();
    a.elector.start();
    loop.run_for(60s);
  };
  a.elector.start();
  loop.run_for(10s);
  EXPECT_EQ(std::pair(a.started, a.resumed), std::pair(1, 0));
  lose_and_return(60s);
  lose_and_return(60s);
  EXPECT_EQ(std::pair(a.started, a.resumed), std::pair(1, 2)) << "the lease was never given up";
  a.elector.stop();
  loop.run_for(1s);
  EXPECT_EQ(server.holder(), "");
  a.elector.start();
  loop.run_for(10s);
  EXPECT_EQ(std::pair(a.started, a.resumed), std::pair(1, 3)) << "given up, and taken by nobody";
  b.elector.start();
  lose_and_return(60s);
  EXPECT_TRUE(b.elector.is_leader());
  EXPECT_EQ(std::pair(b.started, b.resumed), std::pair(1, 0));
  b.elector.stop();
  loop.run_for(10s);
  EXPECT_EQ(std::pair(a.started, a.resumed), std::pair(2, 3)) << "another has led";
  lose_and_return(60s);
  EXPECT_EQ(std::pair(a.started, a.resumed), std::pair(2, 4));
  server.cut_off.insert("a");
  loop.run_for(60s);
  server.lease = json::Value(nullptr);
  server.cut_off.clear();
  a.elector.start();
  loop.run_for(10s);
  EXPECT_EQ(a.started + a.resumed, 7);
}

TEST_F(LeaderElectionTest, AReleasedLeaseIsTakenAtOnce) {
  Candidate a(server, loop, "a"), b(server, loop, "b");
  a.elector.start();
  loop.run_ready();
  b.elector.start();
  loop.run_for(10s);
  bool released = false;
  a.elector.stop([&] { released = true; });
  loop.run_ready();
  EXPECT_TRUE(released);
  EXPECT_EQ(a.stopped, 1);
  EXPECT_EQ(server.holder(), "");
  loop.run_for(5s);
  EXPECT_TRUE(b.elector.is_leader());
}

TEST_F(LeaderElectionTest, OtherClocksDoNotMatter) {
  // The holder's clock is a day behind: its renew time looks long past, but the record goes on changing.
  VirtualLoop late{loop.now() - 24h};
  Candidate a(server, late, "a");
  a.elector.start();
  late.run_ready();
  Candidate b(server, loop, "b");
  b.elector.start();
  for (int i = 0; i < 60; ++i) {
    late.run_for(1s);
    loop.run_for(1s);
  }
  EXPECT_TRUE(a.elector.is_leader());
  EXPECT_FALSE(b.elector.is_leader());
}

TEST_F(LeaderElectionTest, ALostAnswerDoesNotLoseTheLead) {
  Candidate a(server, loop, "a");
  a.elector.start();
  loop.run_ready();
  server.lose_answers = true;
  loop.run_for(5s);
  server.lose_answers = false;
  loop.run_for(20s);
  EXPECT_TRUE(a.elector.is_leader());
  EXPECT_EQ(a.stopped, 0);
  EXPECT_EQ(json::get_int(server.lease, {"spec", "leaseTransitions"}), 0);
}

TEST_F(LeaderElectionTest, AWaitingCandidateWhoIsNotAnsweredAsksAgain) {
  Candidate a(server, loop, "a"), b(server, loop, "b");
  a.elector.start();
  loop.run_ready();
  b.elector.start();
  loop.run_for(30s);
  // Its server stands still for a moment, and what was asked meanwhile is lost for good.
  server.unanswered.insert("b");
  loop.run_for(3s);
  server.unanswered.clear();
  server.cut_off.insert("a");
  loop.run_for(20s);
  EXPECT_TRUE(b.elector.is_leader());
  EXPECT_TRUE(std::ranges::find(b.waited, "lease kube-system/scheduler: the server has not answered for 5s") != b.waited.end());
}

TEST_F(LeaderElectionTest, ALeaderWhoIsNotAnsweredOnceGoesOnLeading) {
  Candidate a(server, loop, "a");
  a.elector.start();
  loop.run_ready();
  ASSERT_EQ(server.writes, 1);
  server.unanswered.insert("a");
  loop.run_for(3s);
  ASSERT_EQ(server.held.size(), 1U) << "the renewal after two seconds";
  server.unanswered.clear();
  loop.run_for(3900ms);
  ASSERT_EQ(server.writes, 1) << "it is patient for five seconds";
  loop.run_for(200ms);
  EXPECT_EQ(server.writes, 2) << "then it asks again, though nobody answered";
  EXPECT_EQ(a.waited, std::vector<std::string>{"lease kube-system/scheduler: the server has not answered for 5s"});
  loop.run_for(1min);
  EXPECT_TRUE(a.elector.is_leader());
  EXPECT_EQ(a.stopped, 0);
  EXPECT_EQ(server.held.size(), 1U) << "and is answered since";
}

TEST_F(LeaderElectionTest, ALeaderWhoIsNotAnsweredAnyMoreEndsBeforeOthersMayBegin) {
  Candidate a(server, loop, "a"), b(server, loop, "b");
  a.elector.start();
  loop.run_ready();
  b.elector.start();
  loop.run_for(30s);
  server.unanswered.insert("a");
  const auto renewed = *parse_rfc3339(json::get_string(server.lease, {"spec", "renewTime"}));
  while (a.elector.is_leader()) {
    ASSERT_FALSE(b.elector.is_leader());
    ASSERT_LT(loop.now(), renewed + 15s);
    loop.run_for(100ms);
  }
  EXPECT_EQ(a.stopped, 1);
  EXPECT_LE(loop.now(), renewed + 12100ms) << "two seconds until the renewal, and ten for it";
  loop.run_for(20s);
  EXPECT_TRUE(b.elector.is_leader());
}

TEST_F(LeaderElectionTest, ARenewalThatIsAnsweredLateCountsFromWhenItWasSent) {
  Candidate a(server, loop, "a");
  a.elector.start();
  loop.run_ready();
  loop.run_for(1s);
  server.answers_late = true;
  loop.run_for(1s);
  const TimePoint sent = loop.now();
  ASSERT_EQ(server.late.size(), 1U);
  loop.run_for(4500ms);
  server.answers_late = false;
  server.late.front()();
  server.unanswered.insert("a");
  loop.run_ready();
  EXPECT_TRUE(a.elector.is_leader());
  // By what was said at its arrival it would lead until 16.5 s after it was sent; others may take the lease after 15.
  loop.run_until(sent + 14900ms);
  EXPECT_TRUE(a.elector.is_leader());
  loop.run_until(sent + 15s);
  EXPECT_FALSE(a.elector.is_leader());
}

TEST_F(LeaderElectionTest, AnAnswerThatALaterRenewalOvertookSaysNothing) {
  Candidate a(server, loop, "a");
  a.elector.start();
  loop.run_ready();
  loop.run_for(1s);
  server.answers_late = true;
  loop.run_for(1s);
  ASSERT_EQ(server.late.size(), 1U);
  server.answers_late = false;
  loop.run_for(6s);  // Its patience ends, and another attempt finds the lease renewed and renews it again.
  const TimePoint later = loop.now();
  const int writes = server.writes;
  ASSERT_GE(writes, 3);
  server.late.front()();
  server.unanswered.insert("a");
  loop.run_until(later + 10500ms);
  EXPECT_TRUE(a.elector.is_leader()) << "the later renewal has two seconds, and ten for the next one";
  loop.run_for(10s);
  EXPECT_FALSE(a.elector.is_leader());
}

TEST_F(LeaderElectionTest, ALeaseThatRanOutBeforeTheAnswerCameIsNotLedBy) {
  Candidate a(server, loop, "a");
  server.answers_late = true;
  a.elector.start();
  loop.run_ready();
  ASSERT_EQ(server.late.size(), 1U);
  server.unanswered.insert("a");
  loop.run_for(15100ms);
  server.late.front()();
  loop.run_ready();
  EXPECT_FALSE(a.elector.is_leader());
  EXPECT_EQ(a.started, 0);
}

/// A way to the server that takes its time in each direction.
class SlowTransport final : public Transport {
 public:
  SlowTransport(std::shared_ptr<Transport> below, EventLoop& loop, Duration each_way) : below_(below), loop_(loop), each_way_(each_way) {}
  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override {
    loop_.schedule_after(each_way_, [this, request = std::move(request), done = std::move(done)] {
      below_->send(request, [this, done](const net::HttpResponse& response) {
        loop_.schedule_after(each_way_, [done, response] { done(response); });
      });
    });
  }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest, net::StreamCallbacks) override { return nullptr; }
  void upgrade(net::HttpRequest, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)>) override {}

 private:
  std::shared_ptr<Transport> below_;
  EventLoop& loop_;
  Duration each_way_;
};

TEST_F(LeaderElectionTest, AServerSlowerThanItsPatienceIsLedAllTheSame) {
  auto slow = std::make_shared<SlowTransport>(make_in_process_transport(server, {}), loop, 3s);
  Client client(slow, &loop, "a");
  int started = 0, stopped = 0;
  LeaderElector elector(client, Candidate::config("a"),
                        {.on_started_leading = [&] { ++started; }, .on_stopped_leading = [&] { ++stopped; }});
  elector.start();
  loop.run_for(1min);
  EXPECT_TRUE(elector.is_leader());
  loop.run_for(30min);
  EXPECT_EQ(started, 1);
  EXPECT_EQ(stopped, 0);
}

TEST_F(LeaderElectionTest, ARestartedHolderGoesOnWithItsLease) {
  {
    Candidate a(server, loop, "a");
    a.elector.start();
    loop.run_ready();
  }
  Candidate again(server, loop, "a");
  again.elector.start();
  loop.run_ready();
  EXPECT_TRUE(again.elector.is_leader());
  EXPECT_EQ(json::get_int(server.lease, {"spec", "leaseTransitions"}), 0);
}

TEST_F(LeaderElectionTest, ADeletedLeaseIsMadeAgain) {
  Candidate a(server, loop, "a");
  a.elector.start();
  loop.run_ready();
  server.lease = nullptr;
  loop.run_for(5s);
  EXPECT_TRUE(a.elector.is_leader());
  EXPECT_EQ(server.holder(), "a");
}

TEST_F(LeaderElectionTest, NeverTwoLeadersWhateverIsCutOff) {
  std::mt19937 random(7);
  std::vector<std::unique_ptr<Candidate>> candidates;
  for (const auto* name : {"a", "b", "c"}) candidates.push_back(std::make_unique<Candidate>(server, loop, name));
  int changes = 0;
  std::string last;
  for (int second = 0; second < 20'000; ++second) {
    if (random() % 40 == 0) {
      const std::string name(1, static_cast<char>('a' + random() % 3));
      if (!server.cut_off.erase(name)) server.cut_off.insert(name);
    }
    for (const auto& candidate : candidates) candidate->elector.start();
    loop.run_for(1s);
    int leaders = 0;
    for (const auto& candidate : candidates) {
      if (!candidate->elector.is_leader()) continue;
      ++leaders;
      if (std::exchange(last, candidate->elector.leader()) != last) ++changes;
    }
    ASSERT_LE(leaders, 1);
  }
  EXPECT_GT(changes, 20);
}

TEST(LeaderElectionConfigTest, ImpossibleSettingsAreNamed) {
  LeaderElectionConfig config{.name = "x", .identity = "a"};
  EXPECT_TRUE(LeaderElector::validate(config));
  config.renew_deadline = 15s;
  EXPECT_EQ(LeaderElector::validate(config).error().message, "leaseDuration must be greater than renewDeadline");
  config.renew_deadline = 2s;
  EXPECT_EQ(LeaderElector::validate(config).error().message, "renewDeadline must be greater than retryPeriod*JitterFactor");
  config.identity.clear();
  EXPECT_FALSE(LeaderElector::validate(config));
}

/// A component whose own loop runs only when the test lets it: its passes may cost anything.
struct Component {
  Component(LeaseServer& server, EventLoop& election_loop, const std::string& name)
      : leadership(make_in_process_transport(server, {}),
                   {.election = Candidate::config(name), .user_agent = name, .stands_again = true, .election_loop = &election_loop}, &loop,
                   {.on_started_leading = [this] { ++started; }, .on_stopped_leading = [this] { ++stopped; }}) {
    leadership.start();
  }
  /// The status of a write that the component tries now.
  int write() {
    int status = -1;
    net::HttpRequest request;
    request.method = "POST";
    request.path = "/other";
    request.headers.add("User-Agent", "anybody");
    leadership.transport()->send(std::move(request), [&](const net::HttpResponse& response) { status = response.status; });
    return status;
  }
  VirtualLoop loop{TimePoint{} + 1000h};
  int started = 0, stopped = 0;
  Leadership leadership;
};

TEST(Leadership, IsKeptWhateverAPassOfTheComponentCosts) {
  LeaseServer server;
  VirtualLoop election(TimePoint{} + 1000h);
  Component first(server, election, "first"), second(server, election, "second");
  election.run_for(10min);
  EXPECT_TRUE(first.leadership.holds() != second.leadership.holds());
  EXPECT_EQ(first.started + second.started, 0) << "neither has come to its next task";
  Component& leader = first.leadership.holds() ? first : second;
  leader.loop.run_ready();
  EXPECT_EQ(leader.started, 1);
  EXPECT_EQ(leader.stopped, 0);
}

TEST(Leadership, NothingIsWrittenOnceTheLeaseRanOutEvenInTheMiddleOfAPass) {
  LeaseServer server;
  VirtualLoop election(TimePoint{} + 1000h);
  Component component(server, election, "only");
  EXPECT_EQ(component.write(), 403) << "not yet";
  election.run_for(1min);
  EXPECT_NE(component.write(), 403);
  server.cut_off.insert("only");
  election.run_for(16s);
  EXPECT_EQ(component.write(), 403);
  component.loop.run_ready();
  EXPECT_EQ(component.stopped, 1);
  server.cut_off.clear();
  election.run_for(1min);
  EXPECT_NE(component.write(), 403) << "it stood again";
  component.loop.run_ready();
  EXPECT_EQ(component.started, 2);
}

TEST(Leadership, IsToldOnlyToAComponentThatHasCaughtUp) {
  LeaseServer server;
  VirtualLoop loop(TimePoint{} + 1000h);
  std::vector<std::function<void()>> catching_up;
  std::vector<std::string> told;
  const auto note = [&](const char* what) { return [&told, what] { told.emplace_back(what); }; };
  Leadership leadership(
      make_in_process_transport(server, {}),
      {.election = Candidate::config("only"),
       .user_agent = "only",
       .stands_again = true,
       .catch_up = [&](std::function<void()> done) { catching_up.push_back(std::move(done)); },
       .election_loop = &loop},
      &loop, {.on_started_leading = note("started"), .on_resumed_leading = note("resumed"), .on_stopped_leading = note("stopped")});
  const auto lose = [&] {
    server.cut_off.insert("only");
    loop.run_for(1min);
    server.cut_off.clear();
    told.clear();
  };
  const auto lead = [&] {
    loop.run_for(10s);
    EXPECT_EQ(told, std::vector<std::string>{}) << "it has not caught up";
  };
  leadership.start();
  lead();
  lose();
  lead();
  ASSERT_EQ(catching_up.size(), 2U);
  catching_up[0]();
  EXPECT_EQ(told, std::vector<std::string>{}) << "of a leadership that is over";
  catching_up[1]();
  EXPECT_EQ(told, std::vector<std::string>{"started"}) << "nobody else has led, and it has not either";
  lose();
  lead();
  catching_up.back()();
  EXPECT_EQ(told, std::vector<std::string>{"resumed"});
  loop.run_for(10min);
  EXPECT_EQ(told, std::vector<std::string>{"resumed"}) << "once";
  lose();
  lead();
  loop.run_for(25s);
  EXPECT_EQ(told, std::vector<std::string>{"resumed"}) << "what never catches up keeps it for half a minute";
  catching_up.back()();
  EXPECT_EQ(told, std::vector<std::string>{"resumed"});
}

TEST(Leadership, NeverTwoHoldALease) {
  for (int seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    LeaseServer server;
    VirtualLoop election(TimePoint{} + 1000h);
    std::vector<std::unique_ptr<Component>> all;
    for (const char* name : {"a", "b", "c"}) all.push_back(std::make_unique<Component>(server, election, name));
    int led = 0;
    for (int i = 0; i < 3000; ++i) {
      const std::string name = std::array{"a", "b", "c"}[random() % 3];
      if (random() % 40 == 0) server.cut_off.insert(name);
      if (random() % 40 == 0) server.cut_off.erase(name);
      if (random() % 60 == 0) server.lose_answers = !server.lose_answers;
      election.run_for(std::chrono::milliseconds(random() % 2000));
      const auto holding = std::ranges::count_if(all, [](const auto& one) { return one->leadership.holds(); });
      ASSERT_LE(holding, 1) << "seed " << seed << ", step " << i;
      led += holding == 1;
    }
    EXPECT_GT(led, 500) << "seed " << seed;
  }
}

}  // namespace
}  // namespace berth::client::test
