// ObjectCache over a store of one's own. See object_cache.h for what it promises; here is how. Over a shared store: etcd/shared_cache.h.
//
// Locks, in the order in which they may be taken:
//   run_gate_      (synchronous mode only) one thread at a time is the writer
//   index_mutex_   index_, history_, published_: shared by readers, exclusive for the short moment in which a group is published
//   the open lists' own
//   the watcher table's own; a watch's gate is passed before all of these, or after run_gate_ alone
//   queue_mutex_   what waits for the writer
// Only the writer changes index_, so it reads it without a lock. No lock is held while the store works.
#pragma once
#include <queue>
#include <thread>
#include <unordered_map>

#include "apiserver/cache/expiring_room.h"
#include "apiserver/cache/history.h"
#include "apiserver/cache/index.h"
#include "apiserver/cache/object_cache.h"
#include "apiserver/cache/open_lists.h"
#include "apiserver/cache/watchers.h"
#include "base/shared_mutex.h"
#include "base/text_packer.h"

namespace berth::apiserver {

/// What readers and watches see, whoever writes: the index, the history, the watches.
class PublishedObjects : public ObjectCache {
 public:
  [[nodiscard]] ObjectPtr get(std::string_view key) const override;
  [[nodiscard]] ListResult list(const WatchFilter& filter, std::string_view after_key, std::size_t limit) const override;
  [[nodiscard]] std::optional<ListResult> list_at(Revision revision, const WatchFilter& filter, std::string_view after_key,
                                                  std::size_t limit) const override;
  [[nodiscard]] Revision revision() const override { return delivered_->load(std::memory_order_acquire); }
  std::unique_ptr<Watch> watch(WatchFilter filter, Revision after, bool initial_state, std::shared_ptr<WatchSink> sink) override;
  Packing pack_texts(Revision before) override;
  [[nodiscard]] std::vector<std::pair<std::string, std::size_t>> counts() const override;
  [[nodiscard]] std::uint64_t expired_early() const override { return expiring_room_.early(); }

 protected:
  PublishedObjects(const CacheOptions& options, Revision history_floor)
      : history_(options.history_events, options.history_bytes, history_floor),
        expiring_room_(options.expiring_bytes),
        open_lists_(2 * options.history_bytes) {}
  /// Makes the changes visible and hands them to the watches; then everything up to `reached` has been. One caller at a time.
  void publish_changes(std::span<const CacheEvent> changes, Revision reached);

  mutable SharedMutex index_mutex_;
  ObjectIndex index_ BERTH_GUARDED_BY(index_mutex_);
  History history_ BERTH_GUARDED_BY(index_mutex_);
  Revision published_ BERTH_GUARDED_BY(index_mutex_) = 0;
  ExpiringRoom expiring_room_;
  /// The same for who publishes, which is one at a time: what nobody else changes is read without the lock.
  [[nodiscard]] const ObjectIndex& own_index() const BERTH_NO_THREAD_SAFETY_ANALYSIS { return index_; }
  [[nodiscard]] Revision own_revision() const BERTH_NO_THREAD_SAFETY_ANALYSIS { return published_; }
  /// Older snapshots are not listed any more, though watches may still resume there: pages of a list end with the interval of compaction,
  /// as over etcd.
  std::atomic<Revision> listed_from_{0};
  /// Shared with the watches, which may outlive the cache.
  std::shared_ptr<std::atomic<Revision>> delivered_ = std::make_shared<std::atomic<Revision>>(0);
  std::shared_ptr<WatcherTable> watchers_ = std::make_shared<WatcherTable>();

 private:
  ListResult page(const IndexSlice& slice, const WatchFilter& filter, std::size_t limit) const;
  /// Null: the history does not reach so far.
  [[nodiscard]] std::shared_ptr<const OpenList> state_at(Revision revision, const WatchFilter& filter, std::string_view after_key) const;
  /// As it was before the changes, which are all since then; what is behind the page is not looked at.
  ListResult page_before(const std::vector<CacheEvent>& changes, const IndexSlice& slice, const WatchFilter& filter,
                         std::string_view after_key, std::size_t limit) const;

  mutable OpenLists open_lists_;

  // Of who packs.
  TextPacker packer_;
  ObjectIndex::Place packing_at_;
};

/// The cache over a store that only this process writes to.
class ObjectCacheImpl final : public PublishedObjects {
 public:
  ObjectCacheImpl(std::unique_ptr<store::Store> store, const Clock& clock, CacheOptions options, bool synchronous);
  ~ObjectCacheImpl() override { end_writer(); }
  void end() override { end_writer(); }
  using MetaOf = std::function<ObjectMeta(std::string_view key, const std::string& value)>;
  // Not looked into, with what it calls: nobody else is there yet.
  Result<void> load(const MetaOf& meta_of) BERTH_NO_THREAD_SAFETY_ANALYSIS;
  void start();

  void propose(Proposal proposal, std::function<void(ProposeResult)> result) override;
  [[nodiscard]] bool is_read_only() const override { return read_only_.load(); }
  [[nodiscard]] bool is_writable() const override { return !read_only_ && !full_; }
  void wait_for(Revision revision, Duration timeout, std::function<void(bool)> done) override;

 private:
  struct Pending {
    Proposal proposal;
    std::function<void(ProposeResult)> result;  ///< Empty for the cache's own deletions.
  };
  struct Waiter {
    Revision revision;
    TimePoint deadline;
    std::function<void(bool)> done;
  };
  struct Expiry {
    TimePoint when;
    Revision revision;
    std::weak_ptr<const StoredObject> object;
    bool operator>(const Expiry& o) const { return std::tie(when, revision) > std::tie(o.when, o.revision); }
  };
  /// A group on its way: what it changes so far, so that later proposals see the earlier ones' effects.
  struct Group {
    std::vector<CacheEvent> changes;
    std::vector<store::Record> records;
    std::vector<ProposeResult> results;
    std::unordered_map<std::string_view, ObjectPtr> overlay;  ///< Null: deleted. Keys point into the changes' objects.
    std::vector<Expiry> expiries;
    bool sync = false;
  };

  // object_cache_writer.cpp: the writer's side.
  void run();
  /// Everything that waits is written and answered.
  void end_writer();
  void gather(std::size_t last_group) BERTH_REQUIRES(queue_mutex_);
  void run_synchronously();
  Duration time_to_wait() BERTH_REQUIRES(queue_mutex_);
  void process(std::vector<Pending> batch);
  ProposeResult accept(Group& group, Proposal& proposal);
  ProposeResult add_delete(Group& group, const ObjectPtr& current, Revision revision);
  bool commit(Group& group);
  bool take_outcome(const Result<void>& written, std::string_view what);
  void probe();
  void sync_step();
  [[nodiscard]] bool is_sync_due() const;
  void expire_later(const std::vector<Pending>& batch);
  void publish(Group& group);
  void answer_waiters();
  std::vector<Pending> take_expired(std::size_t arriving);
  void compact_step(bool idle);
  void enter_read_only(const Error& error);
  // object_cache_load.cpp
  struct Loaded;
  struct LoadedHistory;
  class Loading;
  void apply_loaded(Loaded loaded, LoadedHistory& history) BERTH_NO_THREAD_SAFETY_ANALYSIS;
  void enter_history(LoadedHistory history) BERTH_NO_THREAD_SAFETY_ANALYSIS;

  std::unique_ptr<store::Store> store_;
  const Clock& clock_;
  const CacheOptions options_;
  const bool synchronous_;
  std::atomic<bool> read_only_{false};
  std::atomic<bool> full_{false};  ///< The last write found no room.

  Mutex queue_mutex_ BERTH_ACQUIRED_AFTER(run_gate_, index_mutex_);
  CondVar wake_;
  std::deque<Pending> queue_ BERTH_GUARDED_BY(queue_mutex_);
  std::vector<Waiter> waiters_ BERTH_GUARDED_BY(queue_mutex_);
  bool stopping_ BERTH_GUARDED_BY(queue_mutex_) = false;
  /// The writer lets proposals come: they need not wake it before they are so many. 0: it does not.
  std::size_t gathered_at_ BERTH_GUARDED_BY(queue_mutex_) = 0;
  bool is_awaited_ BERTH_GUARDED_BY(queue_mutex_) = false;  ///< There may be more than heartbeats and events in the queue.

  // The writer's own.
  Gate run_gate_ BERTH_ACQUIRED_BEFORE(index_mutex_);
  std::priority_queue<Expiry, std::vector<Expiry>, std::greater<>> expiries_;
  TimePoint next_compaction_{}, next_probe_{};
  Revision compacted_ = 0, compaction_goal_ = 0, revision_at_last_compaction_ = 0;
  TimePoint last_compaction_step_{};
  std::optional<TimePoint> unsynced_since_;  ///< When the first write came that a power failure would take.
  std::thread writer_;
};

}  // namespace berth::apiserver
