// Snapshots: consistent beside a writer, whole or refused, restored with a history of their own (docs/operations.md).
#include "store/snapshot.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tests/store/store_fixture.h"

namespace berth::store {
namespace {

Record change(Revision revision, const std::string& key, Revision previous, const char* value) {
  return {revision, previous == 0 ? revision : 1, previous, key, value == nullptr ? nullptr : make_bytes(std::string(value))};
}

const SnapshotTaken kTaken{"2026-11-22T10:00:00Z", "0.1.0", {{"pki/ca.key", 0600, "secret"}, {"admin.kubeconfig", 0600, "kind: Config"}}};

/// One object changed, one deleted, one as it was made.
std::unique_ptr<Store> filled(const std::string& path) {
  auto store = open_or_fail(path);
  const Record records[] = {change(1, "//pods/a/x", 0, "{1}"), change(2, "//pods/a/y", 0, "{2}"), change(3, "//pods/a/x", 1, "{3}"),
                            change(4, "//pods/a/y", 2, nullptr), change(5, "//pods/a/z", 0, "{5}")};
  EXPECT_TRUE(store->commit(records, true).has_value());
  return store;
}

std::map<std::string, std::string> contents(Store& store) {
  std::map<std::string, std::string> out;
  EXPECT_TRUE(store
                  .read(0,
                        [&](Record record) -> Result<void> {
                          if (record.value == nullptr)
                            out.erase(record.key);
                          else
                            out[record.key] = *record.value;
                          return {};
                        })
                  .has_value());
  return out;
}

TEST(Snapshot, HoldsWhatIsLiveWhileTheStoreIsOpen) {
  const TemporaryDirectory dir;
  const auto store = filled(dir.file("store.db"));
  const auto info = save_sqlite_snapshot(dir.file("store.db"), dir.file("s"), kTaken);
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->revision, 5);
  EXPECT_EQ(info->objects, 2);
  const auto verified = verify_snapshot(dir.file("s"));
  ASSERT_TRUE(verified.has_value()) << verified.error().message;
  EXPECT_EQ(verified->files, (std::vector<std::string>{"admin.kubeconfig", "pki/ca.key"}));
  EXPECT_EQ(std::filesystem::status(dir.file("s")).permissions(), std::filesystem::perms(0600));
}

TEST(Snapshot, RestoredGoesOnAheadOfTheOldHistory) {
  const TemporaryDirectory dir;
  auto old = filled(dir.file("store.db"));
  ASSERT_TRUE(save_sqlite_snapshot(dir.file("store.db"), dir.file("s"), kTaken).has_value());
  std::map<std::string, std::string> files;
  const auto info = restore_sqlite_snapshot(dir.file("s"), dir.file("new.db"), 1000, [&](const SnapshotFile& file) -> Result<void> {
    files[file.path] = file.content;
    return {};
  });
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(files, (std::map<std::string, std::string>{{"admin.kubeconfig", "kind: Config"}, {"pki/ca.key", "secret"}}));
  const auto store = open_or_fail(dir.file("new.db"));
  EXPECT_EQ(store->state().last_revision, 1005);
  EXPECT_EQ(store->state().compacted_revision, 1005);
  EXPECT_EQ(contents(*store), contents(*old));
  const Record next[] = {change(1006, "//pods/a/x", 3, "{6}")};
  ASSERT_TRUE(store->commit(next, true).has_value());
  EXPECT_EQ(contents(*store).at("//pods/a/x"), "{6}");
}

TEST(Snapshot, NeitherAStoreNorARestOfOnePassesForASnapshot) {
  const TemporaryDirectory dir;
  filled(dir.file("store.db"));
  EXPECT_NE(verify_snapshot(dir.file("store.db")).error().message.find("is a store, no snapshot"), std::string::npos);
  ASSERT_TRUE(save_sqlite_snapshot(dir.file("store.db"), dir.file("s"), kTaken).has_value());
  EXPECT_EQ(save_sqlite_snapshot(dir.file("store.db"), dir.file("s"), kTaken).error().code, ErrorCode::kConflict);
  EXPECT_EQ(open_sqlite_store({dir.file("s"), true}).error().code, ErrorCode::kCorrupt) << "nor a snapshot for a store";
  std::filesystem::resize_file(dir.file("s"), std::filesystem::file_size(dir.file("s")) / 2);
  EXPECT_EQ(verify_snapshot(dir.file("s")).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(verify_snapshot(dir.file("none")).error().code, ErrorCode::kNotFound);
  std::ofstream(dir.file("text")) << std::string(4096, 't');
  const std::string told = verify_snapshot(dir.file("text")).error().message;
  EXPECT_NE(told.find("is damaged (PRAGMA application_id: file is not a database)"), std::string::npos) << told;
}

TEST(Snapshot, EachByteCounts) {
  const TemporaryDirectory dir;
  filled(dir.file("store.db"));
  ASSERT_TRUE(save_sqlite_snapshot(dir.file("store.db"), dir.file("s"), kTaken).has_value());
  std::ifstream in(dir.file("s"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  for (const std::string word : {"{3}", "{5}", "secret", "kind: Config"}) {
    std::string damaged = bytes;
    const auto at = damaged.find(word);
    ASSERT_NE(at, std::string::npos) << word;
    damaged[at] ^= 1;
    std::ofstream(dir.file("damaged"), std::ios::binary | std::ios::trunc) << damaged;
    EXPECT_FALSE(verify_snapshot(dir.file("damaged")).has_value()) << word;
    EXPECT_FALSE(restore_sqlite_snapshot(dir.file("damaged"), dir.file("x.db"), 0, [](const SnapshotFile&) -> Result<void> { return {}; }))
        << word;
  }
}

TEST(Scan, ReadsBesideAWriterAndNoticesAGap) {
  const TemporaryDirectory dir;
  const auto store = filled(dir.file("store.db"));
  int records = 0;
  const auto state = scan_sqlite_store(dir.file("store.db"), [&](Record) -> Result<void> {
    ++records;
    return {};
  });
  ASSERT_TRUE(state.has_value()) << state.error().message;
  EXPECT_EQ(state->last_revision, 5);
  EXPECT_EQ(records, 5);
}

TEST(Snapshot, AHistoryBeginsInAStoreThatIsThere) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(begin_sqlite_history_at(directory.file("nowhere/store.db"), 5));
  { const auto store = filled(directory.file("store.db")); }
  ASSERT_TRUE(begin_sqlite_history_at(directory.file("store.db"), 9));
  const auto state = scan_sqlite_store(directory.file("store.db"), [](Record) -> Result<void> { return {}; });
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->compacted_revision, 9);
}

TEST(Snapshot, WhoReadsItMayStopWithAnError) {
  const TemporaryDirectory dir;
  filled(dir.file("store.db"));
  ASSERT_TRUE(save_sqlite_snapshot(dir.file("store.db"), dir.file("s"), kTaken).has_value());
  int records = 0, files = 0;
  const auto each = [&](bool is_in_order) {
    return [&records, is_in_order](Record) -> Result<void> {
      ++records;
      return is_in_order ? Result<void>() : fail(ErrorCode::kUnavailable, "no room");
    };
  };
  const auto each_file = [&](bool is_in_order) {
    return [&files, is_in_order](const SnapshotFile&) -> Result<void> {
      ++files;
      return is_in_order ? Result<void>() : fail(ErrorCode::kUnavailable, "no files");
    };
  };
  const auto refused = read_snapshot(dir.file("s"), each(false), each_file(true));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "no room");
  EXPECT_EQ(records, 1);
  EXPECT_EQ(files, 0) << "what stands behind is not read any more";
  const auto later = read_snapshot(dir.file("s"), each(true), each_file(false));
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().message, "no files");
  EXPECT_EQ(records, 3);
  const auto whole = read_snapshot(dir.file("s"), each(true), each_file(true));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->revision, 5);
}

}  // namespace
}  // namespace berth::store
