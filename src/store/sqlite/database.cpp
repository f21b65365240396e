#include "store/sqlite/database.h"

#include <fmt/format.h>

namespace berth::store::sqlite {

Error describe(sqlite3* db, int code, const std::string& path, std::string_view what) {
  std::string detail = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
      return {ErrorCode::kCorrupt,
              fmt::format("{}: the store's file is damaged ({}: {}). Nothing was changed. Restore it from a backup, or salvage what is "
                          "readable with `sqlite3 {} .recover`.",
                          path, what, detail, path)};
    case SQLITE_FULL:
      return {ErrorCode::kUnavailable, fmt::format("{}: {}: the disk is full", path, what)};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::kUnavailable, fmt::format("{}: {}: another program keeps the file locked", path, what)};
    default:
      return {ErrorCode::kInternal, fmt::format("{}: {}: {} (SQLite {})", path, what, detail, code)};
  }
}

Result<Database> open(const std::string& path) {
  sqlite3* raw = nullptr;
  int code = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Database db(raw);
  if (code != SQLITE_OK) return std::unexpected(describe(raw, code, path, "opening"));
  sqlite3_busy_timeout(raw, 5000);
  return db;
}

Result<void> execute(sqlite3* db, const std::string& path, const char* sql) {
  int code = sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return std::unexpected(describe(db, code, path, sql));
  return {};
}

Result<Statement> prepare(sqlite3* db, const std::string& path, std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  int code = sqlite3_prepare_v3(db, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) return std::unexpected(describe(db, code, path, sql));
  return Statement(raw);
}

Result<std::int64_t> query_number(sqlite3* db, const std::string& path, const char* sql) {
  auto statement = prepare(db, path, sql);
  if (!statement) return std::unexpected(statement.error());
  int code = sqlite3_step(statement->get());
  if (code == SQLITE_DONE) return 0;
  if (code != SQLITE_ROW) return std::unexpected(describe(db, code, path, sql));
  return sqlite3_column_int64(statement->get(), 0);
}

Result<std::string> query_text(sqlite3* db, const std::string& path, const char* sql) {
  auto statement = prepare(db, path, sql);
  if (!statement) return std::unexpected(statement.error());
  int code = sqlite3_step(statement->get());
  if (code == SQLITE_DONE) return std::string();
  if (code != SQLITE_ROW) return std::unexpected(describe(db, code, path, sql));
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement->get(), 0));
  return std::string(text == nullptr ? "" : text);
}

}  // namespace berth::store::sqlite
