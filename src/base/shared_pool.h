// Equal values kept once: what many long-lived objects have alike (pods of one template: labels, owners, tolerations).
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"

namespace berth {

/// One copy of each value, for as long as somebody holds it. Thread-safe. Values outlive every static: make it with new, and keep it.
template <typename T, typename Hash, typename Equal = std::equal_to<T>>
class SharedPool {
 public:
  std::shared_ptr<const T> share(T value) {
    const std::size_t hash = Hash()(value);
    const MutexLock lock(mutex_);
    for (auto [at, end] = values_.equal_range(hash); at != end; ++at) {
      // One whose last holder is just going cannot be locked any more: then a new one takes its place beside it.
      if (auto shared = at->second.shared.lock(); shared && Equal()(*shared, value)) return shared;
    }
    const auto* own = new T(std::move(value));
    std::shared_ptr<const T> shared(own, [this, hash](const T* gone) { forget(hash, gone); });
    values_.emplace(hash, Entry{own, shared});
    return shared;
  }
  [[nodiscard]] std::size_t size() const {
    const MutexLock lock(mutex_);
    return values_.size();
  }

 private:
  struct Entry {
    const T* value;
    std::weak_ptr<const T> shared;
  };

  void forget(std::size_t hash, const T* gone) {
    {
      const MutexLock lock(mutex_);
      for (auto [at, end] = values_.equal_range(hash); at != end; ++at) {
        if (at->second.value != gone) continue;
        values_.erase(at);
        break;
      }
    }
    delete gone;
  }

  mutable Mutex mutex_;
  std::unordered_multimap<std::size_t, Entry> values_ BERTH_GUARDED_BY(mutex_);
};

/// Mixes a part's hash into a value's.
inline void mix_hash(std::size_t& hash, std::size_t part) { hash = hash * 0x9e3779b97f4a7c15ULL + part; }

/// A list that does not change and may be the same for many; to be read as a vector.
template <typename T>
class SharedList {
 public:
  SharedList() = default;
  explicit SharedList(std::shared_ptr<const std::vector<T>> list) : list_(std::move(list)) {}
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t size() const { return list_ == nullptr ? 0 : list_->size(); }
  [[nodiscard]] const T* begin() const { return list_ == nullptr ? nullptr : list_->data(); }
  [[nodiscard]] const T* end() const { return begin() + size(); }
  [[nodiscard]] const T& operator[](std::size_t i) const { return (*list_)[i]; }
  [[nodiscard]] const T& front() const { return list_->front(); }
  friend bool operator==(const SharedList& a, const SharedList& b) {
    return a.list_ == b.list_ || std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::shared_ptr<const std::vector<T>> list_;
};

}  // namespace berth
