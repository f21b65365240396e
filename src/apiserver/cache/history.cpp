#include "apiserver/cache/history.h"

#include <algorithm>

#include "apiserver/cache/index.h"

namespace berth::apiserver {

std::size_t held_bytes(const CacheEvent& change) {
  std::size_t bytes = sizeof(CacheEvent);
  if (change.previous != nullptr) bytes += change.previous->text_bytes() + 400;
  if (change.is_delete) bytes += change.object->text_bytes() + 400;
  return bytes;
}

void History::add(CacheEvent change) {
  auto prefix = resource_prefix(change.object->key);
  auto ring = rings_.find(prefix);
  if (ring == rings_.end()) ring = rings_.emplace(prefix, Ring{.floor = floor_}).first;
  std::size_t cost = held_bytes(change);
  ring->second.bytes += cost;
  bytes_ += cost;
  ring->second.changes.push_back(std::move(change));
  if (ring->second.changes.size() > max_events_) drop_oldest(ring->second);
  while (bytes_ > max_bytes_) {
    auto largest =
        std::max_element(rings_.begin(), rings_.end(), [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
    if (largest->second.changes.empty()) break;
    drop_oldest(largest->second);
  }
}

void History::begin(std::string_view resource, Revision floor) {
  const auto ring = rings_.try_emplace(std::string(resource)).first;
  ring->second.floor = std::max(floor_, floor);
}

void History::drop_oldest(Ring& ring) {
  std::size_t cost = held_bytes(ring.changes.front());
  ring.floor = ring.changes.front().revision();
  ring.bytes -= cost;
  bytes_ -= cost;
  ring.changes.pop_front();
}

bool History::reaches(std::string_view prefix, Revision revision) const {
  auto ring = rings_.find(resource_prefix(prefix));
  return revision >= (ring == rings_.end() ? floor_ : ring->second.floor);
}

std::vector<CacheEvent> History::after(std::string_view prefix, Revision revision) const {
  std::vector<CacheEvent> found;
  auto resource = resource_prefix(prefix);
  auto ring = rings_.find(resource);
  if (ring == rings_.end()) return found;
  const auto& changes = ring->second.changes;
  auto at = std::upper_bound(changes.begin(), changes.end(), revision, [](Revision r, const CacheEvent& c) { return r < c.revision(); });
  for (; at != changes.end(); ++at) {
    if (prefix.size() == resource.size() || at->object->key.starts_with(prefix)) found.push_back(*at);
  }
  return found;
}

}  // namespace berth::apiserver
