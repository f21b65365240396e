// Flow control's cores: queues, seats, what is shared out, who belongs where.
#include "apiserver/flow/controller.h"
#include "base/metrics.h"
#include "tests/support/long_life.h"

namespace berth::apiserver::flow {
namespace {

using Time = std::chrono::steady_clock::time_point;
using std::chrono::seconds;
using testing::LongLife;

TEST(FlowLives, OfQueuesAreAsRecorded) {
  LongLife life("tests/apiserver/lives/fair_queues.txt", 71, 20'000);
  FairQueue queue(6, 2, 3);
  struct One {
    double work;
    int seats;
    Time deadline;
  };
  std::map<int, One> waiting;
  Time now{};
  int last = 0, popped = -1;
  for (int i = 0; i < 3000; ++i) {
    std::string said;
    switch (const int what = life.dice.below(20); what) {
      case 0: {
        const int queues = life.dice.below(7), hand = 1 + life.dice.below(4), length = life.dice.below(5);
        queue.configure(queues, hand, length);
        said = fmt::format("configure {} {} {}", queues, hand, length);
        break;
      }
      case 1: {
        now += seconds(life.dice.below(8));
        const auto late = queue.take_expired(now);
        said = "late:";
        for (const Waiting& one : late) {
          EXPECT_LE(one.deadline, now) << life.last();
          one.item();
          said += fmt::format(" {}", popped);
          EXPECT_EQ(waiting.erase(popped), 1U) << life.last();
        }
        for (const auto& [number, one] : queue.active())
          for (const auto& entry : one.entries) EXPECT_GT(entry.waiting.deadline, now) << life.last();
        break;
      }
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
      case 7:
      case 8: {
        const int narrow = life.dice.below(4);
        const auto may = [&](const Waiting& one) { return one.seats > narrow; };
        const bool has = queue.has_next(may);
        const auto next = queue.pop(may);
        EXPECT_EQ(has, next.has_value()) << life.last();
        said = fmt::format("pop of more than {}: nothing", narrow);
        if (next) {
          next->item();
          said = fmt::format("pop of more than {}: {}", narrow, popped);
          EXPECT_GT(next->seats, narrow);
          EXPECT_EQ(waiting.erase(popped), 1U) << life.last() << popped;
        }
        break;
      }
      default: {
        const int id = ++last;
        const One one{.work = static_cast<double>(1 + life.dice.below(5)) * 10,
                      .seats = life.dice.below(5),
                      .deadline = now + seconds(life.dice.below(12))};
        const auto flow = flow_hash("s", std::string(1, static_cast<char>('a' + life.dice.below(5))));
        const bool past = life.dice.chance(20);
        Waiting entry{one.work, one.seats, 10, [&popped, id] { popped = id; }};
        if (life.dice.chance(80)) entry.deadline = one.deadline;
        const bool taken = queue.push(flow, std::move(entry), past);
        if (taken) waiting[id] = one;
        said = fmt::format("push {} of work {} seats {} flow {}{}: {}", id, one.work, one.seats, flow % 1000, past ? " past the limit" : "",
                           taken);
      }
    }
    std::size_t in_queues = 0;
    int seats = 0;
    for (const auto& [number, one] : queue.active()) {
      said += fmt::format(" {}:{}/{:.0f}/{}", number, one.entries.size(), one.work, one.seats);
      in_queues += one.entries.size();
      double work = 0;
      for (const auto& entry : one.entries) work += entry.waiting.work, seats += entry.waiting.seats;
      EXPECT_NEAR(work, one.work, 1e-6) << life.last();
    }
    int all = 0;
    for (const auto& [id, one] : waiting) all += one.seats;
    EXPECT_EQ(queue.size(), waiting.size()) << life.last();
    EXPECT_EQ(in_queues, waiting.size()) << life.last();
    EXPECT_EQ(queue.seats(), all) << life.last();
    EXPECT_EQ(seats, all) << life.last();
    EXPECT_EQ(queue.empty(), waiting.empty());
    life.tell(std::move(said));
    if (::testing::Test::HasFailure()) break;
  }
  life.expect_as_recorded();
}

TEST(FlowLives, OfSharesAreAsRecorded) {
  LongLife life("tests/apiserver/lives/shares.txt", 72, 16'000);
  for (int i = 0; i < 1500; ++i) {
    std::vector<Demand> demands;
    double lowest = 0, highest = 0;
    std::string said;
    for (int n = 1 + life.dice.below(5); n > 0; --n) {
      Demand one{.lower = static_cast<double>(life.dice.below(6)), .upper = 0, .target = 0};
      one.upper = one.lower + life.dice.below(10);
      one.target = one.lower + life.dice.below(20) * 0.5;
      if (life.dice.chance(3)) one.target = one.lower - 1;
      if (life.dice.chance(3)) one.upper = one.lower - 1;
      lowest += one.lower;
      highest += one.upper;
      said += fmt::format("[{} {} {}] ", one.lower, one.upper, one.target);
      demands.push_back(one);
    }
    const double sum = life.dice.of(std::vector<double>{lowest, highest, lowest - 1, highest + 1, (lowest + highest) / 2, lowest + 1});
    const auto got = allocate(sum, demands);
    said += fmt::format("{} -> ", sum);
    if (got) {
      double given = 0;
      for (std::size_t k = 0; k < demands.size(); ++k) {
        given += got->seats[k];
        EXPECT_GE(got->seats[k], demands[k].lower - 1e-6) << said;
        EXPECT_LE(got->seats[k], demands[k].upper + 1e-6) << said;
        // Who is held by no bound has the same part of what he wants.
        if (got->seats[k] > demands[k].lower + 1e-6 && got->seats[k] < demands[k].upper - 1e-6) {
          EXPECT_NEAR(got->seats[k] / std::max(demands[k].target, 0.001), got->fair_fraction, 1e-6) << said;
        }
        said += fmt::format("{:.4f} ", got->seats[k]);
      }
      EXPECT_NEAR(given, sum, 1e-5) << said;
      said += fmt::format("fair {:.4f}", got->fair_fraction);
    }
    life.tell(said);
  }
  DemandMeter meter;
  RetryAfter retry;
  double now = 100;
  std::int64_t second = 1000;
  std::vector<std::pair<double, double>> since;  // When, and how many seats from then on.
  double begin = 0, held = 0;
  bool has_begun = false;
  for (int i = 0; i < 1500; ++i) {
    now += life.dice.below(5) * 0.5;
    if (life.dice.chance(80)) {
      const double seats = life.dice.below(20);
      if (!has_begun) begin = now;
      has_begun = true;
      since.emplace_back(now, seats);
      meter.set(now, seats);
    } else if (has_begun) {
      const auto& period = meter.close(now);
      // By a walk over what was set.
      double sum = 0, squares = 0, most = held, at = begin, seats = held;
      for (const auto& [when, more] : since) {
        sum += seats * (when - at);
        squares += seats * seats * (when - at);
        at = when;
        seats = more;
        most = std::max(most, seats);
      }
      sum += seats * (now - at);
      squares += seats * seats * (now - at);
      EXPECT_DOUBLE_EQ(period.highest, most);
      if (now > begin) {
        EXPECT_NEAR(period.average, sum / (now - begin), 1e-9);
        EXPECT_NEAR(period.deviation, std::sqrt(std::max(0.0, squares / (now - begin) - period.average * period.average)), 1e-6);
      }
      life.tell(fmt::format("period: {} {:.4f} {:.4f} {:.4f}", period.highest, period.average, period.deviation, period.smoothed));
      EXPECT_DOUBLE_EQ(meter.last().smoothed, period.smoothed);
      begin = now;
      held = seats;
      since.clear();
    }
    if (life.dice.chance(20)) second += life.dice.below(4) == 0 ? life.dice.below(60) : 1;
    life.tell(fmt::format("refused in {}: {}", second, retry.refuse(second)));
  }
  life.expect_as_recorded();
}

TEST(FlowLives, OfSeatsAreAsRecorded) {
  LongLife life("tests/apiserver/lives/seats.txt", 73, 12'000);
  Level level("l", false, false);
  level.queues = true;
  struct Held {
    std::uint64_t sharer;
    int seats;
  };
  std::vector<Held> held;
  double now = 0;
  for (int i = 0; i < 2000; ++i) {
    now += 1;
    if (life.dice.chance(5)) level.limit = life.dice.below(12);
    if (life.dice.chance(3)) level.queues = !level.queues;
    const auto sharer = static_cast<std::uint64_t>(life.dice.below(4));
    const int more = 1 + life.dice.below(4);
    int all = 0, own = 0;
    for (const Held& one : held) {
      all += one.seats;
      if (one.sharer == sharer && sharer != 0) own += one.seats;
    }
    const bool room = all == 0 || all + more <= level.limit;
    const bool may = room && (sharer == 0 || own == 0 || !level.queues || own + more <= level.limit - all);
    EXPECT_EQ(level.has_room(more), room) << life.last();
    EXPECT_EQ(level.may_have(sharer, more), may) << life.last();
    std::string said = fmt::format("limit {} held {} of which {} has {}: {} more? {}{}", level.limit, all, sharer, own, more,
                                   level.has_room(more), level.may_have(sharer, more));
    if (level.may_have(sharer, more) && life.dice.chance(70)) {
      level.occupy(now, sharer, more, 1);
      held.push_back({sharer, more});
      said += ", taken";
    } else if (!held.empty() && life.dice.chance(60)) {
      const int at = life.dice.below(held.size());
      level.occupy(now, held[static_cast<std::size_t>(at)].sharer, -held[static_cast<std::size_t>(at)].seats, -1);
      held.erase(held.begin() + at);
      said += ", one is done";
    }
    std::set<std::uint64_t> sharers;
    for (const Held& one : held)
      if (one.sharer != 0) sharers.insert(one.sharer);
    EXPECT_EQ(level.held.size(), sharers.size()) << life.last();
    EXPECT_EQ(level.executing, static_cast<int>(held.size()));
    life.tell(std::move(said));
  }
  life.expect_as_recorded();
}

std::string text_of(LongLife& life, std::initializer_list<const char*> list) {
  return life.dice.of(std::vector<std::string>(list.begin(), list.end()));
}
std::vector<std::string> some(LongLife& life, std::initializer_list<const char*> list) {
  std::vector<std::string> out;
  for (const char* one : list)
    if (life.dice.chance(40)) out.emplace_back(one);
  return out;
}

FlowSchema random_schema(LongLife& life, std::string name, std::string level) {
  FlowSchema out;
  out.name = std::move(name);
  out.level = std::move(level);
  out.precedence = life.dice.of(std::vector<int>{1, 100, 100, 500, 10000});
  out.distinguisher = static_cast<FlowSchema::Distinguisher>(life.dice.below(3));
  for (int i = life.dice.below(3); i > 0; --i) {
    FlowSchema::Rule& rule = out.rules.emplace_back();
    for (int k = 1 + life.dice.below(2); k > 0; --k)
      rule.subjects.push_back({static_cast<FlowSchema::Subject::Kind>(life.dice.below(3)), text_of(life, {"*", "jane", "g", "x", "bob"}),
                               text_of(life, {"shop", "other", ""})});
    for (int k = life.dice.below(3); k > 0; --k)
      rule.resources.push_back({some(life, {"*", "get", "list"}), some(life, {"*", "", "apps"}), some(life, {"*", "pods", "pods/status"}),
                                some(life, {"*", "shop", ""}), life.dice.chance(50)});
    for (int k = life.dice.below(2); k > 0; --k)
      rule.paths.push_back({some(life, {"*", "get"}), some(life, {"*", "/healthz", "/livez/*", "/api/", "/x*"})});
  }
  return out;
}

TEST(FlowLives, OfConfigurationsAreAsRecorded) {
  LongLife life("tests/apiserver/lives/flow_configurations.txt", 74, 26'000);
  metrics::Registry registry;
  Controller controller({.inflight_read = 40, .inflight_mutating = 20, .workers = 1}, registry);
  for (int round = 0; round < 60; ++round) {
    std::vector<PriorityLevel> levels;
    std::vector<FlowSchema> schemas;
    for (const char* name : {"a", "b", "system", "workload-high", "catch-all", "exempt"}) {
      if (life.dice.chance(40)) continue;
      PriorityLevel one;
      one.name = name;
      one.is_exempt = std::string_view(name) == "exempt";
      one.shares = life.dice.of(std::vector<int>{0, 1, 5, 30, 100});
      one.lendable_percent = life.dice.of(std::vector<int>{0, 33, 50, 100});
      if (life.dice.chance(40)) one.borrowing_limit_percent = life.dice.of(std::vector<int>{0, 10, 200});
      if (!one.is_exempt && life.dice.chance(60)) {
        one.queues = life.dice.of(std::vector<int>{1, 4, 64});
        one.hand_size = 1 + life.dice.below(static_cast<std::size_t>(one.queues));
        one.queue_length_limit = life.dice.of(std::vector<int>{1, 50});
      }
      life.tell(fmt::format("level {} shares {} lends {} borrows {} queues {} hand {}", one.name, one.shares, one.lendable_percent,
                            one.borrowing_limit_percent.value_or(-1), one.queues, one.hand_size));
      levels.push_back(std::move(one));
    }
    for (const char* name : {"s1", "s2", "s3", "s4"})
      schemas.push_back(random_schema(life, name, text_of(life, {"a", "b", "system", "gone", "exempt"})));
    controller.configure(levels, schemas);
    for (int i = 0; i < 20; ++i) {
      UserInfo user{text_of(life, {"jane", "bob", "system:serviceaccount:shop:x", "system:serviceaccount:other:x",
                                   "system:serviceaccount:bad", "system:kube-controller-manager"}),
                    "",
                    some(life, {"g", "x", "system:masters", "system:authenticated", "system:serviceaccounts:kube-system"}),
                    {}};
      Attributes asks;
      asks.is_resource = life.dice.chance(75);
      asks.verb = text_of(life, {"get", "list", "create", "watch"});
      asks.path = text_of(life, {"/healthz", "/livez", "/livez/etcd", "/api/v1", "/xyz", "/x"});
      if (asks.is_resource) {
        asks.group = text_of(life, {"", "apps", "authorization.k8s.io"});
        asks.resource = text_of(life, {"pods", "deployments", "events"});
        asks.subresource = text_of(life, {"", "", "status"});
        asks.ns = text_of(life, {"shop", "other", ""});
      }
      const Classified where = controller.classify(user, asks);
      // By a walk over the schemas in their order.
      const FlowSchema* wanted = nullptr;
      for (const auto& one : where.held->schemas)
        if (wanted == nullptr && matches(one.config, user, asks)) wanted = &one.config;
      if (wanted != nullptr) {
        EXPECT_EQ(where.schema->config.name, wanted->name) << life.last();
      }
      for (std::size_t k = 1; k < where.held->schemas.size(); ++k)
        EXPECT_LE(std::pair(where.held->schemas[k - 1].config.precedence, where.held->schemas[k - 1].config.name),
                  std::pair(where.held->schemas[k].config.precedence, where.held->schemas[k].config.name));
      life.tell(fmt::format("{} [{}] {} {}{}/{} {} in {}: {} of {}, flow {}, sharer {}, seats {}{}", user.name, fmt::join(user.groups, " "),
                            asks.verb, asks.is_resource ? "" : asks.path, asks.resource, asks.subresource, asks.group, asks.ns,
                            where.schema->config.name, where.place().config.name, where.flow, where.sharer() % 1000,
                            Controller::most_seats(where), where.grows ? ", grows" : ""));
    }
    // Seats: no level has less than nothing, and together they have what there is to share.
    const auto present = controller.classify({}, {}).held;
    for (const auto& place : present->places) {
      const Level& level = *place.level;
      EXPECT_GE(level.lower, 0);
      EXPECT_LE(level.lower, level.nominal);
      EXPECT_GE(level.upper, level.nominal);
      EXPECT_GE(level.limit, 0);
      life.tell(fmt::format("  {}: {} to {}, usually {}, now {}, weight {:.3f}", level.name, level.lower, level.upper, level.nominal,
                            level.limit, level.weight));
    }
  }
  controller.stop();
  life.expect_as_recorded();
}

}  // namespace
}  // namespace berth::apiserver::flow
