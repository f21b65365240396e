// A store that others write to at the same time, and that gives the revisions itself: etcd (docs/decisions/0024).
//
//   write ──> etcd: one transaction a write, refused when the key's revision is not the expected one
//   follow <── etcd: everybody's writes, ours too, in the order of their revisions
//
// What Store is to one writer, this is to several: whoever keeps a cache over it publishes what `follow` brings, never what it wrote.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "store/store.h"

namespace berth::store {

/// One key as it is, or (value null) as it went.
struct SharedRecord {
  std::string key;
  Bytes value;
  Revision revision = 0;         ///< Of the last write. Several keys may share one (a lease that ran out), never one key's two states.
  Revision create_revision = 0;  ///< 0 when it went.
};

/// One conditional write of one key.
struct SharedWrite {
  std::string key;
  Bytes value;  ///< Null: delete.
  /// 0: the key must not exist. Otherwise its revision must be this one. Unset: whatever is there (a deletion needs something to be there).
  std::optional<Revision> expected;
  Duration ttl{};  ///< The key goes by itself some time after (Events, presence); zero: never.
};

enum class WriteVerdict {
  kDone,      ///< Durable with `revision`.
  kRefused,   ///< The expectation did not hold; nothing was written.
  kRejected,  ///< The store takes no writes, or not this one; nothing was written.
  kUnknown,   ///< Nobody answered in time: it may have been written or not.
};

struct WriteAnswer {
  WriteVerdict verdict = WriteVerdict::kUnknown;
  Revision revision = 0;                ///< kDone: the write's. kRefused: one at which `present` is true.
  std::optional<SharedRecord> present;  ///< kRefused: what is there instead, if anything.
  std::string message;                  ///< kRejected, kUnknown: why, for people.
};

/// Hears of all writes. One call at a time, from the store's own thread.
class Follower {
 public:
  virtual ~Follower() = default;
  /// In order of revision, all of a revision in one call; with them everything up to `reached` has been told. `records` may be empty.
  virtual void changed(std::vector<SharedRecord> records, Revision reached) = 0;
  /// What was to come next is compacted: following ended. To be read anew, then followed again from there (not from within this call).
  virtual void lost() = 0;
};

/// Thread-safe. Implementations pass tests/store/store_suite.
class SharedStore {
 public:
  virtual ~SharedStore() = default;
  /// All live records below the prefix as they were at one revision, which is returned. Stops with the callback's error.
  virtual Result<Revision> read(const std::function<Result<void>(SharedRecord)>& each) = 0;
  /// Puts all of them in one transaction if `marker` is as it was read: for filling an empty prefix, which nobody follows meanwhile (they
  /// get one revision). At most kFillKeys; each key once. Waits.
  virtual Result<void> fill(std::vector<SharedWrite> writes, const SharedRecord& marker) = 0;
  static constexpr std::size_t kFillKeys = 100;       ///< etcd's --max-txn-ops is 128.
  static constexpr std::size_t kFillBytes = 1 << 20;  ///< Its --max-request-bytes is 1.5 MiB.
  /// `done` is called once, from the store's thread: keep it short. Tried again, elsewhere when there are several members, until it is
  /// known what came of it or `kWriteSeconds` have passed. Never applied twice.
  virtual void write(SharedWrite write, std::function<void(WriteAnswer)> done) = 0;
  /// A revision at least as new as every write acknowledged to anybody before the call.
  virtual void latest(std::function<void(Result<Revision>)> done) = 0;
  /// Calls the follower with everything after `after` until stop(). Once at a time.
  virtual void follow(Revision after, Follower& follower) = 0;
  /// No call to the follower is under way or comes any more.
  virtual void stop() = 0;
  /// A write below the prefix that nobody reads: followers reach the present revision. `done`: whether it could be written.
  virtual void nudge(std::function<void(bool)> done) = 0;
  /// The present revision where all below the prefix is as it was at `after`, otherwise `after`. etcd looks at everything for it: for when
  /// it takes no nudge. Waits, some seconds at most.
  virtual Result<Revision> up_to_date_until(Revision after) = 0;
  /// Where followers seem not to get anything any more: they connect anew, to another member when there are several.
  virtual void reconnect() = 0;
  /// One record, or all below a prefix, as they are now. These wait for the answer, some seconds at most.
  virtual Result<std::vector<SharedRecord>> find(const std::string& key_or_prefix, bool is_prefix) = 0;
  /// The write's answer, waited for.
  virtual WriteAnswer write_and_wait(SharedWrite write);
  /// Forgets what is superseded up to `revision`; what is already forgotten is no error.
  virtual Result<void> compact(Revision revision) = 0;
  /// How many times a counter beside the prefix was written, and whether this call wrote it: several servers agree on who compacts, as
  /// kube-apiserver does (compact_rev_key). `version` 0: it was never written. Returns the counter's version and the present revision.
  struct Turn {
    bool is_mine = false;
    std::int64_t version = 0;
    Revision revision = 0;
  };
  virtual Result<Turn> take_compaction_turn(std::int64_t version, Revision revision) = 0;

  static constexpr int kWriteSeconds = 10;
};

struct EtcdOptions {
  std::vector<std::string> servers;  ///< "http://127.0.0.1:2379", "https://…"; a bare HOST:PORT is http.
  std::string ca_pem, certificate_pem, key_pem;
  std::string ca_file, certificate_file, key_file;  ///< Where these are from, for what is said of them.
  std::string prefix = "/registry";                 ///< Of all keys.
  std::size_t most_answer_bytes = 256U << 20;       ///< Of one answer; what is more is asked for in smaller pages, or refused.
};

/// Readable, fitting each other and good today, or the error names flag, file, whose certificate it is, and what to do. Sends nothing.
Result<void> check_etcd_certificates(const EtcdOptions& options);

/// Connects, and looks before anything is written: certificates that are expired, do not fit or are refused, members of different clusters,
/// alarms, nobody there. The error says which, and what to do.
Result<std::unique_ptr<SharedStore>> open_etcd_store(EtcdOptions options);

}  // namespace berth::store
