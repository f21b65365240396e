#include "apiserver/etcd/shared_cache.h"

#include <future>

#include "base/log.h"
#include "base/shared_mutex.h"

namespace berth::apiserver::etcd {
namespace {

constexpr auto kPublishPatience = std::chrono::seconds(5);  // A write that is done is answered then, whatever the watch does.
constexpr auto kReadPatience = std::chrono::seconds(10);
constexpr auto kRoomPeriod = std::chrono::seconds(1);
constexpr std::size_t kRoomSlice = 2000;                     // So many are deleted in a period at most.
constexpr auto kReadAgain = std::chrono::milliseconds(100);  // After what was to be read anew could not be.

}  // namespace

SharedCache::SharedCache(std::shared_ptr<store::SharedStore> store, const Clock& clock, EventLoop* loop, CacheOptions options,
                         std::shared_ptr<const StoredForm> form, Duration event_ttl)
    : PublishedObjects(options, 0),
      clock_(clock),
      options_(options),
      form_(std::move(form)),
      event_ttl_(event_ttl),
      store_(std::move(store)),
      keeper_thread_(loop == nullptr ? std::make_unique<ThreadLoop>("etcd") : nullptr),
      reader_thread_(loop == nullptr ? std::make_unique<ThreadLoop>("etcd-read") : nullptr),
      compactor_thread_(loop == nullptr ? std::make_unique<ThreadLoop>("compaction") : nullptr),
      keeper_(loop == nullptr ? *keeper_thread_ : *loop),
      reader_(loop == nullptr ? *reader_thread_ : *loop),
      compactor_(loop == nullptr ? *compactor_thread_ : *loop) {}

void SharedCache::end_flights() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  if (keeper_thread_) keeper_thread_->stop();
  if (reader_thread_) reader_thread_->stop();
  if (compactor_thread_) compactor_thread_->stop();
  lifeline_.end();
  store_->stop();
  MutexLock lock(mutex_);
  auto waiting = waiters_.take_all();  // What they wait for is told to nobody any more, and from now on nobody waits.
  lock.unlock();
  for (auto& waiter : waiting) waiter.done(false);
  lock.lock();
  // Every write and question under way is answered within its own time.
  idle_.wait(mutex_, [this]() BERTH_REQUIRES(mutex_) { return flights_.empty() && !is_asking_; });
}

Task SharedCache::guarded(void (SharedCache::*task)()) {
  return lifeline_.guard([this, task] { (this->*task)(); });
}

Result<Revision> SharedCache::read_all(const std::function<void(std::string key, ObjectPtr object)>& each) {
  // One thread reads, others decode, as at the start over a store of one's own.
  using Decoded = std::vector<std::pair<std::string, Result<ObjectPtr>>>;
  const std::size_t workers = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 8);
  std::deque<std::future<Decoded>> decoding;
  std::optional<Error> unreadable;
  std::size_t unknown = 0;
  const auto take_first = [&] {
    for (auto& [key, object] : decoding.front().get()) {
      if (object)
        each(std::move(key), std::move(*object));
      else if (object.error().code == ErrorCode::kNotFound)
        ++unknown;
      else if (!unreadable)
        unreadable = object.error();
    }
    decoding.pop_front();
  };
  std::vector<std::pair<std::string, store::SharedRecord>> batch;
  const auto flush = [&] {
    if (decoding.size() >= workers) take_first();
    decoding.push_back(std::async(std::launch::async, [this, records = std::move(batch)] {
      Decoded out;
      out.reserve(records.size());
      for (const auto& [key, record] : records) out.emplace_back(key, decode(key, record));
      return out;
    }));
    batch = {};
  };
  auto read = store_->read([&](store::SharedRecord record) -> Result<void> {
    auto key = form_->cache_key(record.key);
    if (!key) return {};
    batch.emplace_back(std::move(*key), std::move(record));
    if (batch.size() == 2000) flush();
    return {};
  });
  flush();
  while (!decoding.empty()) take_first();
  if (!read) return read;
  if (unreadable) return std::unexpected(*unreadable);
  if (unknown > 0) log::info("etcd", "{} objects are of versions that are not served here; they are left as they are", unknown);
  return read;
}

Result<void> SharedCache::load() {
  std::vector<CacheEvent> expiring;
  auto read = read_all([&](const std::string&, ObjectPtr object) BERTH_NO_THREAD_SAFETY_ANALYSIS {
    expiring_room_.replace(nullptr, object.get());
    if (object->expires) expiring.push_back({object, nullptr, false});
    index_.put(std::move(object));
  });
  if (!read) return std::unexpected(read.error());
  std::ranges::sort(expiring, {}, [](const CacheEvent& change) { return change.revision(); });
  remember_expiring(expiring);
  history_ = History(options_.history_events, options_.history_bytes, *read);
  published_ = *read;
  delivered_->store(*read);
  store_->follow(*read, *this);
  compactor_.schedule_after(options_.compaction_interval, guarded(&SharedCache::compact));
  if (expiring_room_.is_bounded()) keeper_.schedule_after(kRoomPeriod, guarded(&SharedCache::make_room));
  return {};
}

ObjectPtr SharedCache::object_of(const std::string& key, std::string text, std::size_t revision_offset, const store::SharedRecord& record,
                                 const ObjectMeta& meta, bool expires) const {
  auto object = std::make_shared<StoredObject>(key, make_bytes(with_revision(std::move(text), revision_offset, record.revision)),
                                               record.revision, record.create_revision, meta);
  object->expires = expires;
  return object;
}

void SharedCache::keep_foreign(const std::string& key, Bytes body) {
  const MutexLock lock(mutex_);
  if (body != nullptr)
    foreign_[key] = std::move(body);
  else if (!foreign_.empty())
    foreign_.erase(key);
}

Result<ObjectPtr> SharedCache::decode(const std::string& key, const store::SharedRecord& record) {
  Bytes foreign;
  auto text = form_->to_text(key, record.key, *record.value, &foreign);
  if (!text) return std::unexpected(text.error());
  keep_foreign(key, std::move(foreign));
  auto meta = extract_meta(key, text->value, event_ttl_);
  return object_of(key, std::move(text->value), text->revision_offset, record, meta, meta.expires_at != TimePoint{});
}

void SharedCache::propose(Proposal proposal, std::function<void(ProposeResult)> result) {
  if (proposal.value.size() > kMostObjectBytes) return result(std::unexpected(ProposeError::kTooLarge));
  auto flight = std::make_shared<Flight>();
  store::SharedWrite write;
  write.key = form_->stored_key(proposal.key);
  write.expected = proposal.expected;
  if (proposal.is_delete) {
    flight->present = get(proposal.key);
  } else {
    EncodedObject object{std::move(proposal.value), proposal.revision_offset};
    if (proposal.expected != 0) {
      const MutexLock lock(mutex_);
      if (const auto found = foreign_.find(proposal.key); found != foreign_.end()) flight->foreign = found->second;
    }
    auto stored = form_->to_stored(proposal.key, write.key, object, &flight->foreign);
    proposal.value = std::move(object.value);
    if (!stored) {
      log::error("etcd", "{}", stored.error().message);
      return result(std::unexpected(ProposeError::kStorage));
    }
    flight->stored = std::move(*stored);
    if (proposal.expires_at != TimePoint{}) write.ttl = std::max<Duration>(proposal.expires_at - clock_.now(), std::chrono::seconds(1));
  }
  write.value = flight->stored;
  flight->proposal = std::move(proposal);
  flight->result = std::move(result);
  MutexLock lock(mutex_);
  if (stopping_) {
    lock.unlock();
    return flight->result(std::unexpected(ProposeError::kStorage));
  }
  flights_.emplace(flight->proposal.key, flight);
  lock.unlock();
  store_->write(std::move(write), [this, flight](store::WriteAnswer answer) { answered(flight, std::move(answer)); });
}

void SharedCache::answered(const FlightPtr& flight, store::WriteAnswer answer) {
  const Proposal& proposal = flight->proposal;
  if (answer.verdict == store::WriteVerdict::kDone) {
    return wait(answer.revision, kPublishPatience, Who::kWriter, [this, flight, revision = answer.revision](bool) {
      ObjectPtr object;
      {
        const MutexLock lock(mutex_);  // The watch may be publishing it at this moment.
        object = flight->object;
      }
      if (object == nullptr || object->revision != revision) {
        if (!flight->proposal.is_delete)
          object = object_of(flight->proposal.key, flight->proposal.value, flight->proposal.revision_offset,
                             {flight->proposal.key, nullptr, revision, revision}, flight->proposal.meta,
                             flight->proposal.expires_at != TimePoint{});
        else if (flight->present != nullptr)
          object = std::make_shared<const StoredObject>(*flight->present, revision);
      }
      complete(flight, object != nullptr ? ProposeResult(std::move(object)) : std::unexpected(ProposeError::kNotFound));
    });
  }
  if (answer.verdict != store::WriteVerdict::kRefused) {
    log::error("etcd", "a write of {} {}: {}", proposal.key,
               answer.verdict == store::WriteVerdict::kUnknown ? "may or may not be stored" : "was refused", answer.message);
    {
      const MutexLock lock(mutex_);
      failure_ = answer.message;
    }
    const bool is_unknown = answer.verdict == store::WriteVerdict::kUnknown;
    return complete(flight, std::unexpected(is_unknown ? ProposeError::kUncertain : ProposeError::kStorage));
  }
  const auto error = !answer.present          ? ProposeError::kNotFound
                     : proposal.expected == 0 ? ProposeError::kExists
                                              : ProposeError::kRevisionMismatch;
  // Whoever tries again must find what was in the way.
  if (!answer.present && get(proposal.key) == nullptr) return complete(flight, std::unexpected(error));
  const Revision wanted = answer.present ? answer.present->revision : answer.revision;
  wait(wanted, std::chrono::seconds(1), Who::kReader, [this, flight, error](bool) { complete(flight, std::unexpected(error)); });
}

void SharedCache::complete(const FlightPtr& flight, ProposeResult result) {
  if (flight->result) flight->result(std::move(result));
  const MutexLock lock(mutex_);
  const auto [first, last] = flights_.equal_range(flight->proposal.key);
  for (auto at = first; at != last; ++at)
    if (at->second == flight) {
      flights_.erase(at);
      break;
    }
  if (stopping_ && flights_.empty()) idle_.notify_all();
}

ObjectPtr SharedCache::own_object(const std::string& key, const store::SharedRecord& record) {
  const MutexLock lock(mutex_);
  const auto [first, last] = flights_.equal_range(key);
  for (auto at = first; at != last; ++at) {
    Flight& flight = *at->second;
    if (flight.stored == nullptr || *flight.stored != *record.value) continue;
    flight.object = object_of(key, flight.proposal.value, flight.proposal.revision_offset, record, flight.proposal.meta,
                              flight.proposal.expires_at != TimePoint{});
    if (flight.foreign != nullptr) foreign_[key] = flight.foreign;
    return flight.object;
  }
  return nullptr;
}

std::optional<CacheEvent> SharedCache::change_of(store::SharedRecord& record, const ObjectPtr& current) {
  const auto key = *form_->cache_key(record.key);
  if (current != nullptr && current->revision >= record.revision) return std::nullopt;
  const auto gone = [&]() -> std::optional<CacheEvent> {
    if (current == nullptr) return std::nullopt;
    auto last = std::make_shared<const StoredObject>(*current, record.revision);
    const MutexLock lock(mutex_);
    if (!foreign_.empty()) foreign_.erase(key);
    const auto [first, end] = flights_.equal_range(key);
    for (auto at = first; at != end; ++at)
      if (at->second->stored == nullptr) at->second->object = last;
    return CacheEvent{last, current, true};
  };
  if (record.value == nullptr) return gone();
  auto object = own_object(key, record);
  if (object == nullptr) {
    auto decoded = decode(key, record);
    if (!decoded && decoded.error().code == ErrorCode::kNotFound) return gone();
    if (!decoded) {
      log::error("etcd", "somebody wrote what cannot be read; what was there before is shown: {}", decoded.error().message);
      return std::nullopt;
    }
    object = std::move(*decoded);
  }
  return CacheEvent{object, current, false};
}

void SharedCache::changed(std::vector<store::SharedRecord> records, Revision reached) {
  std::vector<CacheEvent> changes;
  changes.reserve(records.size());
  std::unordered_map<std::string, ObjectPtr> before;  // What the records so far have made of their keys.
  for (store::SharedRecord& record : records) {
    auto key = form_->cache_key(record.key);
    if (!key) continue;
    const auto found = before.find(*key);
    // Only this thread changes the index.
    auto change = change_of(record, found != before.end() ? found->second : own_index().find(*key));
    if (!change) continue;
    if (records.size() > 1) before[std::move(*key)] = change->is_delete ? nullptr : change->object;
    changes.push_back(std::move(*change));
  }
  publish_changes(changes, reached);
  remember_expiring(changes);
  answer_waiters(reached);
}

void SharedCache::wait_for(Revision revision, Duration timeout, std::function<void(bool)> done) {
  wait(revision, timeout, Who::kReader, std::move(done));
}

void SharedCache::wait(Revision revision, Duration timeout, Who who, std::function<void(bool)> done) {
  {
    const MutexLock lock(mutex_);
    if (revision > this->revision() && !stopping_) {
      const TimePoint now = keeper_.now();
      waiters_.add(revision, {now, now + timeout, who, std::move(done)});
      if (!std::exchange(is_looking_, true)) keeper_.schedule_after(RevisionWaiters::kStall, guarded(&SharedCache::look_at_waiters));
      return;
    }
  }
  done(revision <= this->revision());
}

void SharedCache::answer_waiters(Revision reached) {
  std::vector<RevisionWaiters::Waiter> due;
  {
    const MutexLock lock(mutex_);
    due = waiters_.reached(reached);
  }
  for (auto& waiter : due) waiter.done(true);
}

void SharedCache::catch_up(std::function<void(bool)> done) {
  {
    const MutexLock lock(mutex_);
    if (!stopping_) {
      readers_.push_back(std::move(done));
      if (is_asking_) return;  // Asked before this reader came: the next question is his.
      is_asking_ = true;
      done = nullptr;
    }
  }
  if (done) return done(false);
  ask_latest();
}

void SharedCache::ask_latest() {
  std::vector<std::function<void(bool)>> readers;
  {
    const MutexLock lock(mutex_);
    readers.swap(readers_);
  }
  store_->latest([this, readers = std::move(readers)](Result<Revision> latest) {
    for (const auto& reader : readers) {
      if (latest)
        wait(*latest, kReadPatience, Who::kReader, reader);
      else
        reader(false);
    }
    {
      const MutexLock lock(mutex_);
      if (!latest) failure_ = latest.error().message;
      is_asking_ = !readers_.empty();
      if (!is_asking_ && stopping_) idle_.notify_all();
      if (!is_asking_) return;
    }
    ask_latest();
  });
}

std::string SharedCache::storage_failure() const {
  const MutexLock lock(mutex_);
  return failure_.empty() ? ObjectCache::storage_failure() : failure_;
}

void SharedCache::lost() { reader_.post(guarded(&SharedCache::begin_anew)); }

void SharedCache::begin_anew() {
  log::warning("etcd", "what came after revision {} is compacted: everything is read anew", revision());
  std::map<std::string, ObjectPtr, std::less<>> now;
  const auto read = read_all([&](std::string key, ObjectPtr object) { now.emplace(std::move(key), std::move(object)); });
  if (!read) {
    log::error("etcd", "reading anew: {}", read.error().message);
    reader_.schedule_after(kReadAgain, guarded(&SharedCache::begin_anew));
    return;
  }
  // Clients that watch begin anew, since they count on every event; the server's own followers see what changed on the whole. Nobody who
  // comes later can begin before this.
  watchers_->skip_history();
  std::vector<CacheEvent> changes;
  for (const auto& [prefix, count] : own_index().counts())
    own_index().slice(prefix + "/", {}, 0).for_each([&](const ObjectPtr& object) {
      if (!now.contains(object->key)) changes.push_back({std::make_shared<const StoredObject>(*object, *read), object, true});
      return true;
    });
  for (auto& [key, object] : now) {
    const auto current = own_index().find(key);
    if (current != nullptr && current->revision >= object->revision) continue;
    // One that was deleted and made again is another object.
    const bool is_another = current != nullptr && current->create_revision != object->create_revision;
    if (is_another) changes.push_back({std::make_shared<const StoredObject>(*current, object->create_revision - 1), current, true});
    changes.push_back({object, is_another ? nullptr : current, false});
  }
  std::ranges::stable_sort(changes, {}, [](const CacheEvent& change) { return change.revision(); });
  {
    const WriterLock lock(index_mutex_);
    history_ = History(options_.history_events, options_.history_bytes, *read);
  }
  publish_changes(changes, *read);
  remember_expiring(changes);
  answer_waiters(*read);
  store_->follow(*read, *this);
}

void SharedCache::look_at_waiters() {
  RevisionWaiters::Late late;
  const TimePoint now = keeper_.now();
  {
    const MutexLock lock(mutex_);
    if (stopping_) return;
    late = waiters_.expire(now);
    is_looking_ = !waiters_.is_empty();
    if (is_looking_) keeper_.schedule_after(RevisionWaiters::kStall, guarded(&SharedCache::look_at_waiters));
  }
  for (auto& waiter : late.over) waiter.done(false);
  if (late.longest > RevisionWaiters::kStall && now - last_nudge_ > 10 * RevisionWaiters::kStall) {
    last_nudge_ = now;
    store_->nudge([verdict = takes_no_writes_](bool written) { *verdict = !written; });
  }
  // A watch that is late and one to which nothing comes look alike from here.
  if (late.longest > RevisionWaiters::kLong && *takes_no_writes_ && now - last_question_ > RevisionWaiters::kLong) {
    last_question_ = now;
    if (const auto reached = store_->up_to_date_until(revision())) answer_waiters(*reached);
  }
}

void SharedCache::compact() {
  // As kube-apiserver's compactor: whoever finds the counter as he left it compacts what was newest an interval ago; the others take over
  // the counter and try again later.
  const auto turn = store_->take_compaction_turn(compaction_version_, compaction_goal_);
  if (!turn) {
    log::warning("etcd", "compaction: {}", turn.error().message);
  } else {
    compaction_version_ = turn->version;
    if (turn->is_mine && compaction_goal_ != 0)
      if (const auto done = store_->compact(compaction_goal_); !done) log::warning("etcd", "compaction: {}", done.error().message);
    listed_from_ = compaction_goal_;
    compaction_goal_ = turn->revision;
  }
  compactor_.schedule_after(options_.compaction_interval, guarded(&SharedCache::compact));
}

void SharedCache::remember_expiring(std::span<const CacheEvent> changes) {
  if (!expiring_room_.is_bounded()) return;
  const MutexLock lock(mutex_);
  for (const CacheEvent& change : changes)
    if (!change.is_delete && change.object->expires) expiring_.push_back(change.object);
}

void SharedCache::make_room() {
  for (std::size_t going = 0; going < kRoomSlice;) {
    ObjectPtr oldest;
    {
      const MutexLock lock(mutex_);
      if (expiring_.empty()) break;
      oldest = expiring_.front().lock();
      if (oldest != nullptr && expiring_room_.excess() <= going_bytes_) break;
      expiring_.pop_front();
    }
    const ObjectPtr current = oldest != nullptr ? get(oldest->key) : nullptr;
    if (current == nullptr || current->revision != oldest->revision) continue;
    ++going;
    {
      const MutexLock lock(mutex_);
      going_bytes_ += current->text_bytes();
    }
    Proposal proposal;
    proposal.key = current->key;
    proposal.is_delete = true;
    proposal.expected = current->revision;
    propose(std::move(proposal), [this, current](const ProposeResult& gone) {
      expiring_room_.went_early(gone ? 1 : 0);
      const MutexLock lock(mutex_);
      going_bytes_ -= current->text_bytes();
      if (!gone && is_of_storage(gone.error())) expiring_.push_front(current);
    });
  }
  keeper_.schedule_after(kRoomPeriod, guarded(&SharedCache::make_room));
}

Result<std::unique_ptr<ObjectCache>> open_shared_cache(std::shared_ptr<store::SharedStore> store, const Clock& clock, CacheOptions options,
                                                       FormOptions form, Duration event_ttl, EventLoop* loop) {
  auto cache =
      std::make_unique<SharedCache>(std::move(store), clock, loop, options, std::make_shared<const StoredForm>(std::move(form)), event_ttl);
  if (auto loaded = cache->load(); !loaded) return std::unexpected(loaded.error());
  return cache;
}

}  // namespace berth::apiserver::etcd
