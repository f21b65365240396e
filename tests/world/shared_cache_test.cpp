// The cache of several servers over one etcd, in virtual time: answers that are lost, watches that lag, are cut and lose their place.
#include "apiserver/etcd/shared_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/world/etcd_model.h"

namespace berth::world {
namespace {

using apiserver::ObjectPtr;
using apiserver::ProposeError;
using apiserver::ProposeResult;
using apiserver::WatchEvent;
using apiserver::WatchEventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kAll = apiserver::make_prefix("", "configmaps");

std::string key_of(std::string_view name) { return apiserver::make_key("", "configmaps", "default", name); }

/// "ADDED name@revision", a line an event.
class Recorder final : public apiserver::WatchSink {
 public:
  bool deliver(const WatchEvent& event) override {
    static constexpr const char* kNames[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
    if (event.type == WatchEventType::kBookmark) return true;
    events.push_back(fmt::format("{} {}@{}", kNames[static_cast<int>(event.type)], event.object->meta.name, event.revision));
    return true;
  }
  std::vector<std::string> events;
};

/// One server's cache, with a watch from its beginning.
struct Side {
  Side(Etcd& etcd, VirtualLoop& loop, std::uint64_t seed, std::size_t expiring_bytes = 0)
      : loop(loop), link(std::make_shared<EtcdLink>(etcd, seed)) {
    auto opened = apiserver::etcd::open_shared_cache(link, loop, {.expiring_bytes = expiring_bytes}, {}, std::chrono::hours(1), &loop);
    EXPECT_TRUE(opened.has_value());
    cache = std::move(*opened);
    seen = std::make_shared<Recorder>();
    watch = cache->watch({.prefix = kAll}, cache->revision(), false, seen);
  }

  /// Sends a write; its answer is in the result when there is one.
  std::shared_ptr<std::optional<ProposeResult>> propose(std::string_view name, std::string_view value,
                                                        std::optional<store::Revision> expected) {
    apiserver::Proposal proposal;
    proposal.key = key_of(name);
    if (value.empty()) {
      proposal.is_delete = true;
    } else {
      auto encoded = apiserver::encode_object(*json::parse(fmt::format(
          R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{0}","namespace":"default","uid":"u-{0}"}},"data":{{"v":"{1}"}}}})",
          name, value)));
      proposal.meta = apiserver::extract_meta(proposal.key, encoded.value, std::chrono::hours(1));
      proposal.value = std::move(encoded.value);
      proposal.revision_offset = encoded.revision_offset;
    }
    proposal.expected = expected;
    auto answer = std::make_shared<std::optional<ProposeResult>>();
    cache->propose(std::move(proposal), [answer](ProposeResult result) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      *answer = std::move(result);
    });
    return answer;
  }
  /// The revision of a write that is waited for.
  store::Revision put(std::string_view name, std::string_view value, std::optional<store::Revision> expected = {}) {
    const auto answer = propose(name, value, expected);
    loop.run_for(seconds(3));
    EXPECT_TRUE(answer->has_value() && (*answer)->has_value());
    return answer->has_value() && (*answer)->has_value() ? (**answer)->get()->revision : 0;
  }
  std::string value_of(std::string_view name) {
    const auto object = cache->get(key_of(name));
    return object == nullptr ? "" : std::string(json::get_string(apiserver::decode_object(*object), {"data", "v"}));
  }

  VirtualLoop& loop;
  std::shared_ptr<EtcdLink> link;
  std::unique_ptr<apiserver::ObjectCache> cache;
  std::shared_ptr<Recorder> seen;
  std::unique_ptr<apiserver::Watch> watch;
};

class SharedCacheTest : public testing::Test {
 protected:
  void SetUp() override { loop_.run_for(seconds(1)); }
  VirtualLoop loop_{TimePoint(std::chrono::hours(24 * 365 * 50))};
  Etcd etcd_{loop_};
  Side a_{etcd_, loop_, 1}, b_{etcd_, loop_, 2};
};

TEST_F(SharedCacheTest, AWriteIsAnsweredOnceItIsShownAndOthersFollow) {
  b_.link->watch_lag = seconds(5);
  const auto answer = a_.propose("x", "1", 0);
  EXPECT_FALSE(answer->has_value());
  loop_.run_for(seconds(1));
  ASSERT_TRUE(answer->has_value() && (*answer)->has_value());
  EXPECT_EQ(a_.value_of("x"), "1");
  EXPECT_EQ(b_.value_of("x"), "");
  loop_.run_for(seconds(6));
  EXPECT_EQ(b_.value_of("x"), "1");
  EXPECT_EQ(a_.seen->events, b_.seen->events);
}

TEST_F(SharedCacheTest, WhoCatchesUpSeesWhatAnybodyWasTold) {
  b_.link->watch_lag = seconds(2);
  a_.put("x", "1");
  bool has_caught_up = false;
  b_.cache->catch_up([&](bool reached) { has_caught_up = reached; });
  EXPECT_FALSE(has_caught_up);
  loop_.run_for(seconds(5));
  EXPECT_TRUE(has_caught_up);
  EXPECT_EQ(b_.value_of("x"), "1");
}

TEST_F(SharedCacheTest, AReaderIsNotKeptByWhatIsWrittenElsewhere) {
  etcd_.write_elsewhere();
  std::optional<bool> reached;
  a_.cache->catch_up([&](bool yes) { reached = yes; });
  loop_.run_for(milliseconds(500));
  EXPECT_EQ(reached, true) << "the watch is nudged";
}

TEST_F(SharedCacheTest, WhereNothingCanBeWrittenAReaderWaitsASecond) {
  etcd_.write_elsewhere();
  etcd_.is_full = true;
  std::optional<bool> reached;
  a_.cache->catch_up([&](bool yes) { reached = yes; });
  loop_.run_for(milliseconds(900));
  EXPECT_EQ(reached, std::nullopt);
  loop_.run_for(milliseconds(500));
  EXPECT_EQ(reached, true);
  // Once there is room again, the next nudge is written, and waits are short as before.
  etcd_.is_full = false;
  etcd_.write_elsewhere();
  reached.reset();
  loop_.run_for(seconds(1));
  a_.cache->catch_up([&](bool yes) { reached = yes; });
  loop_.run_for(milliseconds(500));
  EXPECT_EQ(reached, true);
}

TEST_F(SharedCacheTest, WhereNothingCanBeWrittenAReaderStillSeesWhatAnybodyWasTold) {
  a_.put("x", "1");
  a_.put("y", "1");
  b_.link->watch_lag = seconds(4);
  a_.put("x", "2");
  etcd_.is_full = true;
  std::optional<std::string> read;
  const auto read_x = [&](bool reached) { read = reached ? b_.value_of("x") : "refused"; };
  b_.cache->catch_up(read_x);
  loop_.run_for(seconds(6));
  EXPECT_EQ(read, "2") << "the watch is late, and there is something to wait for";
  // Deletions go on.
  const auto gone = a_.propose("y", "", {});
  loop_.run_for(milliseconds(100));
  ASSERT_TRUE(gone->has_value() && (*gone)->has_value());
  read.reset();
  b_.cache->catch_up([&](bool reached) { read = reached ? "is \"" + b_.value_of("y") + "\"" : "refused"; });
  loop_.run_for(seconds(6));
  EXPECT_EQ(read, "is \"\"");
}

TEST_F(SharedCacheTest, AReaderWithoutLeaderIsToldSo) {
  etcd_.has_leader = false;
  std::optional<bool> reached;
  a_.cache->catch_up([&](bool yes) { reached = yes; });
  loop_.run_for(seconds(9));
  EXPECT_EQ(reached, std::nullopt);
  loop_.run_for(seconds(2));
  EXPECT_EQ(reached, false);
}

TEST_F(SharedCacheTest, ALostAnswerIsFoundOut) {
  a_.link->loses_answers = 1;
  const auto answer = a_.propose("x", "1", 0);
  loop_.run_for(milliseconds(500));
  EXPECT_FALSE(answer->has_value());
  EXPECT_EQ(b_.value_of("x"), "1") << "it was done";
  loop_.run_for(seconds(5));
  ASSERT_TRUE(answer->has_value());
  EXPECT_TRUE((*answer)->has_value());
}

TEST_F(SharedCacheTest, WhatNobodyAnsweredIsUncertain) {
  a_.link->is_cut = true;
  const auto answer = a_.propose("x", "1", 0);
  loop_.run_for(seconds(11));
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->error(), ProposeError::kUncertain);
}

TEST_F(SharedCacheTest, AFullStoreRefusesAndSaysSo) {
  etcd_.is_full = true;
  const auto answer = a_.propose("x", "1", 0);
  loop_.run_for(seconds(1));
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->error(), ProposeError::kStorage);
  EXPECT_NE(a_.cache->storage_failure().find("space exceeded"), std::string::npos);
}

TEST_F(SharedCacheTest, WhoIsRefusedFindsWhatWasInTheWay) {
  const auto first = a_.put("x", "1");
  b_.put("x", "2", first);
  a_.link->watch_lag = milliseconds(300);
  b_.put("x", "3");
  const auto answer = a_.propose("x", "mine", first);
  while (!answer->has_value()) loop_.run_for(milliseconds(1));
  EXPECT_EQ((*answer)->error(), ProposeError::kRevisionMismatch);
  EXPECT_EQ(a_.value_of("x"), "3") << "whoever tries again begins from it";
}

TEST_F(SharedCacheTest, TwoServersCreateOneOfThemWins) {
  const auto one = a_.propose("x", "a", 0), two = b_.propose("x", "b", 0);
  loop_.run_for(seconds(2));
  ASSERT_TRUE(one->has_value() && two->has_value());
  EXPECT_NE((*one)->has_value(), (*two)->has_value());
  EXPECT_EQ(((*one)->has_value() ? **two : **one).error(), ProposeError::kExists);
  EXPECT_EQ(a_.value_of("x"), b_.value_of("x"));
}

/// Both writes come in one piece of the watch.
TEST_F(SharedCacheTest, WhatIsMadeAndDeletedWhileTheWatchIsAwayLeavesNoGhost) {
  b_.link->is_cut = true;
  const auto made = a_.put("x", "1");
  a_.propose("x", "", made);
  loop_.run_for(seconds(1));
  b_.link->is_cut = false;
  loop_.run_for(seconds(3));
  EXPECT_EQ(b_.cache->get(key_of("x")), nullptr);
  EXPECT_EQ(b_.cache->list({.prefix = kAll}, "", 0).items.size(), 0U);
  EXPECT_EQ(b_.seen->events, (std::vector<std::string>{fmt::format("ADDED x@{}", made), fmt::format("DELETED x@{}", made + 1)}));
}

TEST_F(SharedCacheTest, AWatchThatLostItsPlaceShowsWhatChangedOnTheWhole) {
  a_.put("stays", "1");
  const auto goes = a_.put("goes", "1");
  a_.put("changes", "1");
  const auto before = b_.cache->revision();
  b_.seen->events.clear();
  b_.link->is_cut = true;
  a_.propose("goes", "", goes);
  a_.put("changes", "2");
  a_.put("comes", "1");
  etcd_.compact(etcd_.revision());
  b_.link->is_cut = false;
  loop_.run_for(seconds(3));
  EXPECT_EQ(b_.value_of("changes"), "2");
  EXPECT_EQ(b_.value_of("stays"), "1");
  std::vector<std::string> what;
  for (const auto& event : b_.seen->events) what.push_back(event.substr(0, event.find('@')));
  std::ranges::sort(what);
  EXPECT_EQ(what, (std::vector<std::string>{"ADDED comes", "DELETED goes", "MODIFIED changes"}));
  EXPECT_EQ(b_.cache->watch({.prefix = kAll}, before, false, std::make_shared<Recorder>()), nullptr) << "nobody begins before the gap";
  // And it follows again.
  a_.put("later", "1");
  loop_.run_for(seconds(1));
  EXPECT_EQ(b_.value_of("later"), "1");
}

TEST_F(SharedCacheTest, ReadingAnewIsTriedUntilItWorks) {
  b_.link->is_cut = true;
  a_.put("x", "1");
  etcd_.compact(etcd_.revision());
  b_.link->is_cut = false;
  etcd_.has_leader = false;  // The watch says that its place is gone; nothing can be read.
  loop_.run_for(seconds(2));
  EXPECT_EQ(b_.value_of("x"), "");
  etcd_.has_leader = true;
  loop_.run_for(seconds(1));
  EXPECT_EQ(b_.value_of("x"), "1");
}

TEST_F(SharedCacheTest, WhatRunsOutIsDeletedEverywhere) {
  store::SharedWrite write{"/registry/configmaps/default/brief",
                           make_bytes(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"brief","namespace":"default"}})"), 0,
                           seconds(30)};
  EXPECT_EQ(etcd_.apply(write).verdict, store::WriteVerdict::kDone);
  loop_.run_for(seconds(1));
  EXPECT_NE(a_.cache->get(key_of("brief")), nullptr);
  loop_.run_for(seconds(40));
  EXPECT_EQ(a_.cache->get(key_of("brief")), nullptr);
  EXPECT_EQ(b_.cache->get(key_of("brief")), nullptr);
}

TEST_F(SharedCacheTest, WhatCannotBeReadLeavesWhatWasThere) {
  a_.put("x", "1");
  etcd_.apply({"/registry/configmaps/default/x", make_bytes("k8s\0garbage"), {}, {}});
  loop_.run_for(seconds(1));
  EXPECT_EQ(a_.value_of("x"), "1");
  a_.put("y", "1");
  EXPECT_EQ(b_.value_of("y"), "1") << "and the rest goes on";
}

/// etcd has acknowledged the write, and the watch has not brought it yet.
TEST_F(SharedCacheTest, AServerThatEndsAnswersWhatIsDone) {
  a_.link->watch_lag = std::chrono::hours(1);
  const auto answer = a_.propose("x", "1", 0);
  loop_.run_for(seconds(1));
  EXPECT_FALSE(answer->has_value());
  a_.watch.reset();
  a_.cache.reset();
  ASSERT_TRUE(answer->has_value());
  EXPECT_TRUE((*answer)->has_value());
}

TEST_F(SharedCacheTest, SeveralServersTakeTurnsInForgetting) {
  for (int i = 0; i < 20; ++i) {
    a_.put("x", std::to_string(i));
    loop_.run_for(std::chrono::minutes(1));
  }
  EXPECT_GT(etcd_.compacted(), 0);
  EXPECT_LT(etcd_.compacted(), etcd_.revision()) << "what is younger than an interval stays";
  EXPECT_EQ(b_.value_of("x"), "19") << "who follows is not hurt";
}

/// From a seed: three servers, faults of every kind, and at the end everybody has seen the same, once and in order.
TEST(SharedCaches, SeeOneHistory) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    VirtualLoop loop(TimePoint(std::chrono::hours(24 * 365 * 50)));
    Etcd etcd(loop);
    std::vector<std::unique_ptr<Side>> sides;
    for (std::uint64_t i = 0; i < 3; ++i) sides.push_back(std::make_unique<Side>(etcd, loop, seed * 10 + i));
    simulator::Random random(seed, "story");
    struct Sent {
      std::shared_ptr<std::optional<ProposeResult>> answer;
      std::string value;
    };
    std::vector<Sent> sent;
    for (int step = 0; step < 300; ++step) {
      Side& side = *sides[random.below(sides.size())];
      switch (random.below(12)) {
        case 0:
          side.link->is_cut = true;
          break;
        case 1:
          side.link->is_cut = false;
          break;
        case 2:
          side.link->loses_answers = random.uniform() / 2;
          break;
        case 3:
          side.link->watch_lag = milliseconds(random.below(3000));
          break;
        case 4:
          etcd.has_leader = random.below(3) != 0;
          break;
        case 5:
          etcd.write_elsewhere();
          break;
        default: {
          const std::string name = fmt::format("k{}", random.below(4)), value = random.below(4) == 0 ? "" : fmt::format("v{}", step);
          const auto object = side.cache->get(key_of(name));
          if (object == nullptr && value.empty()) break;
          sent.push_back({side.propose(name, value, object == nullptr ? 0 : object->revision), value});
        }
      }
      loop.run_for(milliseconds(random.below(400)));
    }
    etcd.has_leader = true;
    for (auto& side : sides) {
      side->link->is_cut = false;
      side->link->watch_lag = {};
    }
    loop.run_for(seconds(30));
    std::vector<std::string> history;
    std::set<std::string> there;
    for (const auto& record : etcd.history()) {
      if (!record.key.starts_with("/registry/configmaps/")) continue;
      const std::string name = record.key.substr(record.key.rfind('/') + 1);
      const char* what = record.value == nullptr ? "DELETED" : there.contains(name) ? "MODIFIED" : "ADDED";
      record.value == nullptr ? (void)there.erase(name) : (void)there.insert(name);
      history.push_back(fmt::format("{} {}@{}", what, name, record.revision));
    }
    for (const auto& side : sides) EXPECT_EQ(side->seen->events, history) << "seed " << seed;
    std::size_t done = 0;
    for (const Sent& one : sent) {
      ASSERT_TRUE(one.answer->has_value()) << "seed " << seed;
      if (!(*one.answer)->has_value()) continue;
      ++done;
      const ObjectPtr& object = ***one.answer;
      const auto at = std::ranges::find(etcd.history(), object->revision, &store::SharedRecord::revision);
      ASSERT_NE(at, etcd.history().end()) << "an acknowledged write is not in the history: seed " << seed;
      EXPECT_EQ(at->value == nullptr, one.value.empty()) << "seed " << seed;
    }
    EXPECT_GT(done, 20U) << "seed " << seed << " tells nothing";
  }
}

class ExpiringOverEtcd : public testing::Test {
 protected:
  void SetUp() override { loop_.run_for(seconds(1)); }
  static std::string event_key(std::string_view name) { return apiserver::make_key("", "events", "default", name); }
  /// An Event of some 1,000 bytes; a second passes.
  void tell(Side& side, std::string_view name) {
    apiserver::Proposal proposal;
    proposal.key = event_key(name);
    auto encoded = apiserver::encode_object(*json::parse(fmt::format(
        R"({{"apiVersion":"v1","kind":"Event","metadata":{{"name":"{0}","namespace":"default","uid":"u-{0}"}},"lastTimestamp":"{1}","message":"{2}"}})",
        name, format_rfc3339(loop_.now()), std::string(800, 'm'))));
    proposal.meta = apiserver::extract_meta(proposal.key, encoded.value, std::chrono::hours(1));
    proposal.value = std::move(encoded.value);
    proposal.revision_offset = encoded.revision_offset;
    proposal.expires_at = loop_.now() + std::chrono::hours(1);
    side.cache->propose(std::move(proposal), [](const ProposeResult& result) { EXPECT_TRUE(result.has_value()); });
    loop_.run_for(seconds(1));
  }
  static std::string told_by(const Side& side) {
    std::string out;
    for (const char* name : {"a", "b", "c", "d", "e", "f"})
      if (side.cache->get(event_key(name)) != nullptr) out += name;
    return out;
  }
  VirtualLoop loop_{TimePoint(std::chrono::hours(24 * 365 * 50))};
  Etcd etcd_{loop_};
};

TEST_F(ExpiringOverEtcd, WhatWasWrittenLongestAgoGoesFirstWhoeverWroteIt) {
  Side a(etcd_, loop_, 1, 5000), b(etcd_, loop_, 2, 5000);
  a.put("stays", std::string(20'000, 'x'));  // What does not go by itself counts for nothing.
  for (const char* name : {"a", "b", "c"}) tell(a, name);
  tell(b, "d");
  loop_.run_for(seconds(5));
  EXPECT_EQ(told_by(a), "abcd");
  tell(b, "a");  // Said again: the youngest.
  tell(a, "e");
  loop_.run_for(seconds(5));
  EXPECT_EQ(told_by(a), "acde");
  EXPECT_EQ(told_by(b), "acde");
  EXPECT_EQ(a.cache->expired_early() + b.cache->expired_early(), 1U) << "two servers of one bound delete it once";
  EXPECT_NE(a.value_of("stays"), "");
}

TEST_F(ExpiringOverEtcd, AServerThatStartsKnowsWhichAreOldest) {
  Side a(etcd_, loop_, 1);
  for (const char* name : {"d", "c", "b", "a", "e", "f"}) tell(a, name);
  loop_.run_for(seconds(5));
  EXPECT_EQ(told_by(a), "abcdef") << "there is no bound";
  Side b(etcd_, loop_, 2, 3000);
  loop_.run_for(seconds(5));
  EXPECT_EQ(told_by(a), "ef");
  EXPECT_EQ(b.cache->expired_early(), 4U);
  // Those that are deleted make room.
  apiserver::Proposal deletion;
  deletion.key = event_key("e");
  deletion.is_delete = true;
  a.cache->propose(std::move(deletion), [](const ProposeResult& result) { EXPECT_TRUE(result.has_value()); });
  tell(a, "c");
  loop_.run_for(seconds(5));
  EXPECT_EQ(told_by(b), "cf");
}

TEST_F(ExpiringOverEtcd, WhatEtcdDoesNotTakeIsTriedAgain) {
  Side a(etcd_, loop_, 1, 3000), b(etcd_, loop_, 2);
  for (const char* name : {"a", "b", "c"}) tell(b, name);
  etcd_.has_leader = false;
  loop_.run_for(seconds(60));
  EXPECT_EQ(told_by(a), "abc");
  etcd_.has_leader = true;
  loop_.run_for(seconds(30));
  EXPECT_EQ(told_by(a), "bc");
  EXPECT_EQ(told_by(b), "bc");
  EXPECT_EQ(a.cache->expired_early(), 1U);
}

}  // namespace
}  // namespace berth::world
