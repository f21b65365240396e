// What a log that is read from its newest record to its oldest makes of the cache:
//
//   newest of a resource, up to the history's length ── history ──┐ what they superseded: the state before
//   older, nobody superseded it ─────────────────────── index     │
//   older and superseded ────────────────────────────── not read <┴── nor what these superseded
//
// A thousand nodes write a hundred Leases a second: most of the log is that.
#include <future>
#include <unordered_set>

#include "apiserver/cache/object_cache_impl.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kBatch = 4096;

/// Says of each record, from the newest on, whether it is still needed.
class NeededRecords {
 public:
  NeededRecords(std::size_t history_events, Revision compacted) : history_events_(history_events), compacted_(compacted) {}

  bool wants(const store::RecordHead& head) {
    if (superseded_.erase(head.revision) == 0) {
      Resource& resource = resource_of(head.key);
      if (head.revision > compacted_ && resource.writes < history_events_) {
        ++resource.writes;
        return true;
      }
      resource.floor = std::max(resource.floor, head.revision);
      if (head.previous_revision != 0) superseded_.insert(head.previous_revision);
      return !head.is_delete;
    }
    if (head.previous_revision != 0) superseded_.insert(head.previous_revision);
    return false;
  }
  /// Of one that is wanted, before the next is asked about.
  [[nodiscard]] bool is_in_history(const store::Record& record) {
    return record.revision > std::max(compacted_, resource_of(record.key).floor);
  }
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
};

/// The writes of the history, the newest first, and by revision what these superseded: null until its record has come.
struct ObjectCacheImpl::LoadedHistory {
  std::vector<Loaded> writes;
  std::unordered_map<Revision, ObjectPtr> before;
};

Result<void> ObjectCacheImpl::load(const MetaOf& meta_of) {
  const store::StoreState state = store_->state();
  compacted_ = state.compacted_revision;
  NeededRecords needed(options_.history_events, compacted_);
  LoadedHistory history;
  // This thread reads the file and applies finished batches in order, others parse, and pack: what is there a while in plain texts would
  // take more memory than the server ever needs once it runs.
  const std::size_t workers = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 8);
  std::deque<std::future<std::vector<Loaded>>> parsing;
  const auto parse = [&meta_of](std::vector<Loaded> batch) {
    TextPacker packer;
    for (Loaded& loaded : batch) {
      store::Record& record = loaded.record;
      if (record.value == nullptr) continue;
      ObjectMeta meta = meta_of(record.key, *record.value);
      auto object = std::make_shared<StoredObject>(record.key, record.value, record.revision, record.create_revision, meta);
      object->expires = meta.expires_at != TimePoint{};
      packer.pack(resource_prefix(object->key), object->meta.name, *object->kept);
      loaded.object = std::move(object);
      loaded.expires_at = meta.expires_at;
      record.value = nullptr;
    }
    return batch;
  };
  const auto apply_first = [&]() -> Result<void> {
    for (Loaded& loaded : parsing.front().get()) apply_loaded(std::move(loaded), history);
    parsing.pop_front();
    return options_.has_room ? options_.has_room() : Result<void>();
  };

  std::vector<Loaded> batch;
  const auto flush = [&]() -> Result<void> {
    if (parsing.size() >= workers)
      if (auto applied = apply_first(); !applied) return applied;
    parsing.push_back(std::async(std::launch::async, parse, std::move(batch)));
    batch = {};
    batch.reserve(kBatch);
    return {};
  };
  auto read = store_->read_back([&](const store::RecordHead& head) { return needed.wants(head); },
                                [&](store::Record record) -> Result<void> {
                                  const bool is_in_history = needed.is_in_history(record);
                                  batch.push_back({std::move(record), nullptr, {}, is_in_history});
                                  return batch.size() == kBatch ? flush() : Result<void>();
                                });
  if (!read) return read;
  if (auto flushed = flush(); !flushed) return flushed;
  while (!parsing.empty())
    if (auto applied = apply_first(); !applied) return applied;
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
  } else if (loaded.object != nullptr) {
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
