#include "store/snapshot.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "store/sqlite/sqlite_store.h"

namespace berth::store {
namespace {

using sqlite::Database;
using sqlite::Statement;

constexpr std::int64_t kSnapshotId = 0x6272736e;           // "brsn": neither a store nor anybody else's file.
constexpr std::int64_t kOwnFormat = 1, kSharedFormat = 2;  // Both are read; what is of a store like ours stays readable for older ones.
constexpr std::int64_t kSnapshotFormat = kSharedFormat;

Result<Database> open_for_reading(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return fail(ErrorCode::kNotFound, fmt::format("{}: there is no such file", path));
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Database db(raw);
  if (code != SQLITE_OK) return std::unexpected(sqlite::describe(raw, code, path, "opening"));
  sqlite3_busy_timeout(raw, 5000);
  return db;
}

std::string text_column(sqlite3_stmt* statement, int column) {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
  return {bytes == nullptr ? "" : bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement, column))};
}

/// A file is checked as a record is.
std::int64_t file_checksum(const SnapshotFile& file) {
  return sqlite::record_checksum({file.mode, 0, 0, file.path, make_bytes(std::string(file.content))});
}

Result<void> for_each_row(sqlite3* db, const std::string& path, std::string_view sql,
                          const std::function<Result<void>(sqlite3_stmt*)>& each) {
  const auto statement = sqlite::prepare(db, path, sql);
  if (!statement) return std::unexpected(statement.error());
  for (;;) {
    const int code = sqlite3_step(statement->get());
    if (code == SQLITE_DONE) return {};
    if (code != SQLITE_ROW) return std::unexpected(sqlite::describe(db, code, path, "reading"));
    if (auto ok = each(statement->get()); !ok) return ok;
  }
}

Result<Record> record_of(sqlite3_stmt* row, const std::string& path) {
  Record record{.revision = sqlite3_column_int64(row, 0),
                .create_revision = sqlite3_column_int64(row, 1),
                .previous_revision = sqlite3_column_int64(row, 2),
                .key = text_column(row, 4),
                .value = nullptr};
  if (sqlite3_column_type(row, 5) != SQLITE_NULL) record.value = make_bytes(text_column(row, 5));
  if (sqlite::record_checksum(record) != sqlite3_column_int64(row, 3))
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: the record of revision {} is damaged: its checksum does not fit", path, record.revision));
  return record;
}

constexpr std::string_view kRecords =
    "SELECT revision, create_revision, previous_revision, checksum, key, value FROM log ORDER BY revision";

Result<void> expect_format(sqlite3* db, const std::string& path) {
  const auto application = sqlite::query_number(db, path, "PRAGMA application_id");
  if (!application) return std::unexpected(application.error());
  if (*application == sqlite::kApplicationId)
    return fail(ErrorCode::kInvalid, fmt::format("{}: this is a store, no snapshot: berth snapshot save makes one of it", path));
  if (*application != kSnapshotId)
    return fail(ErrorCode::kCorrupt, fmt::format("{}: this is no snapshot of berth's, or one that was not finished", path));
  const auto version = sqlite::query_number(db, path, "PRAGMA user_version");
  if (!version) return std::unexpected(version.error());
  if (*version > kSnapshotFormat)
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: the snapshot has format {}, written by a newer berth; this one knows formats up to {}", path, *version,
                            kSnapshotFormat));
  return {};
}

Result<void> step(sqlite3* db, const std::string& path, sqlite3_stmt* statement, std::string_view what) {
  const int code = sqlite3_step(statement);
  sqlite3_reset(statement);
  if (code == SQLITE_DONE) return {};
  return std::unexpected(sqlite::describe(db, code, path, what));
}

Result<void> note(sqlite3* db, const std::string& path, std::string_view name, std::string_view value) {
  const auto insert = sqlite::prepare(db, path, "INSERT INTO snapshot(name, value) VALUES(?, ?)");
  if (!insert) return std::unexpected(insert.error());
  sqlite3_bind_text(insert->get(), 1, name.data(), static_cast<int>(name.size()), SQLITE_STATIC);
  sqlite3_bind_text(insert->get(), 2, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
  return step(db, path, insert->get(), "writing");
}

Result<void> write_files(sqlite3* db, const std::string& path, const std::vector<SnapshotFile>& files) {
  const auto insert = sqlite::prepare(db, path, "INSERT INTO files(path, mode, checksum, content) VALUES(?, ?, ?, ?)");
  if (!insert) return std::unexpected(insert.error());
  for (const SnapshotFile& file : files) {
    sqlite3_bind_text(insert->get(), 1, file.path.data(), static_cast<int>(file.path.size()), SQLITE_STATIC);
    sqlite3_bind_int64(insert->get(), 2, file.mode);
    sqlite3_bind_int64(insert->get(), 3, file_checksum(file));
    sqlite3_bind_blob(insert->get(), 4, file.content.data(), static_cast<int>(file.content.size()), SQLITE_STATIC);
    if (auto ok = step(db, path, insert->get(), "writing"); !ok) return ok;
  }
  return {};
}

Result<void> read_files(sqlite3* db, const std::string& path, const std::function<Result<void>(SnapshotFile)>& each) {
  return for_each_row(db, path, "SELECT path, mode, checksum, content FROM files ORDER BY path", [&](sqlite3_stmt* row) -> Result<void> {
    SnapshotFile file{text_column(row, 0), static_cast<unsigned>(sqlite3_column_int64(row, 1)), text_column(row, 3)};
    if (file_checksum(file) != sqlite3_column_int64(row, 2))
      return fail(ErrorCode::kCorrupt, fmt::format("{}: the file {} in it is damaged: its checksum does not fit", path, file.path));
    return each(std::move(file));
  });
}

/// What is in the log is a snapshot once its marker says so, which is written last.
Result<SnapshotInfo> seal(sqlite3* db, const std::string& path, const SnapshotTaken& taken, SnapshotInfo info) {
  auto ok = sqlite::execute(
      db, path,
      "CREATE TABLE snapshot(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
      "CREATE TABLE files(path TEXT PRIMARY KEY, mode INTEGER NOT NULL, checksum INTEGER NOT NULL, content BLOB NOT NULL) WITHOUT ROWID;");
  if (ok) ok = write_files(db, path, taken.files);
  const auto objects = sqlite::query_number(db, path, "SELECT count(*) FROM log");
  if (!objects) return std::unexpected(objects.error());
  info.taken_at = taken.taken_at;
  info.version = taken.version;
  info.objects = *objects;
  for (const SnapshotFile& file : taken.files) info.files.push_back(file.path);
  for (const auto& [name, value] : {std::pair<std::string_view, std::string>("taken_at", taken.taken_at),
                                    {"version", taken.version},
                                    {"revision", std::to_string(info.revision)},
                                    {"objects", std::to_string(*objects)},
                                    {"files", std::to_string(taken.files.size())}})
    if (ok) ok = note(db, path, name, value);
  const bool is_shared = info.form == SnapshotForm::kShared;
  if (ok && is_shared) ok = note(db, path, "prefix", info.prefix);
  if (ok)
    ok = sqlite::execute(
        db, path,
        fmt::format("PRAGMA application_id={}; PRAGMA user_version={}; COMMIT", kSnapshotId, is_shared ? kSharedFormat : kOwnFormat)
            .c_str());
  if (!ok) return std::unexpected(ok.error());
  return info;
}

/// Superseded records and tombstones go.
Result<SnapshotInfo> finish(sqlite3* db, const std::string& path, const SnapshotTaken& taken) {
  const auto last = sqlite::query_number(
      db, path, "SELECT max(coalesce((SELECT max(revision) FROM log), 0), (SELECT value FROM meta WHERE name = 'compacted_revision'))");
  if (!last) return std::unexpected(last.error());
  if (auto ok = sqlite::execute(db, path, "BEGIN; DELETE FROM log WHERE revision IN (SELECT previous_revision FROM log) OR value IS NULL;");
      !ok)
    return std::unexpected(ok.error());
  SnapshotInfo info;
  info.revision = *last;
  return seal(db, path, taken, std::move(info));
}

Result<void> insert_record(sqlite3* db, const std::string& path, sqlite3_stmt* insert, const Record& record) {
  const std::int64_t numbers[] = {record.revision, record.create_revision, record.previous_revision, sqlite::record_checksum(record)};
  for (int i = 0; i < 4; ++i) sqlite3_bind_int64(insert, i + 1, numbers[i]);
  sqlite3_bind_text(insert, 5, record.key.data(), static_cast<int>(record.key.size()), SQLITE_STATIC);
  sqlite3_bind_blob(insert, 6, record.value->data(), static_cast<int>(record.value->size()), SQLITE_STATIC);
  return step(db, path, insert, "writing");
}

Result<SnapshotInfo> copy_shared(SharedStore& store, const std::string& prefix, const std::string& to, const SnapshotTaken& taken,
                                 const std::function<bool(std::string_view)>& leaves_out) {
  const auto db = sqlite::open(to);
  if (!db) return std::unexpected(db.error());
  // Until its marker is there it is no snapshot, and a failed one is removed: nothing is to be rolled back.
  if (auto ok = sqlite::execute(db->get(), to,
                                "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; CREATE TABLE log(revision INTEGER PRIMARY KEY,"
                                " create_revision INTEGER NOT NULL, previous_revision INTEGER NOT NULL, checksum INTEGER NOT NULL,"
                                " key TEXT NOT NULL, value TEXT); BEGIN");
      !ok)
    return std::unexpected(ok.error());
  const auto insert = sqlite::prepare(
      db->get(), to, "INSERT INTO log(revision, create_revision, previous_revision, checksum, key, value) VALUES(?, ?, ?, ?, ?, ?)");
  if (!insert) return std::unexpected(insert.error());
  Revision count = 0;
  const auto read = store.read([&](SharedRecord shared) -> Result<void> {
    std::string key = shared.key.substr(prefix.size());
    if (leaves_out(key)) return {};
    return insert_record(db->get(), to, insert->get(),
                         {++count, shared.create_revision, shared.revision, std::move(key), std::move(shared.value)});
  });
  if (!read) return std::unexpected(read.error());
  SnapshotInfo info;
  info.revision = *read;
  info.form = SnapshotForm::kShared;
  info.prefix = prefix;
  return seal(db->get(), to, taken, std::move(info));
}

Result<void> sync_to_disk(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool is_synced = fd >= 0 && ::fsync(fd) == 0;
  if (fd >= 0) ::close(fd);
  if (is_synced) return {};
  return fail(ErrorCode::kUnavailable, fmt::format("{}: cannot be written to disk: {}", path, std::strerror(errno)));
}

Result<SnapshotInfo> copy_store(const std::string& store_path, const std::string& to, const SnapshotTaken& taken) {
  const auto source = open_for_reading(store_path);
  if (!source) return std::unexpected(source.error());
  const auto application = sqlite::query_number(source->get(), store_path, "PRAGMA application_id");
  if (!application) return std::unexpected(application.error());
  if (*application != sqlite::kApplicationId)
    return fail(ErrorCode::kCorrupt, fmt::format("{}: this is not a store of berth's", store_path));
  // One read transaction: what commits meanwhile is not in it.
  const auto copy = sqlite::prepare(source->get(), store_path, "VACUUM INTO ?");
  if (!copy) return std::unexpected(copy.error());
  sqlite3_bind_text(copy->get(), 1, to.data(), static_cast<int>(to.size()), SQLITE_STATIC);
  if (auto ok = step(source->get(), store_path, copy->get(), "copying"); !ok) return std::unexpected(ok.error());
  const auto db = sqlite::open(to);
  if (!db) return std::unexpected(db.error());
  return finish(db->get(), to, taken);
}

Result<std::string> noted(sqlite3* db, const std::string& path, std::string_view name) {
  return sqlite::query_text(db, path, fmt::format("SELECT value FROM snapshot WHERE name = '{}'", name).c_str());
}

/// Makes the new file, has it written, and leaves nothing behind when that fails.
Result<SnapshotInfo> save_into(const std::string& to, const std::function<Result<SnapshotInfo>()>& copy) {
  // Made before SQLite writes to it, so that nobody else can read it at any time.
  const int fd = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    if (errno == EEXIST) return fail(ErrorCode::kConflict, fmt::format("{}: is there already; choose another name", to));
    return fail(ErrorCode::kInvalid, fmt::format("{}: cannot be made: {}", to, std::strerror(errno)));
  }
  ::close(fd);
  auto info = copy();
  if (info)
    if (auto ok = sync_to_disk(to); !ok) info = std::unexpected(ok.error());
  if (!info) {
    std::error_code ignored;
    std::filesystem::remove(to, ignored);
    std::filesystem::remove(to + "-journal", ignored);
  }
  return info;
}

}  // namespace

Result<SnapshotInfo> save_sqlite_snapshot(const std::string& store_path, const std::string& to, const SnapshotTaken& taken) {
  return save_into(to, [&] { return copy_store(store_path, to, taken); });
}

Result<SnapshotInfo> save_shared_snapshot(SharedStore& store, const std::string& prefix, const std::string& to, const SnapshotTaken& taken,
                                          const std::function<bool(std::string_view key)>& leaves_out) {
  return save_into(to, [&] { return copy_shared(store, prefix, to, taken, leaves_out); });
}

Result<SnapshotInfo> verify_snapshot(const std::string& snapshot) {
  const auto db = open_for_reading(snapshot);
  if (!db) return std::unexpected(db.error());
  if (auto ok = expect_format(db->get(), snapshot); !ok) return std::unexpected(ok.error());
  const auto verdict = sqlite::query_text(db->get(), snapshot, "PRAGMA integrity_check(1)");
  if (!verdict) return std::unexpected(verdict.error());
  if (*verdict != "ok") return fail(ErrorCode::kCorrupt, fmt::format("{}: the snapshot is damaged ({})", snapshot, *verdict));
  SnapshotInfo info;
  std::string numbers[3];
  const std::pair<const char*, std::string*> wanted[] = {{"taken_at", &info.taken_at},
                                                         {"version", &info.version},
                                                         {"revision", &numbers[0]},
                                                         {"objects", &numbers[1]},
                                                         {"files", &numbers[2]}};
  for (const auto& [name, into] : wanted) {
    auto value = noted(db->get(), snapshot, name);
    if (!value) return std::unexpected(value.error());
    *into = std::move(*value);
  }
  info.revision = std::atoll(numbers[0].c_str());
  if (const auto format = sqlite::query_number(db->get(), snapshot, "PRAGMA user_version"); format && *format == kSharedFormat) {
    info.form = SnapshotForm::kShared;
    auto prefix = noted(db->get(), snapshot, "prefix");
    if (!prefix) return std::unexpected(prefix.error());
    info.prefix = std::move(*prefix);
  }
  auto read = for_each_row(db->get(), snapshot, kRecords, [&](sqlite3_stmt* row) -> Result<void> {
    if (const auto record = record_of(row, snapshot); !record) return std::unexpected(record.error());
    ++info.objects;
    return {};
  });
  if (read)
    read = read_files(db->get(), snapshot, [&](SnapshotFile file) -> Result<void> {
      info.files.push_back(std::move(file.path));
      return {};
    });
  if (!read) return std::unexpected(read.error());
  if (std::to_string(info.objects) != numbers[1] || std::to_string(info.files.size()) != numbers[2])
    return fail(ErrorCode::kCorrupt, fmt::format("{}: holds {} objects and {} files; {} and {} were saved", snapshot, info.objects,
                                                 info.files.size(), numbers[1], numbers[2]));
  return info;
}

Result<SnapshotInfo> restore_sqlite_snapshot(const std::string& snapshot, const std::string& store_path, Revision bump,
                                             const std::function<Result<void>(const SnapshotFile&)>& each) {
  auto info = verify_snapshot(snapshot);
  if (!info) return info;
  if (info->form != SnapshotForm::kOwn) return invalid(fmt::format("{}: is of an etcd, and is not copied as it is", snapshot));
  std::error_code error;
  if (std::filesystem::exists(store_path, error))
    return fail(ErrorCode::kConflict, fmt::format("{}: there is a store already", store_path));
  if (auto made = open_sqlite_store({store_path, true}); !made) return std::unexpected(made.error());
  const auto db = sqlite::open(store_path);
  if (!db) return std::unexpected(db.error());
  const auto attach = sqlite::prepare(db->get(), store_path, "ATTACH ? AS snapshot");
  if (!attach) return std::unexpected(attach.error());
  sqlite3_bind_text(attach->get(), 1, snapshot.data(), static_cast<int>(snapshot.size()), SQLITE_STATIC);
  if (auto ok = step(db->get(), store_path, attach->get(), "opening the snapshot"); !ok) return std::unexpected(ok.error());
  const std::string copy = fmt::format(
      "PRAGMA synchronous=FULL; BEGIN; INSERT INTO main.log SELECT * FROM snapshot.log ORDER BY revision; UPDATE main.meta SET value = {} "
      "WHERE name = 'compacted_revision'; COMMIT; DETACH snapshot; PRAGMA wal_checkpoint(TRUNCATE)",
      info->revision + bump);
  if (auto ok = sqlite::execute(db->get(), store_path, copy.c_str()); !ok) return std::unexpected(ok.error());
  const auto source = open_for_reading(snapshot);
  if (!source) return std::unexpected(source.error());
  if (auto ok = read_files(source->get(), snapshot, each); !ok) return std::unexpected(ok.error());
  info->revision += bump;
  return info;
}

Result<SnapshotInfo> read_snapshot(const std::string& snapshot, const std::function<Result<void>(Record)>& each,
                                   const std::function<Result<void>(const SnapshotFile&)>& each_file) {
  auto info = verify_snapshot(snapshot);
  if (!info) return info;
  const auto db = open_for_reading(snapshot);
  if (!db) return std::unexpected(db.error());
  const auto sql = fmt::format("SELECT revision, create_revision, previous_revision, checksum, key, value FROM log ORDER BY {}",
                               info->form == SnapshotForm::kShared ? "previous_revision, revision" : "revision");
  auto read = for_each_row(db->get(), snapshot, sql, [&](sqlite3_stmt* row) -> Result<void> {
    auto record = record_of(row, snapshot);
    return record ? each(std::move(*record)) : std::unexpected(record.error());
  });
  if (read) read = read_files(db->get(), snapshot, each_file);
  if (!read) return std::unexpected(read.error());
  return info;
}

Result<void> begin_sqlite_history_at(const std::string& store_path, Revision revision) {
  const auto db = sqlite::open(store_path);
  if (!db) return std::unexpected(db.error());
  const auto sql = fmt::format(
      "PRAGMA synchronous=FULL; UPDATE meta SET value = {} WHERE name = 'compacted_revision'; PRAGMA wal_checkpoint(TRUNCATE)", revision);
  return sqlite::execute(db->get(), store_path, sql.c_str());
}

Result<StoreState> scan_sqlite_store(const std::string& store_path, const std::function<Result<void>(Record)>& each) {
  const auto db = open_for_reading(store_path);
  if (!db) return std::unexpected(db.error());
  const auto application = sqlite::query_number(db->get(), store_path, "PRAGMA application_id");
  if (!application) return std::unexpected(application.error());
  if (*application != sqlite::kApplicationId)
    return fail(ErrorCode::kInvalid, fmt::format("{}: this is not a store of berth's", store_path));
  if (auto ok = sqlite::execute(db->get(), store_path, "BEGIN"); !ok) return std::unexpected(ok.error());
  const auto verdict = sqlite::query_text(db->get(), store_path, "PRAGMA integrity_check(1)");
  if (!verdict) return std::unexpected(verdict.error());
  if (*verdict != "ok") return fail(ErrorCode::kCorrupt, fmt::format("{}: the file is damaged ({})", store_path, *verdict));
  StoreState state;
  const auto compacted = sqlite::query_number(db->get(), store_path, "SELECT value FROM meta WHERE name = 'compacted_revision'");
  if (!compacted) return std::unexpected(compacted.error());
  state.compacted_revision = state.last_revision = *compacted;
  auto read = for_each_row(db->get(), store_path, kRecords, [&](sqlite3_stmt* row) -> Result<void> {
    auto record = record_of(row, store_path);
    if (!record) return std::unexpected(record.error());
    if (record->revision > state.compacted_revision) {
      if (record->revision != state.last_revision + 1)
        return fail(ErrorCode::kCorrupt, fmt::format("{}: revision {} is missing", store_path, state.last_revision + 1));
      state.last_revision = record->revision;
    }
    return each(std::move(*record));
  });
  if (!read) return std::unexpected(read.error());
  return state;
}

}  // namespace berth::store
