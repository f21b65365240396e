// A whole cluster's data in one file: the store as of one revision and the files beside it (certificates, keys, kubeconfigs). The file is
// an SQLite database of its own kind, so that its structure can be checked and no half-written one passes for a whole one.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "store/store.h"

namespace berth::store {

/// A file that stands beside the store in its data directory.
struct SnapshotFile {
  std::string path;  ///< Relative to the data directory.
  unsigned mode = 0600;
  std::string content;
};

/// What a snapshot says of itself.
struct SnapshotInfo {
  std::string taken_at;  ///< RFC 3339.
  std::string version;   ///< Of the berth that took it.
  Revision revision = 0;
  std::int64_t objects = 0;
  std::vector<std::string> files;
};

struct SnapshotTaken {
  std::string taken_at, version;
  std::vector<SnapshotFile> files;
};

/// Copies the store as of one moment into the new file `to`, while a server may be writing to it. Superseded revisions are left out. An
/// existing `to` is refused (kConflict); on an error nothing is left at `to`. The file is readable by its owner alone.
Result<SnapshotInfo> save_sqlite_snapshot(const std::string& store_path, const std::string& to, const SnapshotTaken& taken);
/// Reads a snapshot from end to end: structure, every record's and file's checksum, their number. kCorrupt says what is wrong.
Result<SnapshotInfo> verify_snapshot(const std::string& snapshot);
/// Makes `store_path` (which must not exist) and gives the files to `each`. The new store goes on `bump` revisions after the snapshot's and
/// knows no history before: clients that have seen later revisions than the snapshot's list anew.
Result<SnapshotInfo> restore_sqlite_snapshot(const std::string& snapshot, const std::string& store_path, Revision bump,
                                             const std::function<Result<void>(const SnapshotFile&)>& each);
/// Reads a store's latest records without taking it, also beside a server that writes to it. Checks what `read` checks.
Result<StoreState> scan_sqlite_store(const std::string& store_path, const std::function<Result<void>(Record)>& each);

}  // namespace berth::store
