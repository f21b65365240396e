#include "apiserver/cache/label_pool.h"

#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace berth::apiserver {
namespace {

std::size_t hash_of(const model::Labels& labels) {
  std::size_t hash = 0;
  for (const auto& [key, value] : labels.pairs()) {
    hash = hash * 0x9e3779b97f4a7c15ULL + std::hash<std::string>()(key);
    hash = hash * 0x9e3779b97f4a7c15ULL + std::hash<std::string>()(value);
  }
  return hash;
}

class LabelPool {
 public:
  std::shared_ptr<const model::Labels> share(const model::Labels& labels) {
    std::size_t hash = hash_of(labels);
    std::lock_guard lock(mutex_);
    for (auto [at, end] = sets_.equal_range(hash); at != end; ++at) {
      // A set whose last holder is just going cannot be locked any more: then a new one takes its place beside it.
      if (auto shared = at->second.shared.lock(); shared && *shared == labels) return shared;
    }
    const auto* set = new model::Labels(labels);
    std::shared_ptr<const model::Labels> shared(set, [this, hash](const model::Labels* gone) { forget(hash, gone); });
    sets_.emplace(hash, Entry{set, shared});
    return shared;
  }

 private:
  struct Entry {
    const model::Labels* set;
    std::weak_ptr<const model::Labels> shared;
  };

  void forget(std::size_t hash, const model::Labels* gone) {
    {
      std::lock_guard lock(mutex_);
      for (auto [at, end] = sets_.equal_range(hash); at != end; ++at) {
        if (at->second.set != gone) continue;
        sets_.erase(at);
        break;
      }
    }
    delete gone;
  }

  std::mutex mutex_;
  std::unordered_multimap<std::size_t, Entry> sets_;
};

}  // namespace

std::shared_ptr<const model::Labels> share_labels(const model::Labels& labels) {
  static const auto empty = std::make_shared<const model::Labels>();
  // Never destroyed: objects may outlive every static.
  static auto* pool = new LabelPool;
  return labels.empty() ? empty : pool->share(labels);
}

const std::string* intern_field_path(std::string_view path) {
  thread_local std::unordered_map<std::string_view, const std::string*> known;
  if (auto found = known.find(path); found != known.end()) return found->second;
  static auto* mutex = new std::mutex;
  static auto* paths = new std::unordered_set<std::string>;
  std::lock_guard lock(*mutex);
  const std::string* interned = &*paths->emplace(path).first;
  known.emplace(*interned, interned);
  return interned;
}

}  // namespace berth::apiserver
