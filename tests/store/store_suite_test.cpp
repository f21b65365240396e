// What every store must do, run against each of them.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "tests/store/store_fixture.h"
#include "tests/support/life.h"

namespace berth::store {
namespace {

Result<std::vector<Record>> read_all(Store& store, Revision after = 0) {
  std::vector<Record> records;
  auto read = store.read(after, [&](Record record) -> Result<void> {
    records.push_back(std::move(record));
    return {};
  });
  if (!read) return std::unexpected(read.error());
  return records;
}

std::vector<Revision> revisions(Store& store, Revision after = 0) {
  std::vector<Revision> all;
  auto records = read_all(store, after);
  EXPECT_TRUE(records.has_value());
  for (const Record& record : records.value_or(std::vector<Record>{})) all.push_back(record.revision);
  return all;
}

Record put(Revision revision, std::string key, std::string value, Revision previous = 0, Revision created = 0) {
  return {.revision = revision,
          .create_revision = created == 0 ? revision : created,
          .previous_revision = previous,
          .key = std::move(key),
          .value = make_bytes(std::move(value))};
}

Record tombstone(Revision revision, std::string key, Revision previous, Revision created) {
  return {.revision = revision, .create_revision = created, .previous_revision = previous, .key = std::move(key)};
}

class StoreSuite : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { store_ = open(); }
  std::unique_ptr<Store> open() { return GetParam() == "memory" ? make_memory_store() : open_or_fail(directory_.file("store.db")); }
  bool survives_reopening() const { return GetParam() != "memory"; }
  void reopen() {
    store_.reset();
    store_ = open();
  }
  void commit(std::vector<Record> records, bool sync = true) {
    auto done = store_->commit(records, sync);
    ASSERT_TRUE(done.has_value()) << done.error().message;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Store> store_;
};

TEST_P(StoreSuite, StartsEmpty) {
  EXPECT_EQ(store_->state().last_revision, 0);
  EXPECT_EQ(store_->state().compacted_revision, 0);
  EXPECT_TRUE(revisions(*store_).empty());
}

TEST_P(StoreSuite, ReturnsRecordsWholeAndInOrder) {
  std::string big(300'000, 'x');
  std::string binary("a\0b\"\n\xff", 6);
  commit({put(1, "//pods/a/p", "{}"), put(2, "//pods/a/q", big)});
  commit({put(3, "//pods/a/p", binary, 1, 1), tombstone(4, "//pods/a/q", 2, 2)}, false);
  auto records = read_all(*store_);
  ASSERT_TRUE(records.has_value());
  ASSERT_EQ(records->size(), 4U);
  EXPECT_EQ((*records)[1].key, "//pods/a/q");
  EXPECT_EQ(*(*records)[1].value, big);
  EXPECT_EQ(*(*records)[2].value, binary);
  EXPECT_EQ((*records)[2].previous_revision, 1);
  EXPECT_EQ((*records)[2].create_revision, 1);
  EXPECT_EQ((*records)[3].value, nullptr);
  EXPECT_EQ((*records)[3].create_revision, 2);
  EXPECT_EQ(store_->state().last_revision, 4);
}

TEST_P(StoreSuite, ReadsTheTailOnly) {
  commit({put(1, "//pods/a/p", "1"), put(2, "//pods/a/q", "2"), put(3, "//pods/a/r", "3")});
  EXPECT_EQ(revisions(*store_, 1), (std::vector<Revision>{2, 3}));
  EXPECT_TRUE(revisions(*store_, 3).empty());
}

TEST_P(StoreSuite, ReadsBackWhatIsWanted) {
  commit({put(1, "//pods/a/p", "1"), put(2, "//pods/a/q", "2"), put(3, "//pods/a/p", "3", 1, 1), tombstone(4, "//pods/a/q", 2, 2)});
  std::vector<std::string> told, read;
  const auto read_back = [&](std::size_t most) {
    return store_->read_back(
        [&](const RecordHead& head) {
          told.push_back(fmt::format("{} {} after {}{}", head.revision, head.key, head.previous_revision, head.is_delete ? ", gone" : ""));
          return head.revision != 2;
        },
        [&](const Record& record) -> Result<void> {
          if (read.size() == most) return fail(ErrorCode::kUnavailable, "enough");
          read.push_back(fmt::format("{} of {}: {}", record.revision, record.create_revision, record.value ? *record.value : "gone"));
          return {};
        });
  };
  ASSERT_TRUE(read_back(9));
  EXPECT_EQ(told, (std::vector<std::string>{"4 //pods/a/q after 2, gone", "3 //pods/a/p after 1", "2 //pods/a/q after 0",
                                            "1 //pods/a/p after 0"}));
  EXPECT_EQ(read, (std::vector<std::string>{"4 of 2: gone", "3 of 1: 3", "1 of 1: 1"}));
  read.clear();
  const auto stopped = read_back(2);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, "enough");
  EXPECT_EQ(read.size(), 2U);
  ASSERT_TRUE(store_->compact(4));
  told.clear();
  ASSERT_TRUE(read_back(9));
  EXPECT_EQ(told, std::vector<std::string>{"3 //pods/a/p after 1"});
}

TEST_P(StoreSuite, RefusesRevisionsThatDoNotFollowAndWritesNothing) {
  commit({put(1, "//pods/a/p", "1")});
  for (auto records : {std::vector<Record>{put(1, "//pods/a/q", "x")},
                       {put(3, "//pods/a/q", "x")},
                       {put(2, "//pods/a/q", "x"), put(4, "//pods/a/r", "x")}}) {
    auto done = store_->commit(records, true);
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().code, ErrorCode::kConflict);
  }
  EXPECT_EQ(revisions(*store_), (std::vector<Revision>{1}));
  commit({put(2, "//pods/a/q", "y")});
  EXPECT_EQ(store_->state().last_revision, 2);
}

TEST_P(StoreSuite, StopsReadingWithTheCallersError) {
  commit({put(1, "//pods/a/p", "1"), put(2, "//pods/a/q", "2")});
  int calls = 0;
  auto read = store_->read(0, [&](Record) -> Result<void> {
    ++calls;
    return fail(ErrorCode::kUnavailable, "enough");
  });
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().message, "enough");
  EXPECT_EQ(calls, 1);
}

TEST_P(StoreSuite, CompactionForgetsWhatIsSupersededAndKeepsWhatLives) {
  commit({put(1, "//pods/a/p", "1"), put(2, "//pods/a/p", "2", 1, 1), put(3, "//pods/a/q", "3"), tombstone(4, "//pods/a/q", 3, 3),
          put(5, "//pods/a/p", "5", 2, 1), put(6, "//pods/a/q", "6")});
  ASSERT_TRUE(store_->compact(2).has_value());
  EXPECT_EQ(revisions(*store_), (std::vector<Revision>{2, 3, 4, 5, 6}));
  ASSERT_TRUE(store_->compact(4).has_value());
  EXPECT_EQ(revisions(*store_), (std::vector<Revision>{2, 5, 6}));
  EXPECT_EQ(store_->state().compacted_revision, 4);
  ASSERT_TRUE(store_->compact(1).has_value());
  EXPECT_EQ(store_->state().compacted_revision, 4);
  ASSERT_TRUE(store_->compact(100).has_value());
  EXPECT_EQ(store_->state().compacted_revision, 6);
  EXPECT_EQ(revisions(*store_), (std::vector<Revision>{5, 6}));
}

TEST_P(StoreSuite, RevisionsGoOnAfterEverythingIsCompactedAway) {
  commit({put(1, "//pods/a/p", "1"), tombstone(2, "//pods/a/p", 1, 1)});
  ASSERT_TRUE(store_->compact(2).has_value());
  EXPECT_TRUE(revisions(*store_).empty());
  if (survives_reopening()) reopen();
  EXPECT_EQ(store_->state().last_revision, 2);
  commit({put(3, "//pods/a/p", "3")});
  EXPECT_EQ(revisions(*store_), (std::vector<Revision>{3}));
}

TEST_P(StoreSuite, AgreesWithAPlainLog) {
  berth::testing::Dice dice(7);
  std::vector<Record> log;  // What is kept, in order.
  std::map<std::string, Record> live;
  Revision last = 0, compacted = 0;
  const auto text = [](const Record& one) {
    return fmt::format("{} {} {} {} {}", one.revision, one.create_revision, one.previous_revision, one.key,
                       one.value == nullptr ? "gone" : *one.value);
  };
  const auto texts = [&](const std::vector<Record>& all, Revision after) {
    std::vector<std::string> out;
    for (const Record& one : all)
      if (one.revision > after) out.push_back(text(one));
    return out;
  };
  for (int step = 0; step < 300; ++step) {
    std::vector<Record> records;
    for (int i = dice.below(6); i >= 0; --i) {
      const std::string key = fmt::format("//pods/a/p{}", dice.below(8));
      const auto known = live.find(key);
      const Revision previous = known == live.end() ? 0 : known->second.revision;
      const Revision created = known == live.end() ? last + 1 : known->second.create_revision;
      const bool goes = known != live.end() && dice.chance(35);
      records.push_back(goes ? tombstone(++last, key, previous, created) : put(++last, key, fmt::format("v{}", step), previous, created));
      if (goes)
        live.erase(key);
      else
        live[key] = records.back();
    }
    commit(records, dice.chance(50));
    log.insert(log.end(), records.begin(), records.end());
    if (dice.chance(30)) {
      const Revision up_to = dice.chance(10) ? last + 5 : 1 + dice.below(static_cast<std::size_t>(last));
      ASSERT_TRUE(store_->compact(up_to).has_value());
      compacted = std::max(compacted, std::min(up_to, last));
      std::set<Revision> superseded;
      for (const Record& one : log)
        if (one.revision <= compacted && one.previous_revision != 0) superseded.insert(one.previous_revision);
      std::erase_if(
          log, [&](const Record& one) { return superseded.contains(one.revision) || (one.value == nullptr && one.revision <= compacted); });
    }
    if (survives_reopening() && dice.chance(10)) reopen();
    EXPECT_EQ(store_->state().last_revision, last);
    EXPECT_EQ(store_->state().compacted_revision, compacted);
    for (const Revision after : {Revision{0}, compacted, last - 3}) {
      const auto there = read_all(*store_, after);
      ASSERT_TRUE(there.has_value());
      ASSERT_EQ(texts(*there, 0), texts(log, after)) << "step " << step << " after " << after;
    }
  }
}

/// What a store on a disk does besides.
class StoreOnDisk : public StoreSuite {};

TEST_P(StoreOnDisk, ReopeningFindsEverything) {
  std::vector<Record> records;
  for (Revision r = 1; r <= 5000; ++r)
    records.push_back(put(r, fmt::format("//pods/a/p{}", r % 100), std::string(500, 'v'), r > 100 ? r - 100 : 0));
  commit(records);
  ASSERT_TRUE(store_->compact(4200).has_value());
  reopen();
  EXPECT_EQ(store_->state().last_revision, 5000);
  EXPECT_EQ(store_->state().compacted_revision, 4200);
  auto left = revisions(*store_);
  ASSERT_EQ(left.size(), 900U);
  EXPECT_EQ(left.front(), 4101);
  EXPECT_EQ(left.back(), 5000);
}

INSTANTIATE_TEST_SUITE_P(All, StoreSuite, ::testing::Values("memory", "sqlite"), [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(All, StoreOnDisk, ::testing::Values("sqlite"), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace berth::store
