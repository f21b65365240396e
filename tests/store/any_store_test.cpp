// What every store must do, memory, SQLite and etcd alike; then what only one does that others write to as well.
#include "tests/store/any_store.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace berth::store {
namespace {

using Live = std::map<std::string, std::pair<std::string, Revision>>;

class EveryStore : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "etcd") {
      if (testing_support::etcd_program().empty()) GTEST_SKIP() << "etcd-server is not installed";
      store_ = std::make_unique<EtcdAny>();
    } else {
      store_ = std::make_unique<LogStore>(GetParam() == "sqlite");
    }
  }
  std::unique_ptr<AnyStore> store_;
};

TEST_P(EveryStore, WritesOnlyWhatIsExpected) {
  const auto first = store_->put("/registry/pods/a/p", "1", 0);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(store_->put("/registry/pods/a/p", "again", 0).has_value());
  EXPECT_FALSE(store_->put("/registry/pods/a/q", "absent", *first).has_value());
  const auto second = store_->put("/registry/pods/a/p", "2", *first);
  ASSERT_TRUE(second.has_value());
  EXPECT_GT(*second, *first);
  EXPECT_FALSE(store_->put("/registry/pods/a/p", "late", *first).has_value());
  EXPECT_FALSE(store_->remove("/registry/pods/a/p", *first).has_value());
  EXPECT_EQ(store_->live(), (Live{{"/registry/pods/a/p", {"2", *second}}}));
}

TEST_P(EveryStore, DeletesOnceAndCreatesAnew) {
  const auto first = store_->put("/registry/pods/a/p", "1", 0);
  const auto gone = store_->remove("/registry/pods/a/p", first);
  ASSERT_TRUE(gone.has_value());
  EXPECT_FALSE(store_->remove("/registry/pods/a/p", std::nullopt).has_value());
  EXPECT_TRUE(store_->live().empty());
  EXPECT_TRUE(store_->put("/registry/pods/a/p", "2", 0).has_value());
}

TEST_P(EveryStore, TellsChangesInOrderWithoutGap) {
  const auto start = store_->put("/registry/pods/a/start", "", 0);
  std::vector<SeenChange> written;
  for (int i = 0; i < 50; ++i) {
    const std::string key = "/registry/pods/a/p" + std::to_string(i % 7);
    const auto present = store_->live();
    const auto found = present.find(key);
    if (found != present.end() && i % 3 == 0) {
      written.push_back({key, std::nullopt, *store_->remove(key, found->second.second)});
    } else {
      const auto value = std::to_string(i);
      written.push_back({key, value, *store_->put(key, value, found == present.end() ? 0 : found->second.second)});
    }
  }
  EXPECT_EQ(store_->changes(*start, written.size()), written);
  // From the middle, too.
  const auto tail = store_->changes(written[19].revision, written.size() - 20);
  EXPECT_EQ(tail, std::vector<SeenChange>(written.begin() + 20, written.end()));
}

TEST_P(EveryStore, KeepsBytesAsTheyAre) {
  const std::string binary("k8s\0\x01\xff\n\0", 8), big(700'000, 'x');
  ASSERT_TRUE(store_->put("/registry/pods/a/binary", binary, 0));
  ASSERT_TRUE(store_->put("/registry/pods/a/big", big, 0));
  auto live = store_->live();
  EXPECT_EQ(live["/registry/pods/a/binary"].first, binary);
  EXPECT_EQ(live["/registry/pods/a/big"].first, big);
}

TEST_P(EveryStore, CompactionKeepsWhatLives) {
  auto revision = store_->put("/registry/pods/a/p", "1", 0);
  for (int i = 2; i <= 20; ++i) revision = store_->put("/registry/pods/a/p", std::to_string(i), revision);
  const auto other = store_->put("/registry/pods/a/q", "q", 0);
  store_->compact(*other);
  EXPECT_EQ(store_->live(), (Live{{"/registry/pods/a/p", {"20", *revision}}, {"/registry/pods/a/q", {"q", *other}}}));
}

/// What is there again after the end of a process.
class EveryLastingStore : public EveryStore {};

TEST_P(EveryLastingStore, SurvivesReopening) {
  const auto revision = store_->put("/registry/pods/a/p", "1", 0);
  store_->reopen();
  EXPECT_EQ(store_->live(), (Live{{"/registry/pods/a/p", {"1", *revision}}}));
}

INSTANTIATE_TEST_SUITE_P(All, EveryStore, testing::Values("memory", "sqlite", "etcd"), [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(All, EveryLastingStore, testing::Values("sqlite", "etcd"), [](const auto& info) { return info.param; });

class SharedStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (testing_support::etcd_program().empty()) GTEST_SKIP() << "etcd-server is not installed";
    etcd_ = std::make_unique<EtcdAny>();
  }
  std::unique_ptr<EtcdAny> etcd_;
};

TEST_F(SharedStoreTest, ManyWritersOfOneKeyEachSucceedOnce) {
  constexpr int kWriters = 8, kEach = 25;
  auto& store = etcd_->store();
  ASSERT_TRUE(etcd_->put("/registry/counter", "0", 0));
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i)
    writers.emplace_back([&] {
      for (int done = 0; done < kEach;) {
        const auto found = store.find("/registry/counter", false);
        ASSERT_TRUE(found.has_value() && found->size() == 1);
        const auto next = std::to_string(std::stoi(*found->front().value) + 1);
        done += store.write_and_wait({"/registry/counter", make_bytes(next), found->front().revision, {}}).verdict == WriteVerdict::kDone;
      }
    });
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(etcd_->live()["/registry/counter"].first, std::to_string(kWriters * kEach));
}

TEST_F(SharedStoreTest, AWriteDuringAnOutageIsDoneOnceWhenEtcdIsBack) {
  ASSERT_TRUE(etcd_->put("/registry/pods/a/before", "1", 0));
  Hearer hearer;
  etcd_->store().follow(0, hearer);
  ASSERT_TRUE(hearer.wait([](const Hearer& h) { return h.seen_.size() == 1; }));
  etcd_->process().stop();
  std::promise<WriteAnswer> answer;
  etcd_->store().write({"/registry/pods/a/during", make_bytes("2"), 0, {}}, [&](WriteAnswer given) { answer.set_value(std::move(given)); });
  etcd_->process().start();
  const auto given = answer.get_future().get();
  EXPECT_EQ(given.verdict, WriteVerdict::kDone) << given.message;
  ASSERT_TRUE(hearer.wait([](const Hearer& h) { return h.seen_.size() >= 2; }));
  etcd_->store().stop();
  ASSERT_EQ(hearer.seen_.size(), 2U);
  EXPECT_EQ(hearer.seen_[1].key, "/registry/pods/a/during");
}

TEST_F(SharedStoreTest, WhoFollowsFromWhatIsCompactedIsTold) {
  auto revision = etcd_->put("/registry/pods/a/p", "1", 0);
  const auto first = revision;
  for (int i = 0; i < 10; ++i) revision = etcd_->put("/registry/pods/a/p", std::to_string(i), revision);
  etcd_->compact(*revision);
  Hearer hearer;
  etcd_->store().follow(*first, hearer);
  EXPECT_TRUE(hearer.wait([](const Hearer& h) { return h.is_lost_; }));
  etcd_->store().stop();
}

TEST_F(SharedStoreTest, TheLatestRevisionIsNeverOlderThanAnAcknowledgedWrite) {
  for (int i = 0; i < 20; ++i) {
    const auto written = etcd_->put("/registry/pods/a/p" + std::to_string(i), "1", 0);
    std::promise<Result<Revision>> latest;
    etcd_->store().latest([&](Result<Revision> given) { latest.set_value(std::move(given)); });
    const auto given = latest.get_future().get();
    ASSERT_TRUE(given.has_value());
    EXPECT_GE(*given, *written);
  }
}

TEST_F(SharedStoreTest, WhoHasAllBelowThePrefixIsUpToDateWhateverIsWrittenElsewhere) {
  auto& store = etcd_->store();
  const auto latest = [&] {
    std::promise<Result<Revision>> given;
    store.latest([&](Result<Revision> revision) { given.set_value(std::move(revision)); });
    return given.get_future().get().value_or(-1);
  };
  const auto one = etcd_->put("/registry/pods/a/one", "1", 0);
  const auto other = etcd_->put("/registry/pods/a/other", "1", 0);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(store.up_to_date_until(*one).value_or(-1), *one) << "another was made";
  ASSERT_TRUE(store.take_compaction_turn(0, 1));
  ASSERT_GT(latest(), *other);
  EXPECT_EQ(store.up_to_date_until(*other).value_or(-1), latest());
  const auto before = latest();
  ASSERT_TRUE(etcd_->remove("/registry/pods/a/one", {}));
  EXPECT_EQ(store.up_to_date_until(before).value_or(-1), before) << "one was deleted";
  EXPECT_EQ(store.up_to_date_until(latest()).value_or(-1), latest());
}

TEST_F(SharedStoreTest, ACompactionTurnIsOneServers) {
  auto& store = etcd_->store();
  const auto first = store.take_compaction_turn(0, 0);
  ASSERT_TRUE(first.has_value());
  EXPECT_TRUE(first->is_mine);
  const auto second = store.take_compaction_turn(0, 0);
  ASSERT_TRUE(second.has_value());
  EXPECT_FALSE(second->is_mine);
  EXPECT_EQ(second->version, first->version);
}

TEST(EtcdAddresses, WhatIsWrongIsSaid) {
  EtcdOptions options;
  options.servers = {"ftp://127.0.0.1:1"};
  EXPECT_NE(open_etcd_store(options).error().message.find("neither http://HOST:PORT"), std::string::npos);
  for (const char* port : {"0", "99999", "etcd", ""}) {
    options.servers = {std::string("http://127.0.0.1:") + port};
    EXPECT_NE(open_etcd_store(options).error().message.find("is no port from 1 to 65535"), std::string::npos) << port;
  }
  options.servers = {"http://127.0.0.1:" + std::to_string(testing_support::free_port())};
  EXPECT_NE(open_etcd_store(options).error().message.find("no etcd answers"), std::string::npos);
  options.certificate_pem = "x";
  EXPECT_NE(open_etcd_store(options).error().message.find("belong together"), std::string::npos);
}

}  // namespace
}  // namespace berth::store
