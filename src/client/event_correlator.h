// The decisions behind core events: count, combine, or leave out. No I/O, no clock.
#pragma once
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "client/event_recorder.h"

namespace berth::client {

/// The most recently used `capacity` entries.
template <typename V>
class LruCache {
 public:
  explicit LruCache(std::size_t capacity) : capacity_(capacity) {}
  /// The entry, moved to the front; null when absent.
  V* get(const std::string& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return &found->second->second;
  }
  /// The entry, made when absent. What falls out at the end is given to `evicted`.
  template <typename F>
  V& get_or_make(const std::string& key, const F& evicted) {
    if (V* known = get(key)) return *known;
    order_.emplace_front(key, V{});
    index_[key] = order_.begin();
    if (index_.size() > capacity_) {
      evicted(order_.back().second);
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    return order_.front().second;
  }
  V& get_or_make(const std::string& key) {
    return get_or_make(key, [](V&) {});
  }
  /// Removes entries for which `drop` is true.
  template <typename F>
  void erase_if(const F& drop) {
    for (auto it = order_.begin(); it != order_.end();) {
      if (!drop(it->second)) {
        ++it;
        continue;
      }
      index_.erase(it->first);
      it = order_.erase(it);
    }
  }

 private:
  std::size_t capacity_;
  std::list<std::pair<std::string, V>> order_;
  std::unordered_map<std::string, typename std::list<std::pair<std::string, V>>::iterator> index_;
};

/// A core event before it becomes JSON.
struct CoreEvent {
  ObjectReference involved;
  std::string name, ns, type, reason, message;
  std::string component, host;
  bool is_combined = false;
  TimePoint first, last;
  int count = 1;
};

class EventCorrelator {
 public:
  /// What is to be written: a new event (count 1) or a new count of an earlier one; nullopt: nothing.
  std::optional<CoreEvent> correlate(CoreEvent event, TimePoint now, const std::string& combined_name);

 private:
  static constexpr std::size_t kCacheEntries = 4096;
  struct Group {
    std::set<std::string> messages;
    TimePoint last{};
  };
  struct Log {
    int count = 0;
    TimePoint first{};
    std::string name;
  };
  struct Bucket {
    double tokens = 0;
    std::optional<TimePoint> at;
  };
  bool is_spam(const CoreEvent& event, TimePoint now);

  LruCache<Group> groups_{kCacheEntries};
  LruCache<Log> logs_{kCacheEntries};
  LruCache<Bucket> buckets_{kCacheEntries};
};

}  // namespace berth::client
