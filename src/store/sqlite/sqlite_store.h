// The store in one SQLite file: a table that only grows at its end, keyed by revision, in WAL mode.
//
// Why this shape: a commit appends rows to the right edge of one B-tree and syncs the write-ahead log once, whatever the number of rows.
// There is no index by key; who knows what is live is the API server's object cache. Every row has a checksum over its content and says
// which row it supersedes, so that damage is noticed and compaction needs no search.
//
// Checkpoints (copying the log into the table's file) run on a thread of their own, so that commits do not wait for them; only when the
// log is nearly copied does a commit copy the small rest itself, which lets SQLite start the log's file anew.
#pragma once
#include <thread>

#include "base/mutex.h"
#include "store/sqlite/database.h"
#include "store/sqlite/file_lock.h"
#include "store/store.h"

namespace berth::store::sqlite {

/// "brth", in the file's header: `file` and other programs see whose it is.
inline constexpr std::int64_t kApplicationId = 0x62727468;

/// Damaged or foreign rows are found by this: a 64-bit mix over all fields. Part of the file format, never to change.
std::int64_t record_checksum(const Record& record);

class SqliteStore final : public Store {
 public:
  static Result<std::unique_ptr<Store>> open(const SqliteOptions& options);
  ~SqliteStore() override;
  SqliteStore(const SqliteStore&) = delete;

  [[nodiscard]] StoreState state() const override { return state_; }
  Result<void> commit(std::span<const Record> records, bool sync) override;
  Result<void> read(Revision after, const std::function<Result<void>(Record)>& each) override;
  Result<void> read_back(const std::function<bool(const RecordHead&)>& wants, const std::function<Result<void>(Record)>& each) override;
  Result<void> compact(Revision revision) override;
  Result<void> probe() override;

 private:
  SqliteStore(SqliteOptions options, FileLock lock, Database db);
  Result<void> prepare_statements();
  Result<void> load_state();
  Result<void> leave_gap();
  Result<void> write_gap(Revision last);
  Result<void> insert(const Record& record);
  /// Steps through a statement's rows until `each` says that it is enough.
  Result<void> for_each_row(sqlite3_stmt* statement, const std::function<Result<void>()>& each);
  Result<Record> record_of(sqlite3_stmt* row) const;
  [[nodiscard]] Error missing(Revision revision) const;
  Result<void> compact_slice(Revision until);
  Result<void> set_sync(bool sync);
  /// Runs `body` in one transaction: all of it or nothing.
  Result<void> transaction(const std::function<Result<void>()>& body);
  Result<void> step_once(sqlite3_stmt* statement, std::string_view what);
  void start_checkpointer(Database own_connection);
  void run_checkpointer(Database own_connection);
  void finish_checkpoint();

  SqliteOptions options_;
  FileLock lock_;
  Database db_;
  Statement begin_, commit_, rollback_, insert_, delete_, select_slice_, set_compacted_;
  StoreState state_;
  bool syncing_ = false;  ///< What PRAGMA synchronous is set to.

  Mutex checkpoint_mutex_;
  CondVar checkpoint_wake_;
  int wal_frames_ BERTH_GUARDED_BY(checkpoint_mutex_) = 0;  ///< In the log after the last commit.
  std::atomic<bool> nearly_done_{false};                    ///< The checkpointer has copied all but a little: the next commit copies that.
  bool stopping_ BERTH_GUARDED_BY(checkpoint_mutex_) = false;
  std::thread checkpointer_;
};

}  // namespace berth::store::sqlite
