#include "client/informer_store.h"

namespace berth::client {

void InformerStore::add_index(std::string index, IndexKeys keys) {
  for (const auto& entry : entries_) leave(entry);
  const auto same = std::find_if(indexes_.begin(), indexes_.end(), [&](const Index& i) { return i.name == index; });
  if (same != indexes_.end())
    same->keys = std::move(keys);
  else
    indexes_.push_back({std::move(index), std::move(keys), {}});
  for (const auto& entry : entries_) enter(entry);
}

void InformerStore::enter(const Entry& entry) {
  entry.index_keys.clear();
  for (auto& index : indexes_) {
    entry.index_keys.push_back(index.keys(*entry.object));
    for (const auto& key : entry.index_keys.back()) index.objects[key].insert(entry.object);
  }
}

void InformerStore::leave(const Entry& entry) {
  for (std::size_t i = 0; i < entry.index_keys.size(); ++i) {
    auto& objects = indexes_[i].objects;
    for (const auto& key : entry.index_keys[i]) {
      const auto found = objects.find(key);
      if (found == objects.end()) continue;
      found->second.erase(entry.object);
      if (found->second.empty()) objects.erase(found);
    }
  }
}

ObjectRef InformerStore::put(ObjectRef object) {
  const auto found = entries_.find(object);
  if (found == entries_.end()) {
    enter(*entries_.insert(Entry{std::move(object), {}}).first);
    return nullptr;
  }
  leave(*found);
  auto before = std::exchange(found->object, std::move(object));
  enter(*found);
  return before;
}

ObjectRef InformerStore::erase(std::string_view ns, std::string_view name) {
  const auto found = entries_.find(Key{ns, name});
  if (found == entries_.end()) return nullptr;
  leave(*found);
  auto before = found->object;
  entries_.erase(found);
  return before;
}

ObjectRef InformerStore::get(std::string_view ns, std::string_view name) const {
  const auto found = entries_.find(Key{ns, name});
  return found == entries_.end() ? nullptr : found->object;
}

void InformerStore::for_each(const std::function<void(const ObjectRef&)>& each) const {
  for (const auto& entry : entries_) each(entry.object);
}

void InformerStore::for_each_in(std::string_view ns, const std::function<void(const ObjectRef&)>& each) const {
  for (auto it = entries_.lower_bound(Key{ns, {}}); it != entries_.end() && it->object->ns() == ns; ++it) each(it->object);
}

std::vector<ObjectRef> InformerStore::by_index(std::string_view index, std::string_view key) const {
  for (const auto& candidate : indexes_) {
    if (candidate.name != index) continue;
    const auto found = candidate.objects.find(key);
    if (found == candidate.objects.end()) return {};
    return {found->second.begin(), found->second.end()};
  }
  return {};
}

std::vector<ObjectRef> InformerStore::all() const {
  std::vector<ObjectRef> out;
  out.reserve(entries_.size());
  for (const auto& entry : entries_) out.push_back(entry.object);
  return out;
}

}  // namespace berth::client
