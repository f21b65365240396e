// Equal values kept once: what many long-lived objects have alike (pods of one template: labels, owners, containers, tolerations).
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace berth {

/// Mixes a part's hash into a value's.
inline void mix_hash(std::size_t& hash, std::size_t part) { hash = (hash ^ (hash >> 29)) * 0x9e3779b97f4a7c15ULL + part; }

/// Two values are the same when all their parts are: a type's `parts()` names them all, where == may leave some out. Types without have ==
/// and std::hash.
struct ByParts {
  template <typename T>
  static std::size_t hash(const T& value) {
    if constexpr (requires { value.parts(); }) {
      return std::apply([](const auto&... part) { return mixed(part...); }, value.parts());
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<std::size_t>(value);
    } else {
      return std::hash<T>()(value);
    }
  }
  template <typename A, typename B>
  static std::size_t hash(const std::pair<A, B>& pair) {
    return mixed(pair.first, pair.second);
  }
  template <typename Rep, typename Period>
  static std::size_t hash(std::chrono::duration<Rep, Period> time) {
    return std::hash<Rep>()(time.count());
  }
  template <typename T>
  static std::size_t hash(const std::optional<T>& value) {
    return value ? hash(*value) + 1 : 0;
  }
  template <typename T>
  static std::size_t hash(const std::vector<T>& list) {
    std::size_t out = list.size();
    for (const T& one : list) mix_hash(out, hash(one));
    return out;
  }

  template <typename Key, typename T>
  static std::size_t hash(const std::map<Key, T>& map) {
    std::size_t out = map.size();
    for (const auto& one : map) mix_hash(out, hash(one));
    return out;
  }

  template <typename T>
  static bool same(const T& a, const T& b) {
    if constexpr (requires { a.parts(); }) {
      return same_each(a.parts(), b.parts(), std::make_index_sequence<std::tuple_size_v<decltype(a.parts())>>());
    } else {
      return a == b;
    }
  }
  template <typename A, typename B>
  static bool same(const std::pair<A, B>& a, const std::pair<A, B>& b) {
    return same(a.first, b.first) && same(a.second, b.second);
  }
  template <typename T>
  static bool same(const std::optional<T>& a, const std::optional<T>& b) {
    return a.has_value() == b.has_value() && (!a || same(*a, *b));
  }
  template <typename T>
  static bool same(const std::vector<T>& a, const std::vector<T>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const T& one, const T& other) { return same(one, other); });
  }

 private:
  template <typename... Parts>
  static std::size_t mixed(const Parts&... parts) {
    std::size_t out = 0;
    (mix_hash(out, hash(parts)), ...);
    return out;
  }
  template <typename Tuple, std::size_t... At>
  static bool same_each(const Tuple& a, const Tuple& b, std::index_sequence<At...>) {
    return (same(std::get<At>(a), std::get<At>(b)) && ...);
  }
};

/// A value that does not change, one copy of it in the process for as long as somebody holds it; to be read as a pointer, never null. As
/// large as a pointer; compared as one, since the same values are one. Thread-safe. By says what is the same, and hashes it.
template <typename T, typename By = ByParts>
class Shared {
 public:
  Shared() = default;  ///< T().
  Shared(T value) : one_(By::same(value, nothing()) ? nullptr : pool().hold(std::move(value))) {}
  Shared(const Shared& other) : one_(other.one_) {
    if (one_ != nullptr) one_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  Shared(Shared&& other) noexcept : one_(std::exchange(other.one_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(one_, other.one_);
    return *this;
  }
  ~Shared() {
    if (one_ != nullptr && one_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) pool().forget(one_);
  }

  [[nodiscard]] const T& operator*() const { return one_ == nullptr ? nothing() : one_->value; }
  [[nodiscard]] const T* operator->() const { return &**this; }
  /// Holds another value from now on: this one as `change(T&)` leaves a copy of it.
  template <typename Change>
  void change(const Change& change) {
    T value = **this;
    change(value);
    *this = Shared(std::move(value));
  }
  friend bool operator==(const Shared& a, const Shared& b) { return a.one_ == b.one_; }
  [[nodiscard]] auto parts() const { return std::tuple(one_); }
  /// How many there are in the process.
  [[nodiscard]] static std::size_t count() { return pool().count(); }

 private:
  struct One {
    std::atomic<std::uint32_t> holders{1};
    std::uint32_t hash;
    One* next;
    T value;
  };

  /// Hash tables whose chains lead through the values themselves.
  class Pool {
   public:
    One* hold(T value) {
      const std::size_t full = By::hash(value);
      const auto hash = static_cast<std::uint32_t>((full * 0x9e3779b97f4a7c15ULL) >> 32);
      Shelf& shelf = shelves_[hash % kShelves];
      const MutexLock lock(shelf.mutex);
      if (shelf.count >= shelf.chains.size()) shelf.grow();
      One*& chain = shelf.chain(hash);
      for (One* one = chain; one != nullptr; one = one->next)
        if (one->hash == hash && By::same(one->value, value) && may_hold(*one)) return one;
      ++shelf.count;
      return chain = new One{1, hash, chain, std::move(value)};
    }
    void forget(One* gone) {
      {
        Shelf& shelf = shelves_[gone->hash % kShelves];
        const MutexLock lock(shelf.mutex);
        One** at = &shelf.chain(gone->hash);
        while (*at != gone) at = &(*at)->next;
        *at = gone->next;
        --shelf.count;
      }
      delete gone;
    }
    std::size_t count() {
      std::size_t out = 0;
      for (Shelf& shelf : shelves_) {
        const MutexLock lock(shelf.mutex);
        out += shelf.count;
      }
      return out;
    }

   private:
    static constexpr std::size_t kShelves = 16;
    struct Shelf {
      Mutex mutex;
      std::size_t count = 0;
      std::vector<One*> chains;  ///< A power of two.
      One*& chain(std::uint32_t hash) { return chains[(hash / kShelves) & (chains.size() - 1)]; }
      void grow() {
        const auto before = std::exchange(chains, std::vector<One*>(std::max<std::size_t>(8, 2 * chains.size())));
        for (One* one : before)
          while (one != nullptr) {
            One*& to = chain(one->hash);
            one = std::exchange(one->next, std::exchange(to, one));
          }
      }
    };
    /// One whose last holder is just going is held no more: another takes its place beside it.
    static bool may_hold(One& one) {
      std::uint32_t holders = one.holders.load(std::memory_order_relaxed);
      while (holders != 0)
        if (one.holders.compare_exchange_weak(holders, holders + 1, std::memory_order_relaxed)) return true;
      return false;
    }
    std::array<Shelf, kShelves> shelves_;
  };

  // Both outlive every static.
  static Pool& pool() {
    static auto* pool = new Pool;
    return *pool;
  }
  static const T& nothing() {
    static const auto* nothing = new T();
    return *nothing;
  }

  One* one_ = nullptr;
};

/// A list that does not change and is the same for many; to be read as a vector.
template <typename T>
class SharedList : public Shared<std::vector<T>> {
 public:
  using Base = Shared<std::vector<T>>;
  using value_type = T;
  using Base::Base;
  SharedList(std::initializer_list<T> list) : Base(std::vector<T>(list)) {}

  operator const std::vector<T>&() const { return **this; }
  [[nodiscard]] bool empty() const { return *this == SharedList(); }
  [[nodiscard]] std::size_t size() const { return (**this).size(); }
  [[nodiscard]] auto begin() const { return (**this).begin(); }
  [[nodiscard]] auto end() const { return (**this).end(); }
  [[nodiscard]] const T& operator[](std::size_t i) const { return (**this)[i]; }
  [[nodiscard]] const T& front() const { return (**this).front(); }
  [[nodiscard]] const T& back() const { return (**this).back(); }

  // Each copies the list: who has more to do makes a vector of it first.
  template <typename Change>
  void change_each(const Change& change) {
    this->change([&](std::vector<T>& list) { std::for_each(list.begin(), list.end(), change); });
  }
  template <typename Change>
  void change_at(std::size_t i, const Change& change) {
    this->change([&](std::vector<T>& list) { change(list[i]); });
  }
  void push_back(T one) {
    this->change([&](std::vector<T>& list) { list.push_back(std::move(one)); });
  }
  template <typename... Args>
  void emplace_back(Args&&... args) {
    push_back(T(std::forward<Args>(args)...));
  }
  void clear() { *this = SharedList(); }
  template <typename Is>
  void erase_if(const Is& is) {
    this->change([&](std::vector<T>& list) { std::erase_if(list, is); });
  }
  template <typename Less = std::ranges::less, typename By = std::identity>
  void sort(Less less = {}, By by = {}) {
    this->change([&](std::vector<T>& list) { std::ranges::sort(list, less, by); });
  }
};

}  // namespace berth
