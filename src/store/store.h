// The durable log under the API server: a revisioned key-value store with four verbs (DESIGN "API server").
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace berth::store {

/// The store's one counter: every committed write has its own, rising by one. 0 is before the first write.
using Revision = std::int64_t;

/// One write. `value` null deletes the key (a tombstone). `revision` is set by the caller (the single writer), consecutive.
/// `create_revision` is that of the key's first write since it last did not exist (on a tombstone: of the object deleted).
struct Record {
  Revision revision = 0;
  Revision create_revision = 0;
  /// The revision of the record that this one supersedes; 0 when the key did not exist. This is how compaction finds what to forget.
  Revision previous_revision = 0;
  std::string key;
  Bytes value;
};

/// What a record says of itself before its value is read.
struct RecordHead {
  Revision revision = 0, previous_revision = 0;
  std::string_view key;  ///< Good until the next record.
  bool is_delete = false;
};

/// What a store says of itself at start.
struct StoreState {
  Revision last_revision = 0;
  Revision compacted_revision = 0;  ///< History up to and including it may be gone.
};

/// One writer at a time; calls may come from any one thread at a time. All implementations pass tests/store/store_suite.
class Store {
 public:
  virtual ~Store() = default;
  [[nodiscard]] virtual StoreState state() const = 0;
  /// Makes the records durable, all or none, before it returns (`sync` false: they may be lost together with all later ones on power loss,
  /// never on a crash of the process alone). Revisions must continue state().last_revision; on kConflict another writer was faster.
  /// kUnavailable (disk full): nothing was written, trying again later may help. Any other error: the store is no longer to be trusted.
  virtual Result<void> commit(std::span<const Record> records, bool sync) = 0;
  /// Reads all records after `after` in revision order, superseded ones and tombstones included as far as they are not compacted.
  /// With after = 0: every live key's last record at least. Stops with the callback's error.
  virtual Result<void> read(Revision after, const std::function<Result<void>(Record)>& each) = 0;
  /// The same from the newest to the oldest, and only those that `wants` asks for, which is told of each before its value is read: of a log
  /// most is superseded. What is not wanted is not looked at, damaged or not.
  virtual Result<void> read_back(const std::function<bool(const RecordHead&)>& wants, const std::function<Result<void>(Record)>& each);
  /// Forgets records superseded by one up to and including `revision`, and tombstones up to it. Its cost grows with the number of revisions
  /// since the last compaction; the caller keeps it short by going in steps. A revision below state().compacted_revision does nothing.
  virtual Result<void> compact(Revision revision) = 0;
  /// Whether a commit would be stored now: writes something of no meaning, where writing can fail at all. What was committed before is
  /// durable then. Errors as commit's.
  virtual Result<void> probe() { return {}; }
};

/// For tests and the simulator: nothing survives the object.
std::unique_ptr<Store> make_memory_store();

struct SqliteOptions {
  std::string path;       ///< The database file; made with mode 0600 when missing (its directory must exist).
  bool full_sync = true;  ///< PRAGMA synchronous=FULL. Off only for benchmarks that say so.
};
/// Opens and takes the file's lock. Errors: kConflict another process has it open, kCorrupt damaged or of a newer format (never reset).
Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteOptions& options);

}  // namespace berth::store
