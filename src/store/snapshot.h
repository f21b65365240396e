// A whole cluster's data in one file: the store as of one revision and the files beside it (certificates, keys, kubeconfigs). The file is
// an SQLite database of its own kind, so that its structure can be checked and no half-written one passes for a whole one.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "store/shared.h"
#include "store/store.h"

namespace berth::store {

/// A file that stands beside the store in its data directory.
struct SnapshotFile {
  std::string path;  ///< Relative to the data directory.
  unsigned mode = 0600;
  std::string content;
};

/// How objects stand in a snapshot.
enum class SnapshotForm {
  kOwn,     ///< As in an SQLite store: the cache's keys, JSON.
  kShared,  ///< As in etcd: keys below the prefix, their bytes untouched; `previous_revision` is the mod revision, `revision` only counts.
};

/// What a snapshot says of itself.
struct SnapshotInfo {
  std::string taken_at;  ///< RFC 3339.
  std::string version;   ///< Of the berth that took it.
  Revision revision = 0;
  std::int64_t objects = 0;
  std::vector<std::string> files;
  SnapshotForm form = SnapshotForm::kOwn;
  std::string prefix;  ///< kShared: what all keys began with.
};

struct SnapshotTaken {
  std::string taken_at, version;
  std::vector<SnapshotFile> files;
};

/// Copies the store as of one moment into the new file `to`, while a server may be writing to it. Superseded revisions are left out. An
/// existing `to` is refused (kConflict); on an error nothing is left at `to`. The file is readable by its owner alone.
Result<SnapshotInfo> save_sqlite_snapshot(const std::string& store_path, const std::string& to, const SnapshotTaken& taken);
/// The same of everything below `prefix` in a shared store, as of one revision, whatever is written meanwhile. Keys of which `leaves_out`
/// says so (without the prefix) are not taken: what belongs to running servers.
Result<SnapshotInfo> save_shared_snapshot(SharedStore& store, const std::string& prefix, const std::string& to, const SnapshotTaken& taken,
                                          const std::function<bool(std::string_view key)>& leaves_out);
/// Reads a snapshot from end to end: structure, every record's and file's checksum, their number. kCorrupt says what is wrong.
Result<SnapshotInfo> verify_snapshot(const std::string& snapshot);
/// The objects of a snapshot, oldest change first, and its files. What verify_snapshot checks is checked before anything is given away.
Result<SnapshotInfo> read_snapshot(const std::string& snapshot, const std::function<Result<void>(Record)>& each,
                                   const std::function<Result<void>(const SnapshotFile&)>& each_file);
/// A stored file that nobody has open goes on from `revision`, and knows no history before.
Result<void> begin_sqlite_history_at(const std::string& store_path, Revision revision);
/// Makes `store_path` (which must not exist) and gives the files to `each`. The new store goes on `bump` revisions after the snapshot's and
/// knows no history before: clients that have seen later revisions than the snapshot's list anew.
Result<SnapshotInfo> restore_sqlite_snapshot(const std::string& snapshot, const std::string& store_path, Revision bump,
                                             const std::function<Result<void>(const SnapshotFile&)>& each);
/// Reads a store's latest records without taking it, also beside a server that writes to it. Checks what `read` checks.
Result<StoreState> scan_sqlite_store(const std::string& store_path, const std::function<Result<void>(Record)>& each);

}  // namespace berth::store
