// What a log that is read from its newest record to its oldest makes of the cache:
//
//   newest of a resource, up to the history's length ── history ──┐ what they superseded: the state before
//   older, nobody superseded it ─────────────────────── index     │
//   older and superseded ────────────────────────────── not read <┴── nor what these superseded
//
// A thousand nodes write a hundred Leases a second: most of the log is that.
#include <unordered_set>

#include "apiserver/cache/object_cache_impl.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kBatch = 256;

/// Says of each record, from the newest on, whether it is still needed.
class NeededRecords {
 public:
  NeededRecords(std::size_t history_events, Revision compacted) : history_events_(history_events), compacted_(compacted) {}

  bool wants(const store::RecordHead& head) {
    is_succeeded_ = succeeded_.erase(head.revision) > 0;
    if (superseded_.erase(head.revision) == 0) {
      Resource& resource = resource_of(head.key);
      if (head.revision > compacted_ && resource.writes < history_events_) {
        ++resource.writes;
        if (head.previous_revision != 0) succeeded_.insert(head.previous_revision);
        return true;
      }
      resource.floor = std::max(resource.floor, head.revision);
      supersede(head);
      return !head.is_delete;
    }
    supersede(head);
    return false;
  }
  /// Of one that is wanted, before the next is asked about.
  [[nodiscard]] bool is_in_history(const store::Record& record) {
    return record.revision > std::max(compacted_, resource_of(record.key).floor);
  }
  /// Of the one that was asked about last: the history holds a later write of its key, or would if that could be read (its encryption's key
  /// may be gone).
  [[nodiscard]] bool is_succeeded() const { return is_succeeded_; }
  /// Where the history of a resource begins later than that of others: the newest of its writes that is not in it.
  void for_each_floor(const std::function<void(const std::string& resource, Revision floor)>& each) const {
    for (const auto& [prefix, resource] : resources_)
      if (resource.floor > compacted_) each(prefix, resource.floor);
  }

 private:
  struct Resource {
    std::size_t writes = 0;  ///< That the history holds.
    Revision floor = 0;
  };
  void supersede(const store::RecordHead& head) {
    // What one of before the compaction superseded is gone.
    if (head.previous_revision != 0 && head.revision > compacted_) superseded_.insert(head.previous_revision);
  }
  Resource& resource_of(std::string_view key) {
    const auto prefix = resource_prefix(key);
    if (prefix != last_prefix_) {
      last_ = &resources_[std::string(prefix)];
      last_prefix_ = prefix;
    }
    return *last_;
  }

  std::size_t history_events_;
  Revision compacted_;
  std::unordered_set<Revision> superseded_;  ///< By what the history does not hold.
  std::unordered_set<Revision> succeeded_;   ///< By what it holds.
  bool is_succeeded_ = false;
  std::map<std::string, Resource> resources_;
  std::string last_prefix_;
  Resource* last_ = nullptr;
};

}  // namespace

/// A record with its object made; for a tombstone only the record.
struct ObjectCacheImpl::Loaded {
  store::Record record;
  ObjectPtr object;
  TimePoint expires_at{};
  bool is_in_history = false;
  bool is_succeeded = false;  ///< The history has a later write of its key, or would have.

  void make(const MetaOf& meta_of, TextPacker& packer) {
    if (record.value == nullptr) return;
    ObjectMeta meta = meta_of(record.key, *record.value);
    auto made = std::make_shared<StoredObject>(record.key, record.value, record.revision, record.create_revision, meta);
    made->expires = meta.expires_at != TimePoint{};
    packer.pack(resource_prefix(made->key), made->meta.name, *made->kept);
    object = std::move(made);
    expires_at = meta.expires_at;
    record.value = nullptr;
  }
};

/// The writes of the history, the newest first, and by revision what these superseded: null until its record has come.
struct ObjectCacheImpl::LoadedHistory {
  std::vector<Loaded> writes;
  std::unordered_map<Revision, ObjectPtr> before;
};

/// Threads that make objects of batches, and apply these in the order in which they come.
class ObjectCacheImpl::Loading {
 public:
  using Batch = std::vector<Loaded>;
  /// `make` may be called by several at once, each with a packer of its own; `apply` by one at a time.
  Loading(std::size_t threads, std::function<void(Batch&, TextPacker&)> make, std::function<Result<void>(Batch)> apply)
      : make_(std::move(make)), apply_(std::move(apply)) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~Loading() { (void)finish(); }
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;

  /// Waits while as many as there are threads wait. An error is one of applying, of this batch or an earlier one.
  Result<void> hand_in(Batch batch) {
    const MutexLock lock(mutex_);
    moved_.wait(mutex_, [&]() BERTH_REQUIRES(mutex_) { return waiting_.size() < threads_.size() || !outcome_; });
    waiting_.push_back(std::move(batch));
    moved_.notify_all();
    return outcome_;
  }
  /// All that was handed in is applied.
  Result<void> finish() {
    {
      const MutexLock lock(mutex_);
      is_complete_ = true;
    }
    moved_.notify_all();
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
    const MutexLock lock(mutex_);
    return outcome_;
  }

 private:
  void run() {
    TextPacker packer;
    const MutexLock lock(mutex_);
    for (;;) {
      moved_.wait(mutex_, [&]() BERTH_REQUIRES(mutex_) { return is_complete_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      Batch batch = std::move(waiting_.front());
      waiting_.pop_front();
      const std::size_t turn = taken_++;
      moved_.notify_all();
      {
        const MutexUnlock others(mutex_);
        make_(batch, packer);
      }
      moved_.wait(mutex_, [&]() BERTH_REQUIRES(mutex_) { return applied_ == turn; });
      if (outcome_) outcome_ = apply_in_turn(std::move(batch));
      ++applied_;
      moved_.notify_all();
    }
  }
  Result<void> apply_in_turn(Batch batch) BERTH_REQUIRES(mutex_) {
    const MutexUnlock others(mutex_);
    return apply_(std::move(batch));
  }

  std::function<void(Batch&, TextPacker&)> make_;
  std::function<Result<void>(Batch)> apply_;
  Mutex mutex_;
  CondVar moved_;
  std::deque<Batch> waiting_ BERTH_GUARDED_BY(mutex_);
  std::size_t taken_ BERTH_GUARDED_BY(mutex_) = 0, applied_ BERTH_GUARDED_BY(mutex_) = 0;
  bool is_complete_ BERTH_GUARDED_BY(mutex_) = false;
  Result<void> outcome_ BERTH_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

Result<void> ObjectCacheImpl::load(const MetaOf& meta_of) {
  const store::StoreState state = store_->state();
  compacted_ = state.compacted_revision;
  NeededRecords needed(options_.history_events, compacted_);
  LoadedHistory history;
  // This thread reads the file, others parse, and pack: what is there a while in plain texts would take more memory than the server ever
  // needs once it runs, and more time for the system to give it.
  Loading loading(
      std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 8),
      [&meta_of](Loading::Batch& batch, TextPacker& packer) {
        for (Loaded& loaded : batch) loaded.make(meta_of, packer);
      },
      [&](Loading::Batch batch) -> Result<void> {
        for (Loaded& loaded : batch) apply_loaded(std::move(loaded), history);
        return options_.has_room ? options_.has_room() : Result<void>();
      });
  Loading::Batch batch;
  const auto flush = [&] { return loading.hand_in(std::exchange(batch, {})); };
  auto read = store_->read_back([&](const store::RecordHead& head) { return needed.wants(head); },
                                [&](store::Record record) -> Result<void> {
                                  const bool is_in_history = needed.is_in_history(record);
                                  if (batch.empty()) batch.reserve(kBatch);
                                  batch.push_back({std::move(record), nullptr, {}, is_in_history, needed.is_succeeded()});
                                  return batch.size() == kBatch ? flush() : Result<void>();
                                });
  if (!read) return read;
  if (auto flushed = flush(); !flushed) return flushed;
  if (auto applied = loading.finish(); !applied) return applied;
  needed.for_each_floor([&](const std::string& resource, Revision floor) { history_.begin(resource, floor); });
  enter_history(std::move(history));
  published_ = state.last_revision;
  delivered_->store(published_);
  return {};
}

void ObjectCacheImpl::apply_loaded(Loaded loaded, LoadedHistory& history) {
  const Revision revision = loaded.record.revision;
  if (const auto superseded = history.before.find(revision); superseded != history.before.end()) {
    superseded->second = loaded.object;
  } else if (loaded.object != nullptr && !loaded.is_succeeded) {
    index_.put(loaded.object);
    expiring_room_.replace(nullptr, loaded.object.get());
    if (loaded.object->expires) expiries_.push({loaded.expires_at, revision, loaded.object});
  }
  if (!loaded.is_in_history) return;
  if (loaded.record.previous_revision != 0) history.before.try_emplace(loaded.record.previous_revision);
  history.writes.push_back(std::move(loaded));
}

void ObjectCacheImpl::enter_history(LoadedHistory history) {
  for (auto write = history.writes.rbegin(); write != history.writes.rend(); ++write) {
    const auto known = history.before.find(write->record.previous_revision);
    const ObjectPtr before = known == history.before.end() ? nullptr : known->second;
    if (write->object != nullptr)
      history_.add({write->object, before, false});
    else if (before != nullptr)
      history_.add({std::make_shared<const StoredObject>(*before, write->record.revision), before, true});
  }
}

}  // namespace berth::apiserver
