#include "apiserver/cache/mirror.h"

#include "apiserver/cache/follow.h"
#include "apiserver/cache/object_codec.h"
#include "base/mutex.h"

namespace berth::apiserver {

struct Mirror::State {
  struct Entry {
    ObjectPtr object;
    Document document;
  };
  mutable Mutex mutex;
  mutable std::map<std::pair<std::string, std::string>, Entry> entries BERTH_GUARDED_BY(mutex);  // (namespace, name)
  std::uint64_t generation BERTH_GUARDED_BY(mutex) = 0;

  void take(const WatchEvent& event) {
    const MutexLock lock(mutex);
    const auto key = std::pair(std::string(event.object->meta.ns), std::string(event.object->meta.name));
    if (event.type == WatchEventType::kDeleted) {
      entries.erase(key);
    } else {
      entries[key] = {event.object, nullptr};
    }
    ++generation;
  }

  static const Document& document_of(Entry& entry) {
    if (entry.document == nullptr) entry.document = std::make_shared<const json::Value>(decode_object(*entry.object));
    return entry.document;
  }
};

Mirror::Mirror(ObjectCache& cache, std::string_view storage_group, std::string_view plural) : state_(std::make_unique<State>()) {
  watch_ = follow(cache, make_prefix(storage_group, plural), [this](const WatchEvent& event) { state_->take(event); });
}

Mirror::~Mirror() = default;

Mirror::Document Mirror::get(std::string_view ns, std::string_view name) const {
  const MutexLock lock(state_->mutex);
  const auto found = state_->entries.find(std::pair(std::string(ns), std::string(name)));
  return found == state_->entries.end() ? nullptr : State::document_of(found->second);
}

std::vector<Mirror::Document> Mirror::list(std::string_view ns) const {
  std::vector<Document> out;
  const MutexLock lock(state_->mutex);
  auto at = state_->entries.lower_bound(std::pair(std::string(ns), std::string()));
  for (; at != state_->entries.end() && (ns.empty() || at->first.first == ns); ++at) out.push_back(State::document_of(at->second));
  return out;
}

bool Mirror::empty() const {
  const MutexLock lock(state_->mutex);
  return state_->entries.empty();
}

bool Mirror::empty(std::string_view ns) const {
  const MutexLock lock(state_->mutex);
  if (state_->entries.empty()) return true;
  const auto at = state_->entries.lower_bound(std::pair(std::string(ns), std::string()));
  return at == state_->entries.end() || at->first.first != ns;
}

std::uint64_t Mirror::generation() const {
  const MutexLock lock(state_->mutex);
  return state_->generation;
}

}  // namespace berth::apiserver
