#include "store/sqlite/sqlite_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "base/mutex.h"
#include "store/sqlite/read_ahead.h"

namespace berth::store::sqlite {
namespace {

constexpr std::int64_t kFormatVersion = 1;  // PRAGMA user_version. A higher one was written by a newer berth.
constexpr int kPageBytes = 16384;           // About seven pods a page; a small one wastes up to half a page on rows of 2 KiB.
constexpr int kCheckpointFrames = 2048;     // 32 MiB of log start a checkpoint …
constexpr int kNearlyDoneFrames = 256;      // … and at most 4 MiB of rest are left to a commit.
constexpr std::uintmax_t kQuickCheckBytes = 64 << 20;
constexpr std::uintmax_t kReadAheadBytes = 256 << 20;  // Above, a file is worth a thread that reads ahead.
constexpr Revision kCompactionSlice = 2000;
constexpr Revision kGap = 1 << 20;            // What a power failure takes is less than this:
constexpr Revision kMostUnsynced = kGap / 2;  // so many revisions at most wait for a sync.

constexpr const char* kSchema =
    "CREATE TABLE log(revision INTEGER PRIMARY KEY, create_revision INTEGER NOT NULL, previous_revision INTEGER NOT NULL,"
    " checksum INTEGER NOT NULL, key TEXT NOT NULL, value TEXT);"
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO meta VALUES('compacted_revision', 0);";

constexpr std::string_view kRecords = "SELECT revision, create_revision, previous_revision, checksum, key, value FROM log";

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  auto product = static_cast<unsigned __int128>(a ^ 0x9e3779b97f4a7c15ULL) * (b ^ 0xd6e8feb86659fd93ULL);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t mix_text(std::uint64_t hash, std::string_view text) {
  hash = mix(hash, text.size());
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= 16; at += 16, left -= 16) {
    std::uint64_t words[2];
    std::memcpy(words, at, 16);
    hash = mix(hash ^ words[0], words[1]);
  }
  std::uint64_t tail[2] = {};
  std::memcpy(tail, at, left);
  return mix(hash ^ tail[0], tail[1]);
}

std::string_view column_view(sqlite3_stmt* statement, int column) {
  const auto* text = static_cast<const char*>(sqlite3_column_blob(statement, column));
  return {text == nullptr ? "" : text, static_cast<std::size_t>(sqlite3_column_bytes(statement, column))};
}

/// Makes the file when it is missing, readable by its owner alone, and the entry in its directory durable.
Result<void> make_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return fail(ErrorCode::kInvalid, fmt::format("{}: cannot open the store: {}", path, std::strerror(errno)));
  struct stat info {};
  bool private_file = ::fstat(fd, &info) == 0 && (info.st_mode & 0077) == 0;
  if (!private_file && ::fchmod(fd, 0600) != 0)
    log::warning("store", "{}: cannot restrict the file to its owner: {}", path, std::strerror(errno));
  ::close(fd);
  auto directory = std::filesystem::path(path).parent_path();
  int directory_fd = ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory_fd >= 0) {
    ::fsync(directory_fd);
    ::close(directory_fd);
  }
  return {};
}

/// True when there is nothing in the file yet. An empty file beside a log with content is not new but lost.
Result<bool> is_new(const std::string& path) {
  std::error_code none;
  auto bytes = std::filesystem::file_size(path, none);
  if (none || bytes > 0) return false;
  auto log_bytes = std::filesystem::file_size(path + "-wal", none);
  if (!none && log_bytes > 0) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: the store's file is missing or empty, but its log {}-wal is there. Nothing was changed. "
                            "Put the file back, or move the log away to start with an empty store.",
                            path, path));
  }
  return true;
}

Error lost_writes(const std::string& path, Revision last, Revision acknowledged) {
  return {ErrorCode::kCorrupt,
          fmt::format("{}: the store ends at revision {}, but revision {} had been acknowledged: its log {}-wal is missing, or an older or "
                      "an empty file stands in its place. Nothing was changed. Put the right files back, or remove {}.lock to go on with "
                      "what is there.",
                      path, last, acknowledged, path, path)};
}

Result<void> initialize(sqlite3* db, const std::string& path) {
  std::string setup = fmt::format("PRAGMA page_size={};", kPageBytes);
  if (auto ok = execute(db, path, setup.c_str()); !ok) return ok;
  // One transaction: a crash leaves either an empty file or a complete one.
  std::string create =
      fmt::format("BEGIN IMMEDIATE; {} PRAGMA application_id={}; PRAGMA user_version={}; COMMIT;", kSchema, kApplicationId, kFormatVersion);
  return execute(db, path, create.c_str());
}

Result<void> check_format(sqlite3* db, const std::string& path) {
  auto application = query_number(db, path, "PRAGMA application_id");
  if (!application) return std::unexpected(application.error());
  auto version = query_number(db, path, "PRAGMA user_version");
  if (!version) return std::unexpected(version.error());
  auto tables = query_number(db, path, "SELECT count(*) FROM sqlite_schema");
  if (!tables) return std::unexpected(tables.error());
  if (*application == 0 && *version == 0 && *tables == 0) return initialize(db, path);
  if (*application != kApplicationId) {
    return fail(ErrorCode::kCorrupt, fmt::format("{}: this is an SQLite file, but not a store of berth's. Nothing was changed.", path));
  }
  if (*version > kFormatVersion) {
    return fail(ErrorCode::kCorrupt, fmt::format("{}: the store has format {}, written by a newer berth; this one knows formats up to {}. "
                                                 "Nothing was changed. Use the newer berth.",
                                                 path, *version, kFormatVersion));
  }
  if (*version < 1 || *tables < 2)
    return fail(ErrorCode::kCorrupt, fmt::format("{}: the store's format marker is damaged. Nothing was changed.", path));
  return {};
}

/// Walks the whole structure of small files; large ones are verified row by row when they are read.
Result<void> quick_check(sqlite3* db, const std::string& path) {
  std::error_code none;
  if (std::filesystem::file_size(path, none) > kQuickCheckBytes || none) return {};
  auto verdict = query_text(db, path, "PRAGMA quick_check(1)");
  if (!verdict) return std::unexpected(verdict.error());
  if (*verdict == "ok") return {};
  return fail(ErrorCode::kCorrupt,
              fmt::format("{}: the store's file is damaged ({}). Nothing was changed. Restore it from a backup, or salvage "
                          "what is readable with `sqlite3 {} .recover`.",
                          path, *verdict, path));
}

}  // namespace

std::int64_t record_checksum(const Record& record) {
  std::uint64_t hash = mix(static_cast<std::uint64_t>(record.revision), static_cast<std::uint64_t>(record.create_revision));
  hash = mix(hash, static_cast<std::uint64_t>(record.previous_revision));
  hash = mix_text(hash, record.key);
  hash = record.value == nullptr ? mix(hash, 1) : mix_text(mix(hash, 2), *record.value);
  return static_cast<std::int64_t>(hash);
}

Result<std::unique_ptr<Store>> SqliteStore::open(const SqliteOptions& options) {
  auto lock = FileLock::take(options.path + ".lock", options.path);
  if (!lock) return std::unexpected(lock.error());
  if (auto ok = make_file(options.path); !ok) return std::unexpected(ok.error());
  auto fresh = is_new(options.path);
  if (!fresh) return std::unexpected(fresh.error());
  if (*fresh && lock->acknowledged() > 0) return std::unexpected(lost_writes(options.path, 0, lock->acknowledged()));
  auto db = sqlite::open(options.path);
  if (!db) return std::unexpected(db.error());
  if (auto ok = check_format(db->get(), options.path); !ok) return std::unexpected(ok.error());
  if (auto ok = quick_check(db->get(), options.path); !ok) return std::unexpected(ok.error());
  auto mode = query_text(db->get(), options.path, "PRAGMA journal_mode=WAL");
  if (!mode) return std::unexpected(mode.error());
  if (*mode != "wal")
    return fail(ErrorCode::kInvalid, fmt::format("{}: the file system does not support SQLite's write-ahead log", options.path));
  auto ok = execute(db->get(), options.path,
                    "PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=134217728; PRAGMA cache_size=-16384; PRAGMA synchronous=NORMAL;"
                    "PRAGMA temp_store=MEMORY; PRAGMA cell_size_check=ON;");
  if (!ok) return std::unexpected(ok.error());
  auto checkpoint_db = sqlite::open(options.path);
  if (!checkpoint_db) return std::unexpected(checkpoint_db.error());
  if (auto set = execute(checkpoint_db->get(), options.path, "PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=-1024;"); !set)
    return std::unexpected(set.error());

  std::unique_ptr<SqliteStore> store(new SqliteStore(options, std::move(*lock), std::move(*db)));
  if (auto prepared = store->prepare_statements(); !prepared) return std::unexpected(prepared.error());
  if (auto loaded = store->load_state(); !loaded) return std::unexpected(loaded.error());
  if (auto left = store->leave_gap(); !left) return std::unexpected(left.error());
  store->start_checkpointer(std::move(*checkpoint_db));
  return store;
}

SqliteStore::SqliteStore(SqliteOptions options, FileLock lock, Database db)
    : options_(std::move(options)), lock_(std::move(lock)), db_(std::move(db)) {}

SqliteStore::~SqliteStore() {
  {
    MutexLock lock(checkpoint_mutex_);
    stopping_ = true;
  }
  checkpoint_wake_.notify_all();
  if (checkpointer_.joinable()) checkpointer_.join();
}

Result<void> SqliteStore::prepare_statements() {
  struct Wanted {
    Statement* statement;
    std::string_view sql;
  };
  const Wanted wanted[] = {
      {&begin_, "BEGIN IMMEDIATE"},
      {&commit_, "COMMIT"},
      {&rollback_, "ROLLBACK"},
      {&insert_, "INSERT INTO log(revision, create_revision, previous_revision, checksum, key, value) VALUES(?, ?, ?, ?, ?, ?)"},
      {&delete_, "DELETE FROM log WHERE revision BETWEEN ? AND ?"},
      {&select_slice_, "SELECT revision, previous_revision, value IS NULL FROM log WHERE revision > ? AND revision <= ?"},
      {&set_compacted_, "UPDATE meta SET value = ? WHERE name = 'compacted_revision'"},
  };
  for (const Wanted& w : wanted) {
    auto statement = prepare(db_.get(), options_.path, w.sql);
    if (!statement) return std::unexpected(statement.error());
    *w.statement = std::move(*statement);
  }
  return {};
}

Result<void> SqliteStore::load_state() {
  auto compacted = query_number(db_.get(), options_.path, "SELECT value FROM meta WHERE name = 'compacted_revision'");
  if (!compacted) return std::unexpected(compacted.error());
  auto last = query_number(db_.get(), options_.path, "SELECT max(revision) FROM log");
  if (!last) return std::unexpected(last.error());
  state_.compacted_revision = *compacted;
  // The last record may have been a tombstone that compaction took away.
  state_.last_revision = std::max(*last, *compacted);
  if (state_.last_revision < lock_.acknowledged())
    return std::unexpected(lost_writes(options_.path, state_.last_revision, lock_.acknowledged()));
  return {};
}

/// What had not been synced when the machine ended had been told all the same: somebody may watch from a revision that was lost. None is
/// given a second time, and what is older than the gap counts as compacted, so that whoever goes on from there lists anew. A full disk
/// keeps nobody from reading: then the next start does it.
Result<void> SqliteStore::leave_gap() {
  const Revision last = state_.last_revision;
  if (last > 0 && lock_.was_of_earlier_boot()) {
    if (auto written = write_gap(last); !written)
      return written.error().code == ErrorCode::kUnavailable ? Result<void>() : std::unexpected(written.error());
    state_.last_revision = state_.compacted_revision = last + kGap;
  }
  lock_.note_boot();
  return {};
}

Result<void> SqliteStore::write_gap(Revision last) {
  if (auto ok = compact(last); !ok) return ok;
  if (auto ok = set_sync(options_.full_sync); !ok) return ok;
  return transaction([&]() -> Result<void> {
    sqlite3_bind_int64(set_compacted_.get(), 1, last + kGap);
    return step_once(set_compacted_.get(), "leaving a gap");
  });
}

Result<void> SqliteStore::commit(std::span<const Record> records, bool sync) {
  Revision next = state_.last_revision;
  for (const Record& record : records) {
    if (record.revision != ++next) {
      return fail(ErrorCode::kConflict,
                  fmt::format("{}: revision {} does not follow the store's last revision {}", options_.path, record.revision, next - 1));
    }
  }
  if (records.empty()) return {};
  sync = sync || next - lock_.acknowledged() > kMostUnsynced;
  finish_checkpoint();
  if (auto ok = set_sync(sync && options_.full_sync); !ok) return ok;
  auto done = transaction([&]() -> Result<void> {
    for (const Record& record : records) {
      if (auto ok = insert(record); !ok) return ok;
    }
    return {};
  });
  if (!done) return done;
  state_.last_revision = next;
  // What was not synced may be lost in order.
  if (sync && options_.full_sync) lock_.acknowledge(next);
  return {};
}

Result<void> SqliteStore::insert(const Record& record) {
  sqlite3_stmt* s = insert_.get();
  sqlite3_bind_int64(s, 1, record.revision);
  sqlite3_bind_int64(s, 2, record.create_revision);
  sqlite3_bind_int64(s, 3, record.previous_revision);
  sqlite3_bind_int64(s, 4, record_checksum(record));
  sqlite3_bind_text(s, 5, record.key.data(), static_cast<int>(record.key.size()), SQLITE_STATIC);
  if (record.value == nullptr) {
    sqlite3_bind_null(s, 6);
  } else {
    sqlite3_bind_text(s, 6, record.value->data(), static_cast<int>(record.value->size()), SQLITE_STATIC);
  }
  return step_once(s, "writing");
}

Result<void> SqliteStore::probe() {
  finish_checkpoint();
  if (auto ok = set_sync(options_.full_sync); !ok) return ok;
  // What is as it was is not written: another value goes before it.
  return transaction([&]() -> Result<void> {
    for (const Revision value : {state_.compacted_revision + 1, state_.compacted_revision}) {
      sqlite3_bind_int64(set_compacted_.get(), 1, value);
      if (auto ok = step_once(set_compacted_.get(), "writing"); !ok) return ok;
    }
    return {};
  });
}

Result<void> SqliteStore::transaction(const std::function<Result<void>()>& body) {
  auto done = step_once(begin_.get(), "beginning a transaction");
  if (done) done = body();
  if (done) done = step_once(commit_.get(), "committing");
  // A failed statement may or may not have ended the transaction already.
  if (!done && sqlite3_get_autocommit(db_.get()) == 0) (void)step_once(rollback_.get(), "rolling back");
  return done;
}

Result<void> SqliteStore::step_once(sqlite3_stmt* statement, std::string_view what) {
  int code = sqlite3_step(statement);
  if (code == SQLITE_DONE || code == SQLITE_ROW) {
    sqlite3_reset(statement);
    return {};
  }
  Error error = (code & 0xff) == SQLITE_CONSTRAINT
                    ? Error{ErrorCode::kConflict,
                            fmt::format("{}: {}: another writer changed the store ({})", options_.path, what, sqlite3_errmsg(db_.get()))}
                    : describe(db_.get(), code, options_.path, what);
  sqlite3_reset(statement);
  return std::unexpected(std::move(error));
}

Result<void> SqliteStore::set_sync(bool sync) {
  if (sync == syncing_) return {};
  // In WAL mode NORMAL leaves out the sync at commit; the next commit under FULL syncs the same log and with it all that came before.
  if (auto ok = execute(db_.get(), options_.path, sync ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL"); !ok) return ok;
  syncing_ = sync;
  return {};
}

Result<void> SqliteStore::for_each_row(sqlite3_stmt* statement, const std::function<Result<void>()>& each) {
  for (;;) {
    const int code = sqlite3_step(statement);
    if (code == SQLITE_DONE) return {};
    if (code != SQLITE_ROW) return std::unexpected(describe(db_.get(), code, options_.path, "reading"));
    if (auto ok = each(); !ok) return ok;
  }
}

/// Of a row of kRecords, whole.
Result<Record> SqliteStore::record_of(sqlite3_stmt* row) const {
  Record record{.revision = sqlite3_column_int64(row, 0),
                .create_revision = sqlite3_column_int64(row, 1),
                .previous_revision = sqlite3_column_int64(row, 2)};
  record.key = column_view(row, 4);
  if (sqlite3_column_type(row, 5) != SQLITE_NULL) record.value = make_bytes(std::string(column_view(row, 5)));
  if (record_checksum(record) == sqlite3_column_int64(row, 3)) return record;
  return fail(ErrorCode::kCorrupt, fmt::format("{}: the record of revision {} is damaged (its checksum does not fit). Nothing was changed. "
                                               "Restore the file from a backup.",
                                               options_.path, record.revision));
}

Error SqliteStore::missing(Revision revision) const {
  return {ErrorCode::kCorrupt,
          fmt::format("{}: revision {} is missing. Nothing was changed. Restore the file from a backup.", options_.path, revision)};
}

Result<void> SqliteStore::read(Revision after, const std::function<Result<void>(Record)>& each) {
  auto select = prepare(db_.get(), options_.path, fmt::format("{} WHERE revision > ? ORDER BY revision", kRecords));
  if (!select) return std::unexpected(select.error());
  sqlite3_stmt* s = select->get();
  sqlite3_bind_int64(s, 1, after);
  Revision last = std::max(after, state_.compacted_revision);
  auto done = for_each_row(s, [&]() -> Result<void> {
    auto record = record_of(s);
    if (!record) return std::unexpected(record.error());
    if (record->revision > state_.compacted_revision && record->revision != ++last) return std::unexpected(missing(last));
    return each(std::move(*record));
  });
  if (done && last != std::max(after, state_.last_revision)) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: the records after revision {} are missing. Nothing was changed.", options_.path, last));
  }
  return done;
}

Result<void> SqliteStore::read_back(const std::function<bool(const RecordHead&)>& wants, const std::function<Result<void>(Record)>& each) {
  auto select = prepare(db_.get(), options_.path, fmt::format("{} ORDER BY revision DESC", kRecords));
  if (!select) return std::unexpected(select.error());
  std::optional<ReadAhead> ahead;
  std::error_code none;
  if (std::filesystem::file_size(options_.path, none) > kReadAheadBytes && !none && !is_in_memory(options_.path))
    if (auto own_connection = sqlite::open(options_.path)) ahead.emplace(std::move(*own_connection), options_.path, state_.last_revision);
  sqlite3_stmt* s = select->get();
  Revision next = state_.last_revision;  // Of those that are not compacted each is there.
  auto done = for_each_row(s, [&]() -> Result<void> {
    const RecordHead head{sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 2), column_view(s, 4),
                          sqlite3_column_type(s, 5) == SQLITE_NULL};
    if (next > state_.compacted_revision && head.revision != next) return std::unexpected(missing(next));
    next = head.revision - 1;
    if (ahead) ahead->reached(head.revision);
    if (!wants(head)) return {};
    auto record = record_of(s);
    if (!record) return std::unexpected(record.error());
    return each(std::move(*record));
  });
  if (done && next > state_.compacted_revision) return std::unexpected(missing(next));
  return done;
}

Result<void> SqliteStore::compact(Revision revision) {
  revision = std::min(revision, state_.last_revision);
  while (state_.compacted_revision < revision) {
    Revision until = std::min(revision, state_.compacted_revision + kCompactionSlice);
    finish_checkpoint();
    // Compaction that a power loss undoes is done again: no reason to wait for the disk.
    if (auto ok = set_sync(false); !ok) return ok;
    if (auto ok = transaction([&] { return compact_slice(until); }); !ok) return ok;
    state_.compacted_revision = until;
  }
  return {};
}

Result<void> SqliteStore::compact_slice(Revision until) {
  std::vector<Revision> gone;
  sqlite3_stmt* s = select_slice_.get();
  sqlite3_bind_int64(s, 1, state_.compacted_revision);
  sqlite3_bind_int64(s, 2, until);
  int code;
  while ((code = sqlite3_step(s)) == SQLITE_ROW) {
    if (Revision previous = sqlite3_column_int64(s, 1); previous != 0) gone.push_back(previous);
    if (sqlite3_column_int64(s, 2) != 0) gone.push_back(sqlite3_column_int64(s, 0));
  }
  sqlite3_reset(s);
  if (code != SQLITE_DONE) return std::unexpected(describe(db_.get(), code, options_.path, "compacting"));
  std::sort(gone.begin(), gone.end());
  // What is written in turn is superseded in turn (heartbeats): a run of revisions goes at once.
  for (auto first = gone.begin(); first != gone.end();) {
    auto last = first;
    while (std::next(last) != gone.end() && *std::next(last) <= *last + 1) ++last;
    sqlite3_bind_int64(delete_.get(), 1, *first);
    sqlite3_bind_int64(delete_.get(), 2, *last);
    if (auto ok = step_once(delete_.get(), "compacting"); !ok) return ok;
    first = std::next(last);
  }
  sqlite3_bind_int64(set_compacted_.get(), 1, until);
  return step_once(set_compacted_.get(), "compacting");
}

void SqliteStore::start_checkpointer(Database own_connection) {
  sqlite3_wal_hook(
      db_.get(),
      [](void* self, sqlite3*, const char*, int frames) {
        auto* store = static_cast<SqliteStore*>(self);
        bool due;
        {
          MutexLock lock(store->checkpoint_mutex_);
          store->wal_frames_ = frames;
          due = frames >= kCheckpointFrames;
        }
        if (due) store->checkpoint_wake_.notify_one();
        return SQLITE_OK;
      },
      this);
  checkpointer_ = std::thread([this, db = std::move(own_connection)]() mutable { run_checkpointer(std::move(db)); });
}

void SqliteStore::run_checkpointer(Database own_connection) {
  MutexLock lock(checkpoint_mutex_);
  for (;;) {
    checkpoint_wake_.wait(checkpoint_mutex_, [&]() BERTH_REQUIRES(checkpoint_mutex_) {
      return stopping_ || (wal_frames_ >= kCheckpointFrames && !nearly_done_.load());
    });
    if (stopping_) return;
    lock.unlock();
    int frames = 0, copied = 0;
    int code = SQLITE_OK;
    // Commits go on meanwhile, so a second and third round copy what came during the one before.
    for (int round = 0; round < 4 && code == SQLITE_OK; ++round) {
      code = sqlite3_wal_checkpoint_v2(own_connection.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, &frames, &copied);
      if (frames - copied <= kNearlyDoneFrames) break;
    }
    // Errors show at the next commit or are gone at the next checkpoint: the log keeps everything meanwhile.
    if (code != SQLITE_OK && code != SQLITE_BUSY)
      log::warning("store", "{}: checkpoint: {}", options_.path, sqlite3_errmsg(own_connection.get()));
    lock.lock();
    wal_frames_ = 0;  // Until the next commit says how long the log is.
    if (code == SQLITE_OK && frames - copied <= kNearlyDoneFrames) nearly_done_.store(true);
  }
}

void SqliteStore::finish_checkpoint() {
  if (!nearly_done_.load(std::memory_order_relaxed)) return;
  // With nothing left to copy SQLite starts the log's file anew at the next write, and it stays small.
  (void)sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  MutexLock lock(checkpoint_mutex_);
  wal_frames_ = 0;
  nearly_done_.store(false);
}

}  // namespace berth::store::sqlite

namespace berth::store {

Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteOptions& options) { return sqlite::SqliteStore::open(options); }

}  // namespace berth::store
