// The API server's memory: every live object by key, the ordered log of writes, and the watches on it (DESIGN "API server").
//
//   propose() --> pending queue --> writer thread: check expectation, assign revision, splice it into the bytes
//                                     --> Store::commit (one durable transaction per group)
//                                     --> publish: index, history ring, matching watchers, then the proposals' callbacks
//
// Reads and watches come from memory and never wait for the disk. Readers see a write only after it is durable.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/kept_text.h"
#include "base/metrics.h"
#include "model/api_status.h"
#include "model/selector.h"
#include "store/store.h"

namespace berth::apiserver {

using store::Revision;

/// What selectors need of an object, extracted once per revision and handed to the cache with a proposal (or by meta_of at start).
struct ObjectMeta {
  std::string ns, name, uid;  ///< Namespace and name must be those of the key.
  model::Labels labels;
  std::vector<std::pair<std::string, std::string>> fields;  ///< Selectable fields by path, e.g. {"spec.nodeName", "n1"}; absent = "".
  /// Only from meta_of: when an object found in the store at start is to go by itself (Events); epoch: never.
  TimePoint expires_at{};
};

/// ObjectMeta as a stored object keeps it: views into the object's own key and texts.
/// Valid as long as the object.
class StoredMeta {
 public:
  std::string_view ns, name, uid;
  [[nodiscard]] const model::Labels& labels() const { return labels_; }
  /// A selectable field by path, metadata.name and metadata.namespace included; "" when absent.
  [[nodiscard]] std::string_view field(std::string_view path) const;

 private:
  friend struct StoredObject;
  struct Field {
    const std::string* path;  ///< Interned for the life of the process: paths are few.
    std::string_view value;
  };
  model::Labels labels_;
  std::unique_ptr<Field[]> fields_;
  std::uint32_t field_count_ = 0;
};

/// One revision of one object. Immutable, shared, never copied.
struct StoredObject {
  std::string_view key;  ///< "/GROUP/PLURAL/NAMESPACE/NAME" with the storage group ("core" is ""): see make_key.
  KeptTextRef kept;      ///< Complete JSON of the object in its storage version, metadata.resourceVersion included. Null: none is known.
  Revision revision = 0;
  Revision create_revision = 0;
  StoredMeta meta;
  bool expires = false;  ///< Goes by itself in time.

  StoredObject(std::string_view key, Bytes text, Revision revision, Revision create_revision, const ObjectMeta& meta);
  /// `state` with another revision in its bytes and as its own: what a DELETED event carries.
  StoredObject(const StoredObject& state, Revision revision);
  StoredObject(const StoredObject&) = delete;
  StoredObject& operator=(const StoredObject&) = delete;
  [[nodiscard]] HeldText text() const { return kept != nullptr ? kept->read() : HeldText(); }
  [[nodiscard]] std::size_t text_bytes() const { return kept != nullptr ? kept->size() : 0; }

 private:
  void set_texts(std::string_view key_text, std::string_view uid, std::span<const std::pair<std::string_view, std::string_view>> fields);
  std::string texts_;  ///< The key, then what the other views need.
};
using ObjectPtr = std::shared_ptr<const StoredObject>;

/// "/apps/deployments/default/web"; cluster-scoped objects have an empty namespace: "//nodes//n1".
std::string make_key(std::string_view storage_group, std::string_view plural, std::string_view ns, std::string_view name);
/// The prefix of all objects of a resource, or of those in one namespace.
std::string make_prefix(std::string_view storage_group, std::string_view plural, std::string_view ns = {});

/// A write on its way. Exactly one of the expectations holds or the proposal is refused without effect.
struct Proposal {
  std::string key;
  /// JSON with an empty resourceVersion ("resourceVersion":"") whose quotes' inside starts at revision_offset: the writer splices the
  /// number in. Null: delete.
  std::string value;
  bool is_delete = false;
  std::size_t revision_offset = 0;
  ObjectMeta meta;
  /// 0: the key must not exist. Otherwise: its revision must be this one. Unset: whatever is there (must exist for a delete).
  std::optional<Revision> expected;
  /// Nodes' Leases and Events may be acknowledged before the sync (documented and switchable; issue 2 "Speed and size").
  bool relaxed_durability = false;
  /// When it is to go by itself (Events); epoch: never.
  TimePoint expires_at{};
};

/// The text with a revision where it has an empty one, between whose quotes the offset lies.
std::string with_revision(std::string text, std::size_t offset, Revision revision);

/// Of an object's bytes: what one request can carry, so that whatever is stored can also be sent back.
inline constexpr std::size_t kMostObjectBytes = 3 * 1024 * 1024;

enum class ProposeError {
  kExists,
  kNotFound,
  kRevisionMismatch,
  kStorage,    ///< Nothing was stored.
  kUncertain,  ///< It may be stored or not (a store that others share): nothing that it took may be given back.
  kTooLarge,   ///< More than kMostObjectBytes, or than the store takes. Nothing was stored.
};
/// The client is told that the store failed or does not take it, and nothing is tried again.
constexpr bool is_of_storage(ProposeError error) {
  return error == ProposeError::kStorage || error == ProposeError::kUncertain || error == ProposeError::kTooLarge;
}

/// `result` is called once from the writer thread (or, with a memory store, from within propose): keep it short.
using ProposeResult = Expected<ObjectPtr, ProposeError>;  ///< For a delete: the object as it was, with the deletion's revision.

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchEvent {
  WatchEventType type;
  ObjectPtr object;    ///< kDeleted: the last state, its bytes carrying the deletion's revision; kBookmark, kError: null.
  ObjectPtr previous;  ///< The state before, when there was one.
  Revision revision = 0;
};

struct WatchFilter {
  std::string prefix;               ///< make_prefix.
  std::optional<std::string> name;  ///< metadata.name=
  model::Selector labels;
  model::FieldSelector fields;
  /// Asked last, of objects that match the rest; empty: all do. May be called from several threads at once.
  std::function<bool(const StoredObject&)> also = {};
};

/// Where a watch's events go. `deliver` is called in revision order, one call at a time, from the publishing thread: it must only queue.
/// Selector transitions are already applied (a label change that leaves the selector comes as kDeleted).
/// What was there when the watch began (initial state, history) comes from the thread that called watch(), before watch() returns.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  /// False: the sink is full or closed; the watch ends, and the sink must tell its client (410 or close).
  virtual bool deliver(const WatchEvent& event) = 0;
  /// No more is to come just now: what was delivered since the last flush should go out, in one piece. Called under the same rules as
  /// deliver; not for what watch() itself delivers.
  virtual void flush() {}
  /// Part of what happened since the last event is lost; what comes next is what changed on the whole. False: the watch ends, as in
  /// deliver. Called under the same rules; for who keeps a picture of what is there, nothing is to be done.
  virtual bool skip_history() { return true; }
};

/// Ends its watch when destroyed; afterwards the sink is not called any more. Destroying waits for a delivery under way in another thread
/// (so hold no lock that deliver takes); it may be destroyed from within its own sink's deliver.
class Watch {
 public:
  virtual ~Watch() = default;
  /// Delivers a kBookmark from the calling thread, in its place: everything up to its revision has been delivered before.
  virtual void request_bookmark() = 0;
};

struct ListResult {
  std::vector<ObjectPtr> items;  ///< Sorted by key.
  Revision revision = 0;         ///< Of the snapshot.
  bool more = false;
  std::int64_t remaining = 0;  ///< Objects after the page; counted only without selectors.
};

struct CacheOptions {
  std::size_t history_events = 100'000;   ///< Watch history kept in memory, in events …
  std::size_t history_bytes = 128 << 20;  ///< … and bytes, whichever ends first; older starts are 410 Expired.
  /// Of the texts of objects that go by themselves in time: beyond it those written longest ago go before. 0: no bound.
  std::size_t expiring_bytes = 0;
  Duration compaction_interval = std::chrono::minutes(5);
  /// Asked now and then while the store is read: an error ends that, and is what open() says.
  std::function<Result<void>()> has_room = {};
};

/// Thread-safe. Owns the writer thread (none with `synchronous`: then propose commits and publishes before it returns: tests, simulator).
class ObjectCache {
 public:
  /// Reads the store. `meta_of` extracts ObjectMeta from a record's key and bytes.
  static Result<std::unique_ptr<ObjectCache>> open(std::unique_ptr<store::Store> store, const Clock& clock, CacheOptions options,
                                                   std::function<ObjectMeta(std::string_view key, const std::string& value)> meta_of,
                                                   bool synchronous);
  virtual ~ObjectCache() = default;
  /// Answers every proposal and everybody who waits, and calls nobody back afterwards; what there is can still be read. Whoever is answered
  /// may look at the cache: its owner ends it before it lets it go. Idempotent; the destructor does the same.
  virtual void end() = 0;

  virtual void propose(Proposal proposal, std::function<void(ProposeResult)> result) = 0;
  [[nodiscard]] virtual ObjectPtr get(std::string_view key) const = 0;
  /// Objects below `filter.prefix` that match, with keys after `after_key`, at most `limit` (0: all).
  [[nodiscard]] virtual ListResult list(const WatchFilter& filter, std::string_view after_key, std::size_t limit) const = 0;
  /// As list, at an older revision still in history (for `continue` tokens); nullopt when it is compacted (410).
  [[nodiscard]] virtual std::optional<ListResult> list_at(Revision revision, const WatchFilter& filter, std::string_view after_key,
                                                          std::size_t limit) const = 0;
  /// The last published revision: reads see it, and every watch has been handed everything up to it.
  [[nodiscard]] virtual Revision revision() const = 0;
  /// Writes are refused since the store failed (the log says how); reads go on.
  [[nodiscard]] virtual bool is_read_only() const = 0;
  /// False while the store has no room, too. That ends by itself, also when nobody writes.
  [[nodiscard]] virtual bool is_writable() const { return !is_read_only(); }
  /// Starts after `after`: events with a higher revision, without a gap. nullptr: `after` is older than the history (410 Expired).
  /// With `initial_state`, first every matching object as kAdded (in key order) and then a kBookmark at that revision.
  virtual std::unique_ptr<Watch> watch(WatchFilter filter, Revision after, bool initial_state, std::shared_ptr<WatchSink> sink) = 0;
  /// What a step of packing did.
  struct Packing {
    std::size_t texts = 0, bytes = 0;  ///< Packed, and what that saved.
    bool is_round = false;             ///< All objects have been looked at since the last round.
  };
  /// Packs the texts of some objects (about 256, some milliseconds of work) whose last change is `before` or earlier, where the last step
  /// ended. One caller at a time; readers and writers go on meanwhile. A cache before another one has none of its own.
  virtual Packing pack_texts(Revision /*before*/) { return {.is_round = true}; }
  /// Objects stored per prefix group "/GROUP/PLURAL", for metrics.
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::size_t>> counts() const = 0;
  /// Calls `done` when everything up to `revision` is published, or after the timeout with false (at once when synchronous).
  virtual void wait_for(Revision revision, Duration timeout, std::function<void(bool)> done) = 0;
  /// Others write to the store, too.
  [[nodiscard]] virtual bool is_shared() const { return false; }
  /// Calls `done` when reads see everything that anybody was told is written before the call, by whatever server: at once over a store of
  /// one's own. False: that could not be found out in time.
  virtual void catch_up(std::function<void(bool)> done) { done(true); }
  /// Objects that went before their time (CacheOptions::expiring_bytes).
  [[nodiscard]] virtual std::uint64_t expired_early() const { return 0; }
  /// Why the last kStorage was one, for people.
  [[nodiscard]] virtual std::string storage_failure() const { return "the write could not be stored"; }
};

/// Proposes and waits for the answer (at once with a synchronous cache). Not to be called from the cache's own thread.
ProposeResult propose_and_wait(ObjectCache& cache, Proposal proposal);

}  // namespace berth::apiserver
