#include "apiserver/cache/object_cache.h"

#include "apiserver/cache/object_cache_impl.h"
#include "base/shared_mutex.h"

namespace berth::apiserver {
namespace {

class WatchHandle final : public Watch {
 public:
  WatchHandle(std::shared_ptr<WatchState> state, std::shared_ptr<WatcherTable> table, std::shared_ptr<std::atomic<Revision>> delivered,
              Revision known)
      : state_(std::move(state)), table_(std::move(table)), delivered_(std::move(delivered)), known_(known) {}

  ~WatchHandle() override {
    {
      GateLock lock(state_->gate);
      state_->is_closed = true;
    }
    table_->remove(state_);
  }

  void request_bookmark() override {
    GateLock lock(state_->gate);
    if (state_->is_closed) return;
    // What a watch has been given may be ahead of what all have: the group being published is on its way. A start in the future is not.
    Revision reached = std::max(delivered_->load(std::memory_order_acquire), known_);
    if (state_->delivered > reached && state_->delivered != start_) reached = state_->delivered;
    if (!state_->sink->deliver({WatchEventType::kBookmark, nullptr, nullptr, reached})) state_->is_closed = true;
    if (!state_->is_closed) state_->sink->flush();
  }

  void set_start(Revision start) { start_ = start; }

 private:
  std::shared_ptr<WatchState> state_;
  std::shared_ptr<WatcherTable> table_;
  std::shared_ptr<std::atomic<Revision>> delivered_;
  Revision known_;      ///< Published when the watch began.
  Revision start_ = 0;  ///< Where it was asked to begin.
};

/// Delivers the past from the starter's thread, then what was published meanwhile, then lets the publisher in.
void replay(WatchState& state, const IndexSlice* initial, const std::vector<CacheEvent>& past, Revision snapshot) {
  bool open = true;
  if (initial != nullptr) {
    initial->for_each([&](const ObjectPtr& object) {
      if (matches(state.filter, *object)) open = state.sink->deliver({WatchEventType::kAdded, object, nullptr, object->revision});
      return open;
    });
    open = open && state.sink->deliver({WatchEventType::kBookmark, nullptr, nullptr, snapshot});
  }
  std::vector<CacheEvent> changes = past;
  for (;;) {
    state.floor = state.delivered;
    for (const CacheEvent& change : changes) {
      ObjectPtr gone;
      open = open && deliver_change(state, change, gone);
    }
    GateLock lock(state.gate);
    if (!open) state.is_closed = true;
    if (!open || state.pending.empty()) {
      state.pending.clear();
      state.is_replaying = false;
      return;
    }
    changes.clear();
    changes.swap(state.pending);
  }
}

bool is_selective(const WatchFilter& filter) {
  return filter.name || !filter.labels.is_everything() || !filter.fields.terms.empty() || filter.also;
}

}  // namespace

Result<std::unique_ptr<ObjectCache>> ObjectCache::open(std::unique_ptr<store::Store> store, const Clock& clock, CacheOptions options,
                                                       std::function<ObjectMeta(std::string_view key, const std::string& value)> meta_of,
                                                       bool synchronous) {
  auto cache = std::make_unique<ObjectCacheImpl>(std::move(store), clock, options, synchronous);
  if (auto loaded = cache->load(meta_of); !loaded) return std::unexpected(loaded.error());
  cache->start();
  return cache;
}

ObjectCacheImpl::ObjectCacheImpl(std::unique_ptr<store::Store> store, const Clock& clock, CacheOptions options, bool synchronous)
    : PublishedObjects(options, store->state().compacted_revision),
      store_(std::move(store)),
      clock_(clock),
      options_(options),
      synchronous_(synchronous) {}

void ObjectCacheImpl::end_writer() {
  {
    MutexLock lock(queue_mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (writer_.joinable()) writer_.join();
}

ObjectPtr PublishedObjects::get(std::string_view key) const {
  ReaderLock lock(index_mutex_);
  return index_.find(key);
}

ListResult PublishedObjects::list(const WatchFilter& filter, std::string_view after_key, std::size_t limit) const {
  IndexSlice slice;
  Revision revision;
  {
    ReaderLock lock(index_mutex_);
    slice = index_.slice(filter.prefix, after_key, is_selective(filter) ? 0 : limit);
    revision = published_;
  }
  ListResult result = page(slice, filter, limit);
  result.revision = revision;
  return result;
}

ListResult PublishedObjects::page(const IndexSlice& slice, const WatchFilter& filter, std::size_t limit) const {
  ListResult result;
  const bool selective = is_selective(filter);
  if (!selective) result.items.reserve(limit == 0 ? slice.total : std::min(limit, slice.total));
  slice.for_each([&](const ObjectPtr& object) {
    if (selective && !matches(filter, *object)) return true;
    if (limit != 0 && result.items.size() == limit) {
      result.more = true;
      return false;
    }
    result.items.push_back(object);
    return true;
  });
  if (!selective) {
    result.remaining = static_cast<std::int64_t>(slice.total - result.items.size());
    result.more = result.remaining > 0;
  }
  return result;
}

std::shared_ptr<const OpenList> PublishedObjects::state_at(Revision revision, const WatchFilter& filter, std::string_view after_key) const {
  auto out = std::make_shared<OpenList>(OpenList{.revision = revision, .prefix = filter.prefix, .after_key = std::string(after_key)});
  const ReaderLock lock(index_mutex_);
  if (!history_.reaches(filter.prefix, revision)) return nullptr;
  out->changes = history_.after(filter.prefix, revision);
  out->set_rest(index_.slice(filter.prefix, after_key, 0));
  out->taken_at = published_;
  return out;
}

std::optional<ListResult> PublishedObjects::list_at(Revision revision, const WatchFilter& filter, std::string_view after_key,
                                                    std::size_t limit) const {
  if (revision < listed_from_) return std::nullopt;
  const auto open = open_lists_.find(revision, filter.prefix, after_key);
  const auto then = open != nullptr ? open : state_at(revision, filter, after_key);
  if (then == nullptr) return std::nullopt;
  // One object more than the page has, and others for those that are left out of it.
  const bool is_page = limit != 0 && !is_selective(filter);
  const auto& changes = then->changes;
  const IndexSlice slice = then->rest_behind(after_key, is_page ? limit + (changes.empty() ? 0 : changes.size() + 1) : 0);
  ListResult result = changes.empty() ? page(slice, filter, limit) : page_before(changes, slice, filter, after_key, limit);
  result.revision = revision;
  if (open == nullptr && result.more) open_lists_.keep(then);
  if (open != nullptr && !result.more) open_lists_.close(open);
  return result;
}

ListResult PublishedObjects::page_before(const std::vector<CacheEvent>& changes, const IndexSlice& slice, const WatchFilter& filter,
                                         std::string_view after_key, std::size_t limit) const {
  struct Then {
    ObjectPtr object;  ///< Null: it was not there yet.
    bool is_there_now = false;
  };
  // Taking the changes back, newest first, leaves for each changed key the state before the first of them.
  std::map<std::string_view, Then> before;
  for (auto change = changes.rbegin(); change != changes.rend(); ++change)
    before.try_emplace(change->object->key, Then{nullptr, !change->is_delete}).first->second.object = change->previous;
  const bool selective = is_selective(filter);
  ListResult result;
  const auto take = [&](const ObjectPtr& object) {
    if (object == nullptr || (selective && !matches(filter, *object))) return true;
    result.more = limit != 0 && result.items.size() == limit;
    if (!result.more) result.items.push_back(object);
    return !result.more;
  };
  auto old = before.upper_bound(after_key);
  for (auto at = old; at != before.end(); ++at)
    result.remaining += (at->second.object != nullptr ? 1 : 0) - (at->second.is_there_now ? 1 : 0);
  bool goes_on = true;
  slice.for_each([&](const ObjectPtr& object) {
    for (; goes_on && old != before.end() && old->first < object->key; ++old) goes_on = take(old->second.object);
    if (!goes_on) return false;
    const bool is_changed = old != before.end() && old->first == object->key;
    goes_on = take(is_changed ? old->second.object : object);
    if (is_changed) ++old;
    return goes_on;
  });
  for (; goes_on && old != before.end(); ++old) goes_on = take(old->second.object);
  result.remaining = selective ? 0 : result.remaining + static_cast<std::int64_t>(slice.total - result.items.size());
  return result;
}

std::unique_ptr<Watch> PublishedObjects::watch(WatchFilter filter, Revision after, bool initial_state, std::shared_ptr<WatchSink> sink) {
  auto state = std::make_shared<WatchState>();
  state->filter = std::move(filter);
  state->sink = std::move(sink);
  IndexSlice initial;
  std::vector<CacheEvent> past;
  Revision snapshot;
  {
    ReaderLock lock(index_mutex_);
    snapshot = published_;
    if (initial_state) {
      initial = index_.slice(state->filter.prefix, {}, 0);
      state->delivered = snapshot;
    } else {
      if (!history_.reaches(state->filter.prefix, after)) return nullptr;
      past = history_.after(state->filter.prefix, after);
      state->delivered = after;
    }
    // Under the same lock: nothing can be published between the snapshot and the registration.
    watchers_->add(state);
  }
  auto handle = std::make_unique<WatchHandle>(state, watchers_, delivered_, snapshot);
  handle->set_start(state->delivered);
  replay(*state, initial_state ? &initial : nullptr, past, snapshot);
  return handle;
}

ObjectCache::Packing PublishedObjects::pack_texts(Revision before) {
  constexpr std::size_t kLeaves = 4;
  std::vector<LeafRef> leaves;
  Packing done;
  {
    const ReaderLock lock(index_mutex_);
    leaves = index_.unpacked(packing_at_, kLeaves);
    done.is_round = packing_at_.is_start();
  }
  for (const LeafRef& leaf : leaves) {
    bool all = true;
    for (const ObjectPtr& object : leaf->items) {
      if (object->revision > before) {
        all = false;
      } else if (object->kept != nullptr) {
        const std::size_t saved = packer_.pack(resource_prefix(object->key), object->meta.name, *object->kept);
        done.texts += saved > 0 ? 1 : 0;
        done.bytes += saved;
      }
    }
    // Whoever changes the leaf while it is held here changes a copy.
    if (all) leaf->is_packed.store(true, std::memory_order_relaxed);
  }
  return done;
}

std::vector<std::pair<std::string, std::size_t>> PublishedObjects::counts() const {
  ReaderLock lock(index_mutex_);
  return index_.counts();
}

void ObjectCacheImpl::wait_for(Revision revision, Duration timeout, std::function<void(bool)> done) {
  if (revision <= this->revision() || synchronous_) {
    done(revision <= this->revision());
    return;
  }
  {
    MutexLock lock(queue_mutex_);
    waiters_.push_back({revision, clock_.now() + timeout, std::move(done)});
  }
  wake_.notify_one();
}

}  // namespace berth::apiserver
