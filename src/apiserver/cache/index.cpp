#include "apiserver/cache/index.h"

#include <algorithm>

#include "base/check.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kLeafRoom = IndexLeaf::kCapacity + 1;  // A leaf is split after the insertion that overfills it.

std::size_t lower_bound(const std::vector<ObjectPtr>& items, std::string_view key) {
  auto at = std::lower_bound(items.begin(), items.end(), key, [](const ObjectPtr& object, std::string_view k) { return object->key < k; });
  return static_cast<std::size_t>(at - items.begin());
}

/// The smallest text greater than everything that starts with `prefix` (which ends in '/').
std::string behind(std::string_view prefix) {
  std::string text(prefix);
  text.back() = static_cast<char>(text.back() + 1);
  return text;
}

}  // namespace

std::string_view resource_prefix(std::string_view key) {
  if (key.empty() || key.front() != '/') return {};
  auto group_end = key.find('/', 1);
  if (group_end == std::string_view::npos) return {};
  auto plural_end = key.find('/', group_end + 1);
  return plural_end == std::string_view::npos ? std::string_view() : key.substr(0, plural_end + 1);
}

IndexLeaf& LeafRef::writable() {
  if (leaf_->references.load(std::memory_order_acquire) > 1) {
    auto copy = std::make_unique<IndexLeaf>();
    copy->items.reserve(kLeafRoom);
    copy->items.insert(copy->items.end(), leaf_->items.begin(), leaf_->items.end());
    *this = LeafRef(copy.release());
  }
  leaf_->is_packed.store(false, std::memory_order_relaxed);
  return *leaf_;
}

ObjectPtr ObjectIndex::find(std::string_view key) const {
  const auto known = by_key_.find(key);
  return known == by_key_.end() ? nullptr : known->object;
}

std::pair<std::vector<ObjectPtr>*, std::size_t> ObjectIndex::place_of(const Known& known) {
  auto& items = known.place->second.writable().items;
  const auto at = std::ranges::find(items, known.object);
  BERTH_CHECK(at != items.end(), "{} is not where it was put", known.object->key);
  return {&items, static_cast<std::size_t>(at - items.begin())};
}

void ObjectIndex::put(ObjectPtr object) {
  const auto [known, is_new] = by_key_.insert({object});
  if (is_new) return insert(*known);
  const auto [items, at] = place_of(*known);
  (*items)[at] = object;
  known->object = std::move(object);
}

void ObjectIndex::insert(const Known& known) {
  const ObjectPtr& object = known.object;
  auto found = resources_.find(resource_prefix(object->key));
  if (found == resources_.end()) found = resources_.emplace(resource_prefix(object->key), Resource{}).first;
  Resource& resource = found->second;
  if (resource.leaves.empty()) resource.leaves.emplace("", LeafRef(new IndexLeaf));
  const auto leaf = std::prev(resource.leaves.upper_bound(object->key));
  known.place = &*leaf;
  auto& items = leaf->second.writable().items;
  const std::size_t at = lower_bound(items, object->key);
  const bool at_end = at == items.size() && std::next(leaf) == resource.leaves.end();
  if (items.size() == items.capacity()) items.reserve(items.empty() ? 4 : items.size() < 16 ? 16 : kLeafRoom);
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), object);
  ++resource.count;
  if (items.size() > IndexLeaf::kCapacity) split(resource, leaf, at_end);
}

void ObjectIndex::move_to(Leaves::value_type& place, std::span<const ObjectPtr> objects) {
  for (const ObjectPtr& object : objects) by_key_.find(object->key)->place = &place;
}

void ObjectIndex::split(Resource& resource, Leaves::iterator at, bool at_end) {
  auto& items = at->second.writable().items;
  // Keys that come in order fill their leaves instead of leaving them half empty.
  auto middle = items.begin() + static_cast<std::ptrdiff_t>(at_end ? items.size() - 1 : items.size() / 2);
  auto* right = new IndexLeaf;
  right->items.reserve(kLeafRoom);
  right->items.assign(std::make_move_iterator(middle), std::make_move_iterator(items.end()));
  items.erase(middle, items.end());
  std::string bound(right->items.front()->key);
  move_to(*resource.leaves.emplace(std::move(bound), LeafRef(right)).first, right->items);
}

void ObjectIndex::erase(std::string_view key) {
  const auto known = by_key_.find(key);
  if (known == by_key_.end()) return;
  Resource& resource = resources_.find(resource_prefix(key))->second;
  const auto [place, at] = place_of(*known);
  auto& items = *place;
  const auto leaf = resource.leaves.find(known->place->first);
  by_key_.erase(known);
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  --resource.count;
  auto next = std::next(leaf);
  if (next != resource.leaves.end() && items.size() + next->second->items.size() <= IndexLeaf::kCapacity / 2) {
    const auto& more = next->second->items;
    move_to(*leaf, more);
    items.insert(items.end(), more.begin(), more.end());
    resource.leaves.erase(next);
  } else if (items.empty() && leaf != resource.leaves.begin()) {
    resource.leaves.erase(leaf);
  }
}

IndexSlice ObjectIndex::slice(std::string_view prefix, std::string_view after_key, std::size_t limit) const {
  IndexSlice slice;
  auto resource = resources_.find(resource_prefix(prefix));
  if (resource == resources_.end()) return slice;
  const auto& leaves = resource->second.leaves;
  const std::string stop = behind(prefix);
  // The smallest key after after_key is after_key with a zero byte behind it.
  std::string start = after_key.empty() || after_key < prefix ? std::string(prefix) : std::string(after_key) + '\0';
  auto leaf = leaves.upper_bound(start);
  if (leaf != leaves.begin()) --leaf;
  std::size_t taken = 0;
  for (bool first = true; leaf != leaves.end() && (first || leaf->first < stop); ++leaf, first = false) {
    const auto& items = leaf->second->items;
    std::size_t begin = first ? lower_bound(items, start) : 0;
    auto next = std::next(leaf);
    bool wholly_inside = items.empty() || (next != leaves.end() && next->first <= stop);
    std::size_t end = wholly_inside || items.back()->key < stop ? items.size() : lower_bound(items, stop);
    std::size_t count = end > begin ? end - begin : 0;
    slice.total += count;
    if (count == 0 || (limit != 0 && taken >= limit)) continue;
    taken += count;
    if (slice.leaves.empty()) slice.begin = begin;
    slice.leaves.push_back(leaf->second);
    slice.end = end;
  }
  return slice;
}

std::vector<LeafRef> ObjectIndex::unpacked(Place& place, std::size_t most) const {
  constexpr std::size_t kMostLooks = 1024;  // At a time: readers and the writer wait for their end.
  std::vector<LeafRef> found;
  auto resource = resources_.find(place.resource);
  std::size_t looks = 0;
  if (resource != resources_.end()) {
    for (auto leaf = resource->second.leaves.lower_bound(place.bound); leaf != resource->second.leaves.end(); ++leaf) {
      if (found.size() == most || ++looks > kMostLooks) {
        place.bound = leaf->first;
        return found;
      }
      if (!leaf->second->is_packed.load(std::memory_order_relaxed)) found.push_back(leaf->second);
    }
  }
  const std::string* next = nullptr;
  for (const auto& [prefix, other] : resources_)
    if (prefix > place.resource && (next == nullptr || prefix < *next)) next = &prefix;
  place = {next != nullptr ? *next : std::string(), {}};
  return found;
}

std::vector<std::pair<std::string, std::size_t>> ObjectIndex::counts() const {
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const auto& [prefix, resource] : resources_) counts.emplace_back(prefix.substr(0, prefix.size() - 1), resource.count);
  std::sort(counts.begin(), counts.end());
  return counts;
}

}  // namespace berth::apiserver
