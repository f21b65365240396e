// What became of a write whose answer was lost. The watch tells every write once and in order, so whoever waits until it has passed the
// moment after which the write cannot take effect any more (calls.h: the fence) knows whether it did, however often its key was written
// or deleted since.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "store/store.h"

namespace berth::store::etcd {

/// A write under way, as the watch knows it again: by its bytes, a deletion by the mark that was put in the same transaction.
struct Sought {
  std::string key;
  Bytes value;             ///< Null: a deletion.
  std::string mark;        ///< No two have the same.
  Revision seen = 0;       ///< Of the write, once the watch has told it.
  std::uint64_t term = 0;  ///< Of the following that it began in: between two, writes go unseen.
};
using SoughtPtr = std::shared_ptr<Sought>;

enum class Outcome {
  kWritten,
  kNotWritten,
  kUnknown,    ///< The watch has a gap, or does not get there in time.
  kUnwatched,  ///< Nobody has followed yet.
};

/// Thread-safe. No callback is called under its lock.
class Outcomes {
 public:
  using Clock = std::chrono::steady_clock;
  using Done = std::function<void(Outcome, Revision)>;

  /// From before the first try to the answer.
  SoughtPtr begin(const std::string& key, Bytes value);
  void end(const SoughtPtr& sought);
  /// Calls `done` once the watch has reached `fence`, or is seen not to.
  void wait(const SoughtPtr& sought, Revision fence, Clock::time_point until, Done done);

  // From the watch.
  void begin_following();
  void stop_following();
  void saw_put(const std::string& key, const std::string& value, Revision revision);
  void saw_deletion(const std::string& key, const std::string& mark, Revision revision);
  void reached(Revision revision);
  /// Those who have waited long enough are told so.
  void expire(Clock::time_point now);

 private:
  struct Waiting {
    SoughtPtr sought;
    Revision fence = 0;
    Clock::time_point until;
    Done done;
  };
  [[nodiscard]] bool is_decided(const Waiting& one) const BERTH_REQUIRES(mutex_);
  [[nodiscard]] Outcome outcome_of(const Waiting& one) const BERTH_REQUIRES(mutex_);
  /// Takes out those of whom `which` says so, and tells them.
  void settle(const std::function<bool(const Waiting&)>& which);

  Mutex mutex_;
  std::unordered_multimap<std::string, SoughtPtr> under_way_ BERTH_GUARDED_BY(mutex_);  ///< By key.
  std::vector<Waiting> waiting_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t term_ BERTH_GUARDED_BY(mutex_) = 0;
  bool is_following_ BERTH_GUARDED_BY(mutex_) = false;
  Revision reached_ BERTH_GUARDED_BY(mutex_) = 0;
  std::atomic<std::size_t> waiting_count_{0};
};

}  // namespace berth::store::etcd
