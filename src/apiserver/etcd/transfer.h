// Whole clusters between a snapshot, an etcd and a store of one's own (docs/etcd.md "Moving").
//
//   snapshot of etcd    --fill_etcd-->    the same bytes under the same keys
//   snapshot of SQLite  --fill_etcd-->    Kubernetes' keys and bytes
//   snapshot of etcd    --fill_sqlite-->  the cache's keys, JSON
//
// While an etcd is being filled a mark stands in its prefix, and no server starts there.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apiserver/etcd/stored_form.h"
#include "base/clock.h"
#include "store/shared.h"
#include "store/snapshot.h"

namespace berth::apiserver::etcd {

struct Transferred {
  store::SnapshotInfo info;
  std::int64_t objects = 0;
  std::map<std::string, std::int64_t> left;  ///< Of kinds or versions not known here, which could not be taken: "/resource/" and how many.
};

struct TransferOptions {
  Duration event_ttl = std::chrono::hours(1);
  bool leaves_unknown = false;  ///< Otherwise fill_sqlite refuses a snapshot with objects of unknown kinds (kInvalid), and makes nothing.
};

/// What belongs to running servers and is of no use to others: presence, marks, fences. Keys without the prefix.
bool belongs_to_servers(std::string_view key);

/// Nothing may be below the prefix (kConflict). After an error the mark stays, and says that what is there is half a cluster.
Result<Transferred> fill_etcd(const std::string& snapshot, const std::shared_ptr<store::SharedStore>& store, const StoredForm& form,
                              const Clock& clock, const TransferOptions& options);
/// Makes `store_path`, which must not exist; nothing is left there after an error. Its history begins `bump` after the snapshot's revision.
Result<Transferred> fill_sqlite(const std::string& snapshot, const std::string& store_path, const StoredForm& form, store::Revision bump,
                                const TransferOptions& options);

/// Why no server may use this prefix now: it is half restored, or was moved away. Void: it may.
Result<void> expect_no_mark(store::SharedStore& store, const std::string& prefix);
/// Notes that the cluster went elsewhere: no server of berth starts on the prefix any more.
Result<void> mark_as_moved(store::SharedStore& store, const std::string& prefix, const std::string& where);
/// The addresses of API servers that renew their presence there, berth's and Kubernetes'.
Result<std::vector<std::string>> living_servers(store::SharedStore& store, const std::string& prefix);

}  // namespace berth::apiserver::etcd
