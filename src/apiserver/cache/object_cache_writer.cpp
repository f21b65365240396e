#include <algorithm>

#include "apiserver/cache/object_cache_impl.h"
#include "base/log.h"
#include "base/shared_mutex.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kMaxGroup = 4096;                      // Proposals in one transaction.
constexpr auto kGathering = std::chrono::microseconds(500);  // How long the writer lets proposals come together …
constexpr std::size_t kGathered = 64;                        // … at most, and so many of them.
constexpr std::size_t kCrowd = 4;                            // Where so many came together …
constexpr auto kPatience = std::chrono::milliseconds(20);  // … heartbeats and events, for which nobody waits, are let come for so long …
constexpr std::size_t kCrowded = 200;                      // … at most, and so many of them.
constexpr std::size_t kExpirySlice = 500;                  // Expired objects deleted in one group.
constexpr Revision kCompactionStep = 1000;                 // Revisions; some milliseconds of the writer's time …
constexpr auto kCompactionPause = std::chrono::milliseconds(50);  // … at most this often while writes are waiting.
constexpr auto kLongestSleep = std::chrono::seconds(30);
constexpr auto kProbing = std::chrono::seconds(1);       // How often a full store is tried when nobody writes.
constexpr auto kMostUnsynced = std::chrono::seconds(5);  // So much of heartbeats and events a power failure may take.

}  // namespace

void ObjectCacheImpl::start() {
  next_compaction_ = clock_.now() + options_.compaction_interval;
  revision_at_last_compaction_ = own_revision();
  unsynced_since_ = clock_.now();  // The process before may have left something.
  if (!synchronous_) writer_ = std::thread([this] { run(); });
}

void ObjectCacheImpl::propose(Proposal proposal, std::function<void(ProposeResult)> result) {
  if (proposal.value.size() > kMostObjectBytes) return result(std::unexpected(ProposeError::kTooLarge));
  bool wakes = true;
  {
    MutexLock lock(queue_mutex_);
    const bool is_first_awaited = !proposal.relaxed_durability && !std::exchange(is_awaited_, true);
    queue_.push_back({std::move(proposal), std::move(result)});
    if (queue_.size() >= gathered_at_) gathered_at_ = 0;
    wakes = gathered_at_ == 0 || is_first_awaited;
  }
  if (synchronous_) {
    run_synchronously();
  } else if (wakes) {
    wake_.notify_one();
  }
}

/// Where several proposals come at a time, a group of many costs each of them less: of the transaction, and of the threads that it wakes.
/// One client that waits for each answer is never kept waiting.
void ObjectCacheImpl::gather(std::size_t last_group) {
  if (last_group < 2) return;
  const auto is_over = [this]() BERTH_REQUIRES(queue_mutex_) { return gathered_at_ == 0 || stopping_; };
  const auto let_come = [&](std::size_t most, Duration time, const auto& is_done) BERTH_REQUIRES(queue_mutex_) {
    if (stopping_ || queue_.size() >= most) return;
    gathered_at_ = most;
    wake_.wait_for(queue_mutex_, time, is_done);
    gathered_at_ = 0;
  };
  if (!is_awaited_ && last_group >= kCrowd)
    let_come(kCrowded, kPatience, [&]() BERTH_REQUIRES(queue_mutex_) { return is_over() || is_awaited_; });
  if (is_awaited_ || last_group < kCrowd) let_come(kGathered, kGathering, is_over);
}

void ObjectCacheImpl::run() {
  std::size_t last_group = 0;
  for (;;) {
    std::vector<Pending> batch;
    bool stop;
    {
      MutexLock lock(queue_mutex_);
      gather(last_group);
      if (queue_.empty() && !stopping_) {
        auto pause = time_to_wait();
        if (pause > Duration::zero()) wake_.wait_for(queue_mutex_, pause);
      }
      std::size_t count = std::min(queue_.size(), kMaxGroup);
      last_group = count;
      batch.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(queue_.begin() + static_cast<std::ptrdiff_t>(count)));
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
      is_awaited_ = !queue_.empty();
      stop = stopping_ && batch.empty();
    }
    if (stop) break;
    bool idle = batch.empty();
    for (auto& expired : take_expired(batch.size())) batch.push_back(std::move(expired));
    if (!batch.empty()) process(std::move(batch));
    answer_waiters();
    compact_step(idle);
    probe();
    if (idle) sync_step();
  }
  answer_waiters();
}

void ObjectCacheImpl::run_synchronously() {
  // A proposal made from within a callback or a delivery waits for the group under way; the outer call takes it next.
  if (run_gate_.is_behind()) return;
  const GateLock run_lock(run_gate_);
  for (;;) {
    std::vector<Pending> batch;
    {
      MutexLock lock(queue_mutex_);
      batch.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(queue_.end()));
      queue_.clear();
    }
    for (auto& expired : take_expired(batch.size())) batch.push_back(std::move(expired));
    if (batch.empty()) break;
    process(std::move(batch));
  }
  compact_step(true);
}

/// How long there is nothing to do.
Duration ObjectCacheImpl::time_to_wait() {
  if (compaction_goal_ > compacted_ && !read_only_) return Duration::zero();
  if (expiring_room_.excess() > 0 && !expiries_.empty() && is_writable()) return Duration::zero();
  TimePoint now = clock_.now();
  TimePoint next = std::min(now + kLongestSleep, next_compaction_);
  if (!expiries_.empty() && !read_only_) next = std::min(next, expiries_.top().when);
  if (full_) next = std::min(next, next_probe_);
  if (unsynced_since_ && is_writable()) next = std::min(next, *unsynced_since_ + kMostUnsynced);
  for (const Waiter& waiter : waiters_) next = std::min(next, waiter.deadline);
  return std::max(next - now, Duration(1000));
}

void ObjectCacheImpl::process(std::vector<Pending> batch) {
  Group group;
  group.changes.reserve(batch.size());
  group.records.reserve(batch.size());
  group.results.reserve(batch.size());
  for (Pending& pending : batch) {
    group.results.push_back(read_only_ ? ProposeResult(std::unexpected(ProposeError::kStorage)) : accept(group, pending.proposal));
  }
  if (!group.records.empty()) {
    if (commit(group)) {
      publish(group);
    } else {
      // Also those refused: what they were refused for may never have come to be.
      std::fill(group.results.begin(), group.results.end(), ProposeResult(std::unexpected(ProposeError::kStorage)));
      expire_later(batch);
    }
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].result) batch[i].result(std::move(group.results[i]));
  }
}

ProposeResult ObjectCacheImpl::accept(Group& group, Proposal& proposal) {
  auto changed = group.overlay.find(proposal.key);
  ObjectPtr current = changed != group.overlay.end() ? changed->second : own_index().find(proposal.key);
  if (proposal.expected == 0 && current != nullptr) return std::unexpected(ProposeError::kExists);
  if (current == nullptr && (proposal.is_delete || proposal.expected.value_or(0) != 0)) return std::unexpected(ProposeError::kNotFound);
  if (current != nullptr && proposal.expected && current->revision != *proposal.expected)
    return std::unexpected(ProposeError::kRevisionMismatch);

  Revision revision = own_revision() + static_cast<Revision>(group.changes.size()) + 1;
  group.sync = group.sync || !proposal.relaxed_durability;
  if (proposal.is_delete) return add_delete(group, current, revision);

  auto text = with_revision(std::move(proposal.value), proposal.revision_offset, revision);
  auto object = std::make_shared<StoredObject>(proposal.key, make_bytes(std::move(text)), revision,
                                               current != nullptr ? current->create_revision : revision, proposal.meta);
  object->expires = proposal.expires_at != TimePoint{};
  group.records.push_back({.revision = revision,
                           .create_revision = object->create_revision,
                           .previous_revision = current != nullptr ? current->revision : 0,
                           .key = std::move(proposal.key),
                           .value = object->text().shared()});
  group.changes.push_back({object, current, false});
  // The key of an entry must live as long as the entry: the change just added owns its text, whatever the older one did.
  group.overlay.erase(object->key);
  group.overlay.emplace(object->key, object);
  if (object->expires) group.expiries.push_back({proposal.expires_at, revision, object});
  return object;
}

ProposeResult ObjectCacheImpl::add_delete(Group& group, const ObjectPtr& current, Revision revision) {
  auto gone = std::make_shared<const StoredObject>(*current, revision);
  group.records.push_back({.revision = revision,
                           .create_revision = current->create_revision,
                           .previous_revision = current->revision,
                           .key = std::string(current->key),
                           .value = nullptr});
  group.changes.push_back({gone, current, true});
  group.overlay.erase(gone->key);
  group.overlay.emplace(gone->key, nullptr);
  return gone;
}

bool ObjectCacheImpl::is_sync_due() const { return unsynced_since_ && clock_.now() - *unsynced_since_ >= kMostUnsynced; }

bool ObjectCacheImpl::commit(Group& group) {
  group.sync = group.sync || is_sync_due();
  if (!take_outcome(store_->commit(group.records, group.sync), "writes refused")) return false;
  if (group.sync)
    unsynced_since_.reset();
  else if (!unsynced_since_)
    unsynced_since_ = clock_.now();
  return true;
}

/// Heartbeats and events that no other write followed. A store that is full is probed anyhow.
void ObjectCacheImpl::sync_step() {
  if (is_writable() && is_sync_due() && take_outcome(store_->probe(), "heartbeats and events were not synced")) unsynced_since_.reset();
}

bool ObjectCacheImpl::take_outcome(const Result<void>& written, std::string_view what) {
  if (written) {
    if (full_.exchange(false)) log::info("store", "there is room again");
    return true;
  }
  if (written.error().code == ErrorCode::kUnavailable) {
    // Nothing was written and the store is sound (a full disk): the next group may fare better.
    if (!what.empty()) log::error("store", "{}: {}", what, written.error().message);
    full_ = true;
    next_probe_ = clock_.now() + kProbing;
  } else {
    enter_read_only(written.error());
  }
  return false;
}

/// Whoever asks whether this server is ready sends it no writes while it is not: it must find out by itself.
void ObjectCacheImpl::probe() {
  if (full_ && !read_only_ && clock_.now() >= next_probe_) (void)take_outcome(store_->probe(), "");
}

/// What was to go by its age goes when there is room again.
void ObjectCacheImpl::expire_later(const std::vector<Pending>& batch) {
  for (const Pending& pending : batch)
    if (!pending.result && pending.proposal.is_delete)
      if (const ObjectPtr object = own_index().find(pending.proposal.key))
        expiries_.push({clock_.now() + kLongestSleep, pending.proposal.expected.value_or(0), object});
}

void ObjectCacheImpl::enter_read_only(const Error& error) {
  read_only_ = true;
  log::error("store", "the store failed; from now on all writes are refused, reads go on. Restart after repairing it. Cause: {}",
             error.message);
}

void PublishedObjects::publish_changes(std::span<const CacheEvent> changes, Revision reached) {
  {
    WriterLock lock(index_mutex_);
    for (const CacheEvent& change : changes) {
      if (change.is_delete) {
        index_.erase(change.object->key);
      } else {
        index_.put(change.object);
      }
      history_.add(change);
      expiring_room_.replace(change.previous.get(), change.is_delete ? nullptr : change.object.get());
    }
    published_ = reached;
  }
  open_lists_.published(changes, listed_from_);
  watchers_->publish(changes);
  delivered_->store(reached, std::memory_order_release);
}

void ObjectCacheImpl::publish(Group& group) {
  publish_changes(group.changes, own_revision() + static_cast<Revision>(group.changes.size()));
  for (Expiry& expiry : group.expiries) expiries_.push(std::move(expiry));
}

void ObjectCacheImpl::answer_waiters() {
  std::vector<std::pair<Waiter, bool>> due;
  {
    MutexLock lock(queue_mutex_);
    if (waiters_.empty()) return;
    TimePoint now = clock_.now();
    Revision reached = revision();
    std::erase_if(waiters_, [&](Waiter& waiter) BERTH_REQUIRES(queue_mutex_) {
      bool done = waiter.revision <= reached;
      if (!done && waiter.deadline > now && !stopping_) return false;
      due.emplace_back(std::move(waiter), done);
      return true;
    });
  }
  for (auto& [waiter, done] : due) waiter.done(done);
}

/// What is to go now, beside `arriving` proposals: it must not fall behind these.
std::vector<ObjectCacheImpl::Pending> ObjectCacheImpl::take_expired(std::size_t arriving) {
  std::vector<Pending> deletions;
  if (expiries_.empty() || read_only_) return deletions;
  const TimePoint now = clock_.now();
  std::size_t excess = expiring_room_.excess(), early = 0;
  while (!expiries_.empty() && deletions.size() < kExpirySlice + arriving) {
    const bool is_due = expiries_.top().when <= now;
    if (!is_due && excess == 0) break;
    const ObjectPtr object = expiries_.top().object.lock();
    const Revision revision = expiries_.top().revision;
    expiries_.pop();
    // A later write of the object has brought its own time.
    const ObjectPtr current = object != nullptr ? own_index().find(object->key) : nullptr;
    if (current == nullptr || current->revision != revision) continue;
    excess -= std::min(excess, object->text_bytes());
    early += is_due ? 0 : 1;
    Proposal proposal;
    proposal.key = object->key;
    proposal.is_delete = true;
    proposal.expected = revision;
    proposal.relaxed_durability = true;
    deletions.push_back({std::move(proposal), nullptr});
  }
  expiring_room_.went_early(early);
  return deletions;
}

void ObjectCacheImpl::compact_step(bool idle) {
  if (read_only_) return;
  TimePoint now = clock_.now();
  if (now >= next_compaction_) {
    // At least one interval and the watch history's length stay, so that watches can resume after a restart.
    Revision goal = std::min(revision_at_last_compaction_, own_revision() - static_cast<Revision>(options_.history_events));
    compaction_goal_ = std::max(compaction_goal_, goal);
    listed_from_ = revision_at_last_compaction_;
    revision_at_last_compaction_ = own_revision();
    next_compaction_ = now + options_.compaction_interval;
  }
  if (compaction_goal_ <= compacted_) return;
  if (!idle && now - last_compaction_step_ < kCompactionPause) return;
  Revision until = std::min(compaction_goal_, compacted_ + kCompactionStep);
  if (auto done = store_->compact(until); !done) {
    if (done.error().code == ErrorCode::kUnavailable) {
      log::warning("store", "compaction postponed: {}", done.error().message);
      compaction_goal_ = compacted_;
    } else {
      enter_read_only(done.error());
    }
    return;
  }
  compacted_ = until;
  last_compaction_step_ = clock_.now();
}

}  // namespace berth::apiserver
