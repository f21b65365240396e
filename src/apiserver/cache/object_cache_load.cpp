#include <future>

#include "apiserver/cache/object_cache_impl.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kBatch = 4096;

}  // namespace

/// A record with its object made; for a tombstone only the record.
struct ObjectCacheImpl::Loaded {
  store::Record record;
  ObjectPtr object;
  TimePoint expires_at{};
};

Result<void> ObjectCacheImpl::load(const MetaOf& meta_of) {
  const store::StoreState state = store_->state();
  compacted_ = state.compacted_revision;
  // This thread reads the file and applies finished batches in order, others parse, and pack: what is there a while in plain texts would
  // take more memory than the server ever needs once it runs.
  const std::size_t workers = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 8);
  std::deque<std::future<std::vector<Loaded>>> parsing;
  const auto parse = [&meta_of](std::vector<store::Record> records) {
    std::vector<Loaded> loaded(records.size());
    TextPacker packer;
    for (std::size_t i = 0; i < records.size(); ++i) {
      store::Record& record = records[i];
      if (record.value != nullptr) {
        ObjectMeta meta = meta_of(record.key, *record.value);
        auto object = std::make_shared<StoredObject>(record.key, record.value, record.revision, record.create_revision, meta);
        object->expires = meta.expires_at != TimePoint{};
        packer.pack(resource_prefix(object->key), object->meta.name, *object->kept);
        loaded[i].object = std::move(object);
        loaded[i].expires_at = meta.expires_at;
      }
      record.value = nullptr;
      loaded[i].record = std::move(record);
    }
    return loaded;
  };
  const auto apply_first = [&]() -> Result<void> {
    for (Loaded& loaded : parsing.front().get()) apply_loaded(std::move(loaded));
    parsing.pop_front();
    return options_.has_room ? options_.has_room() : Result<void>();
  };

  std::vector<store::Record> batch;
  const auto flush = [&]() -> Result<void> {
    if (parsing.size() >= workers)
      if (auto applied = apply_first(); !applied) return applied;
    parsing.push_back(std::async(std::launch::async, parse, std::move(batch)));
    batch = {};
    batch.reserve(kBatch);
    return {};
  };
  auto read = store_->read(0, [&](store::Record record) -> Result<void> {
    batch.push_back(std::move(record));
    return batch.size() == kBatch ? flush() : Result<void>();
  });
  if (!read) return read;
  if (auto flushed = flush(); !flushed) return flushed;
  while (!parsing.empty())
    if (auto applied = apply_first(); !applied) return applied;
  published_ = state.last_revision;
  delivered_->store(published_);
  return {};
}

void ObjectCacheImpl::apply_loaded(Loaded loaded) {
  const bool in_history = loaded.record.revision > compacted_;
  ObjectPtr current = loaded.record.previous_revision != 0 ? index_.find(loaded.record.key) : nullptr;
  if (loaded.object == nullptr) {
    if (current == nullptr) return;
    if (in_history) history_.add({std::make_shared<const StoredObject>(*current, loaded.record.revision), current, true});
    index_.erase(loaded.record.key);
    count_expiring(nullptr, current);
    return;
  }
  if (in_history) history_.add({loaded.object, current, false});
  index_.put(loaded.object);
  count_expiring(loaded.object, current);
  if (loaded.object->expires) expiries_.push({loaded.expires_at, loaded.object->revision, loaded.object});
}

}  // namespace berth::apiserver
