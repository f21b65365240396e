// Who wants to hear of which writes.
//
// A watch is filed under the most selective thing it names: an object's name, the value of its first equality field selector
// (spec.nodeName=n1), or only its prefix. A write asks the few lists that its own name and values lead to, so a thousand watches on other
// nodes' pods cost it nothing.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "apiserver/cache/history.h"
#include "apiserver/cache/object_cache.h"
#include "base/gate.h"
#include "base/shared_mutex.h"

namespace berth::apiserver {

/// Does `object`, known to be below the filter's prefix, match the rest of it?
bool matches(const WatchFilter& filter, const StoredObject& object);

/// One watch.
struct WatchState {
  WatchFilter filter;
  std::shared_ptr<WatchSink> sink;
  Gate gate;  ///< Of the sink, whose deliver may destroy its own Watch.
  bool is_closed = false;
  bool is_replaying = true;  ///< The starter delivers the past; what is published meanwhile waits in `pending`.
  std::vector<CacheEvent> pending;
  Revision delivered = 0;  ///< Everything up to it was delivered, or was before the watch's start.
  /// `delivered` before the changes being handed over now: several of them may share one revision.
  Revision floor = 0;
  /// Which changes of the group being published may concern it. The publisher's own, outside the gate.
  std::vector<std::uint32_t> due;
};

/// Turns one change into the event this watch sees, if any, as Kubernetes does: leaving the selector is a deletion of the previous state.
/// `gone` caches that state under the new revision, for all watchers of one change. Behind state.gate. False: the sink gave up.
bool deliver_change(WatchState& state, const CacheEvent& change, ObjectPtr& gone);

/// Thread-safe.
class WatcherTable {
 public:
  void add(std::shared_ptr<WatchState> state);
  void remove(const std::shared_ptr<WatchState>& state);
  /// Hands a group's changes to everybody concerned, in order, then flushes each of them once. One caller at a time.
  void publish(std::span<const CacheEvent> changes);
  /// Tells every watch (WatchSink::skip_history), before the change that closes the gap is published. By the publisher.
  void skip_history();
  [[nodiscard]] std::size_t size() const;

 private:
  using List = std::vector<std::shared_ptr<WatchState>>;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using ByText = std::unordered_map<std::string, List, Hash, std::equal_to<>>;
  struct Bucket {
    List all;
    ByText by_name;
    std::vector<std::pair<std::string, ByText>> by_field;
  };
  List& list_of(const WatchFilter& filter) BERTH_REQUIRES(mutex_);
  template <typename Each>
  static void collect(const Bucket& bucket, const CacheEvent& change, const Each& each);
  /// Notes in every watch concerned which changes may concern it, and the watches in `touched_`.
  void distribute(std::span<const CacheEvent> changes);
  /// False: the sink gave up.
  bool deliver_due(WatchState& state, std::span<const CacheEvent> changes);

  mutable SharedMutex mutex_;
  std::unordered_map<std::string, Bucket, Hash, std::equal_to<>> buckets_ BERTH_GUARDED_BY(mutex_);
  std::size_t size_ BERTH_GUARDED_BY(mutex_) = 0;
  List touched_;                 ///< Of publish; a member to keep its memory.
  std::vector<ObjectPtr> gone_;  ///< Of publish, by change: see deliver_change.
};

}  // namespace berth::apiserver
