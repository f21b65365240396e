#include "apiserver/cache/open_lists.h"

#include <algorithm>
#include <ranges>

namespace berth::apiserver {
namespace {

constexpr std::size_t kMostLists = 64;

}  // namespace

void OpenList::set_rest(IndexSlice slice) {
  rest = std::move(slice);
  counts.clear();
  counts.reserve(rest.leaves.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < rest.leaves.size(); ++i) {
    const auto [from, to] = rest.range(i);
    counts.push_back(count += to - from);
  }
}

IndexSlice OpenList::rest_behind(std::string_view key, std::size_t most) const {
  IndexSlice out;
  const auto leaves = std::views::iota(std::size_t{0}, rest.leaves.size());
  auto leaf =
      std::ranges::partition_point(leaves, [&](std::size_t i) { return rest.leaves[i]->items[rest.range(i).second - 1]->key <= key; });
  if (leaf == leaves.end()) return out;
  const auto [from, to] = rest.range(*leaf);
  const auto& items = rest.leaves[*leaf]->items;
  out.begin = from;
  while (items[out.begin]->key <= key) ++out.begin;
  out.total = counts.back() - counts[*leaf] + (to - out.begin);
  for (std::size_t taken = 0; leaf != leaves.end() && (most == 0 || taken < most); ++leaf) {
    out.leaves.push_back(rest.leaves[*leaf]);
    out.end = rest.range(*leaf).second;
    taken += out.end - (out.leaves.size() == 1 ? out.begin : 0);
  }
  return out;
}

std::shared_ptr<const OpenList> OpenLists::find(Revision revision, std::string_view prefix, std::string_view after_key) {
  if (count() == 0) return nullptr;
  const MutexLock lock(mutex_);
  const auto found = std::ranges::find_if(lists_, [&](const Kept& kept) {
    return kept.list->revision == revision && kept.list->prefix == prefix && kept.list->after_key <= after_key;
  });
  if (found == lists_.end()) return nullptr;
  std::rotate(found, std::next(found), lists_.end());
  return lists_.back().list;
}

void OpenLists::keep(std::shared_ptr<const OpenList> list) {
  const MutexLock lock(mutex_);
  Kept kept{std::move(list)};
  for (const CacheEvent& change : kept.list->changes) kept.bytes += held_bytes(change);
  lists_.push_back(std::move(kept));
  drop_beyond_bound();
}

void OpenLists::close(const std::shared_ptr<const OpenList>& list) {
  const MutexLock lock(mutex_);
  std::erase_if(lists_, [&](const Kept& kept) { return kept.list == list; });
  count_ = lists_.size();
}

void OpenLists::published(std::span<const CacheEvent> changes, Revision listed_from) {
  if (count() == 0) return;
  const MutexLock lock(mutex_);
  std::erase_if(lists_, [&](const Kept& kept) { return kept.list->revision < listed_from; });
  for (Kept& kept : lists_)
    for (const CacheEvent& change : changes)
      // Once of each object: what superseded this since was never shown by the list.
      if (change.previous != nullptr && change.previous->revision <= kept.list->taken_at &&
          change.object->key.starts_with(kept.list->prefix))
        kept.bytes += held_bytes(change);
  drop_beyond_bound();
}

void OpenLists::drop_beyond_bound() {
  std::size_t bytes = 0;
  for (const Kept& kept : lists_) bytes += kept.bytes;
  while (!lists_.empty() && (bytes > most_bytes_ || lists_.size() > kMostLists)) {
    bytes -= lists_.front().bytes;
    lists_.erase(lists_.begin());
  }
  count_ = lists_.size();
}

}  // namespace berth::apiserver
