// A thin, value-returning skin over the SQLite C API: handles that close themselves, errors as Result.
#pragma once
#include <sqlite3.h>

#include <memory>
#include <string>

#include "base/error.h"

namespace berth::store::sqlite {

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

/// What SQLite's last error on `db` means for the caller: damage is kCorrupt, a full disk or a busy file kUnavailable, the rest kInternal.
/// `what` says what was being done, `path` names the file.
Error describe(sqlite3* db, int code, const std::string& path, std::string_view what);
Result<Database> open(const std::string& path);
Result<void> execute(sqlite3* db, const std::string& path, const char* sql);
Result<Statement> prepare(sqlite3* db, const std::string& path, std::string_view sql);
/// The first column of the first row of `sql` as a number; 0 when there is no row.
Result<std::int64_t> query_number(sqlite3* db, const std::string& path, const char* sql);
Result<std::string> query_text(sqlite3* db, const std::string& path, const char* sql);

}  // namespace berth::store::sqlite
