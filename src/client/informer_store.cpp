#include "client/informer_store.h"

#include <algorithm>

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

std::vector<std::vector<std::string>> InformerStore::keys_of(const Object& object) const {
  std::vector<std::vector<std::string>> keys;
  keys.reserve(indexes_.size());
  for (const auto& index : indexes_) keys.push_back(index.keys(object));
  return keys;
}

void InformerStore::enter(const Entry& entry) { enter(entry, keys_of(*entry.object)); }

void InformerStore::enter(const Entry& entry, std::vector<std::vector<std::string>> keys) {
  entry.index_keys = std::move(keys);
  for (std::size_t i = 0; i < indexes_.size(); ++i) {
    for (const auto& key : entry.index_keys[i]) indexes_[i].objects[key].insert(&entry);
  }
}

void InformerStore::leave(const Entry& entry) {
  for (std::size_t i = 0; i < entry.index_keys.size(); ++i) {
    auto& objects = indexes_[i].objects;
    for (const auto& key : entry.index_keys[i]) {
      const auto found = objects.find(key);
      if (found == objects.end()) continue;
      found->second.erase(&entry);
      if (found->second.empty()) objects.erase(found);
    }
  }
  entry.index_keys.clear();
}

const InformerStore::Entry* InformerStore::find(std::string_view ns, std::string_view name) const {
  const auto found = by_name_.find(Key{ns, name});
  return found == by_name_.end() ? nullptr : *found;
}

ObjectRef InformerStore::put(ObjectRef object) {
  const Entry* entry = find(object->ns(), object->name());
  if (entry == nullptr) {
    entry = &*entries_.insert(Entry{std::move(object), {}}).first;
    by_name_.insert(entry);
    enter(*entry);
    return nullptr;
  }
  // Most changes leave an object where it is in every index.
  auto keys = keys_of(*object);
  if (keys == entry->index_keys) return std::exchange(entry->object, std::move(object));
  leave(*entry);
  auto before = std::exchange(entry->object, std::move(object));
  enter(*entry, std::move(keys));
  return before;
}

ObjectRef InformerStore::erase(std::string_view ns, std::string_view name) {
  const Entry* entry = find(ns, name);
  if (entry == nullptr) return nullptr;
  leave(*entry);
  by_name_.erase(entry);
  auto before = entry->object;
  entries_.erase(entries_.find(entry->key()));
  return before;
}

ObjectRef InformerStore::get(std::string_view ns, std::string_view name) const {
  const Entry* entry = find(ns, name);
  return entry == nullptr ? nullptr : entry->object;
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
    std::vector<const Entry*> entries(found->second.begin(), found->second.end());
    std::sort(entries.begin(), entries.end(), Less());
    std::vector<ObjectRef> out;
    out.reserve(entries.size());
    for (const Entry* entry : entries) out.push_back(entry->object);
    return out;
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
