// Lists in pages whose readers are in the middle of them. The history reaches back so many bytes: on a busy cluster some seconds, and a
// list of all pods takes longer. So what a list shows is kept from its second page to its last; what nobody else needs of it any more has a
// bound.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apiserver/cache/history.h"
#include "apiserver/cache/index.h"
#include "base/mutex.h"

namespace berth::apiserver {

/// The objects below `prefix` behind `after_key` as they were at `revision`: as they were a while later, and what had changed in between.
struct OpenList {
  Revision revision = 0;
  std::string prefix, after_key;
  Revision taken_at = 0;  ///< The moment of `rest`.
  IndexSlice rest;
  std::vector<std::size_t> counts;  ///< Of objects, up to the end of each leaf of `rest`.
  std::vector<CacheEvent> changes;

  void set_rest(IndexSlice slice);
  /// Of `rest` what stands behind `key`, at least `most` objects if there are (0: all). Its cost is that of what it gives.
  [[nodiscard]] IndexSlice rest_behind(std::string_view key, std::size_t most) const;
};

/// Thread-safe. Its lock is taken last.
class OpenLists {
 public:
  /// Bytes of what is superseded and shown by a list here still, over all of them: beyond, the one that was idle longest goes.
  explicit OpenLists(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  /// Null: there is none (any more) that shows these.
  [[nodiscard]] std::shared_ptr<const OpenList> find(Revision revision, std::string_view prefix, std::string_view after_key);
  void keep(std::shared_ptr<const OpenList> list);
  /// Its last page was read.
  void close(const std::shared_ptr<const OpenList>& list);
  /// These writes have been published; lists of revisions before `listed_from` are not continued any more.
  void published(std::span<const CacheEvent> changes, Revision listed_from);
  [[nodiscard]] std::size_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Kept {
    std::shared_ptr<const OpenList> list;
    std::size_t bytes = 0;
  };
  void drop_beyond_bound() BERTH_REQUIRES(mutex_);

  const std::size_t most_bytes_;
  std::atomic<std::size_t> count_{0};  ///< Of lists_: most of the time none is open.
  Mutex mutex_;
  std::vector<Kept> lists_ BERTH_GUARDED_BY(mutex_);  ///< Who was asked last stands last.
};

}  // namespace berth::apiserver
