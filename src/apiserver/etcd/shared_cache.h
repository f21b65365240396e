// The object cache over a store that other API servers write to as well.
//
//   propose() --> StoredForm --> SharedStore::write (a transaction each, many under way) --> answered when it is published here, too
//   SharedStore::follow --> StoredForm --> publish: index, history, matching watches; then the proposals and readers that waited for it
//
// What this server wrote itself comes back by the same way as everybody's; its bytes are recognised, so that nothing is decoded twice.
//
// What is not done within a call is done on two loops: the keeper ends waits and reads anew what was missed, the compactor compacts, since
// each waits for etcd. In production both are threads of the cache's own, in a simulated world one virtual loop.
//
// Locks: mutex_ guards what is under way; the published half has its own (object_cache_impl.h). No callback is called under a lock.
#pragma once
#include <deque>
#include <unordered_map>

#include "apiserver/cache/object_cache_impl.h"
#include "apiserver/etcd/revision_waiters.h"
#include "apiserver/etcd/stored_form.h"
#include "base/event_loop.h"
#include "base/lifeline.h"
#include "base/mutex.h"
#include "store/shared.h"

namespace berth::apiserver::etcd {

class SharedCache final : public PublishedObjects, private store::Follower {
 public:
  /// `loop`: the keeper and the compactor, and who destroys the cache is on it; null: threads of its own.
  SharedCache(std::shared_ptr<store::SharedStore> store, const Clock& clock, EventLoop* loop, CacheOptions options,
              std::shared_ptr<const StoredForm> form, Duration event_ttl);
  ~SharedCache() override { end_flights(); }
  void end() override { end_flights(); }
  /// Reads everything, then follows.
  // Not looked into: nobody else is there yet.
  Result<void> load() BERTH_NO_THREAD_SAFETY_ANALYSIS;

  void propose(Proposal proposal, std::function<void(ProposeResult)> result) override;
  [[nodiscard]] bool is_read_only() const override { return false; }
  void wait_for(Revision revision, Duration timeout, std::function<void(bool)> done) override;
  [[nodiscard]] bool is_shared() const override { return true; }
  void catch_up(std::function<void(bool)> done) override;
  [[nodiscard]] std::string storage_failure() const override;

 private:
  using Who = RevisionWaiters::Who;
  /// A write of this server's own under way.
  struct Flight {
    Proposal proposal;
    std::function<void(ProposeResult)> result;
    Bytes stored;       ///< As it was sent; null: a deletion.
    Bytes foreign;      ///< See foreign_.
    ObjectPtr present;  ///< What a deletion deletes.
    ObjectPtr object;   ///< As it was published. Under mutex_.
  };
  using FlightPtr = std::shared_ptr<Flight>;
  void end_flights();
  void changed(std::vector<store::SharedRecord> records, Revision reached) override;
  void lost() override;
  std::optional<CacheEvent> change_of(store::SharedRecord& record, const ObjectPtr& current);
  ObjectPtr own_object(const std::string& key, const store::SharedRecord& record);
  ObjectPtr object_of(const std::string& key, std::string text, std::size_t revision_offset, const store::SharedRecord& record,
                      const ObjectMeta& meta, bool expires) const;
  Result<ObjectPtr> decode(const std::string& key, const store::SharedRecord& record);
  void keep_foreign(const std::string& key, Bytes body);
  void answered(const FlightPtr& flight, store::WriteAnswer answer);
  void complete(const FlightPtr& flight, ProposeResult result);
  void answer_waiters(Revision reached);
  void wait(Revision revision, Duration timeout, Who who, std::function<void(bool)> done);
  void ask_latest();
  Result<Revision> read_all(const std::function<void(std::string key, ObjectPtr object)>& each);
  void begin_anew();
  /// Ends what has waited long enough, and nudges etcd, or asks it, where readers wait for nothing; again after a while, as long as anybody
  /// waits.
  void look_at_waiters();
  void compact();
  void remember_expiring(std::span<const CacheEvent> changes);
  /// Of what goes by itself that is too much goes before its time, by every server that has the bound: who comes second is refused.
  void make_room();
  /// `task`, unless the cache has gone by then.
  Task guarded(void (SharedCache::*task)());

  const Clock& clock_;
  const CacheOptions options_;
  const std::shared_ptr<const StoredForm> form_;
  const Duration event_ttl_;
  std::shared_ptr<store::SharedStore> store_;

  mutable Mutex mutex_;
  CondVar idle_;                                                                      ///< Nothing is under way.
  std::unordered_multimap<std::string, FlightPtr> flights_ BERTH_GUARDED_BY(mutex_);  ///< By the cache's key.
  RevisionWaiters waiters_ BERTH_GUARDED_BY(mutex_);
  /// Objects with fields that only newer servers know, as they are stored: nobody's update here may lose those. By the cache's key.
  std::unordered_map<std::string, Bytes> foreign_ BERTH_GUARDED_BY(mutex_);
  std::vector<std::function<void(bool)>> readers_ BERTH_GUARDED_BY(mutex_);          ///< For whom etcd is to be asked next.
  std::deque<std::weak_ptr<const StoredObject>> expiring_ BERTH_GUARDED_BY(mutex_);  ///< As written; kept where there is a bound.
  std::size_t going_bytes_ BERTH_GUARDED_BY(mutex_) = 0;                             ///< Of what make_room() has sent the deletion of.
  bool is_asking_ BERTH_GUARDED_BY(mutex_) = false,
                  is_looking_ BERTH_GUARDED_BY(mutex_) = false, stopping_ BERTH_GUARDED_BY(mutex_) = false;
  std::string failure_ BERTH_GUARDED_BY(mutex_);
  std::shared_ptr<std::atomic<bool>> takes_no_writes_ = std::make_shared<std::atomic<bool>>(false);  ///< The last nudge's news.

  // The keeper's, and the compactor's.
  TimePoint last_nudge_{}, last_question_{};
  std::int64_t compaction_version_ = 0;
  Revision compaction_goal_ = 0;

  Lifeline lifeline_;
  std::unique_ptr<ThreadLoop> keeper_thread_, reader_thread_, compactor_thread_;
  EventLoop& keeper_;  ///< Of who waits: nothing on it asks etcd.
  EventLoop& reader_;  ///< Of what is read anew.
  EventLoop& compactor_;
};

/// Opens it: keys, media type and encryption as `form` says; `loop` as the constructor's.
Result<std::unique_ptr<ObjectCache>> open_shared_cache(std::shared_ptr<store::SharedStore> store, const Clock& clock, CacheOptions options,
                                                       FormOptions form, Duration event_ttl, EventLoop* loop = nullptr);

}  // namespace berth::apiserver::etcd
