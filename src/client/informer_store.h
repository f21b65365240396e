// The informer's cache: objects in order of (namespace, name), with indexes. Not thread-safe.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "client/informer.h"

namespace berth::client {

class InformerStore {
 public:
  using IndexKeys = std::function<std::vector<std::string>(const Object&)>;

  void add_index(std::string index, IndexKeys keys);
  /// Inserts or replaces; returns what was there before.
  ObjectRef put(ObjectRef object);
  ObjectRef erase(std::string_view ns, std::string_view name);
  [[nodiscard]] ObjectRef get(std::string_view ns, std::string_view name) const;
  void for_each(const std::function<void(const ObjectRef&)>& each) const;
  void for_each_in(std::string_view ns, const std::function<void(const ObjectRef&)>& each) const;
  [[nodiscard]] std::vector<ObjectRef> by_index(std::string_view index, std::string_view key) const;
  [[nodiscard]] std::vector<ObjectRef> all() const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Key {
    std::string_view ns, name;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    mutable ObjectRef object;                                  ///< Replaced only by one of the same key.
    mutable std::vector<std::vector<std::string>> index_keys;  ///< One place an index.
    [[nodiscard]] Key key() const { return {object->ns(), object->name()}; }
  };
  static Key key_of(const Entry& e) { return e.key(); }
  static Key key_of(const Entry* e) { return e->key(); }
  static Key key_of(const Key& k) { return k; }
  struct Less {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return key_of(a) < key_of(b);
    }
  };
  struct Hash {
    using is_transparent = void;
    template <typename T>
    std::size_t operator()(const T& t) const {
      const Key key = key_of(t);
      return std::hash<std::string_view>()(key.name) * 31 + std::hash<std::string_view>()(key.ns);
    }
  };
  struct Equal {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return key_of(a) == key_of(b);
    }
  };
  struct Index {
    std::string name;
    IndexKeys keys;
    std::map<std::string, std::unordered_set<const Entry*>, std::less<>> objects;  ///< Ordered when somebody asks.
  };
  [[nodiscard]] const Entry* find(std::string_view ns, std::string_view name) const;
  void enter(const Entry& entry);
  void enter(const Entry& entry, std::vector<std::vector<std::string>> keys);
  void leave(const Entry& entry);
  [[nodiscard]] std::vector<std::vector<std::string>> keys_of(const Object& object) const;

  std::set<Entry, Less> entries_;
  /// The same ones, to be found by name: nearly every event is about an object that is known, and comparing long names that begin alike,
  /// seventeen times among 100,000, costs more than all else that happens here.
  std::unordered_set<const Entry*, Hash, Equal> by_name_;
  std::vector<Index> indexes_;
};

}  // namespace berth::client
