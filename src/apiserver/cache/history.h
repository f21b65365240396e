// The recent writes, in revision order, from which watches start in the past and continued lists are rebuilt.
//
// One ring per resource, so that a flood of Lease renewals does not push the pods' history out. The number of events is bounded per ring,
// the bytes over all of them: the largest ring gives way.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/cache/object_cache.h"

namespace berth::apiserver {

/// One write. For a deletion `object` is the last state carrying the deletion's revision and `previous` that state as it was.
struct CacheEvent {
  ObjectPtr object;
  ObjectPtr previous;  ///< Null for a creation.
  bool is_delete = false;
  [[nodiscard]] Revision revision() const { return object->revision; }
};

/// What the history alone keeps alive of it: the state that the write superseded, and a deletion's event. About 400 bytes go for an object
/// around its text.
std::size_t held_bytes(const CacheEvent& change);

/// Not thread-safe.
class History {
 public:
  /// Nothing up to and including `floor` is known.
  History(std::size_t max_events, std::size_t max_bytes, Revision floor) : max_events_(max_events), max_bytes_(max_bytes), floor_(floor) {}
  void add(CacheEvent change);
  /// Of this resource ("/GROUP/PLURAL/") nothing up to and including `floor` is known either.
  void begin(std::string_view resource, Revision floor);
  /// True when every change below `prefix` after `revision` is still here.
  [[nodiscard]] bool reaches(std::string_view prefix, Revision revision) const;
  /// Changes to objects below `prefix` after `revision`, oldest first. Requires reaches().
  [[nodiscard]] std::vector<CacheEvent> after(std::string_view prefix, Revision revision) const;
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct Ring {
    std::deque<CacheEvent> changes;
    std::size_t bytes = 0;
    Revision floor = 0;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  void drop_oldest(Ring& ring);

  std::size_t max_events_, max_bytes_, bytes_ = 0;
  Revision floor_;
  std::unordered_map<std::string, Ring, Hash, std::equal_to<>> rings_;
};

}  // namespace berth::apiserver
