// A disk one of whose operations fails, one after the other: what was said to be written is there, what failed is said to have, and the
// next start finds all of it.
#include <gtest/gtest.h>

#include <map>

#include "store/snapshot.h"
#include "tests/store/power_loss_disk.h"
#include "tests/store/store_fixture.h"

namespace berth::store {
namespace {

using Contents = std::map<std::string, std::string>;

Record write_of(Revision revision, const std::string& key, Revision previous, std::size_t size) {
  Record out{.revision = revision, .create_revision = previous == 0 ? revision : 1, .previous_revision = previous, .key = key};
  if (size != 0) out.value = make_bytes(std::string(size, static_cast<char>('a' + revision)));
  return out;
}

/// Three groups of writes, the second not synced; what there is after each.
const std::vector<std::vector<Record>>& groups() {
  static const std::vector<std::vector<Record>> kGroups = {
      {write_of(1, "//pods/a/x", 0, 20'000), write_of(2, "//pods/a/y", 0, 10), write_of(3, "//pods/a/z", 0, 10)},
      {write_of(4, "//pods/a/x", 1, 17'000), write_of(5, "//pods/a/y", 2, 0)},
      {write_of(6, "//pods/a/y", 0, 30), write_of(7, "//pods/a/z", 3, 10)}};
  return kGroups;
}
Contents contents_at(Revision revision) {
  Contents out;
  for (const auto& group : groups())
    for (const Record& one : group) {
      if (one.revision > revision) continue;
      if (one.value == nullptr)
        out.erase(one.key);
      else
        out[one.key] = *one.value;
    }
  return out;
}
Contents contents_of(Store& store) {
  Contents out;
  const auto read = store.read(0, [&](const Record& one) -> Result<void> {
    if (one.value == nullptr)
      out.erase(one.key);
    else
      out[one.key] = *one.value;
    return {};
  });
  EXPECT_TRUE(read) << read.error().message;
  return out;
}

/// What was told, whatever failed.
struct Told {
  Revision acknowledged = 0;
  bool is_saved = false, is_restored = false, is_closing = false;
  std::string step;
};

/// A store's life, until something fails.
Result<void> play(const TemporaryDirectory& directory, Told& told) {
  const auto open = [&](const char* name) { return open_sqlite_store({.path = directory.file(name)}); };
  const auto nothing = [](const Record&) -> Result<void> { return {}; };
  told.step = "open";
  auto store = open("s.db");
  if (!store) return std::unexpected(store.error());
  for (std::size_t i = 0; i < groups().size(); ++i) {
    told.step = fmt::format("commit {}", i);
    if (auto done = (*store)->commit(groups()[i], i != 1); !done) return done;
    told.acknowledged = groups()[i].back().revision;
    told.step = "compact";
    if (auto done = (*store)->compact(told.acknowledged - 2); !done) return done;
  }
  told.step = "probe";
  if (auto done = (*store)->probe(); !done) return done;
  told.step = "save";
  const auto saved =
      save_sqlite_snapshot(directory.file("s.db"), directory.file("snapshot"), {"2026-11-22T10:00:00Z", "0.1.0", {{"f", 0600, "x"}}});
  if (!saved) return std::unexpected(saved.error());
  told.is_saved = true;
  told.is_closing = true;
  store->reset();
  told.is_closing = false;
  told.step = "open again";
  store = open("s.db");
  if (!store) return std::unexpected(store.error());
  told.step = "read back";
  if (auto read = (*store)->read_back([](const RecordHead&) { return true; }, nothing); !read) return read;
  told.step = "scan";
  if (auto read = scan_sqlite_store(directory.file("s.db"), nothing); !read) return std::unexpected(read.error());
  told.step = "restore";
  const auto restored = restore_sqlite_snapshot(directory.file("snapshot"), directory.file("new.db"), 100,
                                                [](const SnapshotFile&) -> Result<void> { return {}; });
  if (!restored) return std::unexpected(restored.error());
  told.is_restored = true;
  told.is_closing = true;
  return {};
}

void judge(const TemporaryDirectory& directory, const Told& told) {
  {
    auto store = open_sqlite_store({.path = directory.file("s.db")});
    ASSERT_TRUE(store) << store.error().message;
    const Revision last = (*store)->state().last_revision;
    EXPECT_GE(last, told.acknowledged);
    EXPECT_EQ(contents_of(**store), contents_at(last));
    std::vector<Record> next{write_of(last + 1, "//pods/a/new", 0, 10)};
    EXPECT_TRUE((*store)->commit(next, true));
  }
  const auto verified = verify_snapshot(directory.file("snapshot"));
  if (told.is_saved) {
    ASSERT_TRUE(verified) << verified.error().message;
    EXPECT_EQ(verified->revision, 7);
    EXPECT_EQ(verified->objects, 3);
  } else {
    EXPECT_EQ(verified.error().code, ErrorCode::kNotFound) << "nothing is left of what failed";
  }
  if (!told.is_restored) return;
  auto restored = open_sqlite_store({.path = directory.file("new.db")});
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ((*restored)->state().last_revision, 107);
  EXPECT_EQ(contents_of(**restored), contents_at(7));
}

TEST(FailingDisk, EachOperationMayFailAndNothingIsLostOrPretended) {
  std::map<std::string, int> failures;
  bool is_over = false;
  for (int at = 1; !is_over && !::testing::Test::HasFailure(); ++at) {
    TemporaryDirectory directory;
    PowerLossDisk disk(directory.file(""));
    disk.failing_at = at;
    Told told;
    const auto done = play(directory, told);
    is_over = disk.failing_at != 0;
    disk.failing_at = 0;
    SCOPED_TRACE(fmt::format("operation {}, {}, in {}: {}", at, disk.failed, told.step, done ? "no error" : done.error().message));
    ++failures[done ? "unnoticed" : told.step];
    if (is_over) {
      EXPECT_TRUE(done);
    } else if (!told.is_closing && (disk.failed.starts_with("write") || disk.failed.starts_with("sync"))) {
      EXPECT_FALSE(done) << "what could not be written was said to be";
    }
    if (!done) {
      EXPECT_FALSE(done.error().message.empty());
      EXPECT_NE(done.error().code, ErrorCode::kConflict);
    }
    judge(directory, told);
  }
  for (const char* step : {"open", "commit 0", "commit 1", "commit 2", "compact", "probe", "save", "open again", "read back", "restore"})
    EXPECT_GT(failures[step], 0) << step;
}

}  // namespace
}  // namespace berth::store
