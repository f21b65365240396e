// A hash map that is cheap to copy: copies share shards until one of them writes (docs/decisions/0015).
#pragma once
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "placement/pages.h"

namespace berth::placement {

/// For keys that are strings or views: asked with views.
struct TextHash {
  using is_transparent = void;
  using is_avalanching = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
struct NumberHash {
  using is_avalanching = void;
  std::size_t operator()(std::uint64_t number) const {
    number = (number ^ (number >> 32)) * 0x9e3779b97f4a7c15ULL;
    return number ^ (number >> 29);
  }
};

/// A copy costs a pointer for each shard in use, at most kShards. Few entries stay in one shard; the map splits as it grows.
template <typename Key, typename Value, typename Hash>
class ShardedMap {
 public:
  template <typename Asked>
  [[nodiscard]] const Value* find(const Asked& key) const {
    if (shards_.empty()) return nullptr;
    const auto& shard = shards_[shard_of(key)];
    if (shard == nullptr) return nullptr;
    const auto at = shard->find(key);
    return at == shard->end() ? nullptr : &at->second;
  }
  template <typename Asked>
  [[nodiscard]] bool contains(const Asked& key) const {
    return find(key) != nullptr;
  }
  /// For writing; null when absent.
  template <typename Asked>
  [[nodiscard]] Value* edit(const Asked& key) {
    if (!contains(key)) return nullptr;
    return &unshare(shards_[shard_of(key)]).find(key)->second;
  }
  /// The entry, made as Value() when absent.
  Value& operator[](const Key& key) {
    make_room();
    auto& shard = shards_[shard_of(key)];
    if (shard == nullptr) shard = std::make_shared<Shard>();
    const auto [at, is_new] = unshare(shard).try_emplace(key);
    size_ += is_new;
    return at->second;
  }
  template <typename Asked>
  bool erase(const Asked& key) {
    if (!contains(key)) return false;
    auto& shard = unshare(shards_[shard_of(key)]);
    shard.erase(shard.find(key));
    --size_;
    return true;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  void clear() {
    shards_.clear();
    size_ = 0;
  }
  /// In no order that means anything.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& shard : shards_)
      if (shard != nullptr)
        for (const auto& [key, value] : *shard) visit(key, value);
  }

 private:
  static constexpr std::size_t kShards = 1024, kEntriesOfShard = 256;
  using Shard = boost::unordered_flat_map<Key, Value, Hash, std::equal_to<>>;

  template <typename Asked>
  [[nodiscard]] std::size_t shard_of(const Asked& key) const {
    // The upper bits: the shard's own table goes by the lower ones.
    return (Hash{}(key) >> 40) & (shards_.size() - 1);
  }
  void make_room() {
    if (shards_.empty()) shards_.resize(1);
    if (size_ < shards_.size() * kEntriesOfShard || shards_.size() == kShards) return;
    std::vector<std::shared_ptr<Shard>> before = std::exchange(shards_, {});
    shards_.resize(std::min(kShards, before.size() * 8));
    for (const auto& shard : before) {
      if (shard == nullptr) continue;
      for (const auto& [key, value] : *shard) {
        auto& to = shards_[shard_of(key)];
        if (to == nullptr) to = std::make_shared<Shard>();
        to->emplace(key, value);
      }
    }
  }

  std::vector<std::shared_ptr<Shard>> shards_;
  std::size_t size_ = 0;
};

}  // namespace berth::placement
