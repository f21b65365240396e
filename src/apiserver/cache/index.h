// Every live object by key, ordered: one sorted sequence of small leaves per resource.
//
// A reader copies references to the leaves it needs while it holds the cache's lock, and walks them afterwards without it; a writer that
// finds a leaf so referenced changes a copy. A list of 100,000 objects thus holds the lock for some 2,000 reference counts.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "apiserver/cache/object_cache.h"

namespace berth::apiserver {

/// Up to kCapacity objects in key order. Shared by snapshots; changed only by the index, and only while nobody else refers to it.
struct IndexLeaf {
  static constexpr std::size_t kCapacity = 64;
  std::atomic<int> references{0};
  /// Whoever packs texts is done with these objects. Set by who holds a reference, taken back by every change.
  mutable std::atomic<bool> is_packed{false};
  std::vector<ObjectPtr> items;
};

class LeafRef {
 public:
  LeafRef() = default;
  explicit LeafRef(IndexLeaf* leaf) : leaf_(leaf) { add(); }
  LeafRef(const LeafRef& other) : leaf_(other.leaf_) { add(); }
  LeafRef(LeafRef&& other) noexcept : leaf_(std::exchange(other.leaf_, nullptr)) {}
  LeafRef& operator=(LeafRef other) noexcept {
    std::swap(leaf_, other.leaf_);
    return *this;
  }
  ~LeafRef() {
    if (leaf_ != nullptr && leaf_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete leaf_;
  }
  [[nodiscard]] const IndexLeaf& operator*() const { return *leaf_; }
  [[nodiscard]] const IndexLeaf* operator->() const { return leaf_; }
  /// The leaf to change: a private copy first when snapshots hold it. Only under the lock that also guards the copying of references.
  IndexLeaf& writable();

 private:
  void add() {
    if (leaf_ != nullptr) leaf_->references.fetch_add(1, std::memory_order_relaxed);
  }
  IndexLeaf* leaf_ = nullptr;
};

/// A stretch of one resource's objects as it was at one moment. Valid for ever, needs no lock.
struct IndexSlice {
  std::vector<LeafRef> leaves;
  std::size_t begin = 0;  ///< First item, in the first leaf.
  std::size_t end = 0;    ///< Behind the last item, in the last leaf.
  std::size_t total = 0;  ///< Items in the whole range asked for; more than the slice has when it was limited.

  /// Calls each(const ObjectPtr&) in key order until it returns false.
  template <typename Each>
  void for_each(const Each& each) const {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const auto& items = leaves[i]->items;
      for (auto [at, to] = range(i); at < to; ++at) {
        if (!each(items[at])) return;
      }
    }
  }
  /// Where those of leaf `i` begin and end in it; a leaf without any is not here.
  [[nodiscard]] std::pair<std::size_t, std::size_t> range(std::size_t i) const {
    return {i == 0 ? begin : 0, i + 1 == leaves.size() ? end : leaves[i]->items.size()};
  }
};

/// "/GROUP/PLURAL/" of a key or a prefix; empty when it is neither.
std::string_view resource_prefix(std::string_view key);

/// Not thread-safe; see above for what a reader may do without the lock.
class ObjectIndex {
 public:
  [[nodiscard]] ObjectPtr find(std::string_view key) const;
  void put(ObjectPtr object);
  void erase(std::string_view key);
  /// Objects below `prefix` (make_prefix) with keys after `after_key`, at least `limit` of them if there are (0: all).
  [[nodiscard]] IndexSlice slice(std::string_view prefix, std::string_view after_key, std::size_t limit) const;
  [[nodiscard]] std::vector<std::pair<std::string, std::size_t>> counts() const;
  /// Where a walk over all leaves stands; empty at its start, and again at its end.
  struct Place {
    std::string resource, bound;
    [[nodiscard]] bool is_start() const { return resource.empty(); }
  };
  /// The next few leaves that are not packed, from `place` on; at its end, or after a look at many, fewer or none.
  [[nodiscard]] std::vector<LeafRef> unpacked(Place& place, std::size_t most) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Leaves = std::map<std::string, LeafRef, std::less<>>;
  struct Known {
    mutable ObjectPtr object;                     ///< Replaced only by one of the same key.
    mutable Leaves::value_type* place = nullptr;  ///< Whose leaf has it.
  };
  struct Resource {
    Leaves leaves;  ///< By a lower bound of their keys; the first one's is "".
    std::size_t count = 0;
  };
  static std::string_view key_of(const Known& known) { return known.object->key; }
  static std::string_view key_of(std::string_view key) { return key; }
  struct KeyHash {
    using is_transparent = void;
    std::size_t operator()(const auto& one) const { return std::hash<std::string_view>()(key_of(one)); }
  };
  struct SameKey {
    using is_transparent = void;
    bool operator()(const auto& one, const auto& other) const { return key_of(one) == key_of(other); }
  };
  /// Its leaf, for it alone, and where in it the object stands.
  static std::pair<std::vector<ObjectPtr>*, std::size_t> place_of(const Known& known);
  void insert(const Known& known);
  void split(Resource& resource, Leaves::iterator at, bool at_end);
  /// These stand in another leaf from now on.
  void move_to(Leaves::value_type& place, std::span<const ObjectPtr> objects);
  std::unordered_map<std::string, Resource, Hash, std::equal_to<>> resources_;
  /// The same objects, to be found and replaced one by one: on the way through the leaves of 100,000 objects each comparison is of long
  /// keys that begin alike, somewhere else in memory.
  std::unordered_set<Known, KeyHash, SameKey> by_key_;
};

}  // namespace berth::apiserver
