// What is particular to the SQLite file: locking, damage, formats, crashes (SPEC A5).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <fstream>

#include "store/sqlite/read_ahead.h"
#include "tests/store/power_loss_disk.h"
#include "tests/store/store_fixture.h"

namespace berth::store {
namespace {

Record put(Revision revision, std::size_t size = 1000) {
  return {.revision = revision,
          .create_revision = revision,
          .key = fmt::format("//pods/a/p{}", revision),
          .value = make_bytes(std::string(size, static_cast<char>('a' + revision % 26)))};
}

void fill(const std::string& path, Revision count) {
  auto store = open_or_fail(path);
  std::vector<Record> records;
  for (Revision r = 1; r <= count; ++r) records.push_back(put(r));
  ASSERT_TRUE(store->commit(records, true).has_value());
}

void run_sql(const std::string& path, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, &message), SQLITE_OK) << message;
  sqlite3_close(db);
}

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Error open_error(const std::string& path) {
  auto store = open_sqlite_store({.path = path});
  EXPECT_FALSE(store.has_value());
  return store ? Error{} : store.error();
}

/// Opens and reads everything: the error of whichever fails first.
std::optional<Error> first_error(const std::string& path) {
  auto store = open_sqlite_store({.path = path});
  if (!store) return store.error();
  auto read = (*store)->read(0, [](Record) -> Result<void> { return {}; });
  if (!read) return read.error();
  return std::nullopt;
}

TEST(SqliteStore, FileIsReadableByItsOwnerOnly) {
  TemporaryDirectory directory;
  auto store = open_or_fail(directory.file("s.db"));
  ASSERT_TRUE(store->commit(std::vector{put(1)}, true).has_value());
  for (const char* name : {"s.db", "s.db-wal", "s.db-shm", "s.db.lock"}) {
    struct stat info {};
    ASSERT_EQ(::stat(directory.file(name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 0777, 0600U) << name;
  }
}

TEST(SqliteStore, SecondOpenerIsRefusedByName) {
  TemporaryDirectory directory;
  auto path = directory.file("s.db");
  auto store = open_or_fail(path);
  auto error = open_error(path);
  EXPECT_EQ(error.code, ErrorCode::kConflict);
  EXPECT_NE(error.message.find(path), std::string::npos);
  EXPECT_NE(error.message.find(fmt::format("process {}", ::getpid())), std::string::npos) << error.message;
  store.reset();
  EXPECT_TRUE(open_sqlite_store({.path = path}).has_value());
}

TEST(SqliteStore, MissingDirectoryIsAnErrorThatNamesTheFile) {
  auto error = open_error("/nonexistent-directory/s.db");
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_NE(error.message.find("/nonexistent-directory/s.db"), std::string::npos);
}

TEST(SqliteStore, NewerFormatIsRefusedAndLeftAlone) {
  TemporaryDirectory directory;
  auto path = directory.file("s.db");
  fill(path, 3);
  run_sql(path, "PRAGMA user_version=99");
  auto before = content(path);
  auto error = open_error(path);
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_NE(error.message.find("format 99"), std::string::npos) << error.message;
  EXPECT_EQ(content(path), before);
}

TEST(SqliteStore, ForeignDatabaseIsRefusedAndLeftAlone) {
  TemporaryDirectory directory;
  auto path = directory.file("s.db");
  run_sql(path, "CREATE TABLE mine(x); INSERT INTO mine VALUES(1)");
  auto before = content(path);
  EXPECT_EQ(open_error(path).code, ErrorCode::kCorrupt);
  EXPECT_EQ(content(path), before);
}

TEST(SqliteStore, TextFileIsRefusedAndLeftAlone) {
  TemporaryDirectory directory;
  auto path = directory.file("s.db");
  std::ofstream(path) << std::string(5000, 'n');
  EXPECT_EQ(open_error(path).code, ErrorCode::kCorrupt);
  EXPECT_EQ(content(path), std::string(5000, 'n'));
}

TEST(SqliteStore, LogWithoutItsFileIsNotTakenForANewStore) {
  TemporaryDirectory directory;
  auto path = directory.file("s.db");
  std::ofstream(path + "-wal") << std::string(5000, 'n');
  EXPECT_EQ(open_error(path).code, ErrorCode::kCorrupt);
  EXPECT_EQ(content(path + "-wal").size(), 5000U);
}

/// Copies a store as a killed process leaves it.
void copy_store(const TemporaryDirectory& from, const TemporaryDirectory& to) {
  for (const char* name : {"s.db", "s.db-wal", "s.db.lock"}) std::filesystem::copy_file(from.file(name), to.file(name));
}

TEST(SqliteStore, AMissingLogIsNoticed) {
  TemporaryDirectory directory, killed;
  fill(directory.file("s.db"), 3);
  auto store = open_or_fail(directory.file("s.db"));
  ASSERT_TRUE(store->commit(std::vector{put(4), put(5)}, true).has_value());
  copy_store(directory, killed);
  const auto path = killed.file("s.db");
  std::filesystem::rename(path + "-wal", path + "-elsewhere");
  const auto before = content(path);
  const auto error = open_error(path);
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_NE(error.message.find("ends at revision 3, but revision 5 had been acknowledged"), std::string::npos) << error.message;
  EXPECT_EQ(content(path), before);
  EXPECT_EQ(open_error(path).code, ErrorCode::kCorrupt) << "a second try does not forget it";
  std::filesystem::remove(path + "-wal");
  std::filesystem::rename(path + "-elsewhere", path + "-wal");
  EXPECT_EQ(open_or_fail(path)->state().last_revision, 5);
}

TEST(SqliteStore, AnEmptiedFileIsNotTakenForANewStore) {
  TemporaryDirectory directory;
  const auto path = directory.file("s.db");
  fill(path, 3);
  std::filesystem::resize_file(path, 0);
  const auto error = open_error(path);
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_NE(error.message.find("revision 3 had been acknowledged"), std::string::npos) << error.message;
  EXPECT_EQ(std::filesystem::file_size(path), 0U);
  std::filesystem::remove(path + ".lock");
  EXPECT_EQ(open_or_fail(path)->state().last_revision, 0) << "as the message says";
}

TEST(SqliteStore, WhatWasNotSyncedMayBeLostWithoutAWord) {
  TemporaryDirectory directory, killed;
  fill(directory.file("s.db"), 3);
  auto store = open_or_fail(directory.file("s.db"));
  ASSERT_TRUE(store->commit(std::vector{put(4)}, false).has_value());
  copy_store(directory, killed);
  std::filesystem::remove(killed.file("s.db-wal"));
  EXPECT_EQ(open_or_fail(killed.file("s.db"))->state().last_revision, 3);
}

/// As if the machine had been started anew since.
void start_machine(const std::string& path) {
  std::string note = content(path + ".lock");
  const auto at = note.find("boot ");
  ASSERT_NE(at, std::string::npos) << note;
  std::ofstream(path + ".lock", std::ios::binary) << note.replace(at, std::string::npos, "boot an-earlier-one\n");
}

/// Somebody may have been told of what was lost, and watch from there.
TEST(SqliteStore, NoRevisionIsGivenAgainOnceTheMachineWasStartedAnew) {
  TemporaryDirectory directory, killed;
  fill(directory.file("s.db"), 3);
  auto store = open_or_fail(directory.file("s.db"));
  for (Revision told = 4; told <= 9; ++told) ASSERT_TRUE(store->commit(std::vector{put(told)}, false).has_value());
  copy_store(directory, killed);
  std::filesystem::remove(killed.file("s.db-wal"));
  const auto path = killed.file("s.db");
  start_machine(path);
  const auto state = open_or_fail(path)->state();
  EXPECT_GT(state.last_revision, 9);
  EXPECT_GE(state.compacted_revision, 9) << "who goes on from there has to list anew";
  auto again = open_or_fail(path);
  EXPECT_EQ(again->state().last_revision, state.last_revision) << "once a boot";
  int read = 0;
  ASSERT_TRUE(again->read(0, [&](Record) -> Result<void> { return ++read, Result<void>(); }));
  EXPECT_EQ(read, 3);
  ASSERT_TRUE(again->commit(std::vector{put(state.last_revision + 1)}, true).has_value());
  again.reset();
  again = open_or_fail(path);
  EXPECT_TRUE(again->read(0, [&](Record) -> Result<void> { return {}; }));
  EXPECT_EQ(again->state().last_revision, state.last_revision + 1);
}

/// Who loads the log counts on it: what is not after the compacted revision supersedes nothing any more.
TEST(SqliteStore, WhatWasSupersededBeforeTheGapIsGone) {
  TemporaryDirectory directory;
  const auto path = directory.file("s.db");
  {
    auto store = open_or_fail(path);
    Record second = put(2);
    second.key = put(1).key;
    second.create_revision = second.previous_revision = 1;
    ASSERT_TRUE(store->commit(std::vector{put(1), second}, true).has_value());
  }
  start_machine(path);
  std::vector<Revision> read;
  ASSERT_TRUE(
      open_or_fail(path)->read(0, [&](const Record& record) -> Result<void> { return read.push_back(record.revision), Result<void>(); }));
  EXPECT_EQ(read, std::vector<Revision>{2});
}

TEST(SqliteStore, AFullDiskAfterAStartOfTheMachineIsReadAndTheNextStartLeavesTheGap) {
  TemporaryDirectory directory;
  PowerLossDisk disk(directory.file(""));
  const auto path = directory.file("s.db");
  {
    auto store = open_or_fail(path);
    for (Revision revision = 1; revision <= 3; ++revision) ASSERT_TRUE(store->commit(std::vector{put(revision)}, true).has_value());
  }
  start_machine(path);
  disk.failing_writes = 1 << 30;
  Revision next = 0;
  {
    auto store = open_or_fail(path);
    ASSERT_NE(store, nullptr);
    next = store->state().last_revision + 1;
    EXPECT_EQ(next, 4);
    int read = 0;
    ASSERT_TRUE(store->read(0, [&](const Record&) -> Result<void> { return ++read, Result<void>(); }));
    EXPECT_EQ(read, 3);
    EXPECT_FALSE(store->commit(std::vector{put(next)}, true));
    disk.failing_writes = 0;
    EXPECT_TRUE(store->commit(std::vector{put(next)}, true));
  }
  // What could not be done is done now, once.
  Revision last = 0;
  {
    const auto state = open_or_fail(path)->state();
    EXPECT_GT(state.last_revision, next + 1000);
    EXPECT_EQ(state.compacted_revision, state.last_revision);
    last = state.last_revision;
  }
  EXPECT_EQ(open_or_fail(path)->state().last_revision, last);
}

/// As after half a million heartbeats, which the gap has to be wider than.
TEST(SqliteStore, SoManyRevisionsDoNotWaitForASync) {
  TemporaryDirectory directory;
  const auto path = directory.file("s.db");
  fill(path, 3);
  start_machine(path);
  auto store = open_or_fail(path);
  const Revision next = store->state().last_revision + 1;
  const auto is_acknowledged = [&](Revision revision) {
    return content(path + ".lock").find(std::to_string(revision)) != std::string::npos;
  };
  ASSERT_TRUE(store->commit(std::vector{put(next)}, false).has_value());
  EXPECT_TRUE(is_acknowledged(next)) << content(path + ".lock");
  ASSERT_TRUE(store->commit(std::vector{put(next + 1)}, false).has_value());
  EXPECT_FALSE(is_acknowledged(next + 1)) << content(path + ".lock");
}

TEST(SqliteStore, AKilledProcessLeavesNoGap) {
  TemporaryDirectory directory, killed;
  fill(directory.file("s.db"), 3);
  auto store = open_or_fail(directory.file("s.db"));
  ASSERT_TRUE(store->commit(std::vector{put(4)}, false).has_value());
  copy_store(directory, killed);
  EXPECT_EQ(open_or_fail(killed.file("s.db"))->state().last_revision, 4);
}

TEST(SqliteStore, EveryDamagedPageIsNoticed) {
  TemporaryDirectory directory;
  auto path = directory.file("s.db");
  fill(path, 200);
  const std::string good = content(path);
  ASSERT_GT(good.size(), 16384U * 10);
  for (std::size_t page = 0; page < good.size() / 16384; ++page) {
    if (page == 0) continue;  // The header page's unused bytes may differ without harm; its used ones are tested above.
    std::string bad = good;
    // In the middle of the page, where rows lie.
    for (std::size_t i = 0; i < 64; ++i) bad[page * 16384 + 9000 + i] = static_cast<char>(~bad[page * 16384 + 9000 + i]);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bad;
    auto error = first_error(path);
    if (!error) {
      // Only pages without rows there (the inner page of the tree, the small tables) may pass, and then nothing read differs.
      auto store = open_or_fail(path);
      Revision expected = 0;
      ASSERT_TRUE(store
                      ->read(0,
                             [&](Record record) -> Result<void> {
                               EXPECT_EQ(*record.value, *put(++expected).value);
                               return {};
                             })
                      .has_value());
      EXPECT_EQ(expected, 200);
      continue;
    }
    EXPECT_EQ(error->code, ErrorCode::kCorrupt) << error->message;
    EXPECT_NE(error->message.find(path), std::string::npos);
  }
}

TEST(SqliteStore, TruncatedFileIsNoticed) {
  TemporaryDirectory directory;
  auto path = directory.file("s.db");
  fill(path, 200);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  auto error = first_error(path);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kCorrupt) << error->message;
}

TEST(SqliteStore, MissingRowIsNoticed) {
  TemporaryDirectory directory;
  auto path = directory.file("s.db");
  fill(path, 20);
  run_sql(path, "DELETE FROM log WHERE revision = 7");
  auto error = first_error(path);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kCorrupt);
  EXPECT_NE(error->message.find("revision 7 is missing"), std::string::npos) << error->message;
}

/// How often SQLite has begun this log anew: four bytes of its header.
std::string log_generation(const std::string& path) {
  std::ifstream log(path + "-wal", std::ios::binary);
  std::string generation(4, '\0');
  log.seekg(12);
  log.read(generation.data(), 4);
  return generation;
}

TEST(SqliteStore, LogIsCheckpointedUnderLoadAndStaysBounded) {
  TemporaryDirectory directory;
  auto path = directory.file("s.db");
  auto store = open_or_fail(path);
  Revision revision = 0;
  std::uintmax_t largest = 0;
  std::string seen;
  for (int round = 0; round < 400; ++round) {
    std::vector<Record> records;
    for (int i = 0; i < 64; ++i) records.push_back(put(++revision, 8000));
    ASSERT_TRUE(store->commit(records, false).has_value());
    if (round == 0) seen = log_generation(path);
    if (round % 100 == 99) {
      // The checkpointer waits for the disk, which others may have for a long time; commits do not.
      for (int tries = 0; tries < 24'000 && log_generation(path) == seen; ++tries) {
        ASSERT_TRUE(store->commit(std::vector<Record>{put(++revision, 10)}, false).has_value());
        ::poll(nullptr, 0, 25);
      }
      seen = log_generation(path);
    }
    largest = std::max(largest, std::filesystem::file_size(path + "-wal"));
  }
  // 400 * 64 * 8 KiB are 200 MiB of rows.
  EXPECT_LT(largest, 180U << 20);
  EXPECT_GT(std::filesystem::file_size(path), 16U << 20);
}

/// The child commits batches and reports each acknowledged last revision through the pipe until it is killed.
[[noreturn]] void write_until_killed(const std::string& path, int pipe) {
  auto store = open_sqlite_store({.path = path});
  if (!store) ::_exit(3);
  Revision revision = (*store)->state().last_revision;
  for (int batch = 1;; batch = batch % 40 + 1) {
    std::vector<Record> records;
    for (int i = 0; i < batch; ++i) records.push_back(put(++revision, 2000));
    if (!(*store)->commit(records, batch % 3 != 0)) ::_exit(4);
    if (::write(pipe, &revision, sizeof revision) != sizeof revision) ::_exit(5);
  }
}

/// BERTH_KILL_ROUNDS sets the number of rounds (`make kill-test`: 200).
TEST(SqliteStore, KilledProcessLosesNothingAcknowledged) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a process of several threads does not live on in a fork under the thread sanitizer";
#endif
  TemporaryDirectory directory;
  auto path = directory.file("s.db");
  std::mt19937 random(7);
  Revision acknowledged = 0;
  const char* rounds_text = std::getenv("BERTH_KILL_ROUNDS");
  const int rounds = rounds_text != nullptr ? std::atoi(rounds_text) : 8;
  for (int round = 0; round < rounds; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    pid_t child = ::fork();
    if (child == 0) write_until_killed(path, ends[1]);
    ::close(ends[1]);
    Revision revision = 0;
    auto wanted = 5 + random() % (rounds > 20 ? 20 : 200);  // Many rounds keep the file small: each reads all of it.
    for (std::size_t seen = 0; seen < wanted && ::read(ends[0], &revision, sizeof revision) == sizeof revision; ++seen)
      acknowledged = revision;
    ::kill(child, SIGKILL);
    while (::read(ends[0], &revision, sizeof revision) == sizeof revision) acknowledged = revision;
    ::close(ends[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);

    auto store = open_or_fail(path);
    EXPECT_GE(store->state().last_revision, acknowledged);
    Revision expected = 0;
    auto read = store->read(0, [&](Record record) -> Result<void> {
      EXPECT_EQ(record.revision, ++expected);
      EXPECT_EQ(*record.value, *put(expected, 2000).value);
      return {};
    });
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(expected, store->state().last_revision);
  }
}

std::size_t open_files() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

TEST(SqliteStore, GivesItsFilesBack) {
  TemporaryDirectory directory;
  fill(directory.file("s.db"), 3);
  const auto before = open_files();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(first_error(directory.file("s.db")));
  EXPECT_EQ(open_files(), before);
}

TEST(SqliteStore, AFileThatOthersCouldReadIsRestrictedToItsOwner) {
  TemporaryDirectory directory;
  fill(directory.file("s.db"), 3);
  ASSERT_EQ(::chmod(directory.file("s.db").c_str(), 0644), 0);
  EXPECT_FALSE(first_error(directory.file("s.db")));
  struct stat info {};
  ASSERT_EQ(::stat(directory.file("s.db").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

/// Whoever has the store open sees when rows go from under it.
TEST(SqliteStore, AMissingEndIsNoticedByWhoReads) {
  TemporaryDirectory directory;
  fill(directory.file("s.db"), 5);
  auto store = open_or_fail(directory.file("s.db"));
  ASSERT_EQ(store->state().last_revision, 5);
  run_sql(directory.file("s.db"), "DELETE FROM log WHERE revision > 3");
  const auto read = store->read(0, [](Record) -> Result<void> { return {}; });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(read.error().message.find("the records after revision 3 are missing"), std::string::npos) << read.error().message;
}

/// The kernel's own word (mincore) for most of the file.
bool mostly_in_memory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  EXPECT_EQ(::fstat(fd, &info), 0);
  const auto size = static_cast<std::size_t>(info.st_size);
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  std::vector<unsigned char> pages((size + 4095) / 4096);
  EXPECT_EQ(::mincore(mapped, size, pages.data()), 0);
  ::munmap(mapped, size);
  ::close(fd);
  return 2 * std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; }) > std::ssize(pages);
}

TEST(SqliteStore, WhatIsInMemoryIsKnown) {
  TemporaryDirectory directory;
  const std::string path = directory.file("s.db");
  EXPECT_FALSE(sqlite::is_in_memory(path)) << "there is none";
  std::ofstream(path) << std::string(4 << 20, 'x');
  char byte;
  iovec one{&byte, 1};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool can_tell = ::preadv2(fd, &one, 1, 0, RWF_NOWAIT) == 1;
  EXPECT_EQ(sqlite::is_in_memory(path), can_tell && mostly_in_memory(path));
  ::fsync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  EXPECT_EQ(sqlite::is_in_memory(path), can_tell && mostly_in_memory(path));
  ::close(fd);
}

TEST(SqliteStore, ReadingAheadEndsWithTheReaderWhereverHeIs) {
  TemporaryDirectory directory;
  const std::string path = directory.file("s.db");
  constexpr Revision kLast = 110'000;
  fill(path, 0);
  const auto store = open_or_fail(path);
  std::vector<Record> records;
  for (Revision r = 1; r <= kLast; ++r) records.push_back(put(r, 10));
  ASSERT_TRUE(store->commit(records, false));
  for (const Revision stop : {kLast, kLast / 2, Revision{0}}) {
    auto own = sqlite::open(path);
    ASSERT_TRUE(own);
    sqlite::ReadAhead ahead(std::move(*own), path, kLast);
    Revision reached = 0;
    const auto read = store->read_back([](const RecordHead&) { return true; },
                                       [&](const Record& record) -> Result<void> {
                                         ahead.reached(reached = record.revision);
                                         return reached == stop ? fail(ErrorCode::kInternal, "enough") : Result<void>();
                                       });
    EXPECT_EQ(read.has_value(), stop == 0);
    EXPECT_EQ(reached, std::max<Revision>(stop, 1)) << "nobody is in its way";
  }
}

TEST(SqliteStore, WhatIsReadBackIsWholeWhereItIsLookedAt) {
  const auto read_back = [](const std::string& path, Revision unwanted) {
    return open_or_fail(path)->read_back([&](const RecordHead& head) { return head.revision != unwanted; },
                                         [](const Record&) -> Result<void> { return {}; });
  };
  for (const Revision gone : {1, 3, 4}) {
    TemporaryDirectory directory;
    fill(directory.file("s.db"), 5);
    run_sql(directory.file("s.db"), fmt::format("DELETE FROM log WHERE revision = {}", gone).c_str());
    const auto read = read_back(directory.file("s.db"), 0);
    ASSERT_FALSE(read) << gone;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(read.error().message.find(fmt::format("revision {} is missing", gone)), std::string::npos) << read.error().message;
  }
  TemporaryDirectory directory;
  fill(directory.file("s.db"), 5);
  run_sql(directory.file("s.db"), "UPDATE log SET value = 'another' WHERE revision = 2");
  const auto read = read_back(directory.file("s.db"), 0);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("the record of revision 2 is damaged"), std::string::npos) << read.error().message;
  EXPECT_TRUE(read_back(directory.file("s.db"), 2)) << "nobody asked for it";
  auto store = open_or_fail(directory.file("s.db"));
  run_sql(directory.file("s.db"), "DELETE FROM log WHERE revision > 3");
  EXPECT_FALSE(store->read_back([](const RecordHead&) { return false; }, [](const Record&) -> Result<void> { return {}; }));
}

TEST(SqliteStore, AReadFromTheEndIsInOrder) {
  TemporaryDirectory directory;
  fill(directory.file("s.db"), 5);
  auto store = open_or_fail(directory.file("s.db"));
  int records = 0;
  for (const Revision after : {3, 5, 9}) {
    const auto read = store->read(after, [&](Record) -> Result<void> {
      ++records;
      return {};
    });
    EXPECT_TRUE(read) << after << ": " << read.error().message;
  }
  EXPECT_EQ(records, 2);
}

}  // namespace
}  // namespace berth::store
