// What foreign code is called behind.
#pragma once
#include <atomic>
#include <thread>

#include "base/mutex.h"

namespace berth {

/// A lock that is held while somebody else's code runs, so that no two calls run at once and none runs any more once whoever is called has
/// taken himself away. He may do that from within such a call, too: a thread that is behind the gate already passes it again.
///
/// Whoever passes a gate holds no other lock but, at most, gates that are passed before it (ARCHITECTURE.md "Locks"): what is called may
/// take any. Use with GateLock; the state that the gate guards may only change behind it, and may have changed
/// after every call that was made there.
class BERTH_CAPABILITY("gate") Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Not looked into: whether the mutex is taken hangs on the thread.
  void lock() BERTH_ACQUIRE() BERTH_NO_THREAD_SAFETY_ANALYSIS {
    if (is_behind()) {
      ++depth_;
      return;
    }
    mutex_.lock();
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }

  void unlock() BERTH_RELEASE() BERTH_NO_THREAD_SAFETY_ANALYSIS {
    if (depth_ > 0) {
      --depth_;
      return;
    }
    owner_.store(std::thread::id(), std::memory_order_relaxed);
    mutex_.unlock();
  }

  /// Whether this thread is. (A thread can only find its own id here when it has written it itself.)
  [[nodiscard]] bool is_behind() const { return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

 private:
  Mutex mutex_;
  std::atomic<std::thread::id> owner_{};
  int depth_ = 0;  ///< How often the owner has passed again. The owner's own.
};

using GateLock = ScopedLock<Gate>;

}  // namespace berth
